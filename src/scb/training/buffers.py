"""Memory for the arrays that an engine returns, which is used again."""

import numpy as np

from scb.arrays import Array


class Buffers:
    """Copies of arrays of one shape, in blocks of memory that are reused, because fresh pages of
    memory can cost as much time as an engine's steps.

    A block is lent through a ``_Loan``, the base of the array that the caller gets. NumPy keeps the
    base of an array, or the array itself, alive for every view, memoryview or other buffer made
    from it. A loan therefore ends only when the last of these views and buffers is gone, and
    nothing that can still be read is ever overwritten.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._free: list[Array] = []

    def copy(self, A: Array) -> Array:
        """Return a column-contiguous copy of A, which is the caller's as long as anything refers to
        it.
        """
        block = self._free.pop() if self._free else np.empty(self.shape, order="F")
        lent = np.asarray(_Loan(block, self._free))
        np.copyto(lent, A)
        return lent

    def __reduce__(self) -> "tuple[type[Buffers], tuple[tuple[int, int]]]":
        """Pickles and deep copies begin without blocks."""
        return Buffers, (self.shape,)


class _Loan:
    """The owner of a block while it is lent, which returns it when the last array that refers to it
    is gone.
    """

    def __init__(self, block: Array, free: list[Array]) -> None:
        self._block = block
        # Not the ``Buffers``: they may be collected before the loan, or after it
        self._free = free
        self.__array_interface__ = block.__array_interface__

    def __del__(self) -> None:
        if len(self._free) < 2:  # more are not worth their memory
            self._free.append(self._block)
