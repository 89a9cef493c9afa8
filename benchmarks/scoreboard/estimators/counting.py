"""Models that are read off counts of the recent past.

N-grams, a context tree (CTW), PPM.
"""

import numpy as np

from estimators.ours import Lags
from frame import Data
from scb.sequences.baselines.counts import DEPTH, deepest, histories_in
from scb.sequences.baselines.crossfit import HeldLabels, best_ngram
from scb.sequences.baselines.ctw import ContextTree
from scb.sequences.baselines.ngram import NGram
from scb.sequences.baselines.ppm import PPM


class Counted:
    """What all of them have in common: a score is looked up."""

    version, told = Lags.version, False
    answers = frozenset({"bits", "adaptive"})

    def counts(self, data: Data):
        """The model of the data."""
        raise NotImplementedError

    def fit(self, data: Data) -> None:
        """Count."""
        self.symbols = data.symbols
        self.model = self.counts(data)

    def score(self, test) -> np.ndarray:
        """Log-probabilities."""
        return np.log(
            self.model.likelihoods(
                histories_in(list(test), self.symbols, deepest(self.symbols, DEPTH))
            )
        )


class BestNGram(Counted):
    """The n-gram whose order and smoothing predict best in cross-validation."""

    name = "best n-gram"

    def counts(self, data: Data):
        """Choose and count."""
        return best_ngram(HeldLabels.here(list(data.train), data.symbols, DEPTH)).model


class Bigram(Counted):
    """The current symbol alone."""

    name = "bigram"

    def counts(self, data: Data):
        """Count pairs."""
        return NGram.fit(list(data.train), data.symbols, 2, "witten-bell")


class Tree(Counted):
    """A context tree, weighted (CTW)."""

    name = "context tree"

    def counts(self, data: Data):
        """Count histories."""
        return ContextTree.fit(list(data.train), data.symbols, DEPTH)


class PartialMatching(Counted):
    """PPM-D."""

    name = "PPM"

    def counts(self, data: Data):
        """Count histories."""
        return PPM.fit(list(data.train), data.symbols)


ESTIMATORS = (BestNGram, Bigram, Tree, PartialMatching)
