"""Import every module of a package as if no extra were installed: ``core_only.py [PACKAGE]``.

Exits with 1, and names the modules, when one of them needs an extra to be imported.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from importlib.machinery import PathFinder

# The importable modules of each extra in pyproject.toml.
EXTRAS = {
    "ray": ("ray",),
    "mne": ("mne",),
    "bids": ("mne_bids",),
    "moabb": ("moabb", "pyriemann"),
    "braindecode": ("braindecode", "skorch", "torchaudio"),
    "postgres": ("psycopg", "psycopg_binary"),
    "onnx": ("onnx", "onnxruntime", "onnxscript"),
    "tensorboard": ("tensorboard",),
    "dashboard": ("optuna_dashboard",),
    "docs": ("sphinx", "numpydoc", "sphinx_gallery", "pydata_sphinx_theme", "myst_parser"),
    "dev": (
        "pytest",
        "hypothesis",
        "ruff",
        "mypy",
        "codespell_lib",
        "pre_commit",
        "hatchling",
        "nbconvert",
        "ipykernel",
        "IPython",
        "pyte",
        "axe_core_python",
        "build",
        "twine",
    ),
}
MODULES = frozenset(name for names in EXTRAS.values() for name in names)


class WithoutExtras(PathFinder):
    """Find no extra, whether it is installed or not.

    A finder that raised would break libraries that ask `importlib.util.find_spec` whether
    something is installed; one that finds nothing is what they see in a core installation.
    """

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname.partition(".")[0] in MODULES:
            return None
        return super().find_spec(fullname, path, target)


def import_all(package: str) -> tuple[int, list[str]]:
    """Import all modules of a package; return how many, and what went wrong."""
    names, faults = [package], []
    try:
        root = importlib.import_module(package)
    except ImportError as error:
        return 0, [f"{package}: {error}"]

    # walk_packages imports subpackages itself and reports a failure only here.
    def ignore(name: str) -> None:
        pass

    for found in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=ignore):
        try:
            importlib.import_module(found.name)
            names.append(found.name)
        except ImportError as error:
            faults.append(f"{found.name}: {error}")
    loaded = sorted(MODULES & sys.modules.keys())
    if loaded:
        faults.append(f"extras in sys.modules: {', '.join(loaded)}")
    return len(names), faults


def main() -> None:
    """Hide the extras, import everything, say how many modules that were."""
    package = sys.argv[1] if len(sys.argv) > 1 else "autotransfer"
    sys.meta_path[:] = [WithoutExtras if f is PathFinder else f for f in sys.meta_path]
    count, faults = import_all(package)
    for fault in faults:
        print(f"needs an extra: {fault}", file=sys.stderr)
    print(f"{package}: {count} modules imported without extras, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
