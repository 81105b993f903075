"""
Cross-validation, grid search and pipelines in scikit-learn
===========================================================

`CensoredClassifier` is a scikit-learn estimator whose ``fit`` wants to know one thing more: the
subject of each trial. scikit-learn's metadata routing hands it through cross-validation, searches
and pipelines.
"""

# %%
# Routing is switched on once; the classifier then says that it wants the subject.

from typing import Any, Self

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline

import autotransfer as at

sklearn.set_config(enable_metadata_routing=True)

data = at.make_subjects(n_subjects=5, n_trials=40, n_channels=8, n_times=96, random_state=0)
clf = at.CensoredClassifier(
    "mmd", encoder_options={"kernel_length": 32}, max_epochs=8, random_state=0, verbose=False
).set_fit_request(subject=True)

# %%
# Cross-validation over people
# ----------------------------
# `SubjectFolds` never puts a person on both sides. ``groups="subject"`` tells it to use the same
# subjects, so they are given once.

folds = at.SubjectFolds().set_split_request(groups="subject")
found = cross_validate(clf, data.X, data.y, cv=folds, params={"subject": data.subject})
print("balanced accuracy of each person, when nobody has seen them:", found["test_score"].round(2))

# %%
# Grid search
# -----------
# What is chosen is what works on people kept out, not on more trials of the same people.

grid = {"measure": [None, "mmd"]}
threes = at.SubjectFolds(3).set_split_request(groups="subject")
search = GridSearchCV(clf, grid, cv=threes).fit(data.X, data.y, subject=data.subject)
print("best:", search.best_params_, round(search.best_score_, 3))

# %%
# Pipelines
# ---------
# The subject passes by the steps that did not ask for it. Here one comes before the classifier,
# and in a second pipeline another classifier comes after the censored latent.


class CommonAverage(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # it has no types
    """Subtract the mean of all channels."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn nothing."""
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        """Subtract."""
        return X - X.mean(1, keepdims=True)


pipeline = make_pipeline(CommonAverage(), clf)
guess = cross_val_predict(pipeline, data.X, data.y, cv=threes, params={"subject": data.subject})
right = guess == data.y
shares = [right[data.subject == who].mean() for who in data.subject_ids]
print("with a common average reference:", np.round(shares, 2))

on_latents = make_pipeline(clf, LogisticRegression(max_iter=1000))
on_latents.fit(data.X, data.y, subject=data.subject)
print("logistic regression on latents:", on_latents[:-1].transform(data.X[:5]).shape)

# %%
# The people differ, and a mean over them hides it.

fig, axes = plt.subplots(figsize=(5, 3), layout="constrained")
axes.bar(range(len(data.subject_ids)), found["test_score"], color="#4477AA")
axes.axhline(1 / len(data.labels), color="0.3", linestyle="--", label="chance")
axes.set(xlabel="subject kept out", ylabel="balanced accuracy", ylim=(0, 1))
axes.legend()
plt.show()
