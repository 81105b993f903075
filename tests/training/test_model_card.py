"""The model card: what a model hub reads, and what it must not say."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
import yaml

import autotransfer as at

TINY = {"F1": 2, "kernel_length": 16, "depthwise_kernel_length": 4}
DATA = at.make_subjects(n_subjects=3, n_trials=8, n_channels=2, n_times=64, random_state=0)
NAMES = np.array(["Ann Smith", "Bob Jones", "Cy Doe"])[DATA.subject_code]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    options = {"encoder_options": TINY, "max_epochs": 2, "random_state": 0, "verbose": False}
    clf = at.CensoredClassifier("mmd", "marginal", 0.5, sfreq=64, **options)
    words = np.array(["left `hand`", "right"])[DATA.y_code]
    clf.fit(DATA.X, words, subject=NAMES)
    return clf.save(tmp_path_factory.mktemp("models") / "m"), clf


def test_the_header_is_what_a_model_hub_reads(folder):
    _, header, body = (folder[0] / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    found = yaml.safe_load(header)
    assert found["library_name"] == "autotransfer"
    assert "biosignals" in found["tags"]
    assert found["metrics"] == ["balanced_accuracy"]
    assert body.lstrip().startswith("# ")


def test_the_card_says_what_the_model_is(folder):
    path, clf = folder
    text = (path / "README.md").read_text(encoding="utf-8")
    score = clf.provenance_["scores"]["validation_balanced_accuracy"]
    for words in (
        "2 channels x 64 time points at 64 Hz",
        "`left 'hand'`, `right`",
        "mmd marginal, strength 0.5",
        "Trained on 2 subjects for 2 epochs; 1 other validated; 24 trials in all",
        f"{score:.3f}. This is not a test",
        at.__version__,
    ):
        assert words in text


def test_the_card_says_its_limits(folder, tmp_path):
    path, clf = folder
    at.Ensemble([clf, clf]).save(tmp_path / "two")
    for one in (path, tmp_path / "two"):
        text = (one / "README.md").read_text(encoding="utf-8").partition("## Limits")[2]
        assert "what 2 people did in one study" in text
        assert "one of the 2 classes" in text
        assert "not calibrated" in text


def test_the_card_says_who_decided_what(folder, tmp_path):
    _, clf = folder
    stopped = copy(clf).set_params(patience=5)
    text = (stopped.save(tmp_path / "stopped") / "README.md").read_text(encoding="utf-8")
    assert "1 other decided when to stop" in text
    assert "the stopping point was chosen by it" in text
    own = clf.adapt(DATA.X[:5]).save(tmp_path / "own")
    assert "Adapted to one person by 5 trials" in (own / "README.md").read_text(encoding="utf-8")


def test_the_card_names_nobody(folder):
    text = (folder[0] / "README.md").read_text(encoding="utf-8")
    assert not [name for name in np.unique(NAMES) if name in text]


def test_a_card_that_was_written_on_or_lost_does_not_hurt(folder):
    path, clf = folder
    (path / "README.md").write_text("# Ours\n", encoding="utf-8")
    again = at.CensoredClassifier.load(path)
    (path / "README.md").unlink()
    for model in (again, at.CensoredClassifier.load(path)):
        np.testing.assert_array_equal(model.predict_proba(DATA.X), clf.predict_proba(DATA.X))


def test_the_uncensored_model_says_so(tmp_path):
    clf = at.CensoredClassifier(
        encoder_options=TINY, max_epochs=1, validation=None, random_state=0, verbose=False
    ).fit(DATA.X, DATA.y, subject=DATA.subject)
    text = (clf.save(tmp_path / "m") / "README.md").read_text(encoding="utf-8")
    assert "Censoring: none." in text
    assert "0 others validated" in text
    assert "Balanced accuracy on" not in text
