"""Pictures for a paper: of a run and of numbers, against what they are drawn from."""

from __future__ import annotations

import html
import importlib.util
import json
import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from report_runs import CLASSES, data
from scipy.signal import freqz
from sklearn.metrics import recall_score

import autotransfer as at
from autotransfer.errors import IncompleteResultsError
from autotransfer.report import write_report
from autotransfer.report.figures.filters import places_of
from autotransfer.report.figures.theme import figure_of
from autotransfer.report.filters import filters_of
from autotransfer.report.gather import gather

WITHOUT_A_FIGURE = ("methods", "people", "classes", "confusion", "leakage", "calibration")
"""Pictures of one panel, which can be drawn on axes that are there."""


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("name", sorted({*at.plots.__all__} - {"maps"}))
def test_every_picture_of_a_run(fitted, name):
    draw = getattr(at.plots, name)
    drawn = draw(fitted)
    axes = [drawn] if isinstance(drawn, Axes) else drawn
    assert all(isinstance(ax, Axes) for ax in axes)
    figure = figure_of(axes)
    assert plt.fignum_exists(figure.number)
    figure.canvas.draw()
    # The folder says the same as the fitted object.
    again = draw(fitted.run_)
    assert isinstance(again, Axes) == isinstance(drawn, Axes)


def test_a_map_only_of_people_whom_a_probe_recognises(fitted):
    record = gather(fitted.run_)
    (portrait,) = [p for p in record.portraits if p.setting == record.chosen.setting.baseline]
    best, chance = portrait.leakage["z"]["best"]["accuracy"], portrait.leakage["z"]["chance"]
    best |= {"low": chance + 0.1}
    left, right = at.plots.maps(record)
    n_points = sum(len(one.get_offsets()) for one in left.collections)
    assert n_points == sum(len(one.get_offsets()) for one in right.collections)
    names = [text.get_text() for text in left.get_legend().get_texts()]
    assert sorted(names) == sorted({*portrait.points["subject"]})
    best |= {"low": chance - 0.1}
    with pytest.raises(IncompleteResultsError, match="no numbers for the picture 'maps'"):
        at.plots.maps(record)


@pytest.mark.parametrize("name", WITHOUT_A_FIGURE)
def test_on_axes_that_are_there(fitted, name):
    _, (left, right) = plt.subplots(1, 2)
    assert getattr(at.plots, name)(fitted, ax=right) is right
    assert not left.has_data()
    assert right.has_data()


def test_scores_are_tidy(fitted):
    scores = fitted.scores_
    assert list(scores.columns) == ["person", "level", "method", "seed", "score"]
    assert not scores.duplicated(["person", "level", "method", "seed"]).any()
    of_answer = scores[scores["method"] == "answer"].set_index("person")["score"]
    assert of_answer.to_dict() == pytest.approx(dict(fitted.choice_.scores))
    by_setting = scores[scores["seed"] == 0].groupby("method")["score"].mean()
    for row in fitted.candidates_.itertuples():
        seeds = scores[scores["method"] == row.setting].groupby("person")["score"].mean()
        assert seeds.mean() == pytest.approx(row.test_mean)
        assert row.setting in by_setting
    levels = fitted.levels_
    nothing = levels[(levels["level"] == "nothing") & (levels["tested"] == "other")]
    mine = scores[scores["method"].str.startswith("first network")]
    told = mine[mine["level"] == "nothing"].set_index("person")["score"]
    assert told.to_dict() == pytest.approx(nothing.set_index("person")["score"].to_dict())
    written = pd.read_csv(fitted.run_ / "scores.csv", dtype={"person": str, "seed": "Int64"})
    pd.testing.assert_frame_equal(written, scores.astype({"person": str}), check_dtype=False)


def test_people_are_those_of_the_levels(fitted):
    ax = at.plots.people(fitted)
    lines = {line.get_label(): line.get_xdata() for line in ax.get_lines()}
    scores = fitted.scores_
    mine = scores[scores["method"].str.startswith("first network")]
    told = mine[mine["level"] == "nothing"]["score"].sort_values()
    np.testing.assert_allclose(lines["nothing known"], 100 * told)
    assert {"a recording, no labels", "5 labels of each class"} <= set(lines)


def test_confusions_of_the_answer_give_its_scores(fitted):
    record = gather(fitted.run_)
    first, *others = fitted.choice_.members
    answer = fitted.choice_.scores
    if not others:  # the score is the mean over seeds, the confusions are those of the network
        one = (fitted.scores_["method"] == str(first.setting)) & (
            fitted.scores_["seed"] == first.seed
        )
        answer = fitted.scores_[one].set_index("person")["score"].to_dict()
    assert len(answer) == 5
    names = {str(s): n for s, n in zip(data().subject_ids, data().subject_names, strict=True)}
    for person, score in answer.items():
        counts = record.confusions[names[person]]
        true = np.repeat([0, 0, 1, 1], counts.ravel())
        said = np.repeat([0, 1, 0, 1], counts.ravel())
        assert recall_score(true, said, average="macro") == pytest.approx(score)
    assert record.confusion.sum() == len(data().y)


def test_the_page_has_the_classes_of_each_person(fitted, tmp_path):
    text = write_report(fitted.run_, tmp_path / "page.html", assets=False).read_text()
    tables = re.findall(r'<details class="person">.*?</details>', text, re.DOTALL)
    assert len(tables) == 5
    for table in tables:
        counts = [int(n) for n in re.findall(r'<td class="figure">(\d+)</td>', table)]
        assert len(counts) == 4
        assert sum(counts) == 24
        assert all(html.escape(name) in table for name in CLASSES)
    assert "expected calibration error" in text
    assert "The spatial filters that weigh most" in text


def test_steps_are_python_for_who_came_by_python(fitted, tmp_path):
    text = write_report(fitted.run_, tmp_path / "page.html", assets=False).read_text()
    said = html.unescape(text)
    assert f"at.load_model('{fitted.run_}/model')" in said
    assert "autotransfer predict" not in said
    run = json.loads((fitted.run_ / "run.json").read_text())
    run["about"]["command"] = "autotransfer run <study>.npz --budget 10m"
    record = gather(fitted.run_)
    record.about["command"] = run["about"]["command"]
    from autotransfer.report.page import page

    said = html.unescape(page(record, {}))
    assert f"autotransfer predict {fitted.run_} new.npz" in said
    assert "autotransfer run <study>.npz --budget 10m" in said
    assert "at.load_model" not in said


def test_without_numbers_it_says_so(whole_run):
    with pytest.raises(IncompleteResultsError, match="no numbers for the picture 'levels'"):
        at.plots.levels(whole_run)


def test_people_of_numbers():
    ax = at.plots.people(
        {"before": {"ann": 0.6, "bob": 0.7}, "after": {"bob": 0.65, "ann": 0.9}}, chance=0.5
    )
    lines = {line.get_label(): list(line.get_xdata()) for line in ax.get_lines()}
    assert lines["before"] == pytest.approx([60, 70])
    assert lines["after"] == pytest.approx([90, 65])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["ann", "bob"]
    assert lines["guessing"] == [50, 50]


def test_long_names_can_be_told_apart_and_hide_no_legend():
    people = [f"a long study/person {i}" for i in range(12)]
    known = ("nothing known", "a recording, no labels", "5 labels of each class")
    scores = {person: 0.5 + i / 30 for i, person in enumerate(people)}
    ax = at.plots.people(dict.fromkeys(known, scores), chance=0.5)
    figure = figure_of(ax)
    figure.canvas.draw()
    assert len({tick.get_text() for tick in ax.get_yticklabels()}) == 12
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 4
    whole, box = figure.bbox, legend.get_window_extent()
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    assert whole.y0 <= box.y0 < box.y1 <= whole.y1


def test_long_names_of_classes_do_not_lie_over_each_other():
    ax = at.plots.confusion(np.eye(4, dtype=int), [f"wrist extension {i}" for i in range(4)])
    figure_of(ax).canvas.draw()
    labels = ax.get_xticklabels()
    assert len({label.get_text() for label in labels}) == 4
    assert labels[0].get_rotation() == 60
    beside = at.plots.confusion(np.eye(4, dtype=int), ["a", "b", "c", "d"])
    assert beside.get_xticklabels()[0].get_rotation() == 0


def test_confusion_of_numbers():
    ax = at.plots.confusion([[3, 1], [0, 4]], ["fist", "rest"])
    assert [text.get_text() for text in ax.texts] == ["75 %\n3", "25 %\n1", "0 %\n0", "100 %\n4"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["fist", "rest"]


def test_calibration_of_numbers():
    sure = np.linspace(0.5, 1, 1000)
    right = np.random.default_rng(0).random(1000) < sure
    ax = at.plots.calibration(np.stack([sure, 1 - sure], 1), np.where(right, 0, 1))
    line = next(one for one in ax.get_lines() if one.get_label() == "people held out")
    np.testing.assert_allclose(line.get_xdata(), line.get_ydata(), atol=12)
    assert len(line.get_xdata()) == 10


def test_filters_are_those_of_the_network():
    made = at.make_subjects(n_subjects=3, n_trials=12, n_channels=4, n_times=64)
    clf = at.CensoredClassifier(max_epochs=1, verbose=False, encoder_options={"F1": 3, "D": 2})
    clf.fit(made)
    encoder = clf.network_.encoder
    state = encoder.state_dict()
    spatial = next(value for name, value in state.items() if name.startswith("conv_spatial"))
    with torch.no_grad():  # one temporal and one spatial filter that are known, and heard most
        t = torch.arange(state["conv_temporal.weight"].shape[-1]) / 128
        state["conv_temporal.weight"][1, 0, 0] = torch.sin(2 * torch.pi * 20 * t)
        spatial[3, 0, :, 0] = torch.tensor([0.0, -0.5, 0.25, 0.0])
        state["conv_separable_point.weight"][:, 3] = 100.0
    found = filters_of(clf)
    assert found.spatial.shape == (6, 4)
    np.testing.assert_allclose(found.spatial[0], [0, -1, 0.5, 0])
    assert found.frequencies[found.response[0].argmax()] == pytest.approx(20, abs=1)
    kernel = state["conv_temporal.weight"][1, 0, 0].numpy().astype(float)
    _, gain = freqz(kernel, worN=found.frequencies, fs=128.0)
    np.testing.assert_allclose(found.response[0], abs(gain) / abs(gain).max(), atol=1e-6)
    assert len(at.plots.filters(clf)) == 8


def test_a_model_without_filters_says_so():
    made = at.make_subjects(n_subjects=3, n_trials=12, n_channels=3, n_times=64)
    clf = at.CensoredClassifier(encoder="covariance", max_epochs=1, verbose=False).fit(made)
    with pytest.raises(IncompleteResultsError, match="no EEGNet"):
        at.plots.filters(clf)


@pytest.mark.skipif(importlib.util.find_spec("mne") is None, reason="MNE draws the heads")
def test_places_on_the_head():
    info = places_of(["OZ", "o1", "Cz", "Fpz"])
    assert info.ch_names == ["Oz", "O1", "Cz", "Fpz"]
    positions = np.array([one["loc"][:3] for one in info["chs"]])
    assert positions[0, 1] < positions[2, 1] < positions[3, 1]  # from the back to the front
    assert places_of(["EMG1", "EMG2", "EMG3", "EMG4"]) is None
    assert places_of(["Oz", "O1", "Cz", "EOG"]) is None


@pytest.mark.slow
def test_the_page_in_a_browser(fitted, browser, tmp_path):
    page = write_report(fitted.run_, tmp_path / "page.html", assets=False)
    browser.look(390)
    browser.open(page)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    browser.look(1280, dark=True)
    browser.open(page)
    shown = "[...document.querySelectorAll('details.person table')].map(t => t.checkVisibility())"
    assert browser.run(shown) == [False] * 5
    for which in ("details:has(.person)", "details.person"):
        browser.run(f"document.querySelector('{which} > summary').click()")
    assert browser.run(shown) == [True, *[False] * 4]
    assert browser.serious() == []
