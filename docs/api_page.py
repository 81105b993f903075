"""Write api.md from the public names of the package: conf.py does it at every build.

A name that a room's ``__all__`` gains appears on the page without further words.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "api.md"

HEAD = """# API

Everything listed here is public. `import autotransfer as at` is enough for the first table; torch
and the rest are imported when they are first needed. The same on the command line:
`autotransfer --help`.
"""
ROOMS = {
    "autotransfer": "",
    "autotransfer.data": "Recordings of many people: sources, checks, folds, batches.",
    "autotransfer.encoder": "Signals to latents.",
    "autotransfer.estimation": "Tensor functions: no networks, no state.",
    "autotransfer.censoring": "Penalties that keep the subject out of the latent.",
    "autotransfer.adaptation": "What trials of the new person add to a trained network.",
    "autotransfer.training": "Training: the estimator, augmentations of its trials.",
    "autotransfer.leakage": "What a latent tells about the person.",
    "autotransfer.search": "Settings, trials, ledger, engines, rules of selection.",
    "autotransfer.report": "What came of a run, on one page.",
    "autotransfer.plots": "The pictures of that page, and of your own numbers, as matplotlib axes.",
}
# Public by their names in a registry, or for their options.
MORE = {
    "autotransfer.censoring": [
        "adversary.Adversary",
        "mige.MIGE",
        "mmd.MMD",
        "pairmmd.PairMMD",
        "began.BEGAN",
    ],
    "autotransfer.adaptation": [
        "statistics.statistics",
        "information.information",
        "ring.ring",
        "head.head",
        "tuning.tuning",
        "stream.Stream",
        "registry.Policy",
        "guard.Guard",
        "guard.Lessons",
    ],
    "autotransfer.training": [
        "live.Live",
        "augment.mask",
        "augment.ring",
        "augment.shift",
        "augment.noise",
        "augment.mix",
    ],
    "autotransfer.search": [
        "engines.executor.ExecutorEngine",
        "engines.local.LocalEngine",
        "engines.ray.RayEngine",
    ],
}
ERRORS = """
## Errors and warnings

Every error derives from `AutoTransferError` and from the built-in error that a scikit-learn user
would expect; every warning from `AutoTransferWarning`.

```{eval-rst}
.. automodule:: autotransfer.errors
   :members:
   :member-order: bysource
   :exclude-members: join_some
```
"""


def documented(value: Any) -> bool:
    """Whether a public name has documentation of its own: a class or a function, no constant."""
    return callable(value) and getattr(value, "__module__", "").startswith("autotransfer")


def room(name: str, words: str, seen: set[Any]) -> str:
    """Write the section of a room; what stands in an earlier one is not repeated."""
    module = importlib.import_module(name)
    public = {key: getattr(module, key) for key in module.__all__ if not key.startswith("_")}
    listed = [key for key, value in public.items() if documented(value) and value not in seen]
    if name == "autotransfer":
        errors = importlib.import_module("autotransfer.errors")
        listed = [key for key in listed if not hasattr(errors, key)]
    seen |= {public[key] for key in listed}
    constants = [f"`{key}`" for key, value in public.items() if not documented(value)]
    lines = [f"\n## {name}\n", words, f"\nAlso: {', '.join(constants)}.\n" if constants else "\n"]
    table = "\n".join(f"   {key}" for key in [*listed, *MORE.get(name, [])])
    lines.append(
        "```{eval-rst}\n"
        f".. currentmodule:: {name}\n\n"
        f".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{table}\n```\n"
    )
    return "\n".join(lines)


def page() -> str:
    """Write the page as text."""
    seen: set[Any] = set()
    return HEAD + "".join(room(name, words, seen) for name, words in ROOMS.items()) + ERRORS


def write() -> None:
    """Write the page, unless it is there already: Sphinx reads what is newer again."""
    text = page()
    if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        TARGET.write_text(text, encoding="utf-8")
