"""Points, expected vectors and comparisons that the tests of estimation share."""

import json
from pathlib import Path

import torch

VECTORS = Path(__file__).parents[1] / "fixtures" / "vectors"
TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4}


def vectors(name):
    return json.loads((VECTORS / f"{name}.json").read_text())


def tensor(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


def points(*shape, seed=0, dtype=torch.float64, offset=0.0):
    g = torch.Generator().manual_seed(seed)
    spread = torch.linspace(0.5, 2, shape[-1], dtype=torch.float64)
    return (torch.randn(shape, generator=g, dtype=torch.float64) * spread + offset).to(dtype)


def error(found, right):
    """Largest difference, relative to the largest entry."""
    right = torch.as_tensor(right, dtype=torch.float64)
    return ((found.double() - right).abs().max() / right.abs().max().clamp(min=1e-300)).item()
