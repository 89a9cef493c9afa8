"""What each lag of a model is worth, found when it is first asked for: a fit itself does not need
it, and it takes longer.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np

from scb.arrays import Array
from scb.mixture.evidence import PendingEvidence


def lag_evidence(pending: PendingEvidence, n: int) -> Mapping[str, Array]:
    """Columns nats, delta_bic and influence_stderr, in the order of ``LagModel.table``, of a fit to
    n windows.

    They are found later where the rows of the fit are here and small enough to be kept until then;
    else at once.
    """
    alone = pending.without_samples()
    return _columns(pending, n) if alone is None else LaterColumns(partial(_columns, alone, n))


def _columns(pending: PendingEvidence, n: int) -> dict[str, Array]:
    evidence = pending.find()
    nats, parameters, errors = (
        # a longer lag is an earlier position
        np.concatenate([one[::-1] for one in columns] or [np.zeros(0)])
        for columns in (evidence.nats, evidence.parameters, evidence.influence_errors)
    )
    return {
        "nats": nats,
        "delta_bic": 2 * nats - np.log(n) * parameters,
        "influence_stderr": errors,
    }


class LaterColumns(Mapping[str, Array]):
    """Columns that are found when the first of them is looked at. They are pickled and copied as a
    dict of what was found.
    """

    def __init__(self, find: Callable[[], dict[str, Array]]) -> None:
        self._find: Callable[[], dict[str, Array]] | None = find

    @cached_property
    def _found(self) -> dict[str, Array]:
        assert self._find is not None
        found = self._find()
        self._find = None  # the rows that were kept for it are not needed any more
        return found

    def __getitem__(self, name: str) -> Array:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._found,)
