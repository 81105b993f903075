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
from mne.decoding import Scaler
from sklearn.model_selection import cross_val_predict
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
# A pipeline in the manner of ``mne.decoding``: its `Scaler`, then the classifier. scikit-learn's
# metadata routing takes the subjects past the scaler to the classifier and to the folds.

sklearn.set_config(enable_metadata_routing=True)
clf = at.CensoredClassifier(
    "mmd",
    sfreq=data.sfreq,
    normalise="trial",
    encoder_options={"kernel_seconds": 0.25},
    max_epochs=40,
    random_state=0,
    verbose=False,
).set_fit_request(subject=True)
pipeline = make_pipeline(Scaler(people["P00"].copy().pick("eeg").info), clf)
folds = at.SubjectFolds(3).set_split_request(groups="subject")
X = np.asarray(data.X, np.float64)  # what mne.decoding wants
guess = cross_val_predict(pipeline, X, data.y, cv=folds, params={"subject": data.subject})
right = guess == data.y
shares = {str(who): float(right[data.subject == who].mean()) for who in data.subject_ids}
print("share right, each person never seen:", {who: round(v, 2) for who, v in shares.items()})

# %%
# The latent of a trained pipeline, for whatever comes next.

pipeline.fit(X, data.y, subject=data.subject)
print("latents:", pipeline.transform(X).shape)

# %%
# What the classifier had to find: the rhythm's power over the head, by side of the cue.

fig, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for label in data.labels:
    power = X[data.y == label].var(-1).mean(0) * 1e12
    axes[0].plot(data.channels, power, "o-", label=label)
axes[0].set(ylabel="power, µV²")
axes[0].legend()
axes[1].bar(list(shares), list(shares.values()), color="#4477AA")
axes[1].axhline(0.5, color="0.3", linestyle="--")
axes[1].set(ylabel="share right, person never seen", ylim=(0, 1))
plt.show()
