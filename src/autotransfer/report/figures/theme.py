"""How pictures look: on light and on dark paper, and stamped where they are not complete.

Pictures are narrow, with labels of a size that is still read on a phone. Colours are those of
Okabe and Ito, which people who do not see all colours tell apart; what a colour says a marker
says too.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from autotransfer.errors import SettingError
from autotransfer.text import well_formed

WIDTH = 4.2
"""Inches."""

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")


@dataclass(frozen=True)
class Theme:
    """Colours of a picture.

    Parameters
    ----------
    paper, ink, faint, quiet : str
        Ground, text, grid, and what is not to stand out.
    baseline, chosen, placebo : str
        Of the methods; also of those who gain (chosen) and lose (placebo).
    many : tuple of str
        To tell people and classes apart.
    """

    paper: str
    ink: str
    faint: str
    quiet: str
    baseline: str
    chosen: str
    placebo: str
    many: tuple[str, ...]

    @property
    def shades(self) -> LinearSegmentedColormap:
        """Colours from nothing to all."""
        return LinearSegmentedColormap.from_list("shades", [self.faint, self.chosen])


LIGHT = Theme(
    paper="#ffffff",
    ink="#1b2530",
    faint="#dde3e9",
    quiet="#8a96a3",
    baseline="#3b4651",
    chosen="#0072B2",
    placebo="#C44E00",
    many=(*OKABE_ITO, "#3b4651"),
)
DARK = Theme(
    paper="#18202a",
    ink="#e6ebf0",
    faint="#323e4b",
    quiet="#8b98a6",
    baseline="#d9dfe5",
    chosen="#56B4E9",
    placebo="#F08A3C",
    many=("#56B4E9", "#E69F00", "#22B58A", "#CC79A7", "#3C93D6", "#F0733C", "#F0E442", "#d9dfe5"),
)


@contextmanager
def drawing(theme: Theme) -> Iterator[None]:
    """Draw and save pictures within this: settings of matplotlib are put back afterwards."""
    settings = {
        "figure.facecolor": theme.paper,
        "axes.facecolor": theme.paper,
        "savefig.facecolor": theme.paper,
        "text.color": theme.ink,
        "axes.labelcolor": theme.ink,
        "axes.edgecolor": theme.quiet,
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
        "xtick.labelcolor": theme.ink,
        "ytick.labelcolor": theme.ink,
        "grid.color": theme.faint,
        "font.size": 9,
        "axes.titlesize": 9,
        "axes.labelsize": 9,
        "legend.fontsize": 8.5,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "text.parse_math": False,  # a subject may be called $1
        "svg.fonttype": "none",  # any script a browser knows; and smaller
        "svg.hashsalt": "autotransfer",  # the same picture has the same bytes
    }
    with mpl.rc_context(settings), warnings.catch_warnings():  # type: ignore[arg-type]
        # A font without a glyph shows a box in PNG; in SVG the browser finds another font.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        yield


@dataclass(frozen=True)
class Sheet:
    """Where a picture is drawn, and how it looks.

    Parameters
    ----------
    theme : Theme
        Colours.
    stamp : str
        Word across the picture, or "".
    on : Axes, optional
        To draw on, instead of a figure of its own; for pictures of one panel.
    shown : bool
        Whether pyplot knows the figure, so that notebooks and ``plt.show()`` show it.
    """

    theme: Theme = LIGHT
    stamp: str = ""
    on: Axes | None = None
    shown: bool = False

    def axes(self, height: float, rows: int = 1, columns: int = 1) -> list[Axes]:
        """Make a figure of some height in inches with its axes, stamped if need be."""
        if self.on is not None:
            if rows * columns > 1:
                raise SettingError(
                    f"This picture has {rows * columns} panels and does not fit into one axes. "
                    "Leave ax out: it makes a figure of its own."
                )
            return [self.on]
        figure = self._figure(height)
        axes = figure.subplots(rows, columns, squeeze=False)
        if self.stamp:
            figure.suptitle(self.stamp, color=self.theme.placebo, fontsize=10, fontweight="bold")
            word = self.stamp.partition(":")[0]
            figure.text(
                0.5,
                0.5,
                word,
                color=self.theme.placebo,
                alpha=0.16,
                rotation=20,
                ha="center",
                va="center",
                fontsize=min(46, 520 / len(word)),
                fontweight="bold",
                zorder=10,
            )
        return [ax for row in axes for ax in row]

    def _figure(self, height: float) -> Figure:
        if not self.shown:
            return Figure((WIDTH, height), layout="constrained")
        from matplotlib import pyplot as plt  # of a user's program: it may open windows

        return plt.figure(figsize=(WIDTH, height), layout="constrained")


def figure_of(axes: Axes | Sequence[Axes]) -> Figure:
    """Give the figure that some axes are on."""
    figure = (axes if isinstance(axes, Axes) else axes[0]).get_figure(root=True)
    assert figure is not None
    return figure


def to_svg(figure: Figure) -> bytes:
    """Give a figure as SVG: without a date, so that the same run gives the same page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return well_formed(buffer.getvalue()).encode()


def to_png(figure: Figure) -> bytes:
    """Give a figure as PNG, at the resolution that print wants."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=300, metadata={"Software": None})
    return buffer.getvalue()
