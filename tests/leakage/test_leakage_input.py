"""Wrong input of `leakage`: a named error each, in the words of whoever made the call."""

import numpy as np
import pytest

from autotransfer import errors as e
from autotransfer.leakage import measure_leakage

Z = np.random.default_rng(0).normal(size=(60, 3))
S = np.repeat(["ann", "bob", "cy"], 20)
NAN = Z.copy()
NAN[[4, 17], 1] = np.nan
HALF = np.linspace(0, 1, 60)


@pytest.mark.parametrize(
    ("latent", "subject", "options", "error", "words"),
    [
        (Z[:, 0], S, {}, e.ShapeError, "two dimensions"),
        (Z.reshape(60, 3, 1), S, {}, e.ShapeError, "(60, 3, 1)"),
        ([[1.0], [1.0, 2.0]], S[:2], {}, e.ShapeError, "same length"),
        (Z.astype(str), S, {}, e.DtypeError, "real numbers"),
        (Z + 1j, S, {}, e.DtypeError, "complex"),
        (Z[:0], S[:0], {}, e.EmptyDataError, "(0, 3)"),
        (Z[:, :0], S, {}, e.EmptyDataError, "(60, 0)"),
        (NAN, S, {}, e.NonFiniteDataError, "rows 4, 17"),
        (Z, S[:50], {}, e.ShapeError, "subject has 50 values, but latent has 60 rows"),
        (Z, None, {}, e.MissingSubjectError, "subject is missing"),
        (Z, np.repeat("ann", 60), {}, e.SubjectError, "1 of 1 (ann)"),
        (Z[18:22], S[18:22], {}, e.SubjectError, "0 of 2 (ann, bob)"),
        (Z, S, {"recording": S[:9]}, e.ShapeError, "recording has 9 values"),
        (Z, S, {"recording": NAN[:, 1]}, e.SubjectError, "trials 4, 17"),
        (Z, S, {"label": S[:9]}, e.ShapeError, "label has 9 values"),
        (Z, S, {"label": HALF}, e.LabelError, "continuous"),
        (Z, S, {"label": NAN[:, 1]}, e.LabelError, "label holds NaN"),
        (Z, S, {"probes": ["linear", "svm"]}, e.SettingError, "'linear', 'gaussian', 'mlp'"),
        (Z, S, {"probes": []}, e.SettingError, "some of"),
        (Z, S, {"probes": ["mlp", "mlp"]}, e.SettingError, "each once"),
        (Z, S, {"n_folds": 1}, e.SettingError, "at least 2"),
        (Z, S, {"n_folds": 2.5}, e.SettingError, "n_folds"),
        (Z, S, {"max_trials_per_subject": 8}, e.SettingError, "at least 10"),
        (Z, S, {"confidence": 95}, e.SettingError, "between 0 and 1"),
        (Z, S, {"random_state": None}, e.SettingError, "random_state"),
    ],
)
@pytest.mark.filterwarnings("ignore::autotransfer.errors.DataWarning")
def test_wrong_input(latent, subject, options, error, words):
    with pytest.raises(error) as caught:
        measure_leakage(latent, subject, **options)
    assert type(caught.value) is error
    assert words in str(caught.value)
