"""Held-out blocks of windows, and how many bits another prediction of them saves."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from scb.arrays import Array
from scb.mixture.data import Data
from scb.sequences.baselines.background import WindowBackground

# The choice is made on at most so many windows
MOST = 50_000
# Windows come in so many blocks of neighbours, of which every fifth is held out
BLOCKS = 20
# What another choice must save: bits per symbol, and standard errors
WORTH, CLEAR = 0.01, 2.0
# Shares of another prediction in a mixture that are tried; the last one is all of it
SHARES = np.linspace(0, 1, 21)
# An impossible label counts as this probable
LEAST = 1e-300
WEIGHTS = attrgetter("weights")
# Held by the executor of the data: for each partition (n,), the probability of each label
Likelihoods = list[Any]


class HeldOutBlocks(NamedTuple):
    """Windows to fit, and windows to predict."""

    train: Data
    test: Data

    @classmethod
    def of(cls, data: Data) -> "HeldOutBlocks":
        """Hold out every fifth block of neighbours."""
        some = data.thinned(MOST)
        held_out = np.arange(BLOCKS) % 5 == 2
        return cls(some.of_groups(~held_out), some.of_groups(held_out))

    def beside(self, background: WindowBackground | None) -> "HeldOutBlocks":
        """The same windows with a background that was fitted to the windows to fit."""
        if background is None:
            return self
        return HeldOutBlocks(background.cross_fitted(self.train), background.attached(self.test))

    def mapped(self, function: Callable[..., Any], *same: Any) -> list[Any]:
        """The results of a function of each held-out partition and the shape, kept in place."""
        data = self.test
        return data.executor.map(function, zip(data.partitions, strict=True), data.shape, *same)

    def total(self, function: Callable[..., Any], *held: list[Any]) -> Any:
        """The sum over held-out partitions of a function of what is kept for each, per window."""
        executor = self.test.executor
        return executor.total(executor.map(function, zip(*held, strict=True))) / self.test.n

    @property
    def weights(self) -> list[Any]:
        """For each held-out partition (n,), how often each window counts; kept in place."""
        return self.test.executor.map(WEIGHTS, zip(self.test.partitions, strict=True))

    def bits(self, likelihoods: Likelihoods) -> float:
        """The mean number of bits per held-out symbol."""
        return float(-self.total(_loglik, likelihoods, self.weights) / np.log(2))

    def gain(self, own: Likelihoods, other: Likelihoods) -> "Gain":
        """How much another prediction saves."""
        return Gain.of(self.total(_gains, own, other, self.weights)[-1], self.test.n)

    def gain_of_mixture(self, own: Likelihoods, other: Likelihoods) -> "Gain":
        """How much the best mixture with another prediction saves."""
        sums = self.total(_gains, own, other, self.weights)
        return Gain.of(sums[np.argmax(sums[:, 0])], self.test.n)


class Gain(NamedTuple):
    """How many bits per held-out symbol another choice saves, with the standard error."""

    bits: float
    error: float

    @classmethod
    def of(cls, moments: Array, n: float) -> "Gain":
        """The gain, from the means of the gains of n symbols and of their squares, in nats."""
        mean, square = moments
        error = np.sqrt(max(square - mean**2, 0.0) / n)
        return cls(float(mean / np.log(2)), float(error / np.log(2)))

    @property
    def is_clear(self) -> bool:
        """Whether the gain justifies a choice that is harder to interpret."""
        return self.bits >= max(WORTH, CLEAR * self.error)


def _loglik(likelihoods: Array, weight: Array) -> Array:
    """The log-likelihood of labels; one that is impossible counts as nearly so."""
    return (weight * np.log(np.maximum(likelihoods, LEAST))).sum()


def _gains(own: Array, other: Array, weight: Array) -> Array:
    """(shares, 2): for each share of another prediction in a mixture, the sum of what labels gain
    by it, and the sum of the squares.
    """
    own = np.maximum(own, LEAST)
    mixed = (1 - SHARES[:, None]) * own + SHARES[:, None] * np.maximum(other, LEAST)
    gains = np.log(mixed / own)
    return np.stack([(weight * gains).sum(axis=1), (weight * gains**2).sum(axis=1)], axis=1)
