"""Several networks as one model: the mean of their probabilities."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from autotransfer import atomic
from autotransfer.training.classifier import CensoredClassifier

FILE = "ensemble.json"


def write_members(folder: Path, models: list[dict[str, bytes]]) -> None:
    """Write the folders of some models into the folder of an ensemble."""
    names = [f"member-{number}" for number in range(1, len(models) + 1)]
    for name, files in zip(names, models, strict=True):
        (folder / name).mkdir()
        for file, content in files.items():
            (folder / name / file).write_bytes(content)
    atomic.write_json(folder / FILE, {"format": "autotransfer-ensemble", "members": names})


def load_model(path: str | os.PathLike[str], encoder: Any = None) -> CensoredClassifier:
    """Load a model folder, of one network or of several."""
    path = Path(path)
    if not (path / FILE).exists():
        return CensoredClassifier.load(path, encoder=encoder)
    return CensoredClassifier.load(path / "member-1", encoder=encoder)
