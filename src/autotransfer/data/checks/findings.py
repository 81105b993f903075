"""What the checks report: findings, each with words and the numbers behind them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from autotransfer.errors import (
    AutoTransferError,
    DataError,
    DataWarning,
    LabelError,
    NonFiniteDataError,
    SmallCellWarning,
    SubjectError,
    SubjectLeakageError,
    join_some,
)

ERRORS: dict[str, type[AutoTransferError]] = {
    "nan": NonFiniteDataError,
    "infinite": NonFiniteDataError,
    "few-subjects": SubjectError,
    "one-class": LabelError,
    "class-in-one-subject": LabelError,
    "copy-across-subjects": SubjectLeakageError,
    "overlap-across-subjects": SubjectLeakageError,
}
"""Findings that stop the work, and the error each raises."""

WARNINGS: dict[str, type[DataWarning]] = {
    **dict.fromkeys(("flat-channel", "flat-trial", "clipped", "label-like"), DataWarning),
    **dict.fromkeys(("copy-within-subject", "recording-across-subjects"), DataWarning),
    **dict.fromkeys(("swapped-axes", "emg-normalised-by-channel"), DataWarning),
    "missing-class": DataWarning,
    "small-cell": SmallCellWarning,
}
"""Findings that leave the data usable, and the warning each issues."""

SHOWN = 8


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or doubtful.

    Parameters
    ----------
    level : {"error", "warning"}
        Whether the data cannot be used as they are.
    name : str
        What it is; a key of `ERRORS` or `WARNINGS`.
    message : str
        In words: where it is, and what to do.
    subjects, channels, classes : tuple
        Ids of the subjects, names of the channels, labels of the classes it concerns.
    trials : tuple of int
        Numbers of the trials it concerns, from 0.
    """

    level: Literal["error", "warning"]
    name: str
    message: str
    subjects: tuple[Any, ...] = ()
    channels: tuple[str, ...] = ()
    classes: tuple[Any, ...] = ()
    trials: tuple[int, ...] = ()


def error(name: str, message: str, **where: tuple[Any, ...]) -> Finding:
    """Make a finding that stops the work."""
    return Finding("error", name, message, **where)


def warning(name: str, message: str, **where: tuple[Any, ...]) -> Finding:
    """Make a finding that leaves the data usable."""
    return Finding("warning", name, message, **where)


class Report(Sequence[Finding]):
    """The findings about a data set, errors first; ``str(report)`` is readable text.

    Examples
    --------
    >>> report = Report([warning("small-cell", "Subject 3 has 2 trials of class 0.")])
    >>> print(report)
    warning (small-cell): Subject 3 has 2 trials of class 0.
    >>> report.errors
    []
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = sorted(findings, key=lambda finding: finding.level != "error")

    def __len__(self) -> int:
        return len(self._findings)

    def __getitem__(self, which: Any) -> Any:
        return self._findings[which]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    def __repr__(self) -> str:
        return f"Report({len(self.errors)} errors, {len(self.warnings)} warnings)"

    def __str__(self) -> str:
        if not self._findings:
            return "Nothing wrong was found."
        return "\n".join(_lines(self._findings))

    @property
    def errors(self) -> list[Finding]:
        """Findings that stop the work."""
        return [finding for finding in self._findings if finding.level == "error"]

    @property
    def warnings(self) -> list[Finding]:
        """Findings that leave the data usable."""
        return [finding for finding in self._findings if finding.level == "warning"]

    def named(self, name: str) -> list[Finding]:
        """List the findings of one name."""
        return [finding for finding in self._findings if finding.name == name]

    def raise_errors(self) -> None:
        """Raise the error of the first finding, with all errors in its message, if there is one."""
        errors = self.errors
        if errors:
            kind = ERRORS.get(errors[0].name, DataError)
            raise kind("\n".join(_lines(errors, plain=True)))

    def warn(self) -> None:
        """Issue the warnings, one for each name."""
        for name in dict.fromkeys(finding.name for finding in self.warnings):
            text = "\n".join(_lines(self.named(name), plain=True))
            warnings.warn(text, WARNINGS.get(name, DataWarning), stacklevel=2)


def _lines(findings: Sequence[Finding], plain: bool = False) -> Iterator[str]:
    """Write findings as text, at most `SHOWN` of each name: a thousand people give a long list."""
    for name in dict.fromkeys(finding.name for finding in findings):
        same = [finding for finding in findings if finding.name == name]
        for finding in same[:SHOWN]:
            yield finding.message if plain else f"{finding.level} ({name}): {finding.message}"
        if len(same) > SHOWN:
            subjects = dict.fromkeys(s for finding in same[SHOWN:] for s in finding.subjects)
            yield f"... and {len(same) - SHOWN} more ({name}), subjects {join_some([*subjects])}."
