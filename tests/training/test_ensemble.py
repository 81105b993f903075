"""Several networks as one model: means by hand, folders of friends and foes, every way of use."""

from __future__ import annotations

import csv
import io
import json
import shutil
import warnings

import numpy as np
import pytest
import torch
import yaml
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score
from typer.testing import CliRunner

import autotransfer as at
from autotransfer.cli.app import app
from autotransfer.data import write_npz
from autotransfer.data.info import Recording, SignalInfo
from autotransfer.encoder.split import split_latent
from autotransfer.errors import (
    ChannelMismatchError,
    DataWarning,
    ModelFolderError,
    SamplingRateError,
    SettingError,
    ShapeError,
    SubjectError,
)
from autotransfer.search.run_folder import RunFolder

BASE = at.make_subjects(n_subjects=4, n_trials=12, n_channels=3, n_times=64, random_state=0)
NAMES = ["Oz", "O1", "O2"]


def dataset(X=BASE.X, y=BASE.y, **changes):
    known = {"channels": NAMES, "sfreq": 128.0, "unit": "uV", "classes": ["13Hz", "17Hz"]}
    return at.SubjectDataset(X, y, BASE.subject, **known | changes)


DATA = dataset()
QUICK = {"max_epochs": 6, "learning_rate": 0.01, "device": "cpu", "verbose": False}


def small(kernel_length):
    return {"F1": 2, "kernel_length": kernel_length, "depthwise_kernel_length": 4}


RECIPES = [
    {"normalise": "channel", "encoder_options": small(16), "random_state": 0, "validation": [0]},
    {"normalise": "trial", "encoder_options": small(8), "random_state": 1, "validation": [1]},
    {"normalise": "train", "encoder_options": small(16), "random_state": 2, "validation": None},
]


def fitted(recipe, data=DATA, **more):
    return at.CensoredClassifier(**QUICK | recipe | more).fit(data)


@pytest.fixture(scope="module")
def members():
    return [fitted(recipe) for recipe in RECIPES]


@pytest.fixture(scope="module")
def ensemble(members):
    return at.Ensemble(members)


def assert_same(one, other, X=BASE.X):
    for answer in ("predict_proba", "transform", "predict", "probabilities", "predict_codes"):
        np.testing.assert_array_equal(getattr(one, answer)(X), getattr(other, answer)(X))


def by_hand(members, X):
    """Probabilities and latents by the layers written out, softmax by scipy."""
    probabilities, latents = 0.0, []
    for member in members:
        signals = torch.from_numpy(member.normaliser_.transform(np.asarray(X)))
        with torch.no_grad():
            z = member.network_.encoder.literal().eval()(signals).flatten(1)
            logits = member.network_.head(z).double().numpy()
        probabilities = probabilities + softmax(logits, axis=1) / len(members)
        latents.append(z.numpy())
    return probabilities, np.hstack(latents)


def test_the_mean_by_hand(ensemble, members):
    probabilities, latents = by_hand(members, BASE.X)
    np.testing.assert_allclose(ensemble.predict_proba(DATA), probabilities, atol=1e-5)
    np.testing.assert_allclose(ensemble.transform(DATA), latents, rtol=1e-4, atol=1e-4)
    shares = [member.predict_proba(BASE.X) for member in members]
    np.testing.assert_allclose(ensemble.predict_proba(BASE.X), sum(shares) / 3, rtol=1e-12)
    np.testing.assert_array_equal(ensemble.predict_codes(BASE.X), sum(shares).argmax(1))
    np.testing.assert_array_equal(ensemble.predict(DATA), BASE.labels[sum(shares).argmax(1)])
    # The mean would be easy if all members were the same.
    assert max(np.abs(share - shares[0]).max() for share in shares[1:]) > 0.01


def test_scores(ensemble):
    wanted = balanced_accuracy_score(BASE.y, ensemble.predict(BASE.X))
    assert ensemble.score(DATA) == ensemble.score(BASE.X, BASE.y) == wanted
    # Numbered the other way round, but named.
    turned = dataset(y=1 - BASE.y, classes=["17Hz", "13Hz"])
    assert ensemble.score(turned) == wanted
    np.testing.assert_array_equal(ensemble.true_codes(turned), BASE.y_code)


def test_what_is_read_from_a_fitted_classifier(ensemble, members):
    for name in ("class_names_", "info_", "n_channels_", "n_times_", "sfreq"):
        assert getattr(ensemble, name) == getattr(members[0], name)
    np.testing.assert_array_equal(ensemble.classes_, members[0].classes_)
    assert ensemble.amplitude_ == np.median([member.amplitude_ for member in members])
    assert sorted(ensemble.training_subjects_) == [0, 1, 2, 3]
    assert ensemble.validation_subjects_ == []  # whom one was validated on, others have seen
    two = at.Ensemble([fitted(RECIPES[0]), fitted(RECIPES[0], random_state=5)])
    assert two.validation_subjects_ == [0]
    assert two.provenance_["training_subjects"] == ["1", "2", "3"]
    assert [one["seed"] for one in two.provenance_["members"]] == [0, 5]


def test_words(ensemble):
    words = ensemble.describe()
    for word in (
        "ensemble of 3 networks",
        "`13Hz`, `17Hz`",
        "3 channels x 64 time points at 128 Hz",
        "Member 1. Normalisation: 'channel'",
        "Member 2. Normalisation: 'trial'",
    ):
        assert word in words
    twins = at.Ensemble([fitted(RECIPES[2], random_state=seed) for seed in (3, 4)])
    assert "Members 1, 2. Normalisation: 'train'" in twins.describe()


def test_checks_are_made_once(ensemble):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        unnamed = Recording(BASE.trials.times(1e6), SignalInfo(sfreq=128.0))
        ensemble.adapt(unnamed, method="statistics")
    assert [one.category for one in caught] == [DataWarning, DataWarning]  # names; amplitude
    said = sorted(str(one.message)[:20] for one in caught)
    assert len(set(said)) == 2


def test_signals_that_do_not_fit(ensemble):
    order = [2, 0, 1]
    shuffled = dataset(np.asarray(BASE.X)[:, order], channels=[NAMES[i] for i in order])
    np.testing.assert_array_equal(ensemble.predict_proba(shuffled), ensemble.predict_proba(DATA))
    with pytest.raises(SamplingRateError):
        ensemble.predict(dataset(sfreq=256.0))
    with pytest.raises(ChannelMismatchError):
        ensemble.predict_codes(BASE.X[:, :2])
    with pytest.raises(ShapeError):
        ensemble.probabilities(BASE.X[..., :9])


def test_adapting_changes_no_member(ensemble, members):
    X = 3 * BASE.X[BASE.subject == 1]
    before = [member.predict_proba(BASE.X) for member in members]
    options = {"method": "statistics", "prior": 4}
    personal = ensemble.adapt(X, **options)
    wanted = np.mean([one.adapt(X, **options).predict_proba(X) for one in members], axis=0)
    np.testing.assert_allclose(personal.predict_proba(X), wanted, rtol=1e-12)
    assert np.abs(personal.predict_proba(X) - ensemble.predict_proba(X)).max() > 1e-3
    for member, probabilities in zip(members, before, strict=True):
        np.testing.assert_array_equal(member.predict_proba(BASE.X), probabilities)
        assert "adapted" not in member.provenance_
    assert "Adapted to one person by 12 trials" in personal.describe()
    with pytest.raises(ShapeError, match="values but X has"):
        ensemble.adapt(X, BASE.y)
    with pytest.raises(SubjectError, match="one person"):
        ensemble.adapt(DATA)


def test_it_is_not_fitted_itself(ensemble):
    with pytest.raises(SettingError, match=r"Fit each member.*AutoTransfer"):
        ensemble.fit(DATA)
    with pytest.raises(SettingError, match="Fit each member"):  # as cross-validation would
        clone(ensemble).fit(BASE.X, BASE.y, subject=BASE.subject)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: fitted(RECIPES[0], dataset(BASE.X[:, :2], channels=NAMES[:2])), "channels"),
        (lambda: fitted(RECIPES[0], dataset(BASE.X[..., :48])), "time points"),
        (lambda: fitted(RECIPES[0], dataset(classes=["left", "right"])), "names of classes"),
        (lambda: fitted(RECIPES[0], dataset(y=BASE.y + 1)), "classes"),
        (lambda: fitted(RECIPES[0], dataset(sfreq=100.0)), "sampling rate"),
        (lambda: fitted(RECIPES[0], dataset(unit="mV")), "unit"),
        (lambda: fitted(RECIPES[0], dataset(channels=["Oz", "O2", "O1"])), "names of channels"),
        (lambda: "eegnet", "member 2 is of type str"),
    ],
)
def test_members_must_fit_together(members, other, words):
    with pytest.raises(SettingError, match=words):
        at.Ensemble([members[0], other()])


def test_members_must_be_there_and_fitted(members, ensemble):
    with pytest.raises(SettingError, match="needs members"):
        at.Ensemble([])
    with pytest.raises(SettingError, match="member 1 is of type Ensemble"):
        at.Ensemble([ensemble])
    with pytest.raises(NotFittedError):
        at.Ensemble([members[0], at.CensoredClassifier()])


# Folders ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(ensemble, tmp_path_factory):
    return ensemble.save(tmp_path_factory.mktemp("models") / "ensemble.model")


def test_what_is_loaded_is_what_was_saved(ensemble, saved, tmp_path):
    for load in (at.load_model, at.Ensemble.load):
        again = load(str(saved))
        assert isinstance(again, at.Ensemble)
        assert_same(again, ensemble)
    assert again.describe() == ensemble.describe()
    assert_same(at.load_model(again.save(tmp_path / "again")), ensemble)
    for name, member in zip(("member-1", "member-2", "member-3"), ensemble.members, strict=True):
        alone = at.load_model(saved / name)  # an ordinary model folder
        assert isinstance(alone, at.CensoredClassifier)
        assert_same(alone, member)
    with pytest.raises(ModelFolderError, match="load_model"):
        at.CensoredClassifier.load(saved)


def test_the_folder_and_its_card(saved):
    inside = {"ensemble.json", "README.md", "member-1", "member-2", "member-3"}
    assert {item.name for item in saved.iterdir()} == inside
    about = json.loads((saved / "ensemble.json").read_text())
    assert about == {
        "format": "autotransfer-ensemble",
        "format_version": 1,
        "members": ["member-1", "member-2", "member-3"],
    }
    _, header, body = (saved / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(header)["library_name"] == "autotransfer"
    assert "- An ensemble of 3 networks" in body
    assert 'at.load_model("this folder")' in body


def test_a_run_writes_the_same_folder(members, ensemble, saved, tmp_path):
    files = RunFolder(tmp_path)
    files.write_model("key", [member.files() for member in members])
    for path in saved.rglob("*.*"):
        assert (files.model / path.relative_to(saved)).read_bytes() == path.read_bytes()
    assert_same(at.load_model(files.model), ensemble)
    files.write_model("other", [members[1].files()])
    assert_same(at.load_model(files.model), members[1])


def test_overwriting(ensemble, members, tmp_path):
    path = ensemble.save(tmp_path / "m")
    with pytest.raises(ModelFolderError, match="overwrite=True"):
        members[0].save(path)
    members[0].save(path, overwrite=True)
    assert_same(at.load_model(path), members[0])
    ensemble.save(path, overwrite=True)
    assert_same(at.load_model(path), ensemble)
    assert [item.name for item in tmp_path.iterdir()] == ["m"]


def test_an_encoder_of_ones_own_is_handed_over_again(tmp_path):
    def net(n_channels, n_times):
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(n_channels * n_times, 6))

    own = {"encoder": net, "encoder_options": {"latent": "output"}}
    both = at.Ensemble([fitted(own, random_state=seed) for seed in (0, 1)])
    path = both.save(tmp_path / "m")
    assert_same(at.load_model(path, encoder=net), both)
    with pytest.raises(ModelFolderError, match="encoder=module"):
        at.load_model(path)


def listing(*names, **changes):
    def spoil(path):
        file = path / "ensemble.json"
        about = json.loads(file.read_text()) | ({"members": list(names)} if names else {})
        file.write_text(json.dumps(about | changes))

    return spoil


def flip(path):
    file = path / "member-2" / "weights.safetensors"
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(bytes(data))


def link_member(path):
    shutil.move(path / "member-2", path.parent / "elsewhere")
    (path / "member-2").symlink_to(path.parent / "elsewhere")


def link_list(path):
    shutil.move(path / "ensemble.json", path.parent / "elsewhere.json")
    (path / "ensemble.json").symlink_to(path.parent / "elsewhere.json")


def other_member(path):
    shutil.rmtree(path / "member-2")
    fitted(RECIPES[0], dataset(BASE.X[..., :48])).save(path / "member-2")


def nested(path):
    shutil.copytree(path, path.parent / "copy")
    shutil.rmtree(path / "member-2")
    shutil.copytree(path.parent / "copy", path / "member-2")


def write(text):
    return lambda path: (path / "ensemble.json").write_text(text)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (listing("member-1", "../ensemble.model/member-2"), "would not name so"),
        (listing("member-1", ".."), "would not name so, such as '..'"),
        (listing("member-1", "."), "would not name so"),
        (listing("member-1", ""), "would not name so"),
        (listing("member-1", "member-2/"), "would not name so"),
        (listing("member-1", "member-2\n"), "would not name so"),
        (listing("member-1", "/etc"), "would not name so"),
        (listing("member-1", "C:\\models"), "would not name so"),
        (listing("member-1", "x" * 10**6), "would not name so"),
        (listing("member-1", "member-1"), "twice"),
        (listing("member-1", "member-9"), "member-9 is missing"),
        (listing(*(f"member-{i}" for i in range(101))), "101 members, more than 100"),
        (listing("member-1", 3), "members.1 should be text"),
        (listing(members=[]), "members should not be empty"),
        (listing(members="member-1"), "members should be a list"),
        (listing(members=None), "members should be a list, not null"),
        (listing(format="autotransfer-model"), "not that of a model folder"),
        (listing(format_version=2), "Update autotransfer"),
        (listing(format_version="1"), "format_version"),
        (listing(format_version=True), "format_version"),
        (write("[]"), "must hold a JSON object"),
        (write("[" * 10**5), "not valid JSON"),
        (flip, "weights.safetensors is not what was saved"),
        (link_member, "member-2 is missing or is a link"),
        (link_list, "not a model folder"),
        (other_member, "do not fit together: Members 1 and 2 differ in time points"),
        (nested, "load_model"),
    ],
)
def test_a_folder_that_was_changed_is_refused_by_name(saved, tmp_path, spoil, words):
    path = tmp_path / "ensemble.model"
    shutil.copytree(saved, path)
    spoil(path)
    with pytest.raises(ModelFolderError) as caught:
        at.load_model(path)
    message = str(caught.value)
    assert words in message
    assert len(message) < 700
    assert message.endswith(".")


def test_no_folder(tmp_path):
    for load in (at.load_model, at.Ensemble.load):
        with pytest.raises(ModelFolderError):
            load(tmp_path / "nothing")
    with pytest.raises(ModelFolderError, match="path"):
        at.load_model(3)


# Ways of use --------------------------------------------------------------------------------------


def call(*args):
    done = CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.npz"
    write_npz(DATA, path)
    return path


def test_the_commands_take_it(ensemble, saved, study, tmp_path):
    rows = list(csv.DictReader(io.StringIO(call("predict", saved, study).stdout)))
    shares = [[float(row[f"probability of {c}"]) for c in ("13Hz", "17Hz")] for row in rows]
    np.testing.assert_allclose(shares, ensemble.predict_proba(DATA), rtol=1e-5)
    told = json.loads(call("predict", saved, study, "--adapt", "--json").stdout)
    mine = DATA.select(subjects=[2])
    of_person = np.flatnonzero(BASE.subject == 2)
    np.testing.assert_allclose(
        np.array(told["probabilities"])[of_person],
        ensemble.adapt(mine).predict_proba(mine),
        rtol=1e-5,
    )
    call("export", saved, "--model", tmp_path / "copy")
    assert_same(at.load_model(tmp_path / "copy"), ensemble)


def test_leakage_of_both_halves(study, tmp_path):
    censored = {"measure": "mmd", "mode": "complementary", "encoder_options": small(16)}
    both = at.Ensemble([fitted(censored, random_state=seed) for seed in (0, 1)])
    path = both.save(tmp_path / "m")
    options = ["--probes", "gaussian", "--n-folds", 2, "--json"]
    told = json.loads(call("leakage", path, study, *options).stdout)
    assert list(told) == ["z", "z1", "z2"]
    latents = [torch.from_numpy(member.transform(DATA)) for member in both.members]
    z1, z2 = (np.hstack(half) for half in zip(*map(split_latent, latents), strict=True))
    for name, latent in (("z", both.transform(DATA)), ("z1", z1), ("z2", z2)):
        wanted = at.measure_leakage(latent, BASE.subject, probes=["gaussian"], n_folds=2)
        assert told[name]["probes"] == json.loads(json.dumps(wanted.to_dict()["probes"]))


@pytest.mark.slow
def test_one_onnx_graph(ensemble, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    ensemble = at.Ensemble(ensemble.members[1:])
    file = ensemble.export_onnx(tmp_path / "model.onnx")
    assert [item.name for item in tmp_path.iterdir()] == ["model.onnx"]
    run = ort.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    for n in (1, 40):
        X = np.asarray(BASE.X[:n], np.float32)
        probabilities, latent = run.run(None, {"signals": X})
        np.testing.assert_allclose(probabilities, ensemble.predict_proba(X), atol=1e-6)
        np.testing.assert_allclose(latent, ensemble.transform(X), rtol=1e-5, atol=1e-5)
    about = json.loads(run.get_modelmeta().custom_metadata_map["autotransfer"])
    assert about["normalise"] == ["trial", "train"]
    assert about["labels"] == {"kind": "i", "values": [0, 1]}
    assert (about["n_channels"], about["n_times"], about["sfreq"]) == (3, 64, 128)
