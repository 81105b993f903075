"""The page of a run: what it claims, what it does not, and that it needs nothing but itself."""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from report_runs import CLASSES, PEOPLE, cut, data, drive, pictures, trials_of, words
from scipy import stats

import autotransfer as at
from autotransfer.errors import SourceError
from autotransfer.report import write_report
from autotransfer.report.gather import gather
from autotransfer.report.page import page as page_of
from autotransfer.report.pictures import Drawing
from autotransfer.report.reproduce import given_options, python
from autotransfer.report.summary import answer
from autotransfer.search.ledger import Entry, Ledger
from autotransfer.search.options import run_definition, run_options_of, shared_of
from autotransfer.search.results import verdict
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.trial import digest

pytestmark = pytest.mark.slow

PARTS = [("search", 0), ("search", 3), ("crossval", 0), ("crossval", 5), ("refit", 0)]
PARTS += [("portrait", 0), ("portrait", 1)]


def files(folder):
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def page(whole_run, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "whole.html"
    before = files(whole_run)
    assert write_report(whole_run, out) == out
    assert files(whole_run) == before
    return out


def test_a_whole_run_is_not_called_partial(page):
    text = page.read_text()
    assert "PARTIAL" not in text
    assert "The answer" in words(text)
    shown = pictures(text)
    assert len(shown) == 2 * 7  # on light paper and on dark
    assert not any("PARTIAL" in svg or "STUDY" in svg for svg in shown)


@pytest.mark.parametrize(("stage", "trials"), PARTS)
def test_a_partial_run_says_so_everywhere(whole_run, tmp_path, stage, trials):
    run = cut(whole_run, tmp_path / "part", stage, trials)
    text = write_report(run, assets=False).read_text()
    said = words(text)
    recorded = len(trials_of(run))
    recorded -= {"refit": 0, "portrait": 1 + trials}.get(stage, 0)  # these are no trials
    assert said.startswith(f"PARTIAL: unfinished run, {recorded} trial")
    assert text.partition("<title>")[2].startswith("PARTIAL")
    assert "The answer" not in said
    assert "The chosen method is" not in said
    assert 'class="badge">chosen' not in text
    shown = pictures(text)
    assert all("PARTIAL" in svg for svg in shown)
    assert all(alt.startswith("PARTIAL") for alt in re.findall(r'<img [^>]*alt="([^"]*)', text))
    if stage in ("crossval", "refit", "portrait") and trials:
        assert shown


def test_the_page_is_the_same_every_time(whole_run, page, tmp_path):
    again = write_report(whole_run, tmp_path / "whole.html", assets=tmp_path / "whole-files")
    assert again.read_bytes() == page.read_bytes()


def test_nothing_of_the_data_is_markup(page):
    text = page.read_text()
    assert "<img src=x" not in text
    assert "<b>left" not in text
    said = words(text)
    for name in [*PEOPLE, *CLASSES]:
        assert name in said
    for svg in pictures(text):
        assert "<img" not in svg


def test_nothing_is_fetched(page):
    text = page.read_text()
    sources = re.findall(r'(?:src|srcset|href)="([^"]{0,40})', text)
    assert sources
    assert all(one.startswith(("data:image/svg+xml;base64,", "#")) for one in sources)
    policy = html.unescape(re.findall(r'Content-Security-Policy" content="([^"]*)', text)[0])
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert not re.search(r'\son\w+="', re.sub(r'alt="[^"]*"', "", text))


def test_the_numbers_are_those_of_the_table_of_trials(whole_run, page):
    results = json.loads(RunFolder(whole_run).results.read_text())
    record = gather(whole_run)
    said = words(page.read_text())
    # From the table of trials, by another way than the report's: a fold tests one person.
    trials = pd.read_csv(RunFolder(whole_run).trials)
    wanted = trials[trials["setting"].isin([m.name for m in record.candidates])]
    means = wanted.groupby(["setting", "fold"])["test"].mean().unstack()
    base, mine = means.loc["uncensored"], means.loc[results["chosen"]["name"]]
    assert f"{100 * mine.mean():.1f}\N{NO-BREAK SPACE}%" in page.read_text()
    # The first number of the page: each person scored under the choice made without that person,
    # which here is the one who validates in the fold before.
    judged = wanted.groupby(["setting", "fold"])["validation"].mean().unstack()
    order = [method.name for method in record.candidates]
    mine = []
    for fold in range(5):
        others = judged.drop(columns=(fold - 1) % 5).quantile(0.25, axis=1)
        mine.append(means.loc[max(order, key=lambda name: others[name]), fold])
    mine = pd.Series(mine)
    first = re.search(r'class="number">([^<]*)<', page.read_text()).group(1)
    assert first == f"{100 * mine.mean():.1f}\N{NO-BREAK SPACE}%"
    assert sorted(record.nested.values()) == pytest.approx(sorted(mine))
    for method in record.candidates:
        assert sorted(method.test.values()) == pytest.approx(sorted(means.loc[method.name]))
    if results["censors"]:
        gained, lost = int((mine > base + 1e-9).sum()), int((mine < base - 1e-9).sum())
        assert f"Of 5 people, {gained} gained and {lost} lost" in said
        p = stats.wilcoxon((mine - base).round(9)).pvalue
        assert f"p = {p:.3f}" in said
    else:
        assert "No censor did better" in said


def chosen_as(record, method):
    """Give the record as if another candidate had been chosen."""
    results = record.results | {
        "chosen": {"setting": method.setting.to_json(), "name": method.name},
        "censors": method.setting.measure is not None,
    }
    return type(record)(**vars(record) | {"results": results, "focus": method})


def test_the_words_fit_what_was_chosen(whole_run):
    record = gather(whole_run)
    for method in record.candidates:
        found = answer(chosen_as(record, method))
        said = " ".join(found.paragraphs)
        if method.setting.measure is None:
            assert found.headline == "No censor was chosen: none did better."
            assert "The nearest censor was" in said
        else:
            assert f"The chosen method is {method.name}:" in said
            assert "cannot tell a difference from chance" in said  # five people cannot
            assert "helped" not in found.headline


def test_what_unlabelled_trials_are_worth_is_told(whole_run):
    record = gather(whole_run)
    for method in record.candidates:
        assert sorted(method.adapted) == sorted(method.test)
        said = answer(chosen_as(record, method)).paragraphs[-1]
        gain = np.array([method.adapted[who] - method.test[who] for who in method.test])
        assert f"it then recognised {100 * np.mean(list(method.adapted.values())):.1f}" in said
        assert f"{abs(100 * gain.mean()):.1f} percentage points against" in said
        # An encoder without batch norm has no such scores; then nothing is said about it.
        other = replace(method, adapted={})
        methods = tuple(other if m is method else m for m in record.methods)
        told = answer(chosen_as(replace(record, methods=methods), other)).paragraphs
        assert not any("adapted" in one for one in told)


def test_the_page_says_what_was_done_and_not_what_was_asked_for(whole_run):
    record = gather(whole_run)
    asked = record.definition | {"n_folds": 5, "max_epochs": 67, "n_seeds": 4, "keep": 3}
    plan = record.results["plan"] | {"n_folds": 3, "rungs": [23], "n_seeds": 2, "keep": 1}
    people = {"train": [1, 2], "validation": [1, 2], "test": [2]}
    done = record.results | {"plan": plan, "people_in_a_fold": people}
    said = words(page_of(replace(record, definition=asked, results=done), {}))
    for fact in (
        "2 repetitions of the cross-validation",
        "3 folds; in each, 1 or 2 people train, 1 or 2 validate, 2 test",
        "at most 23 in the cross-validation",
        "the best 1 of each measure",
    ):
        assert fact in said
    assert "67" not in said.partition("How to run it again")[0]
    # Of the run itself: everybody but the one who validates and the one who tests.
    assert record.results["people_in_a_fold"] == {"train": [3], "validation": [1], "test": [1]}


@pytest.mark.parametrize(("falling", "told"), [(0, False), (2, False), (3, True), (5, True)])
def test_training_that_ended_too_early_is_told_first(whole_run, falling, told):
    record = gather(whole_run)
    results = record.results | {"still_falling": falling, "trainings": 5}
    answered = answer(replace(record, results=results))
    assert any("Training ended too early" in one for one in answered.warnings) == told
    assert ("Training ended too early" in verdict(results)) == told


def test_names_go_all_the_way(whole_run, page, tmp_path):
    record = gather(whole_run)
    assert set(record.baseline.test) == set(record.nested) == set(PEOPLE)
    write_report(whole_run, tmp_path / "page.html", assets=tmp_path / "files")
    people = pd.read_csv(tmp_path / "files" / "people.csv")
    assert set(people["subject"]) == set(PEOPLE)
    confusion = pd.read_csv(tmp_path / "files" / "confusion.csv")
    assert list(confusion.columns[1:]) == list(CLASSES)
    assert set(record.portraits[0].points["subject"]) <= set(PEOPLE)
    assert set(record.portraits[0].points["label"]) == set(CLASSES)
    card = (RunFolder(whole_run).model / "README.md").read_text()
    assert all(f"`{name}`" in card for name in CLASSES)


def test_the_folds_of_the_search_are_told(whole_run):
    record = gather(whole_run)
    asked = record.definition | {"search_folds": 4}
    cut_down = record.results | {"plan": record.results["plan"] | {"search_folds": 3}}
    for changes, folds in (
        ({}, "1 fold"),
        ({"definition": asked, "results": None}, "4 folds"),
        ({"definition": asked, "results": cut_down}, "3 folds"),  # a budget did not let it have 4
    ):
        told = type(record)(**vars(record) | changes)
        said = words(page_of(told, {}))
        assert f", on {folds};" in said
        assert f"the people of {folds} behind" in said


def test_a_choice_by_test_scores_is_marked_everywhere(whole_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(whole_run, run)
    auto = drive.quick(run, portraits=True, rule="oracle").fit(data())
    text = auto.report(tmp_path / "oracle.html").read_text()
    assert words(text).startswith("FOR STUDY ONLY")
    assert all("FOR STUDY ONLY" in svg for svg in pictures(text))
    assert "chosen, for study only" in text


def test_pictures_and_tables_are_files_too(whole_run, page, tmp_path):
    made = {path.name for path in page.with_name("whole-files").iterdir()}
    names = ["methods", "people", "leakage", "curves", "maps", "confusion"]
    assert {f"{n}.{kind}" for n in names for kind in ("svg", "png")} <= made
    tables = {"settings.csv", "people.csv", "people_by_setting.csv", "leakage.csv", "confusion.csv"}
    assert tables <= made
    settings = pd.read_csv(page.with_name("whole-files") / "settings.csv")
    assert len(settings) == 5
    assert settings["chosen"].sum() == 1
    confusion = pd.read_csv(page.with_name("whole-files") / "confusion.csv", index_col=0)
    assert confusion.to_numpy().sum() == 5 * 24  # each person tests once
    # What another report left goes; what is somebody else's stays.
    folder = tmp_path / "files"
    shutil.copytree(page.with_name("whole-files"), folder)
    (folder / "mine.txt").write_text("keep")
    part = cut(whole_run, tmp_path / "part", "search", 0)  # planned, and killed
    write_report(part, tmp_path / "part.html", assets=folder)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    write_report(part, tmp_path / "none.html", assets=False)
    assert not (tmp_path / "none-files").exists()


@pytest.mark.parametrize("budget", [None, 5400.0, 0.25])
def test_the_call_to_run_it_again_is_this_run(whole_run, budget):
    record = gather(whole_run)
    record = replace(record, definition=record.definition | {"budget": budget})
    call, _, _ = python(record).partition("auto.fit(")
    names = {}
    exec(call, names)
    auto = names["auto"]
    shared = shared_of(auto, data(), None, None)
    definition = run_definition(shared, run_options_of(auto, shared.problem))
    saved = json.loads(RunFolder(whole_run).run.read_text())["definition"]
    assert json.loads(json.dumps(definition)) == saved | {"budget": budget}


def test_failures_are_shown(whole_run, tmp_path):
    run = cut(whole_run, tmp_path / "part", "crossval", 1)
    saved = json.loads(RunFolder(run).run.read_text())["definition"]
    last = trials_of(whole_run, "crossval")[-1]
    error = "Traceback (most recent call last):\n  ...\nValueError: <i>bad</i> weather\n"
    with Ledger(run / "ledger.jsonl", digest(saved)) as ledger:
        definition = last["entry"]["definition"]
        ledger.record(Entry(last["id"], "crossval", "failed", definition, {}, error, attempts=3))
    text = write_report(run, assets=False).read_text()
    assert "ValueError: <i>bad</i> weather" in words(text)
    assert "<i>bad" not in text
    assert "1 failed" in words(text)


def test_a_run_without_portraits(whole_run, tmp_path):
    run = tmp_path / "plain"
    shutil.copytree(whole_run, run)
    (run / "ledger.jsonl").unlink()
    run_hash = digest(json.loads((run / "run.json").read_text())["definition"])
    source = Ledger(RunFolder(whole_run).ledger, run_hash, read_only=True)
    with source, Ledger(run / "ledger.jsonl", run_hash) as target:
        for stage in ("search", "crossval", "refit"):
            if source.plan(stage) is not None:
                target.write_plan(stage, source.plan(stage))
            for entry in source.each(stage, curves=True):
                target.record(entry)
    text = write_report(run, assets=False).read_text()
    said = words(text)
    assert "PARTIAL" not in text
    assert "The answer" in said
    assert "leakage was not measured" in said
    assert len(pictures(text)) == 2 * 5


def test_the_curves_say_what_the_validation_loss_was_for(whole_run, page):
    def caption(text):
        return words(text).partition("Thin lines")[2].partition("Maps of the latents")[0]

    to_the_end = "went through all its epochs and kept the last weights; the validation loss is"
    assert f"{to_the_end} shown, but was not used." in caption(page.read_text())
    record = gather(whole_run)
    options = given_options(at.CensoredClassifier(patience=30))
    patient = replace(record, about=record.about | {"classifier": options})
    said = caption(page_of(patient, {"curves": Drawing("Curves.", b"<svg/>", b"<svg/>")}))
    assert "stopped early where its validation loss no longer fell (patience)" in said
    assert "kept the weights of the epoch with the lowest" in said
    assert "last weights" not in said


def test_a_folder_without_a_run_is_named(tmp_path, whole_run):
    with pytest.raises(SourceError, match="no run in"):
        write_report(tmp_path)
    with pytest.raises(SourceError, match="Make it"):
        write_report(whole_run, tmp_path / "missing" / "page.html")
    with pytest.raises(SourceError, match="is a folder"):
        write_report(whole_run, tmp_path)
