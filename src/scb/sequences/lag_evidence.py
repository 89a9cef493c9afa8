"""The evidence for each lag as columns of a table, computed on first use."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np

from scb.arrays import Array
from scb.mixture.evidence import PendingEvidence


def lag_evidence(pending: PendingEvidence) -> Mapping[str, Array]:
    """The columns nats, delta_bic, influence_stderr and nats_bound of ``LagModel.table``.

    Computing these columns takes longer than the fit. If the rows of the fit are in this process
    and small enough to be kept, the columns are therefore computed on first use; otherwise they are
    computed at once.
    """
    kept = pending.without_samples()
    return _columns(pending) if kept is None else LazyColumns(partial(_columns, kept))


def _columns(pending: PendingEvidence) -> dict[str, Array]:
    evidence = pending.find()
    nats, bounds, costs, errors = (
        # A longer lag is an earlier position
        np.concatenate([values[::-1] for values in column] or [np.zeros(0)])
        for column in (
            evidence.nats,
            evidence.bounds,
            evidence.costs,
            evidence.influence_errors,
        )
    )
    return {
        "nats": nats,
        "delta_bic": 2 * nats - costs,
        "influence_stderr": errors,
        "nats_bound": bounds,
    }


class LazyColumns(Mapping[str, Array]):
    """Columns that are computed on first use. Pickling or copying them produces a plain dict."""

    def __init__(self, compute: Callable[[], dict[str, Array]]) -> None:
        self._compute = compute

    @cached_property
    def _columns(self) -> dict[str, Array]:
        # This also releases the rows that were kept for the computation
        return vars(self).pop("_compute")()

    def __getitem__(self, name: str) -> Array:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._columns,)
