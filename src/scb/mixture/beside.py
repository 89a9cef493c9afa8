"""Windows with further sources: covariates, which are known in addition to the tokens when the
label is predicted, become positions before the oldest token.

A covariate is thus one more position with its own matrix, and a search treats it like any other
position. The values of a covariate are tokens. There are as many tokens as the largest set of
values requires, and only the symbols occur as labels. One covariate may also *choose*: then the
state is the current symbol together with the value of that covariate, and so is the token at the
current position.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from scb.arrays import Array, Ints
from scb.mixture.data import Data
from scb.mixture.model import Background
from scb.mixture.partition import Partition, Shape
from scb.mixture.windows import Block
from scb.task.sampling import token_dtype


def wide_shape(shape: Shape, sizes: Sequence[int], chooser: int | None) -> Shape:
    """The shape of windows with covariates, given the number of values of each. For the covariate
    that chooses, a missing value is one more value.
    """
    if not sizes:
        return shape
    joint = shape.N if chooser is None else shape.N * (sizes[chooser] + 1)
    N = max(joint, *sizes)
    return Shape(N, 1 if shape.K == 1 else N, shape.T + len(sizes))


def with_sources(data: Data, sizes: Sequence[int], chooser: int | None) -> Data:
    """Windows of symbols with their covariates as positions: covariate i at ``len(sizes) − 1 − i``.

    The backgrounds of the samples must already be attached.
    """
    if not sizes:
        return data
    wide = wide_shape(data.shape, sizes, chooser)
    held = data.mapped(_wide_partition, data.shape, sizes, chooser)
    counts = data.total(_value_counts, sizes, wide.N)
    other = {len(sizes) - 1 - i: n / max(n.sum(), 1) for i, n in enumerate(counts)}
    mu = np.pad(data.mu, (0, wide.N - data.N))
    return replace(data, partitions=held, shape=wide, mu=mu, other_mu=other)


def _wide_partition(
    partition: Partition, shape: Shape, sizes: Sequence[int], chooser: int | None
) -> Partition:
    """The windows of a partition with their covariates as positions; see ``with_sources``."""
    wide = wide_shape(shape, sizes, chooser)
    m = len(sizes)
    beside = _values(partition, m)
    tokens = np.empty((partition.n, wide.T), dtype=token_dtype(wide.N + 1))
    everywhere = np.tile(np.arange(shape.T), (shape.K, 1))
    own = partition.gather(everywhere, shape.N)
    tokens[:, m:] = np.where(own == shape.N, wide.N, own)
    tokens[:, :m] = np.where(beside < 0, wide.N, beside)[:, ::-1]
    last = partition.last
    if chooser is not None:
        value = beside[:, chooser]
        last = np.where(value < 0, sizes[chooser], value) * shape.N + last
        tokens[:, -1] = np.where(tokens[:, -1] < shape.N, last, wide.N)
    starts = np.arange(partition.n) * wide.T
    background = partition.background
    if background is not None:
        distributions = np.pad(background.distributions, ((0, 0), (0, wide.N - shape.N)))
        background = Background(distributions, background.which)
    blocks = [Block(tokens.reshape(-1), starts, last, partition.label)]
    return replace(partition, blocks=blocks, last=last, background=background)


def _values(partition: Partition, covariates: int) -> Ints:
    """(n, covariates): the codes of what is known beside the tokens; −1 where nothing is."""
    if partition.beside is None:
        return np.full((partition.n, covariates), -1)
    return partition.beside


def _value_counts(partition: Partition, shape: Shape, sizes: Sequence[int], N: int) -> Array:
    """(covariates, N): how often each value occurs."""
    counts = np.zeros((len(sizes), N))
    for count, codes in zip(counts, _values(partition, len(sizes)).T, strict=True):
        there = codes >= 0
        count += np.bincount(codes[there], partition.weights[there], minlength=N)
    return counts
