"""Whatever is handed over wrongly: a named error that says what, where, and what to do next."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from sklearn.exceptions import NotFittedError

import autotransfer as at
import bad_files
import bad_input

PACKAGE = Path(at.__file__).parent
ROWS = [*bad_input.ROWS, *bad_files.ROWS]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy, before the error is raised
@pytest.mark.parametrize(("act", "error", "words"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_the_error_is_named_and_says_what_to_do(tmp_path, act, error, words):
    with pytest.raises(Exception) as caught:  # noqa: PT011 -- the class is compared below
        act(tmp_path)
    message = str(caught.value)
    assert type(caught.value) is error, f"{type(caught.value).__name__}: {message}"
    absent = [word for word in words.split("; ") if word not in message]
    assert not absent, f"{absent} not in: {message}"
    assert len(message) < 600, message
    assert message.endswith("."), message
    assert "\n" not in message, message
    if error is NotFittedError:  # scikit-learn's own, which its users expect
        return
    assert issubclass(error, at.AutoTransferError)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert PACKAGE in Path(last.filename).parents, f"raised in {last.filename}:{last.lineno}"


def test_the_table_is_large_and_names_each_row_once():
    names = [row[0] for row in ROWS]
    assert len(names) >= 60
    assert len(set(names)) == len(names)
