"""Kernels of squared distances, and the derivatives that score estimators need.

A kernel here is a function of u = (x - y)·(x - y) and of β = 1 / (2σ²), with σ its length scale:

    rbf:  k = exp(-β u)             imq:  k = (1 + 2βu)^(-1/2) = (1 + u/σ²)^(-1/2)

β may be one number, one per matrix of a batch (..., 1, 1), or one per pair (..., n, n). An infinite
distance gives k = 0 and zero derivatives, which is how padded rows are left out.

Two matrix-valued kernels are made of such a k: the diagonal one, k I, for which the weights W
suffice, and the curl-free one, minus the Hessian of φ(u), whose vector fields are gradients
(Zhou, Shi & Zhu 2020, "Nonparametric score estimators", arXiv:2005.10099).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from autotransfer.errors import SettingError, join_some

Scale = Tensor | float
"""β: a number, or a tensor that broadcasts against the distances."""


def square_distances(x: Tensor, y: Tensor | None = None) -> Tensor:
    """Squared Euclidean distances between rows.

    a·a + b·b - 2 a·b after subtracting the mean of `x`: an offset of the data, which no
    distance depends on, would otherwise cost a float32 all its digits.

    Parameters
    ----------
    x : Tensor of shape (..., n, d)
        Points.
    y : Tensor of shape (..., m, d), optional
        Other points; `x` again by default.

    Returns
    -------
    Tensor of shape (..., n, m)
        Never negative; without `y`, with exact zeros on the diagonal.

    Examples
    --------
    >>> square_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]) + 1e4)
    tensor([[ 0., 25.],
            [25.,  0.]])
    """
    mean = x.mean(-2, keepdim=True)
    if y is None:
        return centred_square_distances(x - mean)
    x, y = x - mean, y - mean
    squares = x.square().sum(-1).unsqueeze(-1) + y.square().sum(-1).unsqueeze(-2)
    return (squares - 2 * (x @ y.mT)).clamp(min=0)


def centred_square_distances(x: Tensor) -> Tensor:
    """Squared distances between the rows of `x`, (..., n, d), whose mean is already 0."""
    products = x @ x.mT
    # From the diagonal of the same product, so that equal rows cancel to 0 and not to rounding.
    squares = products.diagonal(dim1=-2, dim2=-1)
    pairs = squares.unsqueeze(-1) + squares.unsqueeze(-2)
    return pairs.sub(products, alpha=2).clamp(min=0)


def rbf(d2: Tensor, beta: Scale) -> Tensor:
    """Radial basis function, or Gaussian, kernel: k = exp(-β u).

    Parameters
    ----------
    d2 : Tensor of shape (..., n, m)
        Squared distances u.
    beta : Tensor or float
        1 / (2σ²); broadcasts against `d2`.

    Returns
    -------
    Tensor of shape (..., n, m)

    Examples
    --------
    >>> rbf(torch.tensor([0.0, 2.0]), 0.5)
    tensor([1.0000, 0.3679])
    """
    return torch.exp(-beta * d2)


def imq(d2: Tensor, beta: Scale) -> Tensor:
    """Inverse multiquadric kernel: k = (1 + 2βu)^(-1/2); parameters as for `rbf`.

    Examples
    --------
    >>> imq(torch.tensor([0.0, 3.0]), 0.5)
    tensor([1.0000, 0.5000])
    """
    return torch.rsqrt(1 + (2 * beta) * d2)


def rbf_weights(k: Tensor, beta: Scale) -> Tensor:
    """W = 2β k, so that the gradient of k(x, y) in y is W (x - y); `k` from `rbf`."""
    return k * (2 * beta)


def imq_weights(k: Tensor, beta: Scale) -> Tensor:
    """W = 2β k³, so that the gradient of k(x, y) in y is W (x - y); `k` from `imq`."""
    return k.pow(3) * (2 * beta)


def rbf_derivatives(d2: Tensor, beta: Scale) -> tuple[Tensor, Tensor, Tensor]:
    """φ', φ'' and φ''' of φ(u) = exp(-β u)."""
    first = -beta * rbf(d2, beta)
    second = -beta * first
    return first, second, -beta * second


def imq_derivatives(d2: Tensor, beta: Scale) -> tuple[Tensor, Tensor, Tensor]:
    """φ', φ'' and φ''' of φ(u) = q^(1/2), q = 1 / (1 + 2βu)."""
    k = imq(d2, beta)
    ratio = -2 * beta * k.square()
    first = 0.5 * ratio * k
    second = 1.5 * ratio * first
    return first, second, 2.5 * ratio * second


class Kernel(NamedTuple):
    """A kernel with what its score estimators need; see the functions of the same names."""

    value: Callable[[Tensor, Scale], Tensor]
    weights: Callable[[Tensor, Scale], Tensor]
    derivatives: Callable[[Tensor, Scale], tuple[Tensor, Tensor, Tensor]]


KERNELS: dict[str, Kernel] = {
    "rbf": Kernel(rbf, rbf_weights, rbf_derivatives),
    "imq": Kernel(imq, imq_weights, imq_derivatives),
}
"""The kernels by name."""


def lookup_kernel(name: str) -> Kernel:
    """Return the kernel of that name, or raise an error that lists the names."""
    if not isinstance(name, str) or name not in KERNELS:
        raise SettingError(f"No kernel {name!r}. Choose one of: {join_some(list(KERNELS))}.")
    return KERNELS[name]


def weighted_differences(weights: Tensor, x: Tensor) -> Tensor:
    """Σ_j W_ij (x_i - x_j), (..., n, d), from weights (..., n, n) and points (..., n, d).

    With W of a kernel it is H_i = Σ_j ∇_{x_j} k(x_i, x_j), the term that every estimator starts
    from.
    """
    return weights.sum(-1, keepdim=True) * x - weights @ x


def curl_free_divergence(d2: Tensor, second: Tensor, third: Tensor, dim: int) -> Tensor:
    """Weights of the curl-free kernel's divergence.

    The divergence in y of Kc(x, y) is 4 ((d + 2) φ'' + 2u φ''') (x - y).

    Parameters
    ----------
    d2, second, third : Tensor of shape (..., n, n)
        u, φ'' and φ'''.
    dim : int
        Dimension d of the points.

    Returns
    -------
    Tensor of shape (..., n, n)
        To be used with `weighted_differences`.
    """
    weights = 4 * (dim + 2) * second + 8 * d2 * third
    # φ''' falls faster than u grows, but inf * 0 is NaN all the same.
    return weights.masked_fill(d2.isinf(), 0)


def curl_free_product(x: Tensor, v: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Product of the curl-free kernel matrix with a field, in O(n² d) and without (n, n, d) arrays.

    Kc(x, y) = -2φ' I - 4φ'' r r' with r = x - y, so row i of the product is

        Σ_j -2φ'_ij v_j + s_ij (x_i - x_j),    s_ij = -4φ''_ij (x_i - x_j)·v_j.

    Parameters
    ----------
    x, v : Tensor of shape (..., n, d)
        Points, and the field at the points.
    first, second : Tensor of shape (..., n, n)
        φ' and φ''.

    Returns
    -------
    Tensor of shape (..., n, d)
    """
    along = x @ v.mT - (x * v).sum(-1).unsqueeze(-2)
    return -2 * (first @ v) + weighted_differences(-4 * second * along, x)


def curl_free_matrix(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Curl-free kernel matrix; row i d + a and column j d + b is entry (a, b) of Kc(x_i, x_j).

    Parameters
    ----------
    x : Tensor of shape (..., n, d)
        Points.
    first, second : Tensor of shape (..., n, n)
        φ' and φ''.

    Returns
    -------
    Tensor of shape (..., n d, n d)

    Examples
    --------
    >>> x = torch.tensor([[0.0], [1.0]])
    >>> first, second, _ = rbf_derivatives(square_distances(x), 0.5)
    >>> curl_free_matrix(x, first, second)
    tensor([[1., 0.],
            [0., 1.]])
    """
    n, d = x.shape[-2:]
    r = x.unsqueeze(-2) - x.unsqueeze(-3)  # i, j, a
    # In the order i, a, j, b, so that the result is a view.
    outer = r.mT.unsqueeze(-1) * r.unsqueeze(-3)
    full = (-4 * second)[..., :, None, :, None] * outer
    full.diagonal(dim1=-3, dim2=-1).add_((-2 * first).unsqueeze(-1))
    return full.reshape(*x.shape[:-2], n * d, n * d)
