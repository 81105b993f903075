"""What a person sees on a terminal of 80 columns: nothing wraps, the parts are there."""

from __future__ import annotations

import io
import os
import re
import select
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.text import Text

sys.path.insert(0, str(Path(__file__).parent))

import small

from autotransfer.cli.heat_map import heat_map
from autotransfer.search.progress import RunProgress
from autotransfer.training.progress import LiveView

COLUMNS, LINES = 80, 24


class Terminal:
    """A terminal of 80 columns, seen by one who has more.

    The command is told that there are 80 columns; what it draws goes to a screen of 240. A line
    that would wrap on the real one is longer than 80 here.
    """

    def __init__(self):
        pyte = pytest.importorskip("pyte")
        self.screen = pyte.Screen(3 * COLUMNS, LINES)
        self.stream = pyte.ByteStream(self.screen)
        self.seen: list[str] = []

    def run(self, *args):
        """Run the command on this terminal; returns its exit code."""
        import fcntl
        import struct
        import termios

        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        process = subprocess.Popen(
            small.command(*args),
            env=small.environment(TERM="xterm-256color"),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        while True:
            if not select.select([ours], [], [], 120)[0]:
                process.kill()
                raise AssertionError("nothing was drawn for two minutes")
            try:
                drawn = os.read(ours, 65536)
            except OSError:  # Linux says so when the other side is closed
                break
            if not drawn:
                break
            # Frame by frame: each begins by erasing the one before it.
            for part in drawn.replace(b"\x1b[2K", b"\0\x1b[2K").split(b"\0"):
                self.stream.feed(part)
                self.seen.append("\n".join(line.rstrip() for line in self.screen.display))
        os.close(ours)
        return process.wait(60)

    def longest(self):
        return max(len(line) for shot in self.seen for line in shot.splitlines())

    def shots(self, *words):
        """Give the states of the screen in which all of these stood."""
        return [shot for shot in self.seen if all(word in shot for word in words)]


@pytest.fixture
def short():
    """Make a folder whose path is short: a path is printed whole, however long it is."""
    with tempfile.TemporaryDirectory(prefix="at") as folder:
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_progress_of_a_run_is_readable_on_80_columns(short):
    study = small.write_study(short / "study.npz")
    terminal = Terminal()
    options = [*small.OPTIONS, "--strengths", "mige=0.03", "--measure", "mige"]
    code = terminal.run("run", study, "--out", short / "run", *options, "--n-settings", 3)
    assert code == 0, terminal.seen[-1]
    assert terminal.longest() <= COLUMNS
    assert terminal.shots("searching ━", "1 running, 0 failed", "/4")
    assert terminal.shots("searching ━", " left", "best so far 0.", "baseline    0.")
    assert terminal.shots("cross-validating ━", "best so far 0.", " ± ", "uncensored")
    # Nothing of the live view is left at the end; the results are.
    last = terminal.seen[-1]
    assert "running" not in last
    assert "━" not in last
    assert "report: " in last


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_a_fit_and_an_error_fit_80_columns(short):
    study = small.write_study(short / "study.npz")
    terminal = Terminal()
    assert terminal.run("fit", study, "--model", short / "m", "--max-epochs", 40) == 0
    assert terminal.shots("training ━", "/40", "loss ", "validation", "left")
    assert terminal.run("inspect", short / "nothing.npz") == 1
    assert "Error: " in terminal.seen[-1]
    assert terminal.longest() <= COLUMNS


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_view_is_never_wider_than_the_terminal(width):
    written = io.StringIO()
    console = Console(file=written, width=width, force_terminal=True, color_system=None)
    view = LiveView(console)
    view.start()
    view.draw("cross-validating", 123, 4567, ["2 running", "best " + "mige conditional " * 9])
    view.stop()
    shown = re.sub(r"\x1b\[[?\d;]*[A-Za-z]|\r", "\n", written.getvalue()).splitlines()
    assert any(line.endswith("123/4567") for line in shown)
    assert any(line.endswith("…") for line in shown)
    assert max(len(line) for line in shown) <= width


def test_a_log_is_told_in_plain_lines(capsys):
    with RunProgress(True, every=0.0) as show:
        show.stage("search", 2, ())
        show.running(1)
        show.tick()
        show.say("a [word] in brackets stays")
    said = capsys.readouterr().err
    assert "autotransfer: searching: 0/2, 1 running, 0 failed\n" in said
    assert "a [word] in brackets stays" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("colours", [None, "truecolor"])
@pytest.mark.parametrize("shape", [(3, 2), (60, 14)])
def test_a_heat_map_fits_the_terminal_and_shows_the_counts(width, colours, shape):
    written = io.StringIO()
    console = Console(file=written, width=width, force_terminal=True, color_system=colours)
    counts = np.random.default_rng(0).integers(0, 1000, shape)
    rows = [f"participant number {i}" for i in range(shape[0])]
    console.print(heat_map(counts, rows, [f"class {i}" for i in range(shape[1])], console))
    shown = Text.from_ansi(written.getvalue()).plain
    assert max(len(line) for line in shown.splitlines()) <= width
    first = next(line for line in shown.splitlines() if "number 0" in line)
    assert str(counts[0, 0]) in first
    assert str(counts[0].sum()) in first  # what does not fit is in the sum
    assert (f"... {shape[0] - 12} more" in shown) == (shape[0] > 16)
    assert ("\x1b[" in written.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")) == bool(
        colours
    )
