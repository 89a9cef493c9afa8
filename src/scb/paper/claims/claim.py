"""What a claim is."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from inspect import signature
from typing import Any

import numpy as np

from scb.jobs.table import Table, at, pick

CLOSE = 0.05
"""A distance to the truth that counts as recovery."""


class Verdict(Enum):
    """How a claim fares."""

    HOLDS = "holds"
    CHANGED = "holds with a change"
    FAILS = "does not hold at the stated settings"


@dataclass(frozen=True)
class Outcome:
    """What was measured, with its spread; the verdict; and the change that it takes, or what happens instead."""

    measured: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """One row of the table."""

    where: str  # section, lemma or figure of the paper
    says: str  # the claim in a line
    figure: str  # the figure beside which it stands
    # its arguments are the tables that it needs, its docstring says what is looked at, and the criterion
    judge: Callable[..., Outcome]

    @property
    def check(self) -> str:
        """What is looked at, and the criterion."""
        text = self.judge.__doc__ or ""
        return text[0].lower() + text[1:].rstrip(".")

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the tables that ``judge`` takes."""
        return tuple(name.replace("_", " ") for name in signature(self.judge).parameters)


def beside(figure: str, *rows: tuple[str, str, Callable[..., Outcome]]) -> list[Claim]:
    """The claims that stand beside a figure, each as (where, says, judge)."""
    return [Claim(where=where, says=says, figure=figure, judge=judge) for where, says, judge in rows]


def ends(table: Table, step: int | None, *methods: str) -> list[Table]:
    """The state of each method after ``step`` steps, or at the end: one row a replicate, in the same order."""
    return [at(pick(table, method=method), step) for method in methods]


def verdict(literal: Any, changed: Any = False) -> Verdict:
    """Holds as the paper has it; or with the change; or not."""
    if literal:
        return Verdict.HOLDS
    return Verdict.CHANGED if changed else Verdict.FAILS


def spread(values: Any, digits: int = 3) -> str:
    """Median and quartiles."""
    low, middle, high = np.percentile(np.asarray(values, dtype=float), (25, 50, 75))
    return f"{middle:.{digits}g} [{low:.{digits}g}, {high:.{digits}g}]"


def share(hits: Any) -> str:
    """How many of how many."""
    return f"{int(np.sum(hits))} of {np.size(hits)}"


def mostly(hits: Any, least: float = 0.9) -> bool:
    """Whether at least this share of them are true."""
    return bool(np.size(hits)) and bool(np.mean(hits) >= least)


def log_slope(x: Any, y: Any) -> float:
    """The slope of log y in log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
