"""Numbers as people read them."""

from __future__ import annotations

from autotransfer.leakage.result import Estimate

NO_BREAK = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"


def percent(share: float | None, digits: int = 1) -> str:
    """Write a share.

    Examples
    --------
    >>> percent(0.6128).replace(NO_BREAK, " "), percent(None)
    ('61.3 %', 'none')
    """
    return "none" if share is None else f"{100 * share:.{digits}f}{NO_BREAK}%"


def points(share: float) -> str:
    """Write a difference of shares in percentage points, with its sign.

    Examples
    --------
    >>> points(0.032), points(-0.0004)
    ('+3.2', '0.0')
    """
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)


def interval(estimate: Estimate) -> str:
    """Write the ends of the interval of a difference."""
    return f"{points(estimate.low)} to {points(estimate.high)}"


def p_value(p: float) -> str:
    """Write a p.

    Examples
    --------
    >>> p_value(0.0312).replace(NO_BREAK, " "), p_value(0.0002).replace(NO_BREAK, " ")
    ('p = 0.031', 'p < 0.001')
    """
    text = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return text.replace(" ", NO_BREAK)


def people(n: int) -> str:
    """Write a number of people.

    Examples
    --------
    >>> people(1), people(12)
    ('1 person', '12 people')
    """
    return f"{n} person" if n == 1 else f"{n} people"


def count(n: int, what: str) -> str:
    """Write a number of things.

    Examples
    --------
    >>> count(1, "trial"), count(12, "trial")
    ('1 trial', '12 trials')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def hours(seconds: float) -> str:
    """Write a time.

    Examples
    --------
    >>> hours(40), hours(600), hours(9000)
    ('40 seconds', '10.0 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.1f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
