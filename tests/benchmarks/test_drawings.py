"""The figures of the evidence are drawn from the results that are committed."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from autotransfer.report.figures.theme import LIGHT, drawing, to_svg
from benchmarks.accuracy.levels import CHOSEN
from benchmarks.censors import strengths
from benchmarks.censors.evidence_tables import UNCENSORED, Table, compare
from benchmarks.drawings import (
    DRAWINGS,
    RESULTS,
    anytime,
    curves,
    gains,
    known_and_new,
    levels,
    mark,
    methods,
)
from benchmarks.nine_sets.pictures import censored, minutes, more_people


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_figure_is_of_the_results_that_are_there(name):
    source, _ = DRAWINGS[name]
    file = RESULTS / source
    if not file.exists():
        assert not (RESULTS / f"{name}.svg").exists()
        pytest.skip(f"{source} has not been taken yet")
    svg = (RESULTS / f"{name}.svg").read_text()
    assert svg.endswith(mark(file.read_bytes())), "run python -m benchmarks.drawings"


def words(figure):
    """All text of a figure."""
    with drawing(LIGHT):
        tree = ET.fromstring(to_svg(figure))
    return " ".join(one for one in tree.itertext() if one.strip())


def test_curves_show_every_measure_in_every_mode():
    rng = np.random.default_rng(0)
    rows = [
        {"data": name, "censor": f"{measure} {mode}", "strength": strength, "placebo": placebo}
        | {"estimator": estimator, "gain": rng.normal(), "noise": 0.01}
        for name in ("emg", "erp")
        for measure, mode, strength, placebo, estimator in strengths.cells()[1:]
    ]
    made = curves(rows, "gain", "gain", "", "noise")
    axes = made.axes
    assert len(axes) == 6
    assert all(len(ax.lines) == 2 * 5 + 1 for ax in axes)  # five measures, placebos, the level
    assert all(len(ax.patches) == 1 for ax in axes)  # the noise
    seen = words(made)
    assert all(word in seen for word in ("adversary", "erp, complementary", "strength"))


def test_budgets_stand_in_their_order_and_busy_machines_apart():
    rows = [
        {"case": case, "nested": 0.1 * i, "first answer": 0.0, "classical": 0.0}
        for i, case in enumerate(
            ("erp 60m", "erp 2m", "ssvep 1h30m", "erp 10m busy", "ssvep 10m", "ecg 30m")
        )
    ]
    erp, ssvep = anytime(rows).axes
    assert (erp.get_title(), ssvep.get_title()) == ("erp", "ssvep")
    assert erp.lines[0].get_xdata().tolist() == [2, 60]
    assert erp.lines[0].get_ydata().tolist() == [0.1, 0.0]
    assert ssvep.lines[0].get_xdata().tolist() == [10, 90]


def test_known_and_new_people():
    rows = [
        {"data": "erp", "censor": censor, "known": 0.8 - 0.1 * i, "new": 0.7 - 0.1 * i, "gap": -0.1}
        for i, censor in enumerate((UNCENSORED, "mmd marginal", "mmd marginal"))
    ]
    (ax,) = known_and_new(rows).axes
    diagonal, same_gap = ax.lines[-2:]
    assert np.allclose(diagonal.get_xdata(), diagonal.get_ydata())
    assert np.allclose(np.subtract(same_gap.get_ydata(), same_gap.get_xdata()), -0.1)
    drawn = [line for line in ax.lines if line.get_label() == "mmd"]
    assert np.allclose(drawn[0].get_xydata(), [[0.7, 0.6], [0.6, 0.5]])


def test_methods_and_gains():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"data": "erp", "setting": setting, "seed": 0, "fold": i, "side": side}
        | {"person": f"p{i}", "balanced_accuracy": rng.random()}
        for setting in (UNCENSORED, "mmd marginal 1")
        for i in range(6)
        for side in ("validation", "test")
    )
    table = Table("erp", frame)
    peers = [
        {"data": "erp", "method": "riemann", "uses": "unlabelled data of the new person"}
        | {"subject": f"p{i}", "seed": 0, "chosen": True, "test": 0.5}
        for i in range(6)
    ]
    seen = words(methods(compare([table], peers)))
    assert "riemann *" in seen
    assert UNCENSORED in seen
    assert len(gains([table]).axes[0].lines) == 7


def test_levels_show_every_set_and_leave_out_what_is_missing():
    cases = (("nothing", "all", ""), ("recording", "all", CHOSEN), ("labels", "5", CHOSEN))
    rows = [
        {"data": name, "level": level, "amount": amount, "tested": tested, "method": method}
        | {"mean": 0.5 + 0.1 * number + 0.3 * (tested == "same"), "lower quartile": 0.4}
        for name in ("emg", "erp", "ssvep", "another")
        for tested in ("other", "same")
        for number, (level, amount, method) in enumerate(cases)
    ]
    made = levels(rows)
    drawn = [ax for ax in made.axes if ax.lines]
    assert len(drawn) == 4
    heights = drawn[0].lines[0].get_ydata()
    assert heights == pytest.approx([0.5, 0.6, np.nan, 0.7], nan_ok=True)
    seen = words(made)
    assert all(word in seen for word in ("another", "EMG, Myo armband", "5 labels", ".60"))


def test_accuracy_stands_against_the_time_of_all_groups():
    def row(data, method, mean, took, uses="nothing"):
        return {"data": data, "method": method, "mean": mean, "CPU min": took} | {
            "of the new person": uses
        }

    rows = [
        row("ssvep", "one command, 2m", 0.7, 4.0),
        row("ssvep", "one command, 30m", 0.8, 60.0),
        row("ssvep", "its first network", 0.75, None),
        row("ssvep", "riemann", 0.6, 0.5),
        row("ecg", "riemann", 0.5, 0.4),
        row("ecg", "aligned", 0.4, 30.0, "unlabelled trials"),
    ]
    made = minutes(rows)
    ssvep, ecg = made.axes
    assert ssvep.lines[0].get_xydata().tolist() == [[4.0, 0.7], [60.0, 0.8]]
    assert [line.get_xydata().tolist() for line in ssvep.lines[1:]] == [[[0.5, 0.6]]]
    assert ssvep.lines[1].get_color() == ecg.lines[1].get_color()  # one method, one colour
    seen = words(made)
    assert "aligned *" in seen
    assert "riemann" in seen
    assert "its first network" not in seen  # no time of it is known


def test_more_people_stand_beside_more_of_the_new_one():
    rows = [
        {"trained on": people, "level": level, "method": method, "tested": tested}
        | {"mean": base + people / 100, "lower quartile": base}
        for people in (16, 8)
        for level, method, base in (
            ("nothing", "", 0.3),
            ("recording", CHOSEN, 0.4),
            ("recording", "ring", 0.9),
            ("labels", CHOSEN, 0.5),
        )
        for tested in ("other", "same")
        if (level, tested) != ("labels", "same")
    ]
    mean, quartile = more_people(rows).axes
    assert [line.get_ydata().tolist() for line in mean.lines] == [
        pytest.approx([base + 0.08, base + 0.16]) for base in (0.3, 0.4, 0.5)
    ]
    assert all(line.get_xdata().tolist() == [8, 16] for line in mean.lines)
    assert [line.get_ydata().tolist() for line in quartile.lines] == [
        [0.3, 0.3],
        [0.4, 0.4],
        [0.5, 0.5],
    ]


def test_what_censors_take_stands_against_what_people_gain():
    def row(data, censor, less, up, trials="skewed", encoder="eegnet"):
        return {"data": data, "trials": trials, "encoder": encoder, "censor": censor} | {
            "probe less": less,
            "accuracy up": up,
            "95 % interval": f"{up - 0.02:+.3f} to {up + 0.01:+.3f}",
        }

    rows = [
        {"data": "ecg", "trials": "skewed", "encoder": "eegnet", "censor": "uncensored"},
        row("ecg", "mmd marginal", 0.2, 0.03),
        row("ecg", "mmd marginal placebo", 0.0, -0.01),
        row("ecg", "mmd marginal", 0.1, 0.02, trials="all"),
        row("emg", "adversary marginal", 0.3, 0.0, encoder="EEGConformer", trials="all"),
    ]
    made = censored(rows)
    drawn = [ax for ax in made.axes if ax.get_title()]
    assert [ax.get_title() for ax in drawn] == [
        "ECG, kinds of beat\nskewed",
        "ECG, kinds of beat",
        "EMG, Myo armband\nEEGConformer",
    ]
    points = [line for line in drawn[0].lines if line.get_marker() not in ("None", None, "")]
    points = [line for line in points if line.get_marker() not in ("_", "|")]
    assert [line.get_xydata().tolist() for line in points] == [[[0.2, 0.03]], [[0.0, -0.01]]]
    assert [line.get_markerfacecolor() == "none" for line in points] == [False, True]
    seen = words(made)
    assert "mmd marginal" in seen
    assert "placebo" in seen
