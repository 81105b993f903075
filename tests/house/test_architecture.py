"""The house: imports point one way, files stay short, nothing is unpickled."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "autotransfer"
# Rooms and their wings in the order of the work: imports point to the left only. The core of a
# room stands to the left of wings that are built on it (data), and to the right of wings that know
# nothing of it (search).
ROOMS = [
    "data",
    "data.sources",
    "data.checks",
    "encoder",
    "estimation",
    "censoring",
    "adaptation",
    "training",
    "leakage",
    "search.engines",
    "search.settings",
    "search.ledger",
    "search",
    "report.figures",
    "report",
    "plots",
    "auto",
    "cli",
]
WINGS = {room for room in ROOMS if "." in room}
SHARED = {
    "atomic",
    "documents",
    "errors",
    "notebook",
    "registry",
    "text",
    "_driver",
    "_version",
}  # every room may use them; they use no room
OUTSIDE = {"", "__main__"}  # the package's own face, and what starts the cli: they see all rooms
MOST_FILES = 15
LONGEST = 600
PICKLES = {"pickle", "_pickle", "cloudpickle", "dill", "shelve"}

MODULES = sorted(PACKAGE.rglob("*.py"))
each_module = pytest.mark.parametrize(
    "path", MODULES, ids=[str(path.relative_to(PACKAGE)) for path in MODULES]
)


def room_of(parts: tuple[str, ...]) -> str:
    """Return the room or wing of a file: ``("cli", "run.py")`` and ``("cli.py",)`` are in cli."""
    if parts == ("__init__.py",):
        return ""
    wing = ".".join(parts[:2])
    return wing if wing in WINGS else parts[0].removesuffix(".py")


def is_face(parts: tuple[str, ...]) -> bool:
    """Whether a file is the face of a room, which shows what is in all its wings."""
    return len(parts) == 2 and parts[1] == "__init__.py"


def imported(node: ast.AST, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield the full names that an import statement of the file may refer to."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        start = ("autotransfer", *parts[:-1])
        start = start[: len(start) - node.level + 1] if node.level else ()
        base = ".".join([*start, *([node.module] if node.module else [])])
        yield from (f"{base}.{alias.name}" for alias in node.names)


def wrong_ways(source: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield a message for every import that does not point to the left."""
    here, where = room_of(parts), "/".join(parts)
    if here in OUTSIDE:
        return
    if is_face(parts):
        here = max((r for r in ROOMS if r.partition(".")[0] == here), key=ROOMS.index, default=here)
    if here not in {*ROOMS, *SHARED}:
        yield f"{where}: {here} is not a room of the house ({', '.join(ROOMS)})"
        return
    allowed = SHARED | set(ROOMS[: ROOMS.index(here) + 1] if here in ROOMS else ())
    for node in ast.walk(ast.parse(source)):
        for name in imported(node, parts):
            top, _, rest = name.partition(".")
            target = room_of((*rest.split("."), "x.py")) if top == "autotransfer" else ""
            # The package's face imports the rooms: a room that imports it runs in a circle.
            if top == "autotransfer" and target not in allowed:
                yield f"{where}:{node.lineno}: {here} may not import {name}"


def unsafe_reads(source: str, where: str) -> Iterator[str]:
    """Yield a message for everything that could execute what is in a file."""
    tree = ast.parse(source)
    bound = {}  # local name -> full name, so that an alias hides nothing
    for node in ast.walk(tree):
        for name in imported(node, ("",)):
            if name.partition(".")[0] in PICKLES:
                yield f"{where}:{node.lineno}: imports {name}"
        if isinstance(node, ast.Import):
            bound |= {a.asname: a.name for a in node.names if a.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            bound |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            head, dot, rest = ast.unparse(node).partition(".")
            name = bound.get(head, head) + dot + rest
            if name in {"torch.load", "torch.serialization.load"}:
                yield f"{where}:{node.lineno}: uses torch.load"
        elif isinstance(node, ast.Call):
            head, dot, rest = ast.unparse(node.func).partition(".")
            # allow_pickle is the third positional parameter of numpy.load.
            third = node.args[2:3] if bound.get(head, head) + dot + rest == "numpy.load" else []
            given = [k.value for k in node.keywords if k.arg == "allow_pickle"] + third
            if any(not isinstance(v, ast.Constant) or v.value is not False for v in given):
                yield f"{where}:{node.lineno}: allow_pickle must be False"


@each_module
def test_imports_point_to_rooms_on_the_left(path):
    faults = list(wrong_ways(path.read_text(), path.relative_to(PACKAGE).parts))
    assert not faults, "\n" + "\n".join(faults)


@each_module
def test_nothing_is_unpickled(path):
    faults = list(unsafe_reads(path.read_text(), str(path.relative_to(PACKAGE))))
    assert not faults, "\n" + "\n".join(faults)


def import_graph() -> dict[str, set[str]]:
    """Return which modules of the package each module imports, wherever the import stands."""
    names = {
        ".".join(("autotransfer", *path.relative_to(PACKAGE).with_suffix("").parts)): path
        for path in MODULES
    }
    graph = {}
    for name, path in names.items():
        parts = path.relative_to(PACKAGE).parts
        targets = set()
        for node in ast.walk(ast.parse(path.read_text())):
            for full in imported(node, parts):
                # `from package import module` and `from module import name`.
                targets |= {full, full.rpartition(".")[0]} & set(names)
        graph[name] = targets - {name}
    return graph


def test_no_module_imports_itself_in_a_circle():
    graph = import_graph()
    assert sum(map(len, graph.values())) > 300  # the graph is that of the package
    TopologicalSorter(graph).prepare()  # raises CycleError, with the circle


def test_a_circle_is_found():
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()


@pytest.mark.parametrize("tree", ["src", "tests", "benchmarks", "examples"])
def test_a_folder_has_few_files(tree):
    folders = {path.parent for path in (ROOT / tree).rglob("*.py")}
    counts = {str(folder.relative_to(ROOT)): len(list(folder.glob("*.py"))) for folder in folders}
    assert counts
    crowded = {folder: n for folder, n in counts.items() if n > MOST_FILES}
    assert not crowded


@each_module
def test_no_module_is_too_long(path):
    lines = len(path.read_text().splitlines())
    assert lines <= LONGEST, f"{path.relative_to(PACKAGE)} has {lines} lines, over {LONGEST}"


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("data/a.py", "from autotransfer.encoder import EEGNet"),
        ("data/a.py", "import autotransfer.search.ledger"),
        ("data/a.py", "from autotransfer import encoder"),
        ("data/a.py", "from autotransfer import SubjectDataset"),
        ("data/a.py", "import autotransfer as at"),
        ("data/a.py", "from ..encoder import EEGNet"),
        ("data/a.py", "from .. import encoder"),
        ("data/sub/a.py", "from ...encoder import EEGNet"),
        ("data/a.py", "def later():\n    from autotransfer.training import fit"),
        ("report/a.py", "from autotransfer import cli"),
        ("errors.py", "from autotransfer.data import load"),
        ("helpers.py", "import json"),
        ("data/splits.py", "from autotransfer.data.sources.npz import read_npz"),
        ("data/sources/npz.py", "from autotransfer.data.checks import check"),
        ("search/settings/tpe.py", "from autotransfer.search.ledger import Entry"),
        ("search/engines/ray.py", "from autotransfer.search import driver"),
        ("leakage/folds.py", "from autotransfer.search import Space"),
    ],
)
def test_a_wrong_import_is_found(file, source):
    (fault,) = wrong_ways(source, tuple(file.split("/")))
    assert fault.startswith(file)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("data/a.py", "from autotransfer.data import validate"),
        ("data/a.py", "from . import validate"),
        ("data/a.py", "from .validate import as_count"),
        ("training/a.py", "from autotransfer.data.sources.npz import read_npz"),
        ("training/a.py", "from ..encoder import EEGNet"),
        ("data/a.py", "from autotransfer._version import __version__"),
        ("data/a.py", "from autotransfer import errors"),
        ("cli.py", "from autotransfer.report import page"),
        ("__init__.py", "from autotransfer.auto import AutoTransfer"),
        ("data/a.py", "import autotransferable"),
    ],
)
def test_a_right_import_is_allowed(file, source):
    assert list(wrong_ways(source, tuple(file.split("/")))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "import torch\ntorch.load(path)",
        "import torch as t\nread = t.load",
        "from torch import load as read\nread(path)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import numpy as np\nnp.load(path, None, True)",
        "from numpy import load\nload(path, allow_pickle=trusted)",
    ],
)
def test_an_unsafe_read_is_found(source):
    (fault,) = unsafe_reads(source, "a.py")
    assert fault.startswith(f"a.py:{len(source.splitlines())}: ")


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.load(path, mmap_mode='r', allow_pickle=False)",
        "import numpy as np\nnp.load(path)",
        "import json\njson.load(handle)",
        "from safetensors.torch import load\nload(data)",
    ],
)
def test_a_safe_read_is_allowed(source):
    assert list(unsafe_reads(source, "a.py")) == []
