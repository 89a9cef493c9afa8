"""A drawing of the numbers that a verdict is based on: each number with its interval and the bound
that it was compared with.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from scb.paper.numbers import Number
from scb.paper.outcome import Comparison, Outcome

WIDTH, HEIGHT, MARGIN = 300, 18, 10
WIDE = 30
"""Numbers whose largest is this many times their smallest are drawn on a logarithmic scale."""


Bounds = tuple[tuple[str, float], ...]
"""Pairs of "≥", ">" or "≤" and a bound."""


class Row(NamedTuple):
    """One number: a description of the comparison, the numbers, and the picture."""

    label: str
    text: str
    unsure: bool
    picture: str


def forest(outcome: Outcome) -> list[Row]:
    """A row for each number that was compared, by ensemble; rows with the same bounds share a
    scale."""
    found = []
    for name, part in (outcome.ensembles or {"": outcome}).items():
        asked: dict[Number, list[Comparison]] = {}
        for one in part.comparisons:
            asked.setdefault(one.number, []).append(one)
        labels = _labels(part, asked)
        alone = name and len(asked) == 1
        for number, ones in asked.items():
            label = name if alone else ", ".join(filter(None, [name, labels.get(number, "")]))
            found.append((label, number, tuple((one.sign, one.bound) for one in ones)))
    return [
        Row(
            label,
            f"{number}; asked: {' and '.join(f'{sign} {bound:g}' for sign, bound in bounds)}",
            any(Comparison(number, *bound).unsure for bound in bounds),
            _picture(number, bounds, _scale([one[1] for one in found if one[2] == bounds], bounds)),
        )
        for label, number, bounds in found
    ]


def _labels(outcome: Outcome, compared: Iterable[Number]) -> dict[Number, str]:
    """The case under which the judge gave each number, with its name if two of a case were
    compared; empty if it gave the number nowhere."""
    given = {
        number: (case, name.replace("_", " "))
        for number in compared
        for case, numbers in outcome.numbers.items()
        for name, value in numbers.items()
        if value == (number if isinstance(value, Number) else number.estimate)
    }
    cases = Counter(case for case, _ in given.values())
    return {
        number: ": ".join(filter(None, (case, name if cases[case] > 1 or not case else "")))
        for number, (case, name) in given.items()
    }


def _scale(numbers: Iterable[Number], bounds: Bounds) -> Callable[[float], float]:
    """A function from values to places on the picture; what is not finite lies at the edge."""
    values = [x for number in numbers for x in number[:3] if math.isfinite(x)]
    ends = values + [bound for _, bound in bounds]
    low, high = min(ends), max(ends)
    turn = math.log if low > 0 and high > WIDE * low else float
    length = (turn(high) - turn(low)) or 1.0

    def place(x: float) -> float:
        if not math.isfinite(x):
            return float(WIDTH if x > 0 else 0)
        return MARGIN + (WIDTH - 2 * MARGIN) * (turn(x) - turn(low)) / length

    return place


def _picture(number: Number, bounds: Bounds, place: Callable[[float], float]) -> str:
    """The interval as a line, the estimate as a dot, each bound as a bar, and what was asked for as
    a shade."""
    middle = HEIGHT / 2
    low = max((place(bound) for sign, bound in bounds if sign in "≥>"), default=0.0)
    high = min((place(bound) for sign, bound in bounds if sign == "≤"), default=float(WIDTH))
    width = max(high - low, 0.0)
    parts = [f'<rect class="asked" x="{low:.1f}" width="{width:.1f}" height="{HEIGHT}"/>']
    parts += [f'<path class="bound" d="M{place(bound):.1f} 0v{HEIGHT}"/>' for _, bound in bounds]
    if not math.isnan(number.low):
        ends = f"M{place(number.low):.1f} {middle}H{place(number.high):.1f}"
        parts.append(f'<path class="interval" d="{ends}"/>')
    if not math.isnan(number.estimate):
        parts.append(f'<path class="estimate" d="M{place(number.estimate):.1f} {middle}h.01"/>')
    alt = f"{number}, beside {' and '.join(f'{bound:g}' for _, bound in bounds)}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{alt}">{"".join(parts)}</svg>'
    )
