"""What a notebook shows: escaped, small, and the same in light and dark."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn

import autotransfer as at
from autotransfer import notebook
from autotransfer.data.checks import view
from autotransfer.notebook import Card, Grid

EVIL = '<script>alert("x")</script>\x1b[31m\u202e'


class Tags(HTMLParser):
    """See that what is opened is closed, and collect the text."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), []

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    tags = Tags()
    tags.feed(html)
    tags.close()
    assert tags.open == []
    assert tags.seen <= {"div", "span", "strong", "code", "progress"} | {
        *("table", "thead", "tbody", "tr", "th", "td")
    }
    return " ".join("".join(tags.text).split())


def make(n_subjects=3, n_trials=12, **more):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_subjects * n_trials, 2, 32)).astype(np.float32)
    y = np.tile(np.arange(n_trials) % 2, n_subjects)
    return at.SubjectDataset(X, y, np.repeat(np.arange(n_subjects), n_trials), **more)


@pytest.fixture(scope="module")
def fitted():
    data = make(classes=["fist", EVIL.replace("`", "")], channels=["C3", "C4"], sfreq=64)
    return at.CensoredClassifier(max_epochs=1, random_state=0, verbose=False).fit(data)


def test_every_value_of_a_card_is_escaped():
    grid = Grid(EVIL, [EVIL], [EVIL], [[EVIL]], 1)
    card = Card(EVIL, [EVIL], [(EVIL,) * 3], [(EVIL,) * 2], [f"`{EVIL}`"], grid, [(EVIL,) * 2])
    html = notebook.html(card)
    assert read(html).count("alert") == 14
    assert not re.search("<script|\x1b|\u202e", html)
    for html in (notebook.progress(EVIL, 1, 2, [EVIL]), notebook.line(EVIL)):
        assert "alert" in read(html)
        assert not re.search("<script|\x1b|\u202e", html)


def test_a_card_has_no_colour_of_text_or_ground_that_would_not_suit_the_other_theme():
    grid = Grid("a", ["b"], ["c"], [[1]], 1)
    html = notebook.html(Card("t", ["w"], [("a",) * 3], [("a",) * 2], ["s"], grid, [("a",) * 2]))
    for name, value in re.findall(r"(?<![\w-])(color|background): ([^;\"]+)", html):
        assert value in ("inherit", "transparent") or re.match(r"rgba\(.*, 0?\.[0-4]", value), name


def test_a_grid_is_darker_where_there_are_more():
    grid = Grid("a", ["b"], ["c"], [[1]], 10)
    assert [grid.shade(value) for value in (0, 5, 10, 11, "all")] == [0, 18, 35, 0, 0]


def test_a_data_set_says_what_it_is_and_that_nothing_is_wrong():
    text = read(make(sfreq=64, unit="uV", channels=["C3", "C4"])._repr_html_())
    wanted = ["people3", "trials36", "2: C3, C4", "32 (64 Hz, 0.5 s a trial)", "unituV", "06612"]
    wanted.append("Nothing wrong was found.")
    assert [words for words in wanted if words not in text] == []


def test_a_data_set_says_what_check_says():
    data = make()
    data.X[4, 1] = 0.5
    text = read(data._repr_html_())
    assert str(at.check(data)) in text
    assert "Nothing wrong" not in text


def test_names_in_the_data_are_escaped():
    data = make(classes=[EVIL, "b"], subjects={0: EVIL, 1: "b", 2: "c"}, channels=[EVIL, "x"])
    html = data._repr_html_()
    assert "alert" in read(html)
    assert not re.search("<script|\x1b|\u202e", html)


def test_signals_that_are_large_or_in_a_file_are_not_read(tmp_path, monkeypatch):
    data = make()
    path = tmp_path / "X.npy"
    np.save(path, np.full_like(data.X, np.nan))
    there = np.load(path, mmap_mode="r")
    for signals in (there, np.asarray(there)):
        mapped = at.SubjectDataset(signals, data.y, data.subject)
        assert "were not read" in read(mapped._repr_html_())
    monkeypatch.setattr(view, "READ_BYTES", 100)
    assert "were not read" in read(data._repr_html_())


def test_many_people_and_classes_make_a_small_view():
    n = 6000
    X = np.zeros((n, 1, 4), np.float32)
    data = at.SubjectDataset(X, np.arange(n) % 30, np.arange(n) // 3)
    html = data._repr_html_()
    text = read(html)
    assert len(html) < 200_000
    assert "1964 more" in text
    assert "median" in text
    assert "+10" in text


def test_cells_that_cannot_be_counted_are_told():
    n = 20_000
    data = at.SubjectDataset(np.zeros((n, 1, 2), np.float32), np.arange(n), np.arange(n))
    assert "too many to count" in read(data._repr_html_())


def test_a_selection_has_a_view():
    assert "people1" in read(make().select(subjects=[1])._repr_html_())


@pytest.mark.parametrize("estimator", [at.CensoredClassifier(), at.AutoTransfer()])
def test_an_estimator_that_is_not_fitted_has_the_diagram_of_scikit_learn(estimator):
    bundle = estimator._repr_mimebundle_()
    assert bundle["text/plain"] == repr(estimator)
    assert "sk-container" in bundle["text/html"]
    assert "What it takes" not in bundle["text/html"]
    assert "sk-container" in estimator._repr_html_()


@pytest.mark.parametrize("several", [False, True])
def test_a_fitted_one_says_what_it_takes_and_gives(fitted, several):
    model = at.Ensemble([fitted, fitted]) if several else fitted
    for html in (model._repr_mimebundle_()["text/html"], model._repr_html_()):
        assert "sk-container" in html
        card = html[html.index("What it takes") :]
        assert "trials of 2 channels x 32 time points at 64 Hz" in card
        assert "<code>fist</code>" in card
        assert "<script" not in card


def test_scikit_learns_setting_for_text_is_kept(fitted):
    with sklearn.config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert set(fitted._repr_mimebundle_()) == {"text/plain"}


CELLS = (
    """
from concurrent.futures import ThreadPoolExecutor
import autotransfer as at
from autotransfer.search import Space
from autotransfer.search.settings.recipe import Dimension, RecipeSpace
data = at.make_subjects(n_subjects=4, n_trials=12, n_channels=2, n_times=64, random_state=1)
tiny = {"F1": 2, "kernel_length": 16, "depthwise_kernel_length": 4}
data
""",
    """
clf = at.CensoredClassifier(encoder_options=tiny, max_epochs=150, device="cpu", random_state=0)
clf.fit(data)
""",
    """
steps = Dimension("steps", ({"n_steps": 4}, {"n_steps": 8}), 0.01, (1, 2))
auto = at.AutoTransfer(
    out="run", recipes=RecipeSpace([steps]), space=Space(["mmd"], ["marginal"], {"mmd": [1.0]}),
    classifier=at.CensoredClassifier(encoder_options=tiny, device="cpu"), n_folds=3,
    portraits=False, levels=False, engine=ThreadPoolExecutor(1),
)
auto.fit(data)
""",
)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_in_a_kernel_progress_is_one_output_that_changes_in_place(tmp_path):
    """As a person would run it: a bar, not a thousand lines, and views instead of text."""
    if os.environ.get("AUTOTRANSFER_NEED_EXTRAS") != "1":
        pytest.importorskip("nbconvert")
        pytest.importorskip("ipykernel")
    import nbformat
    from nbconvert.preprocessors import ExecutePreprocessor

    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    book = nbformat.v4.new_notebook(cells=cells)
    runner = ExecutePreprocessor(timeout=300, kernel_name="python3", coalesce_streams=True)
    runner.preprocess(book, {"metadata": {"path": str(tmp_path)}})
    shown, trained, ran = (cell.outputs for cell in book.cells)
    (one,) = shown
    assert "people" in read(one["data"]["text/html"])
    bar, model = trained
    assert re.fullmatch(r"training 150/150, \d+ s", bar["data"]["text/plain"])
    assert read(bar["data"]["text/html"]) == bar["data"]["text/plain"]
    assert "What it takes" in model["data"]["text/html"]
    # What a run says, one bar for all its stages, and what came of it. Warnings go to stderr.
    kinds = [(out["output_type"], out.get("name")) for out in ran]
    assert kinds.count(("display_data", None)) == 1
    assert kinds[-1] == ("execute_result", None)
    assert len(ran) <= 5
    said = "".join(out["text"] for out in ran if out.get("name") == "stdout")
    assert "Expect balanced accuracy" in said
    assert len(said.splitlines()) < 20
    assert "auto.predict(X_new)" in ran[-1]["data"]["text/html"]
    assert "IProgress" not in str(ran)
    assert len(nbformat.writes(book)) < 250_000
