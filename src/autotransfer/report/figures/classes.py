"""Pictures of classes: which are confused, and how sure the model is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from autotransfer.report.figures.theme import Sheet
from autotransfer.text import short_names

MOST_LETTERS = 50
"""Of names side by side, as wide as the longest: more stand aslant."""


def draw_confusion(counts: npt.NDArray[np.int64], names: Sequence[str], sheet: Sheet) -> Axes:
    """Draw shares of each true class that were taken for each class, with counts."""
    n = len(counts)
    total = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, total, out=np.zeros(counts.shape), where=total > 0)
    (ax,) = sheet.axes(min(5.2, 1.5 + 0.7 * n))
    shades = sheet.theme.shades
    ax.imshow(shares, cmap=shades, vmin=0, vmax=1, aspect="auto")
    if n <= 12:
        for i, j in np.ndindex(n, n):
            red, green, blue, _ = shades(float(shares[i, j]))
            bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
            ax.text(
                j,
                i,
                f"{100 * shares[i, j]:.0f} %\n{counts[i, j]}",
                ha="center",
                va="center",
                color="#10161c" if bright else "#ffffff",
                fontsize=9 if n <= 6 else 7,
            )
    labels = short_names(names)
    level = n * max(map(len, labels)) <= MOST_LETTERS
    ax.set_xticks(range(n), labels, rotation=0 if level else 60, ha="center" if level else "right")
    ax.set_yticks(range(n), labels)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("class that the model said")
    ax.set_ylabel("true class")
    return ax


def draw_calibration(
    confidence: npt.NDArray[np.float64],
    accuracy: npt.NDArray[np.float64],
    chance: float,
    sheet: Sheet,
) -> Axes:
    """Draw how often the model was right against how sure it was, for parts of the trials.

    Parameters
    ----------
    confidence, accuracy : ndarray of float of shape (n_parts,)
        Mean probability of the class that was predicted, and share of trials that were right.
    chance : float
        What guessing gives.
    sheet : Sheet
        Where to draw.
    """
    (ax,) = sheet.axes(3.2)
    theme = sheet.theme
    low = 100 * min(chance, float(np.min(accuracy)), float(np.min(confidence))) - 3
    ends = [low, 101.5]
    ax.plot(ends, ends, "--", color=theme.quiet, linewidth=1, label="sure as often as right")
    ax.vlines(
        100 * confidence, 100 * confidence, 100 * accuracy, color=theme.faint, linewidth=2, zorder=1
    )
    ax.plot(
        100 * confidence, 100 * accuracy, "s-", ms=5, color=theme.chosen, label="people held out"
    )
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.set_xlabel("how sure the model was, %")
    ax.set_ylabel("how often it was right, %")
    ax.grid(linewidth=0.6)
    ax.set_axisbelow(True)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return ax
