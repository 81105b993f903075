"""The first law on the benchmarks' own code: what is trained does not know the test people.

Labels of a fold's test people are scrambled, then their signals replaced. Nothing that training,
stopping or the probes say may change; the test scores must, or the scrambling did nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

import autotransfer as at
from benchmarks.accuracy import adaptation, augmentations, baseline, erm
from benchmarks.censors import gap, own_batches, skew, strength_tables, strengths
from benchmarks.common import recordings
from benchmarks.common.recordings import RECORDINGS, Recording

DATA = at.make_subjects(n_subjects=5, n_trials=24, n_times=64, random_state=0)
FOLD = 1
OPTIONS = json.dumps(
    {"max_epochs": 8, "subjects_per_batch": 3, "trials_per_subject": 8, "learning_rate": 0.01},
    sort_keys=True,
)


@dataclass(frozen=True)
class Small(Recording):
    """A recording that is in memory."""

    data: at.SubjectDataset = DATA

    def load(self):
        """Give it."""
        return self.data


def with_test_people(fold, labels: bool, signals: bool):
    """Make the data with other labels or signals of the people who test in the fold."""
    rng = np.random.default_rng(0)
    X, y = DATA.X.copy(), DATA.y.copy()
    if labels:
        y[fold.test] = rng.permutation(y[fold.test])
    if signals:
        X[fold.test] = 100 * rng.standard_normal(X[fold.test].shape)
    return at.SubjectDataset(X, y, DATA.subject, sfreq=DATA.sfreq)


JOBS = {
    "erm": (
        erm,
        erm.Job("small", "channel", FOLD, 0, OPTIONS),
        list(at.SubjectFolds().folds(DATA.subject))[FOLD],
    ),
    "own batches": (
        erm,
        own_batches.job(
            "small", {**json.loads(OPTIONS), "normalise": "channel"}, "conditional", FOLD, 7
        ),
        list(at.SubjectFolds().folds(DATA.subject))[FOLD],
    ),
    "adaptation": (
        adaptation,
        adaptation.Job("small", FOLD, OPTIONS),
        list(at.SubjectFolds().folds(DATA.subject))[FOLD],
    ),
    "augmentations": (
        augmentations,
        augmentations.Job("small", "mix", FOLD, 0, OPTIONS),
        augmentations.groups(DATA.subject)[FOLD],
    ),
    "gap": (
        gap,
        gap.Job("small", "mmd", 0.1, 2, FOLD, 0, OPTIONS),
        strengths.parts(DATA.subject, 2)[FOLD],
    ),
    "skew": (
        skew,
        skew.Job("small", "skewed", "mmd", "conditional", 0.1, 2, FOLD, 0, OPTIONS),
        strengths.parts(DATA.subject, 2)[FOLD],
    ),
    **{
        f"strengths {measure} {mode}{' placebo' * placebo}": (
            strengths,
            strengths.Job("small", measure, mode, 0.1, placebo, "", 2, FOLD, 0, OPTIONS),
            strengths.parts(DATA.subject, 2)[FOLD],
        )
        for measure, mode, placebo in (
            (None, "marginal", False),
            ("adversary", "conditional", False),
            ("mmd", "complementary", False),
            ("mmd", "marginal", True),
        )
    },
}


def result(monkeypatch, module, job, data):
    """Run a job on data in memory."""
    monkeypatch.setitem(RECORDINGS, "small", Small("small", ("channel",), 0.0, data=data))
    recordings._opened.cache_clear()
    found = module.run(job)
    found.pop("seconds", None)
    return found, found.pop("test")


@pytest.mark.parametrize("name", JOBS)
def test_test_people_reach_nothing(monkeypatch, name):
    module, job, fold = JOBS[name]
    before, tested = result(monkeypatch, module, job, with_test_people(fold, False, False))
    for what in ("labels", "signals"):
        other = with_test_people(fold, what == "labels", what == "signals")
        after, tested_after = result(monkeypatch, module, job, other)
        assert after == before, what
        assert tested_after != tested, what


def test_the_comparison_can_fail(monkeypatch):
    """Labels of people who do train must show."""
    module, job, _ = JOBS["erm"]
    before, _ = result(monkeypatch, module, job, DATA)
    y = np.random.default_rng(0).permutation(DATA.y)
    after, _ = result(
        monkeypatch, module, job, at.SubjectDataset(DATA.X, y, DATA.subject, sfreq=DATA.sfreq)
    )
    assert after != before


def test_the_baseline_is_chosen_by_validation(monkeypatch, tmp_path):
    """Of two values the one with the better validation wins, whatever the test scores say."""

    def invented(todo, keep, workers):
        better = '"F1": 16' in todo[0].options
        one = {"validation": 0.5 + 0.1 * better, "test": {"a": 0.9 - 0.5 * better, "b": 0.2}}
        return {job: {**one, "epochs": 1, "seconds": 1.0} for job in todo}

    monkeypatch.setattr(baseline.erm, "run_all", invented)
    monkeypatch.setattr(
        baseline, "RECORDINGS", {"ssvep": Small("small", ("channel",), 0.0, data=DATA)}
    )
    chosen, rows = baseline.find("ssvep", None, 1)
    assert chosen["F1"] == 16
    assert [row["test"] for row in rows if row["chosen"]] == [pytest.approx(0.3)]
    # Where nothing is better, the first value of the list stays.
    assert chosen["kernel_seconds"] == 0.5


def test_strengths_cover_everything_once():
    cells = strengths.cells()
    assert len(cells) == len(set(cells)) == 2 + 45 + 30 + 9


def test_the_prior_is_chosen_by_validation():
    """At 8 the validation people gain most, at 0 the test people."""
    ways = {f"{n} {prior}": prior for n in adaptation.TRIALS for prior in adaptation.PRIORS}
    one = {
        "validation": {"a": {way: (0.5, 0.5 + 0.1 * (p == 8)) for way, p in ways.items()}},
        "test": {"b": {way: (0.5, 0.5 + 0.1 * (p == 0)) for way, p in ways.items()}},
    }
    assert adaptation.best_prior([one]) == 8


def test_adaptation_is_judged_on_other_trials():
    """A model that knows by heart what it was adapted to gains nothing by that."""

    class Rote:
        def __init__(self, known=()):
            self.known = {x.tobytes(): x[0, 0] for x in known}

        def adapt(self, X, method, prior):
            return Rote(X)

        def predict(self, X):
            return np.array([self.known.get(x.tobytes(), -1.0) for x in X])

    X = np.arange(40, dtype=np.float32)[:, None, None]
    person = at.SubjectDataset(X, X[:, 0, 0], np.zeros(40, int))
    found = adaptation.before_and_after(Rote(), person)
    assert found.pop(adaptation.ALL) == (0, 1)
    assert len(found) == 3 * len(adaptation.PRIORS)
    assert all(pair == (0, 0) for pair in found.values())


def test_a_gain_is_over_the_baseline_of_the_same_seed():
    """Person a is at 0.4 and 0.6, b at 0.5 and 0.9: the one training is 0.3 above the other.

    With the batches of conditional censors the baseline is 0.1 lower, and the gain higher.
    """
    probed = {part: {"accuracy": 0.5, "chance": 0.2} for part in ("z", "z given y", "z1", "z2")}
    results = {}
    for cell in strengths.cells():
        less = 0.1 * (cell == strength_tables.BY_CLASS)
        for seed in (0, 1) if cell[0] is None else (0,):
            for part, who, score in ((0, "a", 0.4 + 0.2 * seed), (1, "b", 0.5 + 0.4 * seed)):
                job = strengths.Job("erp", *cell, 2, part, seed, OPTIONS)
                results[job] = {"test": {who: score - less}, "leakage": probed}
    rows, _ = strength_tables.tables(results, "erp")
    base, by_class, censored = rows[:3]
    assert (base["gain"], base["accuracy"]) == (pytest.approx(0), pytest.approx(0.6))
    assert (by_class["gain"], by_class["accuracy"]) == (pytest.approx(0), pytest.approx(0.5))
    assert censored["gain"] == pytest.approx(0)  # and not -0.15, which is the luck of seed 0
    conditional = [one["gain"] for one in rows if one["censor"] == "mmd conditional"]
    assert conditional == [pytest.approx(0.1)] * 5  # three strengths, two placebos
    alone = strength_tables.batches_alone(results, "erp")
    assert (alone["by class"], alone["at random"]) == (pytest.approx(0.5), pytest.approx(0.6))
    assert alone["difference"] == pytest.approx(0.1)
    assert censored["noise"] == pytest.approx(np.std([-0.15, 0.15], ddof=1))
    weak, middle, _ = strength_tables.digest(rows)
    gains = [0.0] * 10 + [0.1] * 5
    assert weak["gain"] == pytest.approx(np.mean(gains))
    assert weak["gain sd"] == pytest.approx(np.std(gains, ddof=1))
    assert weak["placebo gain"] is None  # the weakest have no placebo
    assert middle["placebo gain"] == pytest.approx(np.mean(gains))
    assert middle["placebo probe"] == pytest.approx(0)
    lines = strength_tables.by_censor(rows)
    assert len(lines) == 15 + 9  # MIGE's other three estimators in three modes
    assert lines[0]["weak"] == pytest.approx(0)
    assert "placebo weak" not in lines[0]


def test_parts_that_are_not_whole_are_left_out(tmp_path):
    todo = [
        strengths.Job("erp", *cell, 2, part, 0, OPTIONS)
        for part in (0, 1)
        for cell in strengths.cells()
    ]
    keep = tmp_path / "keep.jsonl"
    keep.write_text("".join(json.dumps({"key": job.key, "result": {}}) + "\n" for job in todo[:-1]))
    assert strengths.whole_parts(todo, keep) == todo[: len(todo) // 2]


@pytest.mark.parametrize("n", [2, 3])
def test_everybody_tests_in_one_part(n):
    subject = np.repeat(np.arange(7), 3)
    folds = strengths.parts(subject, n)
    tested = [who for fold in folds for who in fold.subjects("test")]
    assert sorted(tested) == list(range(7))
    assert all(len(fold.train) + len(fold.test) == len(subject) for fold in folds)


def test_importances_against_what_was_put_in():
    """Only mode moves the gain, only the strength the probe."""
    rows = [
        {"censor": f"{measure} {mode}", "strength": strength, "placebo": placebo}
        | {"estimator": estimator, "gain": float(mode == "conditional")}
        | {"probe": float(strength_tables.strengths(measure).index(strength))}
        for measure, mode, strength, placebo, estimator in strengths.cells()[2:]
    ]
    gain, probe = (strength_tables.importances(rows, target) for target in ("gain", "probe"))
    assert gain["mode"] > 0.99
    assert probe["strength"] > 0.99
    assert gain["MIGE's estimator"] < 0.01
