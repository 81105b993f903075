"""The Sphinx site: ``python -m sphinx -W --keep-going docs docs/_build/html``.

Nothing is fetched: no intersphinx, no fonts or scripts of other sites. Nitpicking is off, because
numpydoc types are words ("array of shape (n_trials,)") and not names.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import sys
from pathlib import Path

import sphinx_gallery.sorting
from pygments.lexers.python import PythonLexer

from autotransfer import __version__

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"
sys.path.insert(0, str(DOCS))

import api_page  # noqa: E402

api_page.write()
# Examples that use MNE and MOABB leave nothing in the home of whoever builds the pages.
for name in ("_MNE_FAKE_HOME_DIR", "MNE_DATA"):
    os.environ[name] = str(DOCS / "_build" / "home")
(DOCS / "_build" / "home").mkdir(parents=True, exist_ok=True)

project = "AutoTransfer"
author = "The AutoTransfer developers"
project_copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "myst_parser",
    "sphinx_design",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
language = "en_GB"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# `bash` and `console` blocks are pasted by tests/pasted/paste.py, `python` blocks by test_docs.py
# beside it.
suppress_warnings = ["config.cache"]  # the gallery's configuration holds functions

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's Parameters say it in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = f"AutoTransfer {release}"
html_static_path = ["_static"]
html_show_sourcelink = False
# Pages without others below them: their code has the room of an empty list.
html_sidebars = {name: [] for name in ("install", "tutorial", "glossary", "api")}
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def missing(path: Path) -> list[str]:
    """Name the packages that an example imports and that are not installed."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        found |= {name.partition(".")[0] for name in names}
    # Without __main__, which has no spec.
    found -= {"", "__main__", "__future__"}
    return sorted(name for name in found if importlib.util.find_spec(name) is None)


def runnable() -> str:
    """Make the pattern of examples that can run here; the others are shown, and named."""
    names = []
    for path in sorted(EXAMPLES.glob("plot_*.py")):
        lacking = missing(path)
        if lacking:
            print(f"not run, because {', '.join(lacking)} is missing: {path.name}", file=sys.stderr)
        else:
            names.append(re.escape(path.name))
    return f"/({'|'.join(names)})$" if names else r"(?!)"


sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES),
    "gallery_dirs": "auto_examples",
    "filename_pattern": runnable(),
    "within_subsection_order": sphinx_gallery.sorting.FileNameSortKey,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # that page would fetch scripts from elsewhere
    "min_reported_time": 5,
    "plot_gallery": "True",
}


def skip_member(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to every estimator: its words link to its own manual."""
    if re.fullmatch(r"set_\w+_request|get_metadata_routing", name):
        return True
    return None


def without_missing(app, docname, source):
    """Leave pages that this copy does not have out of the guides' tables of contents."""
    if docname == "guides":
        lines = source[0].splitlines()
        there = [line for line in lines if not re.fullmatch(r"\w+", line) or _is_page(line)]
        source[0] = "\n".join(there)


def _is_page(name: str) -> bool:
    return (DOCS / f"{name}.md").exists()


def setup(app):
    """Register the filter, and the language of blocks that look like Python and are not run."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("source-read", without_missing)
    app.add_lexer("py-noexec", PythonLexer)
