"""Numbers with their doubt: an estimate, an interval and a count; how they are made, and how they
are written."""

from typing import Any, NamedTuple

import numpy as np

from scb.jobs.table import wilson

CLOSE = 0.05
"""A distance to the truth that counts as recovery."""
MOST = 0.9
"""The share of tasks in which something has to be so, where a claim speaks of all of them."""
NEVER = 1e300
"""Stands for infinity where numbers are interpolated."""


class Number(NamedTuple):
    """An estimate with its interval and the number of observations behind it.

    A format says how it is written: ``2`` or nothing for significant digits, ``share`` for so many
    of so many, ``to`` and a format of Python for the ends of the interval, and a format of Python
    for the estimate and, if there is one, the interval.

    Attributes
    ----------
    estimate : float
        The estimate; infinite where something never happened, NaN where nothing was observed.
    low, high : float, default NaN
        The ends of the interval: quartiles of a median, a 95 % interval of a share or an exponent,
        the range of a set.
    n : int, default 0
        The number of observations; 0 if they are not counted.

    Examples
    --------
    >>> from scb.paper.numbers import Number
    >>> f"{Number(0.9, 0.786, 0.957, n=50):share}"
    '45 of 50 (79–96 %)'
    >>> number = Number(2, 1.5, 2.5)
    >>> f"{number}", f"{number:.2f}", f"{number:to .1f}"
    ('2 [1.5, 2.5]', '2.00 [1.50, 2.50]', '1.5 to 2.5')
    """

    estimate: float
    low: float = np.nan
    high: float = np.nan
    n: int = 0

    def __format__(self, form: str) -> str:
        if form == "share":
            hits = f"{round(self.estimate * self.n) if self.n else 0} of {self.n}"
            return hits + f" ({100 * self.low:.0f}–{100 * self.high:.0f} %)" if self.n else hits
        if form.startswith("to "):
            return f"{_written(self.low, form[3:])} to {_written(self.high, form[3:])}"
        text = _written(self.estimate, form)
        if np.isnan(self.low) or not np.isfinite(self.estimate):
            return text
        return f"{text} [{_written(self.low, form)}, {_written(self.high, form)}]"


def _written(x: float, form: str) -> str:
    """One number; "never" if it is infinite and has significant digits, a dash if there is none."""
    if form and not form.isdigit():
        return format(x, form)
    if np.isnan(x):
        return "–"
    text = f"{x:.{form or 2}g}"
    return "never" if np.isinf(x) else f"{float(text):,.0f}" if abs(x) >= 100 else text


def spread(values: Any) -> Number:
    """Return the median and the quartiles.

    Each of them is infinite as soon as a value that it is made of is.

    Parameters
    ----------
    values : (n,) array
        The observations.

    Returns
    -------
    Number

    Examples
    --------
    >>> from scb.paper.numbers import spread
    >>> f"{spread([1, 2, 3])}"
    '2 [1.5, 2.5]'
    """
    if np.size(values) == 0:
        return Number(np.nan)
    found = np.percentile(np.minimum(np.asarray(values, dtype=float), NEVER), (25, 50, 75)).tolist()
    low, middle, high = (x if x < NEVER / 1e3 else np.inf for x in found)
    return Number(middle, low, high, np.size(values))


def median(values: Any) -> float:
    """The median, infinite where half of the values are."""
    return spread(values).estimate


def span(values: Any) -> Number:
    """Return the median, with the least and the largest value as its interval.

    Parameters
    ----------
    values : (n,) array
        The observations.

    Returns
    -------
    Number

    Examples
    --------
    >>> from scb.paper.numbers import span
    >>> f"{span([1, 5, 30]):to .0f}"
    '1 to 30'
    """
    found = np.asarray(values, dtype=float)
    return Number(float(np.median(found)), float(found.min()), float(found.max()), found.size)


def share(hits: Any) -> Number:
    """Return the share of observations that are true, with Wilson's 95 % interval.

    Parameters
    ----------
    hits : (n,) array of bool
        The observations.

    Returns
    -------
    Number

    Examples
    --------
    >>> from scb.paper.numbers import share
    >>> f"{share([True] * 45 + [False] * 5):share}"
    '45 of 50 (79–96 %)'
    """
    count = np.size(hits)
    low, high = wilson(np.sum(hits), np.array(count))
    return Number(float(np.mean(hits)) if count else np.nan, float(low), float(high), count)


def mostly(hits: Any, least: float = MOST) -> bool:
    """Whether at least this share of them are true; false if there are none."""
    return bool(np.size(hits)) and bool(np.mean(hits) >= least)


def log_slope(x: Any, y: Any) -> float:
    """The slope of log y in log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
