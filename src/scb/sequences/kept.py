"""What is kept of a stream of symbols: the whole stream while it fits, then a sample of its blocks.

A stream is cut into blocks of neighbours, each with the ``max_lag`` symbols before it as history.
Each block draws a rank when it begins. If there are too many blocks, the blocks with the highest
ranks are dropped. Every block, however old, therefore has the same chance of being kept (bottom-k
sampling), and the sample does not depend on how the stream was cut into pieces.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scb.inputs import InputError, integer
from scb.mixture.data import Data
from scb.sequences.coding import united_classes, windows_of_codes
from scb.sequences.symbols import MISSING, checked_classes, factorise, recoded
from scb.sequences.tables import Arrays, Classes, Sequences

MEMORY = 5_000_000  # symbols, the default
_CODE = np.int16  # there are at most 4096 symbols


@dataclass
class KeptSymbols:
    """Blocks of a stream, in its order."""

    max_lag: int
    memory: int  # how many symbols may be kept
    # All symbols seen so far, sorted
    classes: Classes = field(default_factory=lambda: np.zeros(0))
    # Codes of symbols; the first ``max_lag`` are history only
    blocks: list[NDArray[np.int16]] = field(default_factory=list)
    ranks: list[float] = field(default_factory=list)  # of the blocks
    limit: float = 1.0  # blocks with a higher rank are not kept
    begun: int = 0  # blocks so far
    seen: int = 0  # symbols so far
    # The last block, which the next piece may continue, and its rank
    last: NDArray[np.int16] | None = None
    last_rank: float = 0.0

    def __post_init__(self) -> None:
        integer("memory", self.memory, low=1000)

    @property
    def length(self) -> int:
        """The number of symbols in a whole block, such that at least 64 blocks are kept."""
        return max(1, min(4096, self.memory // 64))

    def take(self, sequences: Sequences, max_lag: int, memory: int) -> None:
        """Add the next piece. A single sequence continues the last one; several start new ones."""
        for name, value, before in (
            ("max_lag", max_lag, self.max_lag),
            ("memory", memory, self.memory),
        ):
            if value != before:
                raise InputError(
                    f"{name} = {value}, but it was {before} when the stream began: it must stay "
                    "the same"
                )
        codes, own = factorise(sequences)
        classes = united_classes([self.classes, own])
        if len(classes):
            self._recode(checked_classes(classes))
        goes_on = not sequences.many and len(codes) == 1
        for piece in recoded(codes, np.searchsorted(classes, own)):
            if not goes_on:
                self._close()
            self._extend(piece.astype(_CODE))
        self.seen += sum(len(piece) for piece in codes)

    def windows(self, context: bool) -> Data:
        """Every kept symbol that follows another, with the symbols before it."""
        checked_classes(self.classes)
        blocks = self.blocks
        if self.last is not None and self.last_rank < self.limit:
            blocks = [*blocks, self.last]
        codes = [block.astype(np.int64) for block in blocks]
        N = len(self.classes)
        return windows_of_codes(codes, N, self.max_lag, context, skipped=self.max_lag)

    def _recode(self, classes: Classes) -> None:
        """Change the codes to those of a larger set of symbols."""
        if len(classes) == len(self.classes):
            return
        place = np.searchsorted(classes, self.classes).astype(_CODE)
        self.blocks = recoded(self.blocks, place)
        if self.last is not None:
            (self.last,) = recoded([self.last], place)
        self.classes = classes

    def _extend(self, codes: NDArray[np.int16]) -> None:
        """Add symbols that continue the last block."""
        while codes.size:
            if self.last is None or self.last.size == self.max_lag + self.length:
                before = (
                    np.full(self.max_lag, MISSING, _CODE)
                    if self.last is None
                    else self.last[self.last.size - self.max_lag :]
                )
                self._close()
                self.last = before.copy()
                self.last_rank = float(np.random.default_rng(self.begun).random())
                self.begun += 1
            room = self.max_lag + self.length - self.last.size
            self.last = np.append(self.last, codes[:room])
            codes = codes[room:]
            self._fit_into_memory()

    def _close(self) -> None:
        """End the last block; the next symbols begin another one."""
        if self.last is not None and self.last_rank < self.limit:
            self.blocks.append(self.last)
            self.ranks.append(self.last_rank)
        self.last = None

    def _fit_into_memory(self) -> None:
        """Drop the blocks with the highest ranks until the others fit."""
        assert self.last is not None
        while True:
            keeps_last = self.last_rank < self.limit
            size = sum(block.size - self.max_lag for block in self.blocks)
            if size + keeps_last * (self.last.size - self.max_lag) <= self.memory:
                return
            self.limit = max([*self.ranks, self.last_rank * keeps_last])
            if self.limit in self.ranks:
                at = self.ranks.index(self.limit)
                del self.ranks[at]
                del self.blocks[at]

    # -------------------------------------------------------------------------------------- on disk

    def arrays(self) -> Arrays:
        """The whole object as arrays, for a file that also holds ``max_lag`` and the classes."""
        blocks = self.blocks if self.last is None else [*self.blocks, self.last]
        ranks = self.ranks if self.last is None else [*self.ranks, self.last_rank]
        about = [self.memory, self.begun, self.seen, self.last is not None]
        return {
            "codes": np.concatenate([np.zeros(0, _CODE), *blocks]),
            "lengths": np.array([block.size for block in blocks], np.int64),
            "ranks": np.array([*ranks, self.limit]),
            "about": np.array(about, np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, max_lag: int, classes: Classes) -> "KeptSymbols":
        """Rebuild the object from its ``arrays``, or raise an InputError if they are not valid."""
        codes, lengths, ranks = (arrays[name] for name in ("codes", "lengths", "ranks"))
        memory, begun, seen, goes_on = (int(x) for x in arrays["about"])
        if (
            codes.dtype != _CODE
            or not codes.ndim == lengths.ndim == 1
            or lengths.sum() != codes.size
            or (lengths < max_lag).any()
            or ((codes < MISSING) | (codes >= len(classes))).any()
        ):
            raise InputError("its stream does not hold blocks of its symbols")
        if (
            ranks.shape != (len(lengths) + 1,)
            or not ((ranks >= 0) & (ranks <= 1)).all()
            or not 0 <= goes_on <= 1
        ):
            raise InputError("the blocks of its stream have no ranks")
        if min(begun, seen) < 0 or goes_on > len(lengths):
            raise InputError("its stream does not say how long it was")
        blocks = [block.copy() for block in np.split(codes, np.cumsum(lengths)) if block.size]
        *ranks, limit = ranks.tolist()
        kept = cls(max_lag, memory, classes, blocks, ranks, limit, begun, seen)
        if goes_on:
            kept.last = kept.blocks.pop()
            kept.last_rank = kept.ranks.pop()
        return kept
