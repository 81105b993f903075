"""The split z = (z1, z2)."""

import pytest
import torch

from autotransfer.encoder import split_latent
from autotransfer.errors import SettingError


@pytest.mark.parametrize("lead", [(), (5,), (2, 5)])
@pytest.mark.parametrize("k", [2, 3, 8, 9])
def test_first_half_and_the_rest(lead, k):
    z = torch.randn(*lead, k)
    z1, z2 = split_latent(z)
    assert z1.shape == (*lead, k // 2)
    assert z2.shape == (*lead, k - k // 2)
    assert torch.equal(torch.cat([z1, z2], -1), z)


def test_views_through_which_gradients_flow():
    z = torch.randn(4, 5, requires_grad=True)
    z1, z2 = split_latent(z)
    assert z1._base is z
    (z1.sum() + 2 * z2.sum()).backward()
    assert torch.equal(z.grad, torch.tensor([1.0, 1, 2, 2, 2]).repeat(4, 1))


@pytest.mark.parametrize("shape", [(), (1,), (4, 1), (4, 0)])
def test_too_short_to_split(shape):
    with pytest.raises(SettingError, match="cannot be split"):
        split_latent(torch.zeros(shape))
