"""
MNE epochs in, a decoding pipeline out
======================================

Epochs of many people go in as they are: one `mne.Epochs` object for each person (or several). The
classifier then stands where `mne.decoding` users put theirs, at the end of a pipeline.
"""

# %%
# Epochs of six people; yours come from ``mne.Epochs(raw, events, ...)``. A left or right cue is
# followed by a rhythm of 10 Hz that is stronger over one side of the head.

import matplotlib.pyplot as plt
import mne
import numpy as np
import sklearn
from mne.decoding import CSP, Scaler
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import autotransfer as at

mne.set_log_level("ERROR")
info = mne.create_info(["C5", "C3", "C1", "Cz", "C2", "C4", "C6", "EOG"], 128.0, "eeg")
rng = np.random.default_rng(0)
side = np.array([1.0, 1.0, 0.5, 0.0, -0.5, -1.0, -1.0, 0.0])


def epochs_of(person: int) -> mne.EpochsArray:
    y = np.arange(40) % 2
    times = np.arange(128) / 128
    own = rng.normal(1, 0.3, 8)  # each head has its own gains
    rhythm = np.sin(2 * np.pi * (10 + rng.normal(0, 0.3)) * times + rng.uniform(0, 6, (40, 1, 1)))
    size = 1 + 0.9 * side[:, None] * np.where(y, 1, -1)[:, None, None]
    x = 4e-6 * (own[:, None] * size * rhythm + rng.normal(0, 1.5, (40, 8, 128)))
    events = np.column_stack([np.arange(40), np.zeros(40, int), y + 1])
    made = mne.EpochsArray(x, info.copy(), events, event_id={"left": 1, "right": 2})
    made.set_channel_types({"EOG": "eog"})
    return made


people = {f"P{i:02}": epochs_of(i) for i in range(6)}

# %%
# `load` takes the mapping person -> epochs. Labels are the names of the events, only EEG channels
# are used, and it says so when people differ in channels, rate or window.

data = at.load(people)
print(data, data.channels, data.labels)

# %%
# A pipeline in the manner of ``mne.decoding``: its `Scaler`, then the classifier. Beside it the
# classical one, spatial filters (CSP) and a linear discriminant.

sklearn.set_config(enable_metadata_routing=True)
clf = at.CensoredClassifier(
    "mmd",
    sfreq=data.sfreq,
    normalise="trial",
    encoder_options={"kernel_seconds": 0.25},
    max_epochs=12,
    random_state=0,
    verbose=False,
).set_fit_request(subject=True)
folds = at.SubjectFolds(3).set_split_request(groups="subject")
pipelines = {
    "censored EEGNet": make_pipeline(Scaler(people["P00"].copy().pick("eeg").info), clf),
    "CSP + LDA": make_pipeline(CSP(4), LinearDiscriminantAnalysis()),
}
scores = {}
for name, pipeline in pipelines.items():
    X = np.asarray(data.X, np.float64)  # what mne.decoding wants
    routed = {"subject": data.subject}
    scores[name] = cross_val_score(
        pipeline, X, data.y, cv=folds, params=routed, scoring="balanced_accuracy"
    )
    print(f"{name}: {scores[name].mean():.2f} on people never seen")

# %%
# The latent of a trained pipeline, for whatever comes next.

whole = pipelines["censored EEGNet"].fit(X, data.y, subject=data.subject)
print("latents:", whole.transform(X).shape)

fig, axes = plt.subplots(figsize=(4, 3), layout="constrained")
axes.boxplot(list(scores.values()), tick_labels=list(scores))
axes.axhline(0.5, color="0.3", linestyle="--")
axes.set(ylabel="balanced accuracy", ylim=(0, 1))
plt.show()
