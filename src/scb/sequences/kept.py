"""What is kept of a stream of symbols: all of it as long as it fits, then a random sample of its
blocks.

A stream is cut into blocks of neighbours, each with the ``max_lag`` symbols before it to look back
at. Each block draws a rank when it begins. Where blocks must go, those with the highest ranks do:
so what is kept is a sample in which all blocks have the same chance, whenever they came (bottom-k
sampling), and the same one however the stream was cut into pieces.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.inputs import InputError, integer
from scb.mixture.data import Data
from scb.sequences.coding import united_classes, windows_of_codes
from scb.sequences.symbols import MISSING, Sequences, checked_classes, factorise

MEMORY = 5_000_000  # symbols, unless given
_LEAST = 1000
_BLOCKS = 64  # at least so many make up what is kept
_LONGEST = 4096
_CODE = np.int16  # there are at most 4096 symbols


@dataclass
class KeptSymbols:
    """Blocks of a stream, in its order."""

    max_lag: int
    memory: int  # symbols that may be kept
    # All symbols that ever came, sorted
    classes: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    # Codes of symbols; the first ``max_lag`` are to look back at
    blocks: list[NDArray[np.int16]] = field(default_factory=list)
    ranks: list[float] = field(default_factory=list)  # of the blocks
    limit: float = 1.0  # blocks with a higher rank are not kept
    begun: int = 0  # blocks so far
    seen: int = 0  # symbols so far
    # the last block of a sequence that may go on, whatever its rank, and that rank
    last: NDArray[np.int16] | None = None
    last_rank: float = 0.0

    def __post_init__(self) -> None:
        integer("memory", self.memory, low=_LEAST)

    @property
    def length(self) -> int:
        """Symbols of a whole block."""
        return max(1, min(_LONGEST, self.memory // _BLOCKS))

    def take(self, sequences: Sequences, max_lag: int, memory: int) -> None:
        """The next piece: one sequence goes on where the last one ended, many begin anew."""
        for name, value, before in (
            ("max_lag", max_lag, self.max_lag),
            ("memory", memory, self.memory),
        ):
            if value != before:
                raise InputError(
                    f"{name} = {value}, and it was {before} when the stream began: it must stay the same"
                )
        codes, found = factorise(sequences)
        classes = united_classes([self.classes, found])
        if len(classes):
            self._recode(checked_classes(classes))
        place = np.append(np.searchsorted(classes, found), MISSING)
        goes_on = not sequences.many and len(codes) == 1
        for piece in codes:
            if not goes_on:
                self._close()
            self._extend(place[piece].astype(_CODE))
        self.seen += sum(len(piece) for piece in codes)

    def windows(self, contexts: bool) -> Data:
        """Every symbol that is kept and follows one, with those before it."""
        checked_classes(self.classes)
        blocks = self.blocks
        if self.last is not None and self.last_rank < self.limit:
            blocks = [*blocks, self.last]
        codes = [block.astype(np.int64) for block in blocks]
        return windows_of_codes(
            codes, len(self.classes), self.max_lag, contexts, skipped=self.max_lag
        )

    def _recode(self, classes: NDArray[Any]) -> None:
        """Codes of symbols among more of them."""
        if len(classes) == len(self.classes):
            return
        place = np.append(np.searchsorted(classes, self.classes), MISSING).astype(_CODE)
        self.blocks = [place[block] for block in self.blocks]
        self.last = None if self.last is None else place[self.last]
        self.classes = classes

    def _extend(self, codes: NDArray[np.int16]) -> None:
        """Symbols that go on where the last block ends."""
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
        """The last block does not go on."""
        if self.last is not None and self.last_rank < self.limit:
            self.blocks.append(self.last)
            self.ranks.append(self.last_rank)
        self.last = None

    def _fit_into_memory(self) -> None:
        """The blocks with the highest ranks go, until there is room for the others."""
        assert self.last is not None
        while True:
            there = self.last_rank < self.limit
            held = sum(block.size - self.max_lag for block in self.blocks)
            if held + there * (self.last.size - self.max_lag) <= self.memory:
                return
            highest = max([*self.ranks, self.last_rank * there])
            self.limit = highest
            if highest in self.ranks:
                at = self.ranks.index(highest)
                del self.ranks[at]
                del self.blocks[at]

    # -------------------------------------------------------------------------------------- on disk

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays, for a file that has ``max_lag`` and the classes already."""
        blocks = self.blocks if self.last is None else [*self.blocks, self.last]
        ranks = self.ranks if self.last is None else [*self.ranks, self.last_rank]
        return {
            "codes": np.concatenate([np.zeros(0, _CODE), *blocks]),
            "lengths": np.array([block.size for block in blocks], np.int64),
            "ranks": np.array([*ranks, self.limit]),
            "about": np.array(
                [self.memory, self.begun, self.seen, self.last is not None], np.int64
            ),
        }

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, NDArray[Any]], max_lag: int, classes: NDArray[Any]
    ) -> "KeptSymbols":
        """What ``arrays`` made; an InputError where it cannot be."""
        codes, lengths, ranks, about = (
            arrays[name] for name in ("codes", "lengths", "ranks", "about")
        )
        memory, begun, seen, goes_on = (int(x) for x in about)
        whole = (
            codes.dtype == _CODE and codes.ndim == lengths.ndim == 1 and lengths.sum() == codes.size
        )
        if (
            not whole
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
        blocks = (
            [block.copy() for block in np.split(codes, np.cumsum(lengths)[:-1])]
            if len(lengths)
            else []
        )
        kept = cls(
            max_lag, memory, classes, blocks, ranks[:-1].tolist(), float(ranks[-1]), begun, seen
        )
        if goes_on:
            kept.last = kept.blocks.pop()
            kept.last_rank = kept.ranks.pop()
        return kept
