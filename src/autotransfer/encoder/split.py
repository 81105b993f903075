"""The two parts of a latent, z = (z1, z2), that complementary censoring treats in opposite ways."""

from __future__ import annotations

from torch import Tensor

from autotransfer.errors import SettingError


def split_latent(z: Tensor) -> tuple[Tensor, Tensor]:
    """Split latents into two halves: z1 is to forget the subject, z2 to keep it.

    Parameters
    ----------
    z : Tensor of shape (..., K)
        Latents; K of at least 2.

    Returns
    -------
    z1 : Tensor of shape (..., K // 2)
    z2 : Tensor of shape (..., K - K // 2)
        Views of `z`. When K is odd the extra column is in z2.

    Examples
    --------
    >>> import torch
    >>> z1, z2 = split_latent(torch.arange(5.0).repeat(3, 1))
    >>> z1.shape, z2.shape
    (torch.Size([3, 2]), torch.Size([3, 3]))
    >>> z2[0]
    tensor([2., 3., 4.])
    """
    if z.ndim == 0 or z.shape[-1] < 2:
        raise SettingError(
            f"A latent of shape {tuple(z.shape)} cannot be split in two: its last dimension must "
            "have at least 2 columns. Use an encoder with a larger latent, or the mode "
            "'marginal' or 'conditional', which do not split it."
        )
    k = z.shape[-1] // 2
    return z[..., :k], z[..., k:]
