"""
How much a random split flatters
================================

The same network, the same signals, two ways of asking how good it is: on trials of people that it
was trained on (a random split), and on people it has never seen (folds of subjects). The more
people differ, the further the two lie apart; where all people are alike, they agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

import autotransfer as at

# A fixed number of epochs for both, so that nobody is needed to stop by.
CLASSIFIER = at.CensoredClassifier(
    validation=None, max_epochs=30, random_state=0, device="cpu", verbose=False
)


def accuracy(data: at.SubjectDataset, splits: Iterable[tuple[Any, Any]]) -> list[float]:
    scores = []
    for train, test in splits:
        fitted = clone(CLASSIFIER).fit(data.X[train], data.y[train], subject=data.subject[train])
        scores.append(fitted.score(data.X[test], data.y[test]))
    return scores


# %%
# Six people who are alike, who differ somewhat, and who differ much.

shifts = (0, 1.5, 3)
ways: dict[str, list[list[float]]] = {"random split": [], "people never seen": []}
for shift in shifts:
    data = at.make_subjects(n_subjects=6, n_trials=40, subject_shift=shift, random_state=0)
    random = KFold(3, shuffle=True, random_state=0).split(data.X)
    by_subject = at.SubjectFolds(3).split(data.X, groups=data.subject)
    ways["random split"].append(accuracy(data, random))
    ways["people never seen"].append(accuracy(data, by_subject))
    means = {name: np.mean(scores[-1]) for name, scores in ways.items()}
    print(f"people differ by {shift}:", *(f"{name} {m:.2f}" for name, m in means.items()))

# %%
# Marks are folds, lines their means.
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, scores), colour, mark in zip(ways.items(), ("#E69F00", "#0072B2"), "os", strict=True):
    axes.plot(shifts, np.mean(scores, axis=1), color=colour, label=name)
    axes.plot(shifts, scores, mark, color=colour, alpha=0.5)
axes.axhline(0.5, color="grey", linestyle=":", label="chance")
axes.set(xlabel="how much people differ (subject_shift)", ylabel="balanced accuracy")
axes.set(xticks=shifts, ylim=(0.4, 1.02))
axes.legend(loc="lower left")
plt.show()
gap = np.mean(ways["random split"][-1]) - np.mean(ways["people never seen"][-1])
print(f"where people differ most, the random split flatters by {gap:.2f}")
assert gap > 0.05
