"""The paster pastes what it should, in order, and fails where a page fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import paste

PAGE = """
```python
kept = [1]
```
```console
$ pip install torch
$ autotransfer --version
```
```text
autotransfer is not pasted from here
```
```python
print("kept", kept)
```
"""


def written(folder, text):
    page = folder / "page.md"
    page.write_text(text)
    return page


def test_blocks_and_commands_come_in_order(tmp_path, capsys):
    found = list(paste.pasted(written(tmp_path, PAGE)))
    assert [(kind, line) for kind, _, line, _ in found] == [
        ("python", 3),
        ("command", 6),
        ("python", 13),
    ]
    assert "not pasted (installed already): pip install torch" in capsys.readouterr().out


def test_an_unknown_command_stops_it(tmp_path):
    page = written(tmp_path, "```bash\nrm -r study\n```\n")
    with pytest.raises(SystemExit, match=r"page.md:2: what is this command\? rm -r study"):
        list(paste.pasted(page))


def test_names_live_from_block_to_block(tmp_path, capfd):
    text = PAGE.replace("$ autotransfer --version\n", "")
    paste.paste(written(tmp_path, text), Path(sys.executable))
    assert "kept [1]" in capfd.readouterr().out


@pytest.mark.parametrize(
    "block",
    ["```python\nassert 1 == 2\n```\n", "```console\n$ autotransfer no-such-command\n```\n"],
    ids=["python", "command"],
)
def test_a_failure_is_named_with_its_line(tmp_path, capfd, block):
    page = written(tmp_path, "# Title\n\n" + block)
    with pytest.raises(SystemExit):
        paste.paste(page, Path(sys.executable))
    assert "paste: page.md:4 failed" in capfd.readouterr().err
