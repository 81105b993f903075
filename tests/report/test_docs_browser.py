"""The documentation in a real browser, as the step docs of CI has built it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

BUILT = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = [
    *("index", "tutorial", "evidence"),
    *(
        pytest.param(name, marks=pytest.mark.nightly)
        for name in ("install", "tutorial_emg", "adapting", "hands_off")
    ),
]
LOOKS = [
    (1280, False),
    *(pytest.param(*look, marks=pytest.mark.nightly) for look in ((1280, True), (390, False))),
]
TALLEST = 6000
"""Most pixels of a page at a width of 1280; pages of tables are longer."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def built():
    if not (BUILT / "index.html").exists():
        why = "the pages are not built (bash .ci/run docs)"
        if os.environ.get("AUTOTRANSFER_NEED_BROWSER") == "1":
            pytest.fail(why)
        pytest.skip(why)


@pytest.mark.parametrize(("width", "dark"), LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious_and_all_is_in_sight(browser, name, width, dark):
    browser.look(width, dark)
    browser.open(BUILT / f"{name}.html")
    # The theme lets its colours glide into those of the night, which takes a moment.
    browser.run(
        "document.head.append(Object.assign(document.createElement('style'), "
        "{textContent: '* { transition: none !important }'}))"
    )
    browser.settle()
    assert browser.serious() == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    if width == 1280:
        assert browser.run("document.documentElement.scrollHeight") <= TALLEST
