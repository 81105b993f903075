"""The page in a real browser: quiet, alone, usable by everybody."""

from __future__ import annotations

import pytest
from report_runs import cut

from autotransfer.report import write_report

pytestmark = pytest.mark.slow

LOOKS = [(1280, False), (1280, True), (390, False), (390, True)]


@pytest.fixture(scope="module")
def pages(whole_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    part = cut(whole_run, folder / "part", "crossval", 5)
    return {
        "whole": write_report(whole_run, folder / "whole.html", assets=False),
        "partial": write_report(part, folder / "partial.html", assets=False),
    }


@pytest.fixture(params=["whole", "partial"])
def page(request, pages, browser):
    browser.look(1280)
    browser.open(pages[request.param])
    return browser


def test_the_console_is_silent_and_nothing_leaves_the_file(page):
    page.run("window.scrollTo(0, document.body.scrollHeight)")
    page.settle()
    assert page.complaints() == []
    (first, *rest) = page.requests()
    assert first.startswith("file:")
    assert all(url.startswith("data:image/svg+xml;base64,") for url in rest)


def test_the_policy_refuses_what_is_not_the_pages_own(page):
    page.run(
        "document.body.append(Object.assign(new Image(), {src: 'https://example.org/a.png'}));"
        "const s = document.createElement('script'); s.textContent = 'window.broken = 1';"
        "document.body.append(s)"
    )
    page.settle()
    assert page.run("window.broken") is None
    said = " ".join(page.complaints())
    assert "img-src" in said
    assert "script-src" in said


def column(page, n):
    return page.run(
        f"[...document.querySelectorAll('#tried tbody tr')].filter(r => !r.hidden)"
        f".map(r => r.cells[{n}].dataset.value ?? r.cells[{n}].textContent.trim())"
    )


def test_a_click_sorts(page):
    names = page.run("[...document.querySelectorAll('#tried thead th')].map(h => h.textContent)")
    nth = names.index("Validation mean")
    button = f"document.querySelectorAll('#tried thead button')[{nth}]"
    for order, reverse in (("descending", True), ("ascending", False)):
        # A click where the button is, as a person makes it.
        page.run(
            f"{button}.scrollIntoView({{block: 'center', inline: 'center', behavior: 'instant'}})"
        )
        x, y = page.run(
            f"(() => {{ const b = {button}.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2] })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        assert page.run(f"{button}.closest('th').getAttribute('aria-sort')") == order
        values = [float(one) for one in column(page, nth) if one]
        assert len(values) > 2
        assert values == sorted(values, reverse=reverse)
        # What has no value stands last.
        assert "" not in column(page, nth)[: len(values)]


def test_the_keyboard_sorts(page):
    page.run("document.querySelector('#tried thead button').focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
                  windowsVirtualKeyCode=13)  # fmt: skip
    names = column(page, 0)
    assert names == sorted(names, key=str.lower)


def test_typing_filters(page):
    everything = len(column(page, 0))
    page.run("document.getElementById('filter').focus()")
    page.call("Input.insertText", text="MMD marginal")
    shown = column(page, 0)
    assert 0 < len(shown) < everything
    assert all("mmd" in name for name in shown)
    assert page.run("document.getElementById('shown').textContent") == (
        f"{len(shown)} of {everything} rows"
    )


def test_every_picture_says_what_it_shows(page):
    alts = page.run("[...document.querySelectorAll('img, [role=img]')].map(i => i.alt)")
    assert alts
    assert all(len(alt) > 60 and any(c.isdigit() for c in alt) for alt in alts)
    sizes = page.run("[...document.images].map(i => [i.complete, i.naturalWidth])")
    assert all(complete and width > 100 for complete, width in sizes)


def test_partial_stands_on_the_first_screen(pages, browser):
    browser.look(390)
    top = "[...document.querySelectorAll('.stamp')].map(s => s.getBoundingClientRect().top)"
    browser.open(pages["partial"])
    (place,) = browser.run(top)
    assert 0 <= place < 200
    browser.run("window.scrollTo(0, 3000)")  # and it stays in sight
    (place,) = browser.run(top)
    assert 0 <= place < 200
    browser.open(pages["whole"])
    assert browser.run(top) == []


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
@pytest.mark.parametrize("which", ["whole", "partial"])
def test_the_page_is_no_wider_than_the_screen(pages, browser, which, width):
    browser.look(width)
    browser.open(pages[which])
    assert browser.run("document.documentElement.scrollWidth") <= width
    wide = "[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, pre') &&"
    wide += f" e.getBoundingClientRect().right > {width} + 1).map(e => e.outerHTML.slice(0, 80))"
    assert browser.run(wide) == []


@pytest.mark.parametrize(("width", "dark"), LOOKS)
@pytest.mark.parametrize("which", ["whole", "partial"])
def test_axe_finds_nothing_serious(pages, browser, which, width, dark):
    browser.look(width, dark)
    browser.open(pages[which])
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.serious() == []


def test_dark_paper_has_dark_pictures(pages, browser):
    sources = []
    for dark in (False, True):
        browser.look(1280, dark)
        browser.open(pages["whole"])
        sources.append(browser.run("[...document.images].map(i => i.currentSrc)"))
    assert all(light != dark for light, dark in zip(*sources, strict=True))


def test_it_can_be_printed(pages, browser):
    browser.look(1280)
    browser.open(pages["partial"])
    browser.look(1280, dark=True, media="print")
    hidden = browser.run("getComputedStyle(document.querySelector('nav')).display")
    assert hidden == "none"
    # On every sheet: a fixed element is printed on each.
    assert browser.run("getComputedStyle(document.querySelector('.stamp')).position") == "fixed"
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
