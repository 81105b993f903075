"""The hands-off procedure as a whole, on small data with the real ledger."""

from __future__ import annotations

import json
import sys
from copy import copy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score

sys.path.insert(0, str(Path(__file__).parents[1]))

import drive

import autotransfer as at
from autotransfer.data.problem import Problem
from autotransfer.errors import BudgetError, IncompleteResultsError, SettingError
from autotransfer.report import write_report
from autotransfer.report.auto_summary import auto_answer
from autotransfer.report.gather import gather
from autotransfer.report.pictures import pictures
from autotransfer.search import Space
from autotransfer.search.engines.base import Carried
from autotransfer.search.levels.cases import TUNED
from autotransfer.search.procedures.plan import fit_groups
from autotransfer.search.procedures.reference import covariances, predictions, reference
from autotransfer.search.results import verdict
from autotransfer.search.settings.recipe import Dimension, Recipe, RecipeSpace
from autotransfer.search.settings.setting import Setting
from autotransfer.search.settings.trial import Trial
from autotransfer.search.shared import Shared
from autotransfer.search.status import open_run
from autotransfer.search.tasks import cost, run_trial

DATA = at.make_subjects(n_subjects=6, n_trials=24, n_channels=4, n_times=64, random_state=0)
RECIPES = RecipeSpace(
    [
        Dimension("normalisation", ({"normalise": "channel"}, {"normalise": "trial"}), 0.03),
        Dimension("steps", ({"n_steps": 8}, {"n_steps": 30}), 0.01, (1.0, 4.0)),
    ]
)
SPACE = Space(["mmd"], ["marginal", "conditional"], {"mmd": [1.0]})
# The first answer of the above, and one censor.
FIRST = RecipeSpace([Dimension(d.name, d.values[:1], d.gain) for d in RECIPES.dimensions])
ONE = Space(["mmd"], ["marginal"], {"mmd": [1.0]})
pytestmark = pytest.mark.filterwarnings("ignore::autotransfer.errors.AutoTransferWarning")


def auto(out, **options):
    tiny = {"F1": 2, "kernel_length": 16, "depthwise_kernel_length": 4}
    fixed = {
        "classifier": at.CensoredClassifier(encoder_options=tiny, device="cpu"),
        **{"recipes": RECIPES, "space": SPACE, "n_folds": 3, "portraits": False, "levels": False},
        **{"engine": drive.THREAD, "verbose": False},
    }
    return at.AutoTransfer(out=out, **fixed | options)


def entries(folder):
    _, ledger = open_run(folder)
    with ledger:
        return {stage: ledger.entries(stage) for stage in ledger.stages()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auto") / "run"
    return folder, auto(folder).fit(DATA)


def test_a_run_has_all_stages_and_a_model(whole):
    folder, run = whole
    stages = entries(folder)
    assert {"first", "recipe", "censor", "confirm", "refit", "reference"} <= set(stages)
    assert all(entry.state == "done" for stage in stages.values() for entry in stage)
    ids = [entry.id for stage in stages.values() for entry in stage]
    assert len(ids) == len(set(ids))
    results = json.loads((folder / "results.json").read_text())
    assert results["complete"]
    assert results["not_tried"] == []
    assert len(results["nested_subjects"]) == 6
    chosen = dict(run.choice_.setting.recipe.options)
    # Both lengths were tried on all groups.
    assert results["longer_tried"] == (chosen["n_steps"] == 8)
    assert run.predict(DATA).shape == DATA.y.shape


def test_censors_are_tried_only_where_somebody_names_them(tmp_path):
    folder = tmp_path / "run"
    run = auto(folder, recipes=FIRST, space=None).fit(DATA)
    stages = entries(folder)
    assert not stages.get("censor")
    trials = [*stages["first"], *stages["confirm"], *stages["refit"]]
    assert {entry.trial.setting.measure for entry in trials} == {None}
    results = json.loads((folder / "results.json").read_text())
    assert results["complete"]
    assert results["not_tried"] == []
    said = write_report(run.run_, assets=False).read_text()
    assert "No censor was credibly better" not in said
    assert "mmd" not in said
    with pytest.raises(SettingError, match="needs a measure to search"):
        at.AutoTransfer(procedure="paper", space=Space(()), out=tmp_path / "none").fit(DATA)


def test_the_same_call_again_changes_nothing(whole):
    folder, run = whole
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    again = auto(folder).fit(DATA)
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    pd.testing.assert_frame_equal(again.candidates_, run.candidates_)
    assert again.choice_ == run.choice_


def test_in_the_time_that_is_left_recipes_of_another_encoder_are_tried(tmp_path):
    """The best of the encoder that was not chosen is changed as the best was, one by one."""
    values = ({"encoder": "eegnet"}, {"encoder": "covariance"})
    encoders = Dimension("encoder", values, 1.0)
    recipes = RecipeSpace([encoders, *RECIPES.dimensions])
    classifier = at.CensoredClassifier(device="cpu")
    folder = tmp_path / "run"
    run = auto(folder, recipes=recipes, space=None, classifier=classifier).fit(DATA)
    stages = entries(folder)
    tried = [dict(e.trial.setting.recipe.options) for s in ("first", "recipe") for e in stages[s]]
    for encoder in ("eegnet", "covariance"):
        mine = [one for one in tried if one["encoder"] == encoder]
        assert {one["normalise"] for one in mine} == {"channel", "trial"}
        assert {one["n_steps"] for one in mine} == {8, 30}
    again = auto(folder, recipes=recipes, space=None, classifier=classifier).fit(DATA)
    assert again.choice_ == run.choice_
    assert json.loads((folder / "results.json").read_text())["not_tried"] == []


AT_NIGHT = [pytest.param(n, marks=pytest.mark.nightly) for n in (1, 4, 17)]


@pytest.mark.parametrize("n_lines", [9, 30, *AT_NIGHT])
def test_killed_anywhere_it_ends_in_the_same_table(whole, tmp_path, n_lines):
    """A ledger that ends early is what kill -9 leaves: a whole line or none."""
    folder, run = whole
    there = tmp_path / "run"
    there.mkdir()
    lines = (folder / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (there / "ledger.jsonl").write_bytes(b"".join(lines[:n_lines]))
    (there / "run.json").write_bytes((folder / "run.json").read_bytes())
    known = {e.id for stage in entries(there).values() for e in stage}
    for file in (folder / "predictions").iterdir():
        if file.stem in known:
            (there / "predictions").mkdir(exist_ok=True)
            (there / "predictions" / file.name).write_bytes(file.read_bytes())
    other = auto(there).fit(DATA)
    pd.testing.assert_frame_equal(other.candidates_, run.candidates_)
    assert other.choice_ == run.choice_
    assert {e.id for s in entries(there).values() for e in s} == {
        e.id for s in entries(folder).values() for e in s
    }


def test_levels_are_scored_kept_and_known_to_the_model(tmp_path):
    folder = tmp_path / "run"
    quick = RecipeSpace([Dimension("steps", ({"n_steps": 8},), 0.01)])
    options = {"levels": True, "recipes": quick, "space": Space(["mmd"], ["marginal"])}
    run = auto(folder, **options).fit(DATA)
    assert {len(entries(folder)[stage]) for stage in ("levels", "first")} == {3}
    assert set(run.levels_.level) == {"nothing", "recording", "stream", "labels"}
    assert set(run.levels_.person) == {str(s) for s in DATA.subject_ids}
    results = json.loads((folder / "results.json").read_text())
    nothing = run.levels_[(run.levels_.level == "nothing") & (run.levels_.tested == "other")]
    assert results["levels"]["labels"]["nothing"] == pytest.approx(nothing.score.mean())
    assert "5 labelled trials of each class" in verdict(results)
    table = pd.read_csv(folder / "levels.csv", dtype={"person": str})
    assert len(table) == len(run.levels_)
    assert all("adaptation" in one.provenance_ for one in run.best_estimator_.members)
    assert not (folder / "networks").exists()
    text = write_report(folder).read_text()
    five = run.levels_[(run.levels_.level == "labels") & (run.levels_.amount == 5)]
    means = five.groupby("method").score.mean()
    # Too few trials for the others.
    heads = {f"{before}{way}" for before in ("", "statistics+") for way in ("head", "covariances")}
    assert set(means.index) == {*heads, *TUNED}
    told = results["levels"]["labels"]
    among = [*means, told["nothing"]]
    assert min(among) - 1e-9 <= told["mean"] <= max(among) + 1e-9  # a mean of choices among these
    gain = told["mean"] - told["nothing"]
    shown = f"{100 * gain:+.1f}".replace("-", "\N{MINUS SIGN}")
    assert "With 5 labels of each class</dt>" in text
    assert f">{shown if shown[1:] != '0.0' else '0.0'} points<" in text
    assert "Balanced accuracy of people held out against what is known of them" in text
    assert "person = model.adapt(X_recording)" in text
    assert (folder / "report-files" / "levels.png").exists()
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    again = auto(folder, **options).fit(DATA)
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    pd.testing.assert_frame_equal(again.levels_, run.levels_)


@pytest.mark.nightly
def test_beside_a_censored_answer_the_uncensored_one_is_scored(tmp_path, monkeypatch):
    def censored(tried, rule, among=None):
        return max(tried.by_seed, key=lambda setting: setting.measure is not None)

    for module in ("answer", "auto"):
        monkeypatch.setattr(f"autotransfer.search.procedures.{module}.best_setting", censored)
    # Whatever it gains on half of the groups, it is tried on all.
    monkeypatch.setattr("autotransfer.search.procedures.auto.mean_gain", lambda *_: 1.0)
    quick = RecipeSpace([Dimension("steps", ({"n_steps": 8},), 0.01)])
    folder = tmp_path / "run"
    space = Space(["mmd"], ["marginal"], {"mmd": [1.0]})
    run = auto(folder, levels=True, recipes=quick, space=space).fit(DATA)
    assert run.choice_.setting.measure == "mmd"
    record = gather(folder)
    assert len(entries(folder)["levels"]) == 6
    assert record.levels.scores.keys() == record.uncensored_levels.scores.keys()
    assert record.levels.scores != record.uncensored_levels.scores
    assert "levels" in pictures(record)


def test_a_run_for_people_with_a_recording_is_another_run(whole, tmp_path):
    folder, plain = whole
    run = auto(tmp_path / "run", new_person="recording", recipes=FIRST, space=ONE).fit(DATA)
    assert run.candidates_.name[0] == plain.candidates_.name[0]
    assert run.candidates_.test_mean[0] != plain.candidates_.test_mean[0]
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["new_person"] == "recording"
    assert "of whom there is a recording without labels" in verdict(results)
    page = write_report(tmp_path / "run").read_text()
    assert "With a recording, no labels" in page
    assert "new_person=&#39;recording&#39;" in page
    ids = [{e.id for e in entries(f)["first"]} for f in (folder, tmp_path / "run")]
    assert not ids[0] & ids[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"new_person": "everything"}, "level of what is known"),
        ({"n_labels": 0}, "n_labels"),
        ({"new_person": "recording", "procedure": "paper", "recipes": None}, "new_person"),
    ],
)
def test_a_level_that_makes_no_sense_is_refused(tmp_path, options, words):
    with pytest.raises(SettingError, match=words):
        auto(tmp_path / "run", **options).fit(DATA)


def test_people_held_out_reach_nothing_but_their_scores():
    """Scrambled signals and labels of one who is held out change no weight and no other score."""
    problem = Problem.of(DATA)
    shared = Shared(problem, {"device": "cpu", "validation": 1}, "x")
    setting = Setting(None, recipe=Recipe.of(normalise="train", n_steps=8))
    trial = Trial(setting, 1, 3, 0, 2, grouped=True)
    fold = trial.fold_of(problem)
    assert not len(fold.test)
    assert sorted([*fold.train, *fold.validation]) == list(range(len(problem.codes)))
    X, y = DATA.X.copy(), DATA.y.copy()
    rng = np.random.default_rng(0)
    half = fold.validation[problem.subject[fold.validation] == fold.subjects("validation")[0]]
    X[half], y[half] = rng.permutation(X[half]) * 3, rng.permutation(y[half])
    other = Problem.of(X, y, DATA.subject)
    results = [
        run_trial(Carried(Shared(one, shared.options, "x")), trial) for one in (problem, other)
    ]
    kept = str(fold.subjects("validation")[1])
    subjects = [one["validation"]["subjects"][kept] for one in results]
    assert subjects[0] == subjects[1]
    losses = [one["curves"]["task_loss"] for one in results]
    assert losses[0] == losses[1]


def test_predictions_of_a_trial_are_those_that_are_scored():
    problem = Problem.of(DATA)
    trial = Trial(Setting(None), 0, 3, 0, 2, grouped=True)
    result = run_trial(Carried(Shared(problem, {"device": "cpu"}, "x")), trial)
    fold = trial.fold_of(problem)
    shape = len(fold.validation), len(problem.classes)
    shares = np.frombuffer(result["probabilities"], np.float16).reshape(shape)
    assert shares.sum(1) == pytest.approx(1, abs=2e-3)
    for person in fold.subjects("validation"):
        mine = problem.subject[fold.validation] == person
        true = problem.codes[fold.validation][mine]
        expected = balanced_accuracy_score(true, shares[mine].argmax(1))
        assert result["test"]["subjects"][str(person)] == pytest.approx(expected)


def test_the_classical_references_never_see_whom_they_score():
    problem = Problem.of(DATA)
    found = reference(Carried(Shared(problem, {}, "x")), 3)
    assert set(found["subjects"]) == {str(person) for person in DATA.subject_ids}
    assert set(found["means"]) == {"covariances", "class averages", "filter bank"}
    assert np.mean(list(found["subjects"].values())) == pytest.approx(max(found["means"].values()))
    fold = problem.groups(3)[1]
    X, y = DATA.X.copy(), DATA.y.copy()
    y[fold.validation] = 1 - y[fold.validation]
    last = fold.validation[-1:]
    X[last] *= 1.7
    other = Problem.of(at.SubjectDataset(X, y, DATA.subject, sfreq=DATA.sfreq))
    for (name, one), (_, two) in zip(
        predictions(problem, fold), predictions(other, fold), strict=True
    ):
        assert one[:-1].tolist() == two[:-1].tolist(), name


def test_covariances_are_those_of_numpy():
    X = np.random.default_rng(0).normal(size=(5, 3, 40))
    X -= X.mean(2, keepdims=True)
    for matrix, trial in zip(covariances(X), X, strict=True):
        plain = np.cov(trial, bias=True)
        expected = 0.99 * plain + 0.01 * np.trace(plain) / 3 * np.eye(3)
        np.testing.assert_allclose(matrix, expected, rtol=1e-12)


def test_groups_are_as_many_as_the_budget_carries():
    plans = [fit_groups(12, budget, 2, one=30.0, spent=5.0).n_folds for budget in (120, 600, 3600)]
    assert plans == [3, 4, 12]
    # More than ten only where all that is worth a try can be tried with them.
    many = {"trainings": lambda n: 20 * n}
    plans = [fit_groups(12, budget, 2, 30.0, 5.0, **many).n_folds for budget in (3500, 3600)]
    assert plans == [11, 12]
    assert fit_groups(12, 3000, 2, 30.0, 5.0, **many).n_folds == 10
    with pytest.raises(BudgetError, match="too short for these data"):
        fit_groups(12, 60, 2, one=30.0, spent=5.0)
    cheaper = [({"n_steps": 4}, 0.4), ({"n_steps": 4, "F1": 2}, 0.2)]
    plan = fit_groups(12, 60, 2, 30.0, 5.0, cheaper)
    assert (plan.n_folds, plan.instead) == (3, {"n_steps": 4})
    assert fit_groups(12, 30, 2, 30.0, 5.0, cheaper).instead == {"n_steps": 4, "F1": 2}
    with pytest.raises(BudgetError, match="too short for these data"):
        fit_groups(12, 20, 2, 30.0, 5.0, cheaper)


def test_a_budget_that_does_not_carry_the_default_recipe_begins_with_a_cheaper_one(
    tmp_path, monkeypatch
):
    from autotransfer.search.procedures import auto as procedure

    monkeypatch.setattr(procedure, "first_cost", lambda *_, **__: 20.0)  # as if it took so long
    steps = Dimension("fewer steps", ({"n_steps": 30}, {"n_steps": 6}), 0.01, (1.0, 0.2))
    recipes = RecipeSpace([steps])
    auto(tmp_path / "run", budget="60s", n_folds=None, recipes=recipes).fit(DATA)
    (first, *_) = entries(tmp_path / "run")["first"]
    assert first.trial.setting.recipe == Recipe.of(n_steps=6)
    before = entries(tmp_path / "run")
    auto(tmp_path / "run", budget="60s", n_folds=None, recipes=recipes).fit(DATA)
    assert entries(tmp_path / "run") == before
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    said = verdict(results)
    assert "the first recipe, which is trained first and compared with, is a cheaper" in said
    assert said.endswith("one (n_steps=6).") or "one (n_steps=6). " in said
    assert said.count("default recipe") == 1
    page = write_report(tmp_path / "run", tmp_path / "page.html").read_text()
    assert "is a cheaper one (n_steps=6)" in page
    assert "This is the first recipe." in page or "differs from the first recipe" in page


def test_a_machine_that_is_slow_for_a_moment_does_not_refuse_a_run(tmp_path, monkeypatch):
    from autotransfer.search.procedures import plan

    measured = []

    def slow_at_first(handle, trial, steps):
        found = cost(handle, trial, steps)
        if steps == plan.CALIBRATION_STEPS:
            measured.append(trial)
            if len(measured) <= 2:  # there is one worker, which measures twice
                return {name: 1e4 * seconds for name, seconds in found.items()}
        return found

    monkeypatch.setattr(plan, "cost", slow_at_first)
    options = {"recipes": FIRST, "space": ONE, "n_folds": None}
    auto(tmp_path / "run", budget="60s", **options).fit(DATA)
    assert len(measured) == 4
    (first, *_) = entries(tmp_path / "run")["first"]
    assert first.trial.setting.recipe == RECIPES.default


def test_what_does_not_fit_is_not_begun_and_named(tmp_path, monkeypatch):
    """With a budget that carries the first answer only, the rest is named as not tried."""
    from autotransfer.search.procedures import auto as procedure

    monkeypatch.setattr(procedure, "SLACK", 2.0)  # all of the budget is kept back, even by half
    run = auto(tmp_path / "run", budget="10m").fit(DATA)
    stages = entries(tmp_path / "run")
    assert {stage for stage, there in stages.items() if there} == {"first", "refit", "reference"}
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert [line.split(":")[0] for line in results["not_tried"]][:2] == ["normalisation", "steps"]
    assert any(line.startswith("censors") for line in results["not_tried"])
    assert run.choice_.setting == Setting(None, recipe=RECIPES.default)


@pytest.mark.parametrize("budget", [370, 395])
def test_time_is_kept_for_a_second_network_of_the_choice(tmp_path, monkeypatch, budget):
    """Where trainings take a fifth longer than was foreseen, too. A step takes 1.2 s here."""
    from autotransfer.search.procedures import auto as procedure

    spent = []

    class StepClock(procedure.Clock):
        left = property(lambda self: self.budget - sum(spent) / 2)

    class Timed(procedure.AutoProcedure):
        _workers = 2  # two threads would draw from the same random numbers

        def _seconds(self, setting, plan):
            tried = any(trial.setting == setting for trial in self._known)
            return (1.2 if tried else 1.0) * _steps(setting)

        def _train(self, stage, trials):
            spent.extend(1.2 * _steps(t.setting) for t in trials if t not in self._known)
            super()._train(stage, trials)

        def _write_model(self, trials, results):
            spent.extend(1.2 * _steps(trial.setting) for trial in trials)
            super()._write_model(trials, results)

    monkeypatch.setattr(procedure, "Clock", StepClock)
    monkeypatch.setattr(procedure, "SLACK", 0.12)  # as with levels
    monkeypatch.setattr("autotransfer.auto.AutoProcedure", Timed)
    longer = Dimension("steps", ({"n_steps": 2}, {"n_steps": 40}), 9.0, (1.0, 20.0))
    rates = [{"drop_prob": rate} for rate in (0.25, 0.1, 0.2, 0.4)]
    recipes = RecipeSpace([longer, Dimension("dropout", tuple(rates), 0.01)])
    run = auto(tmp_path / "run", budget=f"{budget}s", recipes=recipes).fit(DATA)
    stages = entries(tmp_path / "run")
    assert _steps(run.choice_.setting) == 40
    assert run.choice_.setting in {entry.trial.setting for entry in stages["confirm"]}
    assert sum(spent) / 2 <= budget


def test_where_there_is_no_time_for_a_second_seed_of_the_best_rivals_get_none(
    tmp_path, monkeypatch
):
    from autotransfer.search.procedures import auto as procedure

    class Short(procedure.AutoProcedure):
        def _fits(self, trials, plan, n_seeds, kept=1):
            best = self._incumbent(plan)
            return not any(trial.seed and trial.setting == best for trial in trials)

    monkeypatch.setattr("autotransfer.auto.AutoProcedure", Short)
    auto(tmp_path / "run").fit(DATA)
    stages = entries(tmp_path / "run")
    assert stages["recipe"]
    assert not stages.get("confirm")


def _steps(setting):
    return dict(setting.recipe.options)["n_steps"]


def test_a_default_recipe_that_fails_is_named(tmp_path):
    """A rate at which the loss is not finite: there is no answer, and the error says why."""
    far = RecipeSpace([Dimension("rate", ({"learning_rate": 1e30},), 0.1)])
    with pytest.raises(IncompleteResultsError, match=r"default recipe failed.*learning rate"):
        auto(tmp_path / "run", recipes=far).fit(DATA)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"procedure": "magic"}, "Choose one of auto, paper"),
        ({"prune": True}, "prune belongs to procedure='paper'"),
        ({"procedure": "paper"}, "recipes belongs to procedure='auto'"),
    ],
)
def test_wrong_options_are_named(options, words, tmp_path):
    with pytest.raises(SettingError, match=words):
        auto(tmp_path / "run", **options).fit(DATA)


def test_a_paper_rule_can_be_asked_for(whole, tmp_path):
    folder, _ = whole
    run = auto(folder, rule="mean").fit(DATA)
    means = run.candidates_.set_index("setting")["validation_mean"]
    assert run.candidates_.set_index("setting")["chosen"].idxmax() == means.idxmax()


def test_a_run_that_looks_for_the_normalisation_does_not_warn_of_one(tmp_path, recwarn):
    """Only where a person has asked for what takes the signal of EMG away."""
    names = [f"EMG{i}" for i in range(4)]
    data = at.SubjectDataset(DATA.X, DATA.y, DATA.subject, sfreq=200.0, channels=names)
    steps = Dimension("steps", ({"n_steps": 2},), 0.01)
    scale = Dimension("normalisation", ({"normalise": "train"},), 0.01)
    auto(tmp_path / "searched", recipes=RecipeSpace([steps, scale])).fit(data)
    assert not any("takes it away" in str(w.message) for w in recwarn)
    with pytest.warns(at.AutoTransferWarning, match="takes it away"):
        auto(tmp_path / "asked", recipes=RecipeSpace([steps])).fit(data)


def test_a_notebook_shows_the_first_screen_of_the_report(whole):
    folder, run = whole
    html = run._repr_mimebundle_()["text/html"]
    said = auto_answer(gather(folder))
    assert said.headline in html
    assert all(tile.value in html for tile in said.tiles)
    assert "auto.adapt(X_recording)" in html
    assert f"<code>{folder / 'report.html'}</code>" in html
    assert "The report:" not in html


def test_a_notebook_says_where_the_report_is(whole, tmp_path):
    _, run = whole
    page = run.report(tmp_path / "mine.html")
    assert f"The report: <code>{page}</code>" in run._repr_html_()


def test_a_run_whose_folder_is_gone_still_has_a_model_to_show(whole, tmp_path):
    _, run = whole
    moved = copy(run)
    moved.run_, moved._answer = tmp_path / "gone", None
    html = moved._repr_html_()
    assert "cannot be read" in html
    assert "trials of 4 channels x 64 time points" in html
