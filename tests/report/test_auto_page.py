"""The page of a hands-off run: whole, as the best so far, and before there is an answer."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_runs import cut, pictures, trials_of, words

import autotransfer as at
from autotransfer.adaptation.guard import Seen
from autotransfer.errors import SourceError
from autotransfer.leakage.result import Estimate
from autotransfer.report import write_report
from autotransfer.report.auto_summary import recipe_words
from autotransfer.report.figures.scores import draw_levels
from autotransfer.report.figures.theme import Sheet, figure_of
from autotransfer.report.gather import gather
from autotransfer.report.page import first_screen
from autotransfer.report.page import page as page_of
from autotransfer.report.reproduce import python
from autotransfer.search.levels.cases import Case
from autotransfer.search.levels.worth import Levels
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.recipe import Recipe
from autotransfer.search.status import read_status

RUN = Path(__file__).parents[1] / "fixtures" / "auto_run"
NAMES = {"0": "ann", "1": "bob", "2": "cy", "3": "di"}
NBSP = "\N{NO-BREAK SPACE}"


@pytest.fixture
def run(tmp_path):
    """Give a copy of the run that may be written to."""
    return Path(shutil.copytree(RUN, tmp_path / "mine"))


def change(run, **changes):
    path = RunFolder(run).results
    results = json.loads(path.read_text())
    path.write_text(json.dumps(results | changes))
    return results


def by_person(run, setting):
    """Scores of people, from the ledger by another way than the report's: mean over seeds."""
    rows = [
        {"person": NAMES[person], "score": score}
        for one in trials_of(run, "first", "recipe", "censor", "confirm")
        if one["entry"]["definition"]["setting"] == setting
        for person, score in one["entry"]["result"]["validation"]["subjects"].items()
    ]
    return pd.DataFrame(rows).groupby("person")["score"].mean()


def test_the_first_screen_is_what_the_ledger_says(tmp_path):
    out = write_report(RUN, tmp_path / "page.html", assets=tmp_path / "files")
    text, results = out.read_text(), json.loads(RunFolder(RUN).results.read_text())
    said = words(text)
    nested = np.array(list(results["nested_subjects"].values()))
    assert f"Expect {100 * nested.mean():.1f}{NBSP}% on a new person." in text
    assert f"less than {100 * np.percentile(nested, 25):.1f}{NBSP}%" in text
    assert f"guessing among 2 classes gives 50.0{NBSP}%" in text
    first = by_person(RUN, results["first"]["setting"])
    assert f"The default recipe alone recognised {100 * first.mean():.1f}{NBSP}%" in text
    gain = np.mean([results["nested_subjects"][p] - first[NAMES[p]] for p in NAMES])
    sign = f"{100 * gain:+.1f}".replace("-", "\N{MINUS SIGN}")
    sign = sign if sign[1:] != "0.0" else "0.0"
    assert f"The difference is {sign} percentage points, with a 95 % interval from" in said
    assert "4 training steps. This is the default recipe." in said
    assert "The censor is mmd marginal 1: measure mmd, mode marginal (the latent is made" in said
    assert "People were put into 3 groups, each of which was held out once" in said
    assert f"gain with a credibility of 95{NBSP}%" in text
    assert "the mean score of the choices of draws without that person" in said
    for word in ("PARTIAL", "BEST SO FAR", "uncensored baseline", "Validation mean", "Not tried"):
        assert word not in text
    assert len(pictures(text)) == 2 * 6
    settings = pd.read_csv(tmp_path / "files" / "settings.csv")
    assert settings["recipe"].notna().all()
    assert settings["first answer"].sum() == settings["chosen"].sum() == 1
    chosen = settings[settings["chosen"]].iloc[0]
    mine = by_person(RUN, results["chosen"]["setting"])
    assert chosen["test mean"] == pytest.approx(mine.mean())
    people = pd.read_csv(tmp_path / "files" / "people.csv", index_col="subject")
    assert people["default recipe"].to_dict() == pytest.approx(first.to_dict())
    confusion = pd.read_csv(tmp_path / "files" / "confusion.csv", index_col=0)
    seeds = len({one["entry"]["definition"]["seed"] for one in trials_of(RUN, "censor", "confirm")})
    assert confusion.to_numpy().sum() == 4 * 12 * seeds


def test_the_best_so_far_is_marked_everywhere(run):
    results = change(run, complete=False, trials=3)
    text = write_report(run, assets=False).read_text()
    said = words(text)
    assert said.startswith("BEST SO FAR: unfinished run, 22 trials so far")
    assert text.partition("<title>")[2].startswith("BEST SO FAR")
    assert "The best answer so far" in said
    assert "The answer Training" not in said
    assert "So far, expect " in said
    assert "the same command goes on with it" in said
    assert "19 trials ended since this answer was written" in said
    shown = pictures(text)
    assert len(shown) == 2 * 6
    assert all("BEST SO FAR" in svg for svg in shown)
    assert all(alt.startswith("BEST SO FAR") for alt in re.findall(r'<img [^>]*alt="([^"]*)', text))
    assert not read_status(run).complete
    RunFolder(run).results.write_text(json.dumps(results))
    assert read_status(run).complete
    shutil.rmtree(RunFolder(run).model)
    assert not read_status(run).complete
    assert "BEST SO FAR" in write_report(run, assets=False).read_text()


def test_what_was_not_tried_yet_is_named(tmp_path):
    run = cut(RUN, tmp_path / "first", "recipe", 0)
    assert [(s.name, s.planned, s.done) for s in read_status(run).stages] == [
        ("first", 3, 3),
        ("recipe", None, 0),
        ("censor", None, 0),
        ("confirm", None, 0),
    ]
    results = json.loads(RunFolder(RUN).results.read_text())
    first = {"setting": results["first"]["setting"], "seed": 0, "name": ""}
    early = {"complete": False, "chosen": results["first"], "members": [first], "trials": 3}
    RunFolder(run).results.write_text(json.dumps(results | early))
    said = words(write_report(run, assets=False).read_text())
    waiting = "other recipes (normalisation, steps); censors (mmd); further seeds, and their mean"
    assert f"Not tried yet: {waiting}." in said
    assert "This is the default recipe." in said
    assert "ended since" not in said
    assert "Leakage is measured at the end of a run" in said


@pytest.mark.parametrize("trials", [0, 2])
def test_without_an_answer_it_is_partial(tmp_path, trials):
    run = cut(RUN, tmp_path / "part", "first", trials)
    text = write_report(run, assets=False).read_text()
    said = words(text)
    assert said.startswith(f"PARTIAL: unfinished run, {trials} trial")
    assert f"First answer {trials} of 3 trials Recipes 0 trials Censors 0 trials" in said
    assert "The chosen" not in said
    assert 'class="badge">chosen' not in text


def test_the_mean_of_several_networks_is_told(run, tmp_path):
    results = json.loads(RunFolder(run).results.read_text())
    other = {"setting": results["first"]["setting"], "seed": 0, "name": ""}
    people = {"0": 0.9, "1": 0.8, "2": 0.7, "3": 0.6}
    members = [*results["members"], other]
    untold = ["censors: 9 settings", "seed 3 of <b>"]
    change(run, members=members, together_subjects=people, not_tried=untold)
    out = write_report(run, tmp_path / "page.html", assets=tmp_path / "files")
    said = words(out.read_text())
    assert "the mean of 2 networks, 1 of them of the next best settings" in said
    assert f"Over all people the final choice has 75.0{NBSP}%" in out.read_text()
    assert "mmd marginal 1, mean of 2 networks chosen" in said
    assert "Of one network of the mean: Where there are trials" in said
    assert "each network by itself" in said
    assert "Not tried for want of time: censors: 9 settings, seed 3 of <b>." in said
    record = gather(run)
    assert record.chosen.test == {NAMES[p]: value for p, value in people.items()}
    assert sum(m.setting == record.chosen.setting for m in record.candidates) == 2


def test_training_that_ended_too_early_is_told_first(run):
    change(run, still_falling=5, trainings=5)
    said = words(write_report(run, assets=False).read_text())
    assert "Training ended too early: in 5 of 5 trainings" in said
    assert "recipes with more steps" in said
    change(run, longer_tried=True)  # and people gained nothing by it
    assert "Training ended too early" not in words(write_report(run, assets=False).read_text())


def test_a_recipe_in_plain_words():
    recipe = Recipe.of(
        normalise="train",
        kernel_seconds=0.16,
        F1=16,
        drop_prob=0.25,
        subjects_per_batch=12,
        trials_per_subject=16,
        learning_rate=3e-3,
        n_steps=2000,
        warmup_epochs=2,
        mode=None,
    )
    assert recipe_words(recipe) == (
        "normalisation train (signals are brought to the scale of the people who train, so that "
        "amplitudes count), 16 temporal filters of 0.16 s, dropout 0.25, batches of 12 people with "
        "16 trials each, learning rate 0.003, 2000 training steps, warmup_epochs 2"
    )
    assert recipe_words(Recipe.of(kernel_length=32)) == "temporal filters of 32 samples"


@pytest.mark.parametrize("asked", [{"own_recipes": True}, {"own_recipes": False}])
def test_the_call_to_run_it_again(asked):
    record = gather(RUN)
    record.about["asked"] |= asked | {"signal": "emg", "fixed": ["normalise"]}
    call = python(record)
    assert ("recipes=...," in call) == asked["own_recipes"]
    names = {}
    exec(call.replace("recipes=...", "recipes=None").partition("auto.fit(")[0], names)
    options = names["auto"].get_params(deep=False)
    wanted = {"procedure": "auto", "signal": "emg", "fixed": ["normalise"], "n_folds": 3}
    assert {name: options[name] for name in wanted} == wanted
    assert options["rule"] is None
    assert options["classifier"].max_epochs is None
    assert options["classifier"].encoder_options["F1"] == 2
    assert at.AutoTransfer().procedure == "auto"


@pytest.mark.parametrize("alike", [True, False])
def test_what_it_is_worth_to_know_that_all_classes_are_there(run, alike):
    """Where whole recordings look like those of one class, the guard lets none of them pass."""
    people = list(gather(run).chosen.test)
    nothing, adapted = dict.fromkeys(people, 0.5), dict.fromkeys(people, 0.8)
    cases = {Case("nothing"): nothing, Case("recording", None, "statistics"): adapted}
    seen = {
        "all": {p: [Seen(0.9, 0.9, 0.3)] for p in people},
        "one": {p: [Seen(*(0.9, 0.9) if alike else (0.1, 0.1), -0.4)] for p in people},
    }
    screen = first_screen(replace(gather(run), levels=Levels(cases, seen)))
    said = " ".join(screen.levels)
    assert ("(all_classes=True): then nothing is guessed, and it has 80.0" in said) == alike
    assert ("+30.0 points more" in said) == alike
    step = dict(screen.next_steps).get("Knowing that all classes are in it (+30.0 points)", "")
    assert ("model.adapt(X_recording, all_classes=True)" in step) == alike


def test_a_choice_by_another_rule(run):
    change(run, rule={"name": "mean", "is": "mean validation accuracy", "for_study_only": False})
    said = words(page_of(gather(run), {}))
    assert "The choice was made by the mean validation accuracy." in said
    assert "rule='mean'" in said


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("members", [], "members should not be empty"),
        ("members", [{"setting": 3, "seed": 0}], "members.0.setting should be an object"),
        ("together_subjects", {}, "together_subjects should not be empty"),
        ("together_subjects", {"a": 7}, "together_subjects.a should be a number from 0 to 1"),
        ("not_tried", "much", "not_tried should be a list"),
        ("first", {}, "first.setting should be an object"),
        ("trials", None, "trials should be a whole number"),
    ],
)
def test_results_that_are_none_are_named(run, name, value, wrong):
    for complete in (True, False):
        change(run, **{name: value}, complete=complete)
        with pytest.raises(SourceError, match=re.escape(wrong)):
            gather(run)


def test_an_answer_that_was_not_tried_is_named(run):
    results = json.loads(RunFolder(run).results.read_text())
    for name in ("chosen", "first"):
        setting = results[name]["setting"] | {"recipe": {"n_steps": 5}}
        change(run, **results | {name: results[name] | {"setting": setting}})
        with pytest.raises(SourceError, match="not a candidate"):
            gather(run)


def test_curves_with_and_without_the_censor_stand_in_one_picture():
    curve = {0: Estimate(0.6, 0.5, 0.7), 5: Estimate(0.8, 0.7, 0.9)}
    other = {0: Estimate(0.65, 0.5, 0.7), 5: Estimate(0.7, 0.6, 0.8)}
    figure = figure_of(draw_levels({"labels": curve}, 0.55, 0.5, Sheet(), {"labels": other}))
    (ax,) = figure.axes
    drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    np.testing.assert_allclose(drawn["labels"], [60, 80])
    np.testing.assert_allclose(drawn["uncensored"], [65, 70])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "5"]
    low, high = ax.get_ylim()
    assert low < 50
    assert high > 90
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} >= {"labels", "uncensored", "guessing"}
