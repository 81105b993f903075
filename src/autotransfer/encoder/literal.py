"""EEGNet layer by layer: the definition that the fused network must equal.

Slow, and used to judge: by the tests, by the benchmarks, and wherever plain layers are wanted
(`EEGNet.literal`).
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class MaxNorm(nn.Module):
    """Filters, and the same scaled down to at most a given Euclidean norm."""

    def __init__(self, weight: Tensor, max_norm: float) -> None:
        super().__init__()
        self.original, self.max_norm = weight, max_norm

    def forward(self) -> Tensor:
        """Limit the norm of each slice ``original[i]``."""
        return self.original.renorm(2, 0, self.max_norm)


class MaxNormConv2d(nn.Module):
    """A convolution whose filters have at most a given Euclidean norm.

    Has the names of torch's parametrized convolution, which braindecode uses, in its state dict;
    but that one cannot be pickled, and so not be sent to another process.

    Parameters
    ----------
    conv : nn.Conv2d
        Without bias, padding or stride; its weight is taken over.
    max_norm : float
    """

    def __init__(self, conv: nn.Conv2d, max_norm: float) -> None:
        super().__init__()
        self.groups = conv.groups
        self.parametrizations = nn.ModuleDict({"weight": MaxNorm(conv.weight, max_norm)})

    @property
    def weight(self) -> Tensor:
        """Filters after the limit on their norm."""
        limited: Tensor = self.parametrizations["weight"]()
        return limited

    def forward(self, x: Tensor) -> Tensor:
        """Convolve signals (B, F, C, T)."""
        return functional.conv2d(x, self.weight, groups=self.groups)


def eegnet_layers(
    n_channels: int,
    *,
    F1: int,
    D: int,
    F2: int,
    kernel_length: int,
    depthwise_kernel_length: int,
    pool1: int,
    pool2: int,
    max_norm: float,
    batch_norm_momentum: float,
    batch_norm_eps: float,
    drop_prob: float,
    person_norm: bool = False,
) -> dict[str, nn.Module]:
    """Make the layers of EEGNet up to the latent, named as in braindecode.

    Parameters
    ----------
    n_channels : int
        Channels C of the signals (B, C, T).
    F1, D, F2, kernel_length, depthwise_kernel_length, pool1, pool2, max_norm : int or float
        See `autotransfer.encoder.EEGNet`.
    batch_norm_momentum, batch_norm_eps, drop_prob : float
        See `autotransfer.encoder.EEGNet`.
    person_norm : bool
        Without the first norm: it changes nothing, and stays for its place in the state dict.

    Returns
    -------
    dict of str to nn.Module
        In the order in which they are applied.
    """
    n = F1 * D

    def norm(features: int) -> nn.BatchNorm2d:
        return nn.BatchNorm2d(features, eps=batch_norm_eps, momentum=batch_norm_momentum)

    first = norm(F1)
    if person_norm:
        assert first.running_var is not None
        first.running_var.fill_(1 - batch_norm_eps)
        first.track_running_stats = False
    spatial = nn.Conv2d(F1, n, (n_channels, 1), groups=F1, bias=False)
    nn.init.xavier_uniform_(spatial.weight)  # as braindecode; the others keep torch's default
    temporal_pad, depth_pad = (0, kernel_length // 2), (0, depthwise_kernel_length // 2)
    return {
        "add_plane": nn.Unflatten(1, (1, n_channels)),
        "conv_temporal": nn.Conv2d(1, F1, (1, kernel_length), padding=temporal_pad, bias=False),
        "bnorm_temporal": first,
        "conv_spatial": MaxNormConv2d(spatial, max_norm),
        "bnorm_1": norm(n),
        "elu_1": nn.ELU(),
        "pool_1": nn.AvgPool2d((1, pool1)),
        "drop_1": nn.Dropout(drop_prob),
        "conv_separable_depth": nn.Conv2d(
            n, n, (1, depthwise_kernel_length), padding=depth_pad, groups=n, bias=False
        ),
        "conv_separable_point": nn.Conv2d(n, F2, 1, bias=False),
        "bnorm_2": norm(F2),
        "elu_2": nn.ELU(),
        "pool_2": nn.AvgPool2d((1, pool2)),
        "drop_2": nn.Dropout(drop_prob),
        "flatten": nn.Flatten(),
    }
