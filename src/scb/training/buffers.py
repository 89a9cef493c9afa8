"""Memory for large answers, used again once nobody holds what was handed out."""

import numpy as np

from scb.geometry import Array


class Buffers:
    """Copies of arrays of one shape, in blocks that come back by themselves: fresh pages can cost as much as an engine's steps.

    A block is lent through a ``_Loan``, the base of the array that the caller gets. NumPy keeps the base of an array, or the array
    itself, alive for every view, memoryview or other buffer made from it. So a loan ends when the last of them is gone, whoever
    holds it, and not before: nothing that can still be read is ever overwritten.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._free: list[Array] = []

    def copy(self, A: Array) -> Array:
        """A copy of A, column-contiguous; it belongs to the caller for as long as anyone holds it."""
        block = self._free.pop() if self._free else np.empty(self.shape, order="F")
        lent = np.asarray(_Loan(block, self._free))
        np.copyto(lent, A)
        return lent

    def __reduce__(self) -> "tuple[type[Buffers], tuple[tuple[int, int]]]":
        """Pickles and deep copies begin without blocks."""
        return Buffers, (self.shape,)


class _Loan:
    """Owner of a block while it is lent. It dies with the last array that needs the block, and puts it among the free ones."""

    _MOST_FREE = 2

    def __init__(self, block: Array, free: list[Array]) -> None:
        self._block = block
        self._free = free  # not the ``Buffers``: they may be collected before the loan, or after it
        self.__array_interface__ = block.__array_interface__

    def __del__(self) -> None:
        if len(self._free) < self._MOST_FREE:
            self._free.append(self._block)
