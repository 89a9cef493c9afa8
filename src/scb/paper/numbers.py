"""Numbers with their uncertainty (an estimate, an interval and a count): how they are computed and
how they are written."""

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

    The format determines how a number is written. ``2``, or no format, writes significant digits;
    ``share`` writes a count such as "45 of 50"; ``to`` followed by a Python format writes the ends
    of the interval; and a Python format alone writes the estimate and, if there is one, the
    interval.

    Attributes
    ----------
    estimate : float
        The estimate. The estimate is infinite if the event never happened, and NaN if nothing was
        observed.
    low, high : float, default NaN
        The ends of the interval: the quartiles of a spread, the range of a set or, in all other
        cases, 95 % confidence limits.
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

    @staticmethod
    def exact(x: float) -> "Number":
        """Return an exact number.

        Parameters
        ----------
        x : float
            The number.

        Returns
        -------
        Number

        Examples
        --------
        >>> from scb.paper.numbers import Number
        >>> Number.exact(2.0)
        Number(estimate=2.0, low=2.0, high=2.0, n=0)
        """
        return Number(x, x, x)

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
    if np.isnan(x) or np.isneginf(x):
        return "–"
    text = f"{x:.{form or 2}g}"
    return "never" if np.isinf(x) else f"{float(text):,.0f}" if abs(x) >= 100 else text


def spread(values: Any) -> Number:
    """Return the median and the quartiles.

    Each of these three numbers is infinite if any value used to compute it is infinite.

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
    """The median, which is infinite if half of the values are."""
    return spread(values).estimate


def span(values: Any) -> Number:
    """Return the median, with the smallest and the largest value as its interval.

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


def middle(values: Any) -> Number:
    """Return the median with its 95 % interval, whose ends are two of the sorted observations.

    With fewer than six observations, the interval is unbounded.

    Parameters
    ----------
    values : (n,) array
        The observations; infinite observations rank above all others.

    Returns
    -------
    Number

    Examples
    --------
    >>> from scb.paper.numbers import middle
    >>> f"{middle(range(1, 22)):.0f}", f"{middle([1, 2, 3]):.0f}"
    ('11 [6, 16]', '2 [-inf, inf]')
    """
    from scipy.special import bdtr

    found = np.sort(np.asarray(values, dtype=float))
    n = found.size
    # As many as possible may be left out on either side
    outside = next((k for k in range(n // 2, 0, -1) if bdtr(k - 1, n, 0.5) <= 0.025), 0)
    low, high = (found[outside - 1], found[n - outside]) if outside else (-np.inf, np.inf)
    return Number(median(found), float(low), float(high), n)


def average(values: Any) -> Number:
    """Return the mean with Student's 95 % interval, which is unbounded for a single observation.

    Parameters
    ----------
    values : (n,) array
        The observations.

    Returns
    -------
    Number

    Examples
    --------
    >>> from scb.paper.numbers import average
    >>> f"{average([1, 2, 3]):.1f}"
    '2.0 [-0.5, 4.5]'
    """
    from scipy.special import stdtrit

    found = np.asarray(values, dtype=float)
    if found.size < 2:
        return Number(float(np.mean(found)) if found.size else np.nan, -np.inf, np.inf, found.size)
    mean = float(found.mean())
    half = float(stdtrit(found.size - 1, 0.975) * found.std(ddof=1) / np.sqrt(found.size))
    return Number(mean, mean - half, mean + half, found.size)


def over(above: Number, below: Number) -> Number:
    """Return one positive number divided by another, with the range that their intervals allow.

    Parameters
    ----------
    above, below : Number
        The two numbers.

    Returns
    -------
    Number

    Examples
    --------
    >>> from scb.paper.numbers import Number, over
    >>> f"{over(Number(6, 4, 8), Number(2, 1, 4)):.0f}"
    '3 [1, 8]'
    """
    parts = ((above.estimate, below.estimate), (above.low, below.high), (above.high, below.low))
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate, low, high = (float(np.divide(x, y)) for x, y in parts)
    return Number(estimate, low, high, min(above.n, below.n))


def minus(number: Number, other: Number) -> Number:
    """Return one number minus another, with the range that their intervals allow.

    Parameters
    ----------
    number, other : Number
        The two numbers.

    Returns
    -------
    Number

    Examples
    --------
    >>> from scb.paper.numbers import Number, minus
    >>> f"{minus(Number(6, 4, 8), Number(2, 1, 4)):.0f}"
    '4 [0, 7]'
    """
    ends = (number.estimate - other.estimate, number.low - other.high, number.high - other.low)
    return Number(*ends, min(number.n, other.n))
