"""Files and folders appear whole or not at all."""

from __future__ import annotations

import json
import os
import stat

import pytest

from autotransfer import atomic


def names(folder):
    return sorted(item.name for item in folder.iterdir())


def test_bytes_are_written_and_replace_what_was_there(tmp_path):
    target = tmp_path / "a.bin"
    atomic.write_bytes(target, b"old and long")
    atomic.write_bytes(target, b"new")
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["a.bin"]


def test_json_is_readable_and_keeps_other_alphabets(tmp_path):
    atomic.write_json(tmp_path / "a.json", {"name": "Zoë", "sfreq": 0.1})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert "Zoë" in text
    assert json.loads(text) == {"name": "Zoë", "sfreq": 0.1}


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": object()}])
def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path, bad):
    atomic.write_json(tmp_path / "a.json", [1])
    with pytest.raises((ValueError, TypeError)):
        atomic.write_json(tmp_path / "a.json", bad)
    assert json.loads((tmp_path / "a.json").read_text()) == [1]
    assert names(tmp_path) == ["a.json"]


def test_an_error_while_writing_a_file_leaves_the_old_one(tmp_path):
    atomic.write_bytes(tmp_path / "a", b"old")

    def interrupted():
        with atomic.file(tmp_path / "a") as handle:
            handle.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_folder_is_not_there_until_it_is_complete(tmp_path):
    with atomic.folder(tmp_path / "f") as temp:
        (temp / "sub").mkdir()
        (temp / "sub" / "one").write_text("1")
        assert not (tmp_path / "f").exists()
    assert (tmp_path / "f" / "sub" / "one").read_text() == "1"
    assert names(tmp_path) == ["f"]


def test_an_error_while_filling_a_folder_leaves_nothing_behind(tmp_path):
    def failing():
        with atomic.folder(tmp_path / "f") as temp:
            (temp / "one").write_text("1")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert names(tmp_path) == []


def test_an_existing_folder_is_refused_before_work_starts_or_replaced_when_asked(tmp_path):
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "old").write_text("old")
    with pytest.raises(FileExistsError, match="already exists"), atomic.folder(tmp_path / "f"):
        pytest.fail("the block must not run")
    with atomic.folder(tmp_path / "f", overwrite=True) as temp:
        (temp / "new").write_text("new")
        assert names(tmp_path / "f") == ["old"]
    assert names(tmp_path / "f") == ["new"]
    assert names(tmp_path) == ["f"]


def test_a_folder_made_meanwhile_by_somebody_else_is_kept(tmp_path):
    def overtaken():
        with atomic.folder(tmp_path / "f"):
            (tmp_path / "f").mkdir()
            (tmp_path / "f" / "theirs").write_text("theirs")

    with pytest.raises(FileExistsError, match="already exists"):
        overtaken()
    assert names(tmp_path / "f") == ["theirs"]
    assert names(tmp_path) == ["f"]


def test_overwriting_through_a_link_replaces_what_it_points_to(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic.folder(tmp_path / "link", overwrite=True) as temp:
        (temp / "new").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "real") == ["new"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_colleagues_can_read_what_was_written(tmp_path):
    old = os.umask(0o022)
    try:
        atomic.write_bytes(tmp_path / "a", b"")
        with atomic.folder(tmp_path / "f"):
            pass
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o755
