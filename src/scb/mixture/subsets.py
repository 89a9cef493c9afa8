"""Which samples of a partition to choose: functions for ``Partition.only``."""

import numpy as np

from scb.arrays import Flags, Ints
from scb.mixture.partition import Partition, Shape
from scb.mixture.tuning import TUNING


def in_groups(partition: Partition, numbers: Ints, size: int, chosen: Flags) -> Flags:
    """(n,): the samples in some groups of ``size`` neighbours."""
    return chosen[numbers // size]


def in_every(partition: Partition, numbers: Ints, stride: float) -> Flags:
    """(n,): the samples of one in ``stride`` groups of neighbours."""
    return numbers // TUNING.neighbours / stride % 1 < 1 / stride


def without_gap(partition: Partition, numbers: Ints, shape: Shape) -> Flags:
    """(n,): the samples that have a token at every position."""
    gaps = [block.has_gap(shape.N, shape.T) for _, block in partition.chunks()]
    return ~np.concatenate([np.zeros(0, bool), *gaps])


def has_weight(partition: Partition, numbers: Ints) -> Flags:
    """(n,): the samples that count."""
    return partition.weights > 0
