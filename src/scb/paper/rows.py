"""The rows of tables that a judge uses: joined, divided by ensemble, or at the end of runs."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.jobs.table import Table, at, groups, pick
from scb.paper.outcome import Outcome


def with_ensemble(table: Table) -> Table:
    """A table of random tasks with the ensemble from which they are drawn, by default "strong"."""
    length = len(next(iter(table.values())))
    return {"ensemble": np.full(length, "strong")} | table


def joined(*given: Table | None) -> Table:
    """The rows of tables one after another, with the columns that all of them have; None is
    skipped."""
    tables = [table for table in given if table is not None]
    names = [name for name in tables[0] if all(name in table for table in tables)]
    return {name: np.concatenate([table[name] for table in tables]) for name in names}


def both_ends(T: NDArray[Any], found: NDArray[Any]) -> dict[str, Any]:
    """What was found at the smallest and at the largest T, under the names that claims use."""
    return {"first": found[0], "last": found[-1], "T": T[0], "T_last": T[-1]}


def in_ensembles(judge: Callable[[Table], Outcome], *given: Table | None) -> Outcome:
    """The outcome in each ensemble that occurs in the tables. If a table does not name the
    ensemble, it is "strong"."""
    rows = joined(*(with_ensemble(table) for table in given if table is not None))
    parts = {name: judge(mine) for name, mine in groups(rows, "ensemble")}
    return Outcome.together(parts) if len(parts) > 1 else next(iter(parts.values()))


def ends(table: Table, step: int | None, *methods: str) -> list[Table]:
    """The state of each method after ``step`` steps, or at the end: one row per replicate, in the
    same order.
    """
    return [at(pick(table, method=method), step) for method in methods]
