"""Memory for large answers, used again once nobody holds what was handed out."""

from __future__ import annotations

import numpy as np

from scb.geometry import Array


class Buffers:
    """Copies of large arrays, in blocks that come back by themselves: fresh pages can cost as much as the steps of an engine.

    Each block is lent through a ``_Loan``, the base of the array that the user gets. NumPy keeps the base of an array, or the array
    itself, alive for every view, memoryview or buffer made from it. So the loan ends when the last of them is gone, whoever holds
    it, and not before: nothing that can still be read is ever overwritten.
    """

    def __init__(self) -> None:
        self._free: list[Array] = []

    def copy(self, A: Array) -> Array:
        """A copy of A, column-contiguous; it belongs to the caller for as long as anyone holds it."""
        block = None
        while self._free and block is None:
            free = self._free.pop()
            if free.shape == A.shape:  # one of another shape is not asked for any more, and goes
                block = free
        if block is None:
            block = np.empty(A.shape, order="F")
        lent = np.asarray(_Loan(block, self._free))
        np.copyto(lent, A)
        return lent

    def __reduce__(self) -> tuple[type[Buffers], tuple[()]]:
        """Pickles and deep copies begin without blocks: nothing is worth carrying over."""
        return Buffers, ()


class _Loan:
    """Owner of a block while it is lent. It dies with the last array that needs the block, and puts it among the free ones."""

    _KEPT = 2

    def __init__(self, block: Array, free: list[Array]) -> None:
        self._block = block
        self._free = free
        self.__array_interface__ = block.__array_interface__

    def __del__(self) -> None:
        if len(self._free) < self._KEPT:
            self._free.append(self._block)
