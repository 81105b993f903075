"""fit, predict, leakage, export and inspect on a small study."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))

import small

import autotransfer as at
from autotransfer.cli.app import app
from autotransfer.data import write_npz
from autotransfer.errors import SettingError

pytestmark = pytest.mark.filterwarnings("ignore::autotransfer.errors.AutoTransferWarning")


def call(*args, code=0):
    done = CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return small.write_study(tmp_path_factory.mktemp("study") / "study.npz")


@pytest.fixture(scope="module")
def fitted(study):
    """Fit a model by the command; returns its folder and what was printed."""
    model = study.parent / "small.model"
    options = ["--measure", "mmd", "--mode", "complementary", "--max-epochs", 3, "--device", "cpu"]
    done = call("fit", study, "--model", model, *options, "--validation", "1,3", "--json")
    return model, json.loads(done.stdout)


def test_fit_is_what_python_fits(study, fitted):
    model, told = fitted
    data = at.load(study)
    clf = at.CensoredClassifier(
        *("mmd", "complementary"),
        sfreq=data.sfreq,
        validation=[1, 3],
        max_epochs=3,
        device="cpu",
        random_state=0,
        verbose=False,
    ).fit(data.X, data.y, subject=data.subject)
    loaded = at.CensoredClassifier.load(model)
    np.testing.assert_array_equal(loaded.predict_proba(data.X), clf.predict_proba(data.X))
    assert told["validation_subjects"] == [1, 3]
    assert told["training_subjects"] == [0, 2, 4]
    assert told["best_epoch"] == clf.best_epoch_


def test_a_model_is_not_replaced_unasked(study, fitted):
    model, _ = fitted
    before = (model / "manifest.json").read_bytes()
    done = call("fit", study, "--model", model, "--max-epochs", 1, code=1)
    assert "--overwrite" in done.stderr
    assert (model / "manifest.json").read_bytes() == before


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_predict_writes_labels_and_probabilities(study, fitted):
    model, _ = fitted
    data, clf = at.load(study), at.CensoredClassifier.load(model)
    done = call("predict", model, study)
    rows = rows_of(done.stdout)
    assert [int(row["trial"]) for row in rows] == list(range(data.n_trials))
    assert [int(row["predicted"]) for row in rows] == clf.predict(data.X).tolist()
    found = [[float(row[f"probability of {c}"]) for c in clf.classes_] for row in rows]
    np.testing.assert_allclose(found, clf.predict_proba(data.X), rtol=1e-5)
    # Labels are there, so each subject's score is told, beside the CSV and not in it.
    mine = data.select(subjects=[2])
    assert f"of subject 2: {clf.score(mine.X, mine.y):.3f}" in done.stderr


def test_predict_needs_signals_only(study, fitted, tmp_path):
    model, _ = fitted
    data = at.load(study)
    np.savez(tmp_path / "new.npz", X=np.asarray(data.X[:7]))
    out = tmp_path / "predicted.csv"
    done = call("predict", model, tmp_path / "new.npz", "--out", out)
    assert done.stdout == ""
    assert "balanced" not in done.stderr
    rows, labelled = rows_of(out.read_text()), rows_of(call("predict", model, study).stdout)
    assert len(rows) == 7
    for row, other in zip(rows, labelled, strict=False):
        assert other.pop("subject") == str(data.subject[int(row["trial"])])
        assert other.pop("true") == str(data.y[int(row["trial"])])
        assert row == other
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".npz"] == [out.name]


def test_labels_of_one_person_are_used_though_the_file_does_not_say_whose(study, fitted, tmp_path):
    model, _ = fitted
    mine = at.load(study).select(subjects=[2])
    np.savez(tmp_path / "eve.npz", X=mine.X[:], y=mine.y)
    done = call("predict", model, tmp_path / "eve.npz", "--out", tmp_path / "predicted.csv")
    score = at.CensoredClassifier.load(model).score(mine.X, mine.y)
    (line,) = (line for line in done.stdout.splitlines() if "eve.npz" in line)
    assert f"{score:.3f}" in line
    done = call("adapt", model, tmp_path / "eve.npz", "--labels", "--out", tmp_path / "eve.model")
    assert "24 of them with labels" in done.stderr
    assert at.load(tmp_path / "eve.npz", subject="eve").subject_names == ["eve"]
    with pytest.raises(SettingError, match="says itself whose trials"):
        at.load(study, subject="eve")


@pytest.mark.parametrize("option", [("--band", "4-40"), ("--tmax", 2), ("--sfreq", 99)])
def test_what_cuts_recordings_is_refused_for_trials(study, fitted, tmp_path, option):
    model, _ = fitted
    np.savez(tmp_path / "new.npz", X=at.load(study).X[:7])
    for file in (tmp_path / "new.npz", study):
        done = call("predict", model, file, *option, code=1)
        assert f"{str(option[0]).removeprefix('--')} cannot be set for" in done.stderr


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Fit a model on a study with names of everything; returns the model and the study."""
    folder = tmp_path_factory.mktemp("named")
    data = at.make_subjects(n_subjects=4, n_trials=20, n_channels=3, n_times=64, random_state=0)
    known = {"sfreq": 128, "channels": ["Oz", "O1", "O2"], "unit": "uV"}
    study = at.SubjectDataset(
        *(data.X, data.y, data.subject),
        classes=["13Hz", "17Hz"],
        subjects=[f"subject{i:02}" for i in range(1, 5)],
        **known,
    )
    write_npz(study, folder / "named.npz")
    options = ["--max-epochs", 2, "--normalise", "train", "--json"]
    call("fit", folder / "named.npz", "--model", folder / "model", *options)
    return folder / "model", study


def test_predict_tells_names_of_classes_and_people(named, tmp_path):
    model, study = named
    out = tmp_path / "predicted.csv"
    table = call("predict", model, model.parent / "named.npz", "--out", out).stdout
    rows = rows_of(out.read_text())
    assert [row["subject"] for row in rows[::20]] == [
        "subject01",
        "subject02",
        *study.subject_names[2:],
    ]
    assert {row["true"] for row in rows} == {"13Hz", "17Hz"}
    assert {row["predicted"] for row in rows} <= {"13Hz", "17Hz"}
    assert set(rows[0]) >= {"probability of 13Hz", "probability of 17Hz"}
    assert "subject03" in table
    # A file that numbers the classes otherwise means the same by their names.
    other = at.SubjectDataset(study.X, 1 - study.y, study.subject, classes=["17Hz", "13Hz"])
    write_npz(other, tmp_path / "other.npz")
    scores = [
        json.loads(call("predict", model, path, "--json").stdout)["balanced_accuracy"]
        for path in (model.parent / "named.npz", tmp_path / "other.npz")
    ]
    assert list(scores[0].values()) == list(scores[1].values())


@pytest.mark.parametrize("labels", [True, False])
def test_predict_uses_what_the_file_knows(named, tmp_path, labels):
    model, study = named
    signals, rest = np.asarray(study.X), {"y": study.y, "subject": study.subject} if labels else {}
    path = tmp_path / "new.npz"

    def predicted(X, **known):
        np.savez(path, X=X, **rest, **{"sfreq": 128.0, "channels": study.channels} | known)
        return call("predict", model, path, "--json")

    wanted = json.loads(predicted(signals).stdout)["probabilities"]
    turned = predicted(signals[:, [2, 0, 1]], channels=["O2", "Oz", "O1"])
    assert json.loads(turned.stdout)["probabilities"] == wanted
    volts = json.loads(predicted(signals * 1e-6, unit="V").stdout)["probabilities"]
    np.testing.assert_allclose(volts, wanted, atol=1e-5)
    for known, words in (
        ({"sfreq": 256.0}, "at 128 Hz, but these are at 256 Hz"),
        ({"channels": ["Oz", "O1", "Cz"]}, "needs the channels O2"),
    ):
        np.savez(path, X=signals, **rest, **{"sfreq": 128.0, "channels": study.channels} | known)
        assert words in " ".join(call("predict", model, path, code=1).stderr.split())


def test_predict_adapts_to_each_person_by_themselves(study, fitted, tmp_path):
    model, _ = fitted
    data, clf = at.load(study), at.CensoredClassifier.load(model)
    told = json.loads(call("predict", model, study, "--adapt", "--json").stdout)
    for who in data.subject_ids:
        mine = data.subject == who
        expected = clf.adapt(data.X[mine]).predict_proba(data.X[mine])
        np.testing.assert_allclose(np.array(told["probabilities"])[mine], expected, atol=1e-6)
    np.savez(tmp_path / "new.npz", X=data.X[:8])
    one = json.loads(call("predict", model, tmp_path / "new.npz", "--adapt", "--json").stdout)
    expected = clf.adapt(data.X[:8]).predict_proba(data.X[:8])
    np.testing.assert_allclose(one["probabilities"], expected, atol=1e-6)


def test_predict_tells_scores_in_json(study, fitted, tmp_path):
    model, _ = fitted
    told = json.loads(call("predict", model, study, "--json").stdout)
    data, clf = at.load(study), at.CensoredClassifier.load(model)
    assert told["predicted"] == clf.predict(data.X).tolist()
    for one in data.subject_ids:
        mine = data.select(subjects=[one])
        assert told["balanced_accuracy"][str(one)] == pytest.approx(clf.score(mine.X, mine.y))
    table = call("predict", model, study, "--out", tmp_path / "p.csv").stdout
    assert "mean" in table


def test_predict_tells_no_score_of_labels_that_mean_nothing(study, fitted, tmp_path):
    model, _ = fitted
    data = at.load(study)
    y = np.full(data.n_trials, -1)
    np.savez(tmp_path / "unknown.npz", X=np.asarray(data.X), y=y, subject=data.subject)
    told = json.loads(call("predict", model, tmp_path / "unknown.npz", "--json").stdout)
    assert told["balanced_accuracy"] is None


def test_leakage_is_that_of_python_in_all_parts(study, fitted):
    model, _ = fitted
    data, clf = at.load(study), at.CensoredClassifier.load(model)
    options = ["--probes", "linear", "--n-folds", 3]
    told = json.loads(call("leakage", model, study, *options, "--json").stdout)
    assert list(told) == ["z", "z1", "z2"]
    expected = at.measure_leakage(clf.transform(data.X), data.subject, probes=["linear"], n_folds=3)
    assert told["z"] == json.loads(json.dumps(expected.to_dict()))
    done = call("leakage", model, study, *options)
    assert str(expected.best.accuracy) in done.stdout
    assert "2 of 5 subjects were not trained on" in done.stderr


def test_export_copies_the_model(fitted, tmp_path):
    model, _ = fitted
    done = call("export", model, "--model", tmp_path / "copy")
    assert done.stdout == f"{tmp_path / 'copy'}\n"
    assert (tmp_path / "copy" / "weights.safetensors").is_file()


@pytest.mark.slow
def test_export_onnx(fitted, tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    done = call("export", fitted[0], "--onnx", tmp_path / "small.onnx")
    assert done.stdout.splitlines()[-1] == str(tmp_path / "small.onnx")
    assert (tmp_path / "small.onnx").stat().st_size > 0


def test_datasets_are_those_of_the_catalogue():
    from autotransfer.data.sources.catalogue import catalogue

    rows = catalogue()
    told = json.loads(call("datasets", "--json").stdout)
    assert [row["name"] for row in told] == [row.name for row in rows]
    assert all({"subjects", "classes", "channels", "licence"} <= row.keys() for row in told)
    assert rows[0].name in call("datasets").stdout


def test_inspect_quick_shows_what_the_data_are(study):
    done = call("inspect", study, "--quick")
    assert "120 trials of 5 subjects, 2 classes" in done.stdout
    assert "4 channels x 64 times, 128 Hz, 0.5 s a trial" in done.stdout
    assert done.stdout.count("| 12 | 12 |  24 |") == 5  # trials of every person and class
    assert "Nothing wrong was found." in done.stdout


def test_inspect_of_many_people_is_short(tmp_path):
    data = at.make_subjects(n_subjects=60, n_trials=8, n_classes=4, n_times=32, random_state=0)
    y = data.y.copy()
    y[data.subject == 3] = 0
    named = at.SubjectDataset(data.X, y, data.subject)
    write_npz(named, tmp_path / "many.npz")
    done = call("inspect", tmp_path / "many.npz", "--quick")
    assert "... 48 more" in done.stdout
    assert "missing-class" in done.stdout
    told = json.loads(call("inspect", tmp_path / "many.npz", "--quick", "--json").stdout)
    np.testing.assert_array_equal(told["counts"], named.counts())
    assert {one["name"] for one in told["findings"]} >= {"missing-class"}


def test_inspect_doubts_a_normalisation_only_where_it_is_written(tmp_path):
    """A run chooses it by the kind of signal, so nobody need be told to set it."""
    data = at.make_subjects(n_subjects=3, n_trials=12, n_times=32, random_state=0)
    names = [f"EMG{i}" for i in range(1, data.n_channels + 1)]
    write_npz(at.SubjectDataset(data.X, data.y, data.subject, channels=names), tmp_path / "e.npz")

    def found(*options):
        told = json.loads(call("inspect", tmp_path / "e.npz", "--quick", "--json", *options).stdout)
        return [one["name"] for one in told["findings"]]

    assert "emg-normalised-by-channel" not in found()
    assert "emg-normalised-by-channel" in found("--normalise", "channel")


def test_inspect_goes_on_where_data_are_wrong(tmp_path):
    data = at.make_subjects(n_subjects=3, n_trials=12, n_times=32, random_state=0)
    data.X[4, 1, 3] = np.nan
    write_npz(data, tmp_path / "wrong.npz")
    done = call("inspect", tmp_path / "wrong.npz")
    assert "error (nan)" in done.stdout
    assert done.stdout.count("is not known") == 2  # neither a probe nor costs


@pytest.mark.slow
def test_inspect_probes_the_signals_and_tells_costs(study):
    done = call("inspect", study, "--json", "--quiet", "--max-epochs", 20)
    told = json.loads(done.stdout)
    probe = told["signal_leakage"]
    assert probe["chance"] == pytest.approx(1 / 5)
    assert probe["best"]["accuracy"]["value"] > probe["chance"]
    *_, an_hour, everything = told["costs"]
    assert [one["budget"] for one in told["costs"]] == [600, 1800, 3600, None]
    assert everything["trials"] >= an_hour["trials"] > 0
    assert an_hour["plan"]["seconds"] <= 3600
    assert everything["memory"] > 0


def test_adapt_is_what_python_adapts(study, fitted, tmp_path):
    model, _ = fitted
    data, clf = at.load(study), at.CensoredClassifier.load(model)
    person = data.select(subjects=[2])
    write_npz(person, tmp_path / "person.npz")
    options = ["--out", tmp_path / "person.model", "--method", "statistics"]
    done = call("adapt", model, tmp_path / "person.npz", *options)
    assert f"Adapted by {person.n_trials} trials" in done.stderr
    assert done.stdout.strip() == str(tmp_path / "person.model")
    made = at.load_model(tmp_path / "person.model")
    expected = clf.adapt(person, method="statistics")
    np.testing.assert_array_equal(made.predict_proba(data.X), expected.predict_proba(data.X))

    few, rest = person.select(trials=np.arange(8)), person.select(trials=np.arange(8, 16))
    write_npz(few, tmp_path / "few.npz")
    write_npz(rest, tmp_path / "rest.npz")
    options = ["--labels", "--unlabelled", tmp_path / "rest.npz", "--overwrite"]
    options += ["--method", "statistics+head", "--out", tmp_path / "person.model"]
    done = call("adapt", model, tmp_path / "few.npz", *options)
    assert "16 trials, 8 of them with labels: statistics+head" in done.stderr
    made = at.load_model(tmp_path / "person.model")
    expected = clf.adapt(few, few.y, unlabelled=rest, method="statistics+head")
    np.testing.assert_array_equal(made.predict_proba(data.X), expected.predict_proba(data.X))


def test_adapt_says_that_it_did_not(study, fitted, tmp_path):
    model, _ = fitted
    data, clf = at.load(study), at.CensoredClassifier.load(model)
    person = data.select(subjects=[2])
    one = tmp_path / "one.npz"
    write_npz(person.select(trials=np.zeros(20, int)), one)  # one trial, 20 times
    done = call("adapt", model, one, "--out", tmp_path / "own.model")
    assert "Not adapted by 20 trials" in done.stderr
    made = at.load_model(tmp_path / "own.model")
    np.testing.assert_array_equal(made.predict_proba(data.X), clf.predict_proba(data.X))
    assert "Not adapted to the person of 20 trials" in made.describe()
    knowing = "--all-classes", "--out", tmp_path / "told.model"
    assert "Adapted by 20 trials: statistics" in call("adapt", model, one, *knowing).stderr
    told = call("predict", model, one, "--adapt", "--all-classes", "--json").stdout
    expected = at.load_model(tmp_path / "told.model").predict_proba(at.load(one).X)
    np.testing.assert_allclose(json.loads(told)["probabilities"], expected, rtol=1e-6)
    assert "--adapt" in call("predict", model, one, "--all-classes", code=2).stderr


def test_adapt_refuses(study, fitted, tmp_path):
    model, _ = fitted
    bare = tmp_path / "bare.npz"
    np.savez(bare, X=at.load(study).X[:6])
    done = call("adapt", model, bare, "--labels", "--out", tmp_path / "new", code=1)
    assert "--labels needs labels" in done.stderr
    done = call("adapt", model, study, "--out", tmp_path / "new", code=1)
    assert "one person" in done.stderr
    assert not (tmp_path / "new").exists()
    assert "--overwrite" in call("adapt", model, bare, "--out", model, code=1).stderr


def test_predict_live_is_what_python_predicts_live(study, fitted):
    model, _ = fitted
    data, clf = at.load(study), at.CensoredClassifier.load(model)
    rows = rows_of(call("predict", model, study, "--live").stdout)
    for code in range(len(data.subject_ids)):
        trials = np.flatnonzero(data.subject_code == code)
        expected = clf.live().predict(data.X[trials])
        assert [rows[trial]["predicted"] for trial in trials] == [str(y) for y in expected]
    told = call("predict", model, study, "--live", "--adapt", code=2).stderr
    assert "two levels" in told


def test_predict_live_from_standard_input(study, fitted):
    model, _ = fitted
    X = at.load(study).X[:5]
    lines = "\n".join(json.dumps(x.tolist()) for x in X) + "\n\n"
    done = CliRunner().invoke(app, ["predict", str(model), "-", "--live"], input=lines)
    assert done.exit_code == 0, done.output
    expected = at.load_model(model).live().predict_proba(X)
    rows = rows_of(done.stdout)
    assert [row["trial"] for row in rows] == list("01234")
    shown = [[float(v) for k, v in row.items() if k.startswith("probability")] for row in rows]
    np.testing.assert_allclose(shown, expected, atol=1e-5)
    for bad in ("nothing", "[1, 2]", "[[1, 2], [3]]", '{"x": 1}', "[[null]]"):
        done = CliRunner().invoke(app, ["predict", str(model), "-", "--live"], input=bad)
        assert done.exit_code == 1
        assert "Line 1" in done.stderr or "channels" in done.stderr, bad
    assert "--live" in call("predict", model, "-", code=2).stderr


def test_people_and_classes_are_selected_by_name(tmp_path):
    data = at.make_subjects(n_subjects=4, n_trials=24, n_classes=3, n_times=64, random_state=0)
    people = dict(enumerate(["ann", "bob", "eve", "dan"]))
    names = {"classes": ["fist", "open", "rest"], "subjects": people}
    named = at.SubjectDataset(data.trials[:], data.y, data.subject, sfreq=data.sfreq, **names)
    file = tmp_path / "named.npz"
    write_npz(named, file)
    options = ("--subjects", "ann, bob,3", "--only-classes", "fist,2")
    told = json.loads(call("inspect", file, "--quick", "--json", *options).stdout)
    expected = named.select(subjects=[0, 1, 3], labels=[0, 2])
    assert told["trials"] == expected.n_trials
    assert (told["subjects"], told["classes"]) == (3, 2)
    fit = ("--max-epochs", 1, "--device", "cpu", "--json")
    call("fit", file, "--model", tmp_path / "some.model", *options, *fit)
    assert at.CensoredClassifier.load(tmp_path / "some.model").classes_.tolist() == [0, 2]
    done = call("inspect", file, "--quick", "--only-classes", "fist,thumb", code=1)
    assert "thumb" in done.stderr
