"""Draw the folds of eight subjects: ``python docs/folds_picture.py`` writes _static/folds.svg.

The picture is made from what `SubjectFolds` gives, not by hand. Colours are of Okabe and Ito's
palette, which the colour-blind can tell apart; letters say the same. Text takes the page's colour.
"""

from __future__ import annotations

from pathlib import Path

from autotransfer import SubjectFolds

TARGET = Path(__file__).parent / "_static" / "folds.svg"
NAMES = ["Anna", "Ben", "Carla", "Dev", "Eva", "Finn", "Gül", "Hugo"]
SIDES = {"train": ("#56B4E9", ""), "validation": ("#E69F00", "V"), "test": ("#009E73", "T")}
WORDS = {
    "train": "trains",
    "validation": "validates: chooses",
    "test": "tests: asked once",
}
WIDE, HIGH, LEFT, TOP = 74, 30, 64, 34


def picture() -> str:
    """Write the SVG as text."""
    parts = []
    for column, name in enumerate(NAMES):
        x = LEFT + WIDE * column + WIDE / 2 - 3
        parts.append(f'<text x="{x:g}" y="{TOP - 12}" text-anchor="middle">{name}</text>')
    for row, fold in enumerate(SubjectFolds().folds(NAMES)):
        y = TOP + HIGH * row
        parts.append(f'<text x="4" y="{y + 18}">fold {row + 1}</text>')
        for side, (colour, letter) in SIDES.items():
            for name in fold.subjects(side):
                x = LEFT + WIDE * NAMES.index(name)
                box = f'width="{WIDE - 6}" height="{HIGH - 6}" rx="4" fill="{colour}"'
                parts.append(f'<rect x="{x}" y="{y}" {box}/>')
                if letter:
                    at = f'x="{x + (WIDE - 6) / 2:g}" y="{y + 17}" text-anchor="middle"'
                    parts.append(f'<text {at} class="on">{letter}</text>')
    bottom = TOP + HIGH * len(NAMES) + 14
    x = LEFT
    for side, (colour, letter) in SIDES.items():
        parts.append(f'<rect x="{x}" y="{bottom}" width="22" height="18" rx="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 6}" y="{bottom + 14}" class="on">{letter}</text>')
        parts.append(f'<text x="{x + 28}" y="{bottom + 14}">{WORDS[side]}</text>')
        x += 28 + 7 * len(WORDS[side]) + 24
    width, height = LEFT + WIDE * len(NAMES), bottom + 26
    style = "text{font:14px sans-serif;fill:#777}.on{fill:#000;font-weight:bold}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    title = "<title>Folds of eight subjects: who trains, validates and tests</title>"
    return "\n".join([head, title, f"<style>{style}</style>", *parts, "</svg>", ""])


if __name__ == "__main__":
    TARGET.write_text(picture(), encoding="utf-8")
