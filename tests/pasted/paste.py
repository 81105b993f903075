"""Try the README and the tutorial as a new user would: ``python tests/pasted/paste.py [PAGE ...]``.

Makes an empty virtual environment, installs torch and the wheel of this clone, and pastes every
Python block and every ``autotransfer`` command of the pages, in order, each page in an empty
folder. The environment is kept in the folder that AUTOTRANSFER_PASTE_VENV names, by default
build/paste-venv, and made anew when pyproject.toml, torch or Python change; the wheel is built and
installed every time. With ``--here`` the pages are pasted into the environment that runs this.
Exits with 1 and names the page and line where something fails.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pages import ROOT, blocks, commands

PAGES = ("README.md", "docs/install.md", "docs/tutorial.md")
STAMP = "autotransfer-paste.stamp"
TIMEOUT = 900  # seconds for a page; machines that run this are busy

# What a page may ask for that is not pasted, and why.
LEFT_OUT = {
    "pip install": "installed already",
    "python -m benchmarks.": "takes minutes to hours",
    "bash .ci/run": "this is it",
}

# Runs in the new environment by `python -c`: as in a terminal, there is no file of the program that
# worker processes would import.
PROGRAM = """
import subprocess, sys, time
names = {"__name__": "__main__"}
for kind, where, line, text in %r:
    start = time.perf_counter()
    print(f"-- {where}:{line} {text.strip().splitlines()[0]}", flush=True)
    try:
        if kind == "python":
            exec(compile("\\n" * (line - 1) + text, where, "exec"), names)
        else:
            subprocess.run(["bash", "-c", text], check=True, stdin=subprocess.DEVNULL)
    except BaseException as error:
        print(f"paste: {where}:{line} failed: {error}", file=sys.stderr, flush=True)
        raise
    print(f"-- {time.perf_counter() - start:.1f} s", flush=True)
"""


def pasted(page: Path) -> Iterator[tuple[str, str, int, str]]:
    """Walk over what is pasted from a page: (kind, page, line, text)."""
    where = page.name
    for block in blocks(page):
        if block.language == "python":
            yield "python", where, block.line, block.text
        elif block.language in ("console", "bash"):
            for command in commands(block.text):
                why = [LEFT_OUT[start] for start in LEFT_OUT if command.startswith(start)]
                if command.startswith("autotransfer "):
                    yield "command", where, block.line, command
                elif why:
                    print(f"-- {where}:{block.line} not pasted ({why[0]}): {command}")
                else:
                    sys.exit(f"paste: {where}:{block.line}: what is this command? {command}")


def run(*command: str | Path) -> None:
    """Run a command; stop with its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        sys.exit(f"paste: {' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


def pip(python: Path, *words: str | Path) -> None:
    """Run the environment's pip."""
    run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", *words)


def make_environment(venv: Path, torch: str, wheel: Path) -> Path:
    """Make the environment, or put the new wheel into the one that is there; give its Python."""
    python = venv / ("Scripts" if os.name == "nt" else "bin") / "python"
    parts = [torch, sys.version, sys.base_prefix, (ROOT / "pyproject.toml").read_text()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    stamp = venv / STAMP
    if stamp.exists() and stamp.read_text() == key:
        pip(python, "install", "--no-deps", "--force-reinstall", wheel)
    else:
        if venv.exists() and any(venv.iterdir()) and not (venv / "pyvenv.cfg").exists():
            sys.exit(f"paste: {venv} is neither empty nor a virtual environment")
        run(sys.executable, "-m", "venv", "--clear", venv)
        # torch first, by exact version in CI: a bare "torch" may bring gigabytes of CUDA.
        pip(python, "install", torch)
        pip(python, "install", torch, wheel)
        stamp.write_text(key)
    pip(python, "check")
    return python


def new_environment(torch: str) -> Path:
    """Build the wheel and install it where nothing else is; give that environment's Python."""
    start = time.perf_counter()
    venv = Path(os.environ.get("AUTOTRANSFER_PASTE_VENV") or ROOT / "build" / "paste-venv")
    with tempfile.TemporaryDirectory(prefix="autotransfer-wheel-") as folder:
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
        (wheel,) = Path(folder).glob("*.whl")
        python = make_environment(venv, torch, wheel)
    print(f"-- environment: {time.perf_counter() - start:.0f} s: {venv}", flush=True)
    return python


def paste(page: Path, python: Path) -> None:
    """Paste a page in an empty folder."""
    program = PROGRAM % (list(pasted(page)),)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    environment["PATH"] = f"{python.parent}{os.pathsep}{environment['PATH']}"
    with tempfile.TemporaryDirectory(prefix="autotransfer-paste-") as folder:
        done = subprocess.run(
            [python, "-c", program],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            env=environment,
            timeout=TIMEOUT,
            check=False,
        )
    if done.returncode:
        sys.exit(1)


def main() -> None:
    """Paste the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", default=PAGES)
    parser.add_argument("--torch", default="torch", help="what pip is asked for")
    parser.add_argument("--here", action="store_true", help="paste into this Python's environment")
    args = parser.parse_args()
    python = Path(sys.executable) if args.here else new_environment(args.torch)
    for page in args.pages:
        print(f"== {page}", flush=True)
        paste(ROOT / page, python)


if __name__ == "__main__":
    main()
