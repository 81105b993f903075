"""Where a killed run goes on: one file, replaced whole, that executes nothing when read."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from autotransfer import atomic
from autotransfer.errors import CheckpointError

FORMAT = "autotransfer-checkpoint-1"


def write_checkpoint(
    path: Path, training_hash: str, tensors: dict[str, Tensor], state: dict[str, Any]
) -> None:
    """Write a checkpoint in one step.

    Parameters
    ----------
    path : Path
        File; its folder is made if need be.
    training_hash : str
        Hash of everything that defines the run.
    tensors, state : dict
        Tensors, and what JSON can hold.
    """
    # Cloned, because safetensors refuses tensors that share memory (tied weights).
    copies = {
        k: v.detach().clone(memory_format=torch.contiguous_format) for k, v in tensors.items()
    }
    header = {"format": FORMAT, "training_hash": training_hash, "state": json.dumps(state)}
    header["sha256"] = _digest(copies, header["state"])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(path, save(copies, metadata=header))
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {path} cannot be written ({error}). Give another path, or make room."
        ) from error


def read_checkpoint(
    path: Path, training_hash: str
) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Read a checkpoint, or give None where there is none.

    Raises
    ------
    CheckpointError
        If the file is damaged, or belongs to a run with other data or settings.
    """
    if not path.exists():
        return None
    try:
        with safe_open(str(path), framework="pt") as opened:
            header = opened.metadata() or {}
            _require(path, header, training_hash)  # before its numbers are read
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        state = json.loads(header["state"])
        if header["sha256"] != _digest(tensors, header["state"]) or not isinstance(state, dict):
            raise ValueError("its content was changed")
    except CheckpointError:
        raise
    # RuntimeError: torch cannot map the file, or JSON is nested too deeply.
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError, MemoryError) as error:
        raise CheckpointError(
            f"The checkpoint {path} cannot be read ({error}). Delete it to start anew."
        ) from None
    return tensors, state


def _require(path: Path, header: dict[str, str], training_hash: str) -> None:
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is not a checkpoint of this version of autotransfer. Delete it, or give "
            "another path."
        )
    if header.get("training_hash") != training_hash:
        raise CheckpointError(
            f"The checkpoint {path} belongs to a run with other data or settings. Delete it to "
            "start anew, or give this run another path."
        )


def _digest(tensors: dict[str, Tensor], state: str) -> str:
    """Hash the content: safetensors itself does not notice a changed number."""
    return hashlib.sha256(save(tensors) + state.encode()).hexdigest()


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """State of an optimiser as named tensors, without its options."""
    return {
        f"{i}.{key}": torch.as_tensor(value)
        for i, entry in optimiser.state_dict()["state"].items()
        for key, value in entry.items()
    }


def load_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back what `optimiser_tensors` gave."""
    entries = {int(i): entry for i, entry in by_prefix(tensors).items()}
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": entries, "param_groups": groups})


def by_prefix(tensors: dict[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Group tensors by what stands before the first dot of their names; other prefixes are empty.

    Examples
    --------
    >>> by_prefix({"a.x": torch.tensor(1), "a.y.z": torch.tensor(2)})["a"].keys()
    dict_keys(['x', 'y.z'])
    """
    parts: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for name, tensor in tensors.items():
        prefix, _, key = name.partition(".")
        parts[prefix][key] = tensor
    return parts
