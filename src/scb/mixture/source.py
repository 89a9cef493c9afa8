"""Where data come from: one object in this process, or a collection of Dask; both are read piece by piece by the same functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scb.mixture.data import Here

if TYPE_CHECKING:
    from scb.mixture.dask import Workers


@dataclass(frozen=True)
class Source:
    """Data in pieces.

    Attributes
    ----------
    executor : where the pieces will be held
    kind : "here", or "array", "rows", "bag", "delayed" for collections of Dask
    read : (function, *same) → what the function makes of (piece, skipped, *same), held, for every piece; ``skipped`` is how many of
        the piece's first tokens are repeated from the piece before it
    length : of all pieces of an array together
    """

    executor: Here | Workers
    kind: str
    read: Callable[..., list[Any]]
    length: int | None = None

    @classmethod
    def here(cls, data: Any) -> Source:
        """One piece in this process."""
        return cls(Here(), "here", lambda function, *same: [function(data, 0, *same)])


def is_dask(data: Any) -> bool:
    """Whether data is a collection of Dask, or a list of them. Dask is not imported to find out."""
    first = data[0] if isinstance(data, list | tuple) and data else data
    return type(first).__module__.split(".")[0] == "dask"
