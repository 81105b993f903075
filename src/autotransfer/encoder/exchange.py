"""Exchange trained weights with braindecode's EEGNet, in both directions.

Our encoder has the same layers under the same names; braindecode's ``final_layer`` is a
convolution over all that is left of time, which is a linear layer on the flattened latent, our
classifier. These are functions on state dicts: braindecode itself is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor

from autotransfer.errors import SettingError, join_some

State = dict[str, Tensor]

_NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
ENCODER_NAMES = (
    "conv_temporal.weight",
    *(f"bnorm_temporal.{name}" for name in _NORM),
    "conv_spatial.parametrizations.weight.original",
    *(f"bnorm_1.{name}" for name in _NORM),
    "conv_separable_depth.weight",
    "conv_separable_point.weight",
    *(f"bnorm_2.{name}" for name in _NORM),
)
"""Names in the state dict of the encoder: the same in braindecode and here."""

_CONV = ("final_layer.conv_classifier.weight", "final_layer.conv_classifier.bias")
_LINEAR = (
    "final_layer.linearconstraint.parametrizations.weight.original",
    "final_layer.linearconstraint.bias",
)


def from_braindecode(
    state_dict: Mapping[str, Tensor], norm_rate: float = 0.25
) -> tuple[State, State]:
    """Take a braindecode EEGNet apart into our encoder and a linear classifier.

    Parameters
    ----------
    state_dict : mapping of str to Tensor
        ``model.state_dict()`` of a ``braindecode.models.EEGNet`` (1.8).
    norm_rate : float
        The model's `norm_rate`, used only if it was made with
        ``final_layer_with_constraint=True``: the state dict holds the weights before the
        constraint, and we return them after it.

    Returns
    -------
    encoder_state : dict
        For ``EEGNet.load_state_dict``.
    head_state : dict
        ``weight`` (n_classes, n_latent) and ``bias`` (n_classes,) of a ``torch.nn.Linear``.

    Notes
    -----
    A state dict does not tell lengths of pooling, batch norm's momentum and eps or the kind of
    pooling and activation: make the encoder with the model's options. Only
    ``pool_mode="mean"``, ``activation=nn.ELU`` and ``batch_norm_affine=True`` (braindecode's
    defaults) have a counterpart here.
    """
    constrained = _LINEAR[0] in state_dict
    names = _LINEAR if constrained else _CONV
    _check_names(state_dict, (*ENCODER_NAMES, *names), "state dict of braindecode's EEGNet")
    weight, bias = (state_dict[name].detach() for name in names)
    if constrained:
        weight = weight.renorm(2, 0, norm_rate)
    elif weight.ndim != 4 or weight.shape[2] != 1:
        raise SettingError(
            f"{names[0]} has the shape {tuple(weight.shape)}; expected (n_classes, F2, 1, n_time)."
        )
    encoder = {name: state_dict[name].detach().clone() for name in ENCODER_NAMES}
    return encoder, {"weight": weight.flatten(1).clone(), "bias": bias.clone()}


def to_braindecode(
    encoder_state: Mapping[str, Tensor],
    head_state: Mapping[str, Tensor],
    norm_rate: float | None = None,
) -> State:
    """Put our encoder and a linear classifier together to a braindecode EEGNet.

    Parameters
    ----------
    encoder_state : mapping of str to Tensor
        ``EEGNet.state_dict()``.
    head_state : mapping of str to Tensor
        ``weight`` (n_classes, n_latent) and ``bias`` (n_classes,) of a ``torch.nn.Linear``.
    norm_rate : float, optional
        None for a model with ``final_layer_with_constraint=False`` (braindecode's default), or
        the `norm_rate` of a model with ``final_layer_with_constraint=True``.

    Returns
    -------
    dict
        For ``braindecode.models.EEGNet.load_state_dict``, of a model with the same options
        (``pool1_kernel_size`` for `pool1`, ``conv_spatial_max_norm`` for `max_norm`, and
        batch norm's momentum, whose default differs).

    Examples
    --------
    >>> import torch
    >>> from autotransfer.encoder import EEGNet
    >>> encoder, head = EEGNet(8, 128), torch.nn.Linear(64, 3)
    >>> state = to_braindecode(encoder.state_dict(), head.state_dict())
    >>> state["final_layer.conv_classifier.weight"].shape
    torch.Size([3, 16, 1, 4])
    """
    _check_names(encoder_state, ENCODER_NAMES, "state dict of the encoder")
    _check_names(head_state, ("weight", "bias"), "state dict of the linear classifier")
    weight, bias = (head_state[name].detach().clone() for name in ("weight", "bias"))
    f2 = len(encoder_state["conv_separable_point.weight"])
    if weight.ndim != 2 or weight.shape[1] % f2:
        raise SettingError(
            f"The classifier's weight has the shape {tuple(weight.shape)}; expected (n_classes, "
            f"n_latent) with n_latent a multiple of the encoder's F2 = {f2}. Is it the classifier "
            "of this encoder?"
        )
    state = {name: encoder_state[name].detach().clone() for name in ENCODER_NAMES}
    if norm_rate is None:
        return {**state, _CONV[0]: weight.reshape(len(weight), f2, 1, -1), _CONV[1]: bias}
    largest = weight.norm(dim=1).max().item()
    # The constraint multiplies a weight of exactly this norm by 1 - 1e-7 at most.
    if largest > norm_rate * (1 + 1e-5):
        raise SettingError(
            f"The classifier's weights have a norm of up to {largest:.3g}: a braindecode model "
            f"with final_layer_with_constraint=True and norm_rate={norm_rate:g} would scale them "
            "down and predict otherwise. Make the model with a larger norm_rate, or with "
            "final_layer_with_constraint=False (norm_rate=None here)."
        )
    return {**state, _LINEAR[0]: weight, _LINEAR[1]: bias}


def _check_names(state: Mapping[str, Tensor], expected: Iterable[str], what: str) -> None:
    """Raise if names are missing from a state dict or it has others."""
    names = list(expected)
    missing = [name for name in names if name not in state]
    if missing:
        raise SettingError(
            f"This is not the {what}: it lacks {join_some(missing)}. It has "
            f"{join_some(list(state))}."
        )
    extra = [name for name in state if name not in names]
    if extra:
        raise SettingError(
            f"The {what} has entries that have no counterpart: {join_some(extra)}. Hand over the "
            "state dict of the EEGNet alone."
        )
