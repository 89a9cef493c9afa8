"""Baselines at their best setting, which is the learning rate that needs the fewest samples."""

from typing import Any

import numpy as np

from scb.jobs.table import Table, pick, values, where
from scb.paper.numbers import median


def best_setting(table: Table, setting: str, until: str = "samples_10") -> Table:
    """The rows of the best value of the column ``setting``, which has the smallest median of the
    column ``until``.

    By default, ``until`` is the number of samples until a tenth of the excess loss is left. If no
    setting gets there, the number of samples until half is left decides, and then the loss that is
    left at the end.
    """

    def rank(value: Any) -> tuple[float, ...]:
        rows = pick(table, **{setting: value})
        return tuple(median(rows[column]) for column in (until, "samples_50", "left"))

    return pick(table, **{setting: min(values(table, setting), key=rank)})


def transferred(table: Table, keep: str, overlap: str) -> Table:
    """The rows of transformers that keep the given part of a model of a task with the given
    overlap; for long contexts, of a task with 128 positions.
    """
    rows = pick(table, study="transfer")
    names = [f"{keep}, overlap {overlap}", f"{keep} of T = 128, overlap {overlap}"]
    return where(rows, np.isin(rows["variant"], names))


def chosen_decoders(table: Table) -> Table:
    """One row for each length and task, at the learning rate chosen on its held-out tokens;
    ``share`` is the share of the excess loss that is left.
    """
    rows = []
    for length in values(table, "length"):
        for i in np.unique(table["replicate"]):
            mine = np.flatnonzero((table["length"] == length) & (table["replicate"] == i))
            rows.append(mine[np.argmin(table["valid"][mine])])
    found = where(table, np.array(rows))
    return found | {"share": found["nats"] / found["trivial"]}
