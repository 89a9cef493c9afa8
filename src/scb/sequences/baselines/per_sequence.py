"""Separate frequencies for each sequence, learned symbol by symbol.

Sequences may differ in which symbols they use: for example, different patients take different
drugs. Then the symbols so far predict the next symbol at any lag, even if the next symbol does not
depend on them. If c are the counts of the first t symbols of a sequence, the next symbol has the
distribution

    (concentration · prior + c) / (concentration + t),

which is the posterior mean under a Dirichlet distribution centred on the distribution of all
labels. The concentration is the value under which the labels are most probable; it is large if the
sequences are alike.
"""

from dataclasses import dataclass, replace

import numpy as np

from scb.arrays import Array, Ints
from scb.mixture.data import Data
from scb.mixture.model import Background
from scb.mixture.partition import Partition, Shape
from scb.mixture.windows import Block
from scb.sequences.tables import Arrays

# The concentrations that are tried, in symbols; where sequences are alike the largest is best
CONCENTRATIONS = 2.0 ** np.arange(-2, 17)


@dataclass(frozen=True)
class SequenceBackground:
    """A prediction from the symbols of the same sequence so far, regardless of their order."""

    prior: Array  # (N,), the distribution of all labels
    concentration: float  # how many symbols of a sequence weigh as much as the prior

    @classmethod
    def fit(cls, data: Data) -> "SequenceBackground":
        """Find the concentration under which the labels of windows are most probable."""
        # A symbol that was never a label is not impossible
        prior = (data.label_distribution * data.n + 1 / data.N) / (data.n + 1)
        logliks = data.total(_logliks, prior)
        return cls(prior, float(CONCENTRATIONS[np.argmax(logliks)]))

    @property
    def name(self) -> str:
        """A short description, with how fast the frequencies are learned."""
        return f"frequencies of each sequence, half learned after {self.concentration:g} symbols"

    @property
    def option(self) -> str:
        """What the estimator calls it."""
        return "per_sequence"

    def likelihoods(self, partition: Partition, shape: Shape) -> Array:
        """(n,): the probability of each label."""
        own, length = own_counts(partition, shape)
        prior = self.prior[partition.label]
        return (self.concentration * prior + own) / (self.concentration + length)

    def cross_fitted(self, data: Data) -> Data:
        """The data of the fit; the distribution of each window was learned before its label."""
        return self.attached(data)

    def attached(self, data: Data) -> Data:
        """Windows, each with the distribution from the symbols of its sequence so far."""
        held = data.mapped(_with_frequencies, data.shape, self)
        return replace(data, partitions=held, own_background=True)

    def arrays(self) -> Arrays:
        """The arrays to keep in a file."""
        return {"prior": self.prior, "concentration": np.array([self.concentration])}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "SequenceBackground":
        """The background that was kept as these arrays."""
        return cls(arrays["prior"], float(arrays["concentration"][0]))


def _logliks(partition: Partition, shape: Shape, prior: Array) -> Array:
    """(C,): the log-likelihood of all labels with each of the concentrations."""
    own, length = own_counts(partition, shape)
    before = prior[partition.label]
    weights = partition.weights
    logliks = [(weights * np.log((c * before + own) / (c + length))).sum() for c in CONCENTRATIONS]
    return np.array(logliks)


def own_counts(partition: Partition, shape: Shape) -> tuple[Ints, Ints]:
    """(n,), (n,): how often the label of each window occurred earlier in its sequence, and how many
    symbols preceded the label.
    """
    nothing = np.zeros(0, np.int64)
    own = [nothing]
    length = [nothing]
    for _, block in partition.chunks():
        sequence = _sequence_numbers(block, shape)
        place = block.starts + shape.T
        own.append(_counts_before(place, sequence * (shape.N + 1), block))
        there = np.concatenate([[0], np.cumsum(block.tokens < shape.N)])
        length.append(there[place] - there[np.searchsorted(sequence, sequence[place])])
    return np.concatenate(own), np.concatenate(length)


def sequence_starts(partition: Partition, shape: Shape) -> int:
    """The number of windows at the start of a sequence, whose only symbol is the current one. Soft
    labels share one window.
    """
    begins = 0
    for _, block in partition.chunks():
        there = np.where(block.tokens < shape.N, np.arange(block.tokens.size), -1)
        latest = np.concatenate([[-1], np.maximum.accumulate(there)])
        # The last symbol before the current one, if any, lies before the window, or is not the one
        # right before it if that is all that the window has
        first = block.starts - (shape.T == 1)
        begins += np.unique(block.starts[latest[block.starts + shape.T - 1] < first]).size
    return begins


def _counts_before(place: Ints, offset: Ints, block: Block) -> Ints:
    """(n,): how many tokens of the same sequence before each place are the label; ``offset`` tells
    the tokens of different sequences apart.
    """
    size = block.tokens.size
    # Sorted by symbol of a sequence, then by place
    keys = np.sort((offset + block.tokens) * size + np.arange(size))
    first = (offset[place] + block.label) * size
    return np.searchsorted(keys, first + place) - np.searchsorted(keys, first)


def _sequence_numbers(block: Block, shape: Shape) -> Ints:
    """The sequence that each token of a block belongs to. Sequences are separated by as many
    missing tokens as a window has, so a gap of that length begins another one.
    """
    there = np.flatnonzero(block.tokens < shape.N)
    begins = np.zeros(block.tokens.size, np.int64)
    begins[there[np.diff(there, prepend=-shape.T - 1) > shape.T]] = 1
    return np.cumsum(begins)


def _with_frequencies(
    partition: Partition, shape: Shape, background: SequenceBackground
) -> Partition:
    """A partition, its windows with the distributions of their sequences so far."""
    N = shape.N
    start = background.concentration * background.prior
    counts = np.empty((partition.n, N))
    for at, block in partition.chunks():
        sequence = _sequence_numbers(block, shape)
        mine = counts[at]
        # The label may be unknown: what counts is all that comes before it
        place = block.starts + shape.T
        number = sequence[place - 1]
        for symbol in range(N):
            seen = np.concatenate([[0], np.cumsum(block.tokens == symbol)])
            mine[:, symbol] = seen[place] - seen[np.searchsorted(sequence, number)]
    distributions = start + counts
    distributions /= distributions.sum(axis=1, keepdims=True)
    return partition.with_background(Background(distributions, np.arange(partition.n)))
