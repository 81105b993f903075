"""
Inside MOABB's cross-subject evaluation
=======================================

MOABB's `CrossSubjectEvaluation` offers the subjects of the training trials to ``fit`` under the
name ``subjects`` (MOABB 1.7 or later); ``set_fit_request(subject="subjects")`` takes them. The
person who is tested is not among them. No other change to a MOABB benchmark is needed. With a
``calibration_size`` MOABB also offers some trials of the person who is tested, without labels:
``set_fit_request(X_target_unlabeled=True)`` adapts the trained model to them.
"""

# %%
# A data set that needs no download. Results go to a folder that is thrown away.

import logging
import tempfile
import warnings
from typing import Any

import matplotlib.pyplot as plt
import mne
import moabb
import sklearn
from moabb.datasets.fake import FakeDataset
from moabb.evaluations import CrossSubjectEvaluation
from moabb.paradigms import LeftRightImagery
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import autotransfer as at

warnings.simplefilter("ignore")  # MOABB's parts warn of their own future
mne.set_log_level("ERROR")
moabb.set_log_level("error")
logging.getLogger("moabb").setLevel(logging.ERROR)
sklearn.set_config(enable_metadata_routing=True)

dataset = FakeDataset(
    event_list=("left_hand", "right_hand"),
    n_subjects=4,
    n_sessions=1,
    n_runs=2,
    n_events=16,
    duration=60,
    channels=("C3", "Cz", "C4"),
    seed=7,
)
paradigm = LeftRightImagery(resample=64)

# %%
# Three pipelines side by side: ours, with the subjects routed to ``fit``; ours adapted to the first
# half of the new person's trials; and logistic regression on the power of each channel.


def power(X: Any) -> Any:
    return X.var(-1)


clf = at.CensoredClassifier(
    "mmd",
    sfreq=64,
    encoder_options={"kernel_seconds": 0.25},
    max_epochs=5,
    random_state=0,
    verbose=False,
)
# MOABB takes pipelines that print alike for the same one, whatever they ask of fit.
other = clone(clf).set_params(random_state=1)
asks = {"subject": "subjects", "X_target_unlabeled": True}
pipelines = {
    "censored": make_pipeline(clf.set_fit_request(subject="subjects")),
    "adapted": make_pipeline(other.set_fit_request(**asks)),
    "power": make_pipeline(FunctionTransformer(power), LogisticRegression()),
}

# %%
# MOABB does the rest: who is trained on, who is tested, and the table.

with tempfile.TemporaryDirectory() as there:
    evaluation = CrossSubjectEvaluation(
        paradigm=paradigm,
        datasets=[dataset],
        hdf5_path=there,
        overwrite=True,
        cv_kwargs={"calibration_size": 0.5},
    )
    results = evaluation.process(pipelines)
print(results[["pipeline", "subject", "score"]].to_string(index=False))

# %%
# The signals are noise, so all are at chance (0.5).

fig, axes = plt.subplots(figsize=(4, 3), layout="constrained")
for i, (name, mine) in enumerate(results.groupby("pipeline")):
    axes.plot([i] * len(mine), mine["score"], "o", label=name)
axes.axhline(0.5, color="0.3", linestyle="--")
axes.set(xticks=[0, 1, 2], xticklabels=sorted(pipelines), ylabel="ROC AUC", xlim=(-0.5, 2.5))
plt.show()
