"""Signals whose axes are swapped, and a normalisation that does not suit them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from autotransfer.data.checks.findings import Finding, warning
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.info import emg_channels, normalisation_doubt
from autotransfer.data.trials import Float32

_SMOOTH, _SMOOTHER = 0.5, 0.3
"""Neighbours along the axis of channels are taken for neighbours in time if their correlation is
above the first number and above that of neighbours along the axis of times by the second. On ten
sets of recordings it is at most 0.28 along channels; swapped, 0.66 to 0.98 where the signals are
smooth in time. Electrical activity of muscles is not: there the lengths of the axes tell."""

_SAMPLE = 64


def axis_findings(data: SubjectDataset) -> Iterator[Finding]:
    """Find trials x times x channels that were handed over as trials x channels x times."""
    remedy = "If they are swapped, hand over X.transpose(0, 2, 1)."
    if data.n_channels > data.n_times:
        yield warning(
            "swapped-axes",
            f"There are more channels ({data.n_channels}) than time points ({data.n_times}): are "
            f"the axes trials x channels x times? {remedy}",
        )
        return
    block = data.trials.sample(_SAMPLE)
    if min(data.n_channels, data.n_times) < 3 or not np.isfinite(block).all():
        return
    along_channels, along_times = _neighbours(block, 1), _neighbours(block, 2)
    if along_channels > _SMOOTH and along_channels > along_times + _SMOOTHER:
        yield warning(
            "swapped-axes",
            "Neighbouring channels are as alike as points in time are "
            f"(correlation {along_channels:.2f}, along the times {along_times:.2f}): are the axes "
            f"trials x channels x times? {remedy}",
        )


def normalisation_findings(data: SubjectDataset, normalise: str | None) -> Iterator[Finding]:
    """Find signals of muscles that would be normalised channel by channel."""
    doubt = normalisation_doubt(data.channels, normalise)
    if doubt:
        names = tuple(emg_channels(data.channels))
        yield warning("emg-normalised-by-channel", doubt, channels=names)


def _neighbours(block: Float32, axis: int) -> float:
    """Median correlation of neighbours along an axis."""
    x = np.moveaxis(block.astype(np.float64), axis, -1)
    x = x - x.mean(-1, keepdims=True)
    power = np.square(x).sum(-1)
    product = (x[..., 1:] * x[..., :-1]).sum(-1)
    return float(np.median(np.divide(product, power, out=np.zeros_like(power), where=power > 0)))
