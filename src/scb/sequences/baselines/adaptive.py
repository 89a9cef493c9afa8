"""Predictors that learn from the sequence that they predict: from its recent symbols, from what
recently followed the current symbol, and from what followed the last occurrence of the same recent
symbols.

Each predictor returns an (n + 1, N) array for a sequence of n codes. Row t is the distribution of
symbol t, given the symbols before it. A negative code is a gap.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from scipy.signal import lfilter

from scb.arrays import Array, Positions
from scb.sequences.baselines.counts import Ints, deepest, history_codes

# Matches are told apart by up to so many symbols more than the shortest one
LENGTHS = 16


def _decayed(codes: Ints, N: int, half_life: float) -> Array:
    """(n + 1, N): how often each symbol came before each place; one that is ``half_life`` symbols
    away counts half.
    """
    came = np.zeros((codes.size + 1, N))
    there = np.flatnonzero(codes >= 0)
    came[there + 1, codes[there]] = 1.0
    return np.asarray(lfilter([1.0], [1.0, -(0.5 ** (1 / half_life))], came, axis=0))


@dataclass(frozen=True)
class RecentFrequencies:
    """The frequencies of recent symbols, added to the distribution of all labels."""

    prior: Array  # (N,)
    half_life: float  # in symbols

    def distributions(self, codes: Ints) -> Array:
        """(n + 1, N): the distribution of each symbol."""
        counts = _decayed(codes, self.prior.size, self.half_life) + self.prior
        return counts / counts.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class RecentPairs:
    """The frequencies of what recently followed the current symbol, added to its usual
    distribution.
    """

    pairs: Array  # (N, N), row k is the distribution after symbol k
    prior: Array  # (N,), for symbols after a gap
    half_life: float  # in times that the current symbol came

    def distributions(self, codes: Ints) -> Array:
        """(n + 1, N): the distribution of each symbol."""
        N = self.prior.size
        p = np.tile(self.prior, (codes.size + 1, 1))
        after = np.append(codes[1:], -1)
        for k in np.unique(codes[codes >= 0]).tolist():
            places = np.flatnonzero(codes == k)
            counts = _decayed(after[places], N, self.half_life)[:-1] + self.pairs[k]
            p[places + 1] = counts / counts.sum(axis=1, keepdims=True)
        return p


@dataclass(frozen=True)
class LongestMatch:
    """The symbol that followed the last occurrence of the recent symbols, in this sequence or else
    in the data of the fit. Its probability is how often matches of this length were right.

    Without a match, all symbols are equally likely.
    """

    N: int
    shortest: int  # a match has at least so many symbols
    texts: list[Ints] = field(default_factory=list)
    # Code of the last symbols → (number of the text, place after them)
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    # (LENGTHS,): how often matches of each length were right, and how often they were not
    right: Array = field(default_factory=lambda: np.ones(LENGTHS))
    wrong: Array = field(default_factory=lambda: np.ones(LENGTHS))

    @classmethod
    def fit(cls, sequences: Iterable[Ints], N: int) -> "LongestMatch":
        """Remember sequences of codes; a match must be too long to be likely by chance."""
        texts = list(sequences)
        total = max(sum(map(len, texts)), 2)
        shortest = max(1, deepest(N, 1 + int(np.ceil(np.log(total) / np.log(max(N, 2))))))
        match = cls(N, shortest, texts)
        for number, text in enumerate(texts):
            codes = match._codes(text)
            match.places.update(
                (code, (number, place)) for place, code in enumerate(codes) if code >= 0
            )
        return match

    def _codes(self, text: Ints) -> list[int]:
        """The code of the symbols before each place, −1 if there are too few."""
        codes = history_codes(text, self.N, self.shortest)
        return np.where(codes >= (self.N + 1) ** (self.shortest - 1), codes, -1).tolist()

    def found(self, codes: Ints) -> tuple[Ints, Ints]:
        """(n + 1,), (n + 1,): the symbol that a match predicts at each place, −1 if there is no
        match; and by how many symbols the match is longer than the shortest one.
        """
        said = np.full(codes.size + 1, -1)
        longer = np.zeros(codes.size + 1, np.int64)
        own: dict[int, int] = {}
        text, place, length = codes, -1, 0
        symbols = codes.tolist()
        for t, code in enumerate(self._codes(codes)):
            # A match goes on as long as it was right
            goes_on = place >= 0 and t > 0 and text[place] == symbols[t - 1]
            place, length = (place + 1, length + 1) if goes_on else (-1, 0)
            if place < 0 and code in own:
                text, place = codes, own[code]
            elif place < 0 and code in self.places:
                number, place = self.places[code]
                text = self.texts[number]
            if code >= 0:
                own[code] = t
            if 0 <= place < min(text.size, t if text is codes else text.size):
                said[t] = text[place]
                longer[t] = min(length, LENGTHS - 1)
            else:
                place = -1
        return said, longer

    def learn(self, codes: Ints, places: Positions) -> None:
        """Count how often matches are right at some places of a sequence."""
        said, longer = (column[places] for column in self.found(codes))
        hit = said == codes[places]
        np.add.at(self.right, longer[hit], 1.0)
        np.add.at(self.wrong, longer[(said >= 0) & ~hit], 1.0)

    def distributions(self, codes: Ints) -> Array:
        """(n + 1, N): the distribution of each symbol."""
        said, longer = self.found(codes)
        p = np.full((codes.size + 1, self.N), 1 / self.N)
        there = np.flatnonzero(said >= 0)
        if there.size and self.N > 1:
            sure = (self.right / (self.right + self.wrong))[longer[there]]
            p[there] = ((1 - sure) / (self.N - 1))[:, None]
            p[there, said[there]] = sure
        return p
