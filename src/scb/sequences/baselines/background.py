"""The background of a model of lags, where it is more than the distribution of all labels: the
prediction from the recent symbols, or another model.

Such a background gives each window a separate distribution. During a fit, this distribution must be
independent of the label of the window (``cross_fitted``). After the fit, the distribution is
estimated from all the data (``attached``).
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.inputs import InputError
from scb.mixture.data import Data
from scb.mixture.model import Background
from scb.mixture.partition import Partition, Shape
from scb.sequences.baselines.counts import DEPTH, Histories, HistoryCounts, HistoryModel, deepest
from scb.sequences.baselines.crossfit import (
    BLOCKS,
    CrossFit,
    HeldLabels,
    best_recent,
    blocks_of,
)
from scb.sequences.baselines.ctw import ContextTree
from scb.sequences.baselines.ngram import SMOOTHINGS, NGram
from scb.sequences.tables import Arrays, Classes

_KINDS = (*SMOOTHINGS, "context-tree")


class WindowBackground(Protocol):
    """A background distribution for every window: ``RecentBackground``, ``SequenceBackground`` or
    ``ModelBackground``.
    """

    @property
    def name(self) -> str:
        """A short description of the background."""
        ...

    @property
    def option(self) -> Any:
        """The value of the estimator's option ``background`` that selects it."""
        ...

    def cross_fitted(self, data: Data) -> Data:
        """The data of the fit, each window with a distribution that was estimated without its
        label.
        """
        ...

    def attached(self, data: Data) -> Data:
        """Any data, each window with its distribution."""
        ...


# ------------------------------------------------------------------------------- the recent symbols


@dataclass(frozen=True)
class RecentBackground:
    """An n-gram or a context tree as background, whichever predicts new blocks better."""

    model: HistoryModel
    cross_fit: CrossFit | None = None  # None after it was read from a file

    @classmethod
    def fit(cls, data: Data, blocks: int = BLOCKS) -> "RecentBackground":
        """Choose and count on windows; no history is longer than a window."""
        best = best_recent(_held_labels(data, deepest(data.N, min(DEPTH, data.T))), blocks)
        return cls(best.model, best)

    @property
    def name(self) -> str:
        """The kind and order of the model."""
        return self.model.name

    @property
    def option(self) -> str:
        """What the estimator calls it."""
        return "ngram"

    def cross_fitted(self, data: Data) -> Data:
        """The windows of the fit, each with the distribution from the blocks that it is not in."""
        if self.cross_fit is None:
            raise InputError("a background that was read from a file has no blocks: fit it again")
        labels = _held_labels(data, self.model.counts.depth)
        places = zip(data.partitions, labels.held, labels.firsts, strict=True)
        held = data.executor.map(_with_folds, places, labels.n, self.cross_fit)
        return replace(data, partitions=held, own_background=True)

    def attached(self, data: Data) -> Data:
        """Windows, each with the distribution from all the data of the fit."""
        places = zip(data.partitions, strict=True)
        held = data.executor.map(_with_recent, places, data.shape, self.model)
        return replace(data, partitions=held, own_background=True)

    def arrays(self) -> Arrays:
        """The arrays to keep in a file."""
        counts = self.model.counts
        kind = self.model.smoothing if isinstance(self.model, NGram) else "context-tree"
        alpha = self.model.alpha if isinstance(self.model, ContextTree) else 0.0
        return {
            "about": np.array([counts.N, counts.depth, _KINDS.index(kind)]),
            "alpha": np.array([alpha]),
            "codes": counts.codes,
            "counts": counts.counts,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "RecentBackground":
        """The background that was kept as these arrays."""
        N, depth, kind = (int(x) for x in arrays["about"])
        counts = HistoryCounts(N, depth, arrays["codes"], arrays["counts"])
        if _KINDS[kind] == "context-tree":
            return cls(ContextTree(counts, float(arrays["alpha"][0])))
        return cls(NGram(counts, SMOOTHINGS[kind]))


def histories_of(partition: Partition, shape: Shape, depth: int) -> Histories:
    """The labels of windows, with histories of up to ``depth`` symbols; a start or a gap ends a
    history.
    """
    positions = np.arange(shape.T - 1, shape.T - 1 - depth, -1)
    tokens = partition.gather(np.tile(positions, (shape.K, 1)), shape.N)
    history = np.zeros(partition.n, np.int64)
    unbroken = np.ones(partition.n, bool)
    for j, token in enumerate(tokens.T):
        unbroken &= token < shape.N
        history += unbroken * (token.astype(np.int64) + 1) * (shape.N + 1) ** j
    return Histories(history, partition.label)


def _held_labels(data: Data, depth: int) -> HeldLabels:
    """The labels of all partitions, where these are stored."""
    held = data.executor.map(histories_of, zip(data.partitions, strict=True), data.shape, depth)
    return HeldLabels(data.executor, held, data.sizes, data.N, depth)


def _with_folds(
    partition: Partition, labels: Histories, first: int, n: int, fit: CrossFit
) -> Partition:
    """A partition, its windows with the distributions of the folds that have not seen them."""
    blocks = blocks_of(labels, first, n, len(fit.blocks))
    parts = [_background(fold, block) for fold, block in zip(fit.folds, blocks, strict=True)]
    offsets = np.cumsum([0, *(len(part.distributions) for part in parts[:-1])])
    states = [part.which + offset for part, offset in zip(parts, offsets, strict=True)]
    distributions = np.concatenate([part.distributions for part in parts])
    return partition.with_background(Background(distributions, np.concatenate(states)))


def _with_recent(partition: Partition, shape: Shape, model: HistoryModel) -> Partition:
    """A partition, its windows with the distributions of a model of their histories."""
    labels = histories_of(partition, shape, model.counts.depth)
    return partition.with_background(_background(model, labels))


def _background(model: HistoryModel, labels: Histories) -> Background:
    """The distributions after the distinct histories, and which of them each label has."""
    distinct, state = np.unique(labels.history, return_inverse=True)
    return Background(model.distributions(distinct), state.astype(np.int64))


# ------------------------------------------------------------------------------------ another model


@dataclass(frozen=True)
class ModelBackground:
    """A fitted model with ``predict_proba`` as background. The model must not have been fitted to
    the data, since it cannot be cross-fitted here.

    The model predicts the distribution of the next symbol from rows (n, max_lag) of symbols, the
    oldest first, with None where there is no symbol. ``SparseContextualBigram`` reads these rows as
    sequences, whereas a classifier of scikit-learn reads them as features.
    """

    model: Any
    classes: Classes  # our symbols, in the order of the codes

    @property
    def name(self) -> str:
        """The class of the model."""
        return type(self.model).__name__

    @property
    def option(self) -> Any:
        """The model itself."""
        return self.model

    def cross_fitted(self, data: Data) -> Data:
        """The data of the fit, each window with the prediction of the model."""
        return self.attached(data)

    def attached(self, data: Data) -> Data:
        """Windows, each with the prediction of the model."""
        places = zip(data.partitions, strict=True)
        held = data.executor.map(_with_model, places, data.shape, self)
        return replace(data, partitions=held, own_background=True)

    def distributions(self, rows: NDArray[Any]) -> Array:
        """(n, N): the predictions of the model after rows (n, T) of codes, N where there is no
        symbol.
        """
        N = len(self.classes)
        symbols = np.array([*self.classes.tolist(), None], dtype=object)[rows]
        if not (rows == N).any():
            symbols = symbols.astype(self.classes.dtype)
        predicted = np.asarray(self.model.predict_proba(symbols), float)
        theirs = np.asarray(self.model.classes_).tolist()
        if predicted.shape != (len(rows), len(theirs)):
            raise InputError(
                f"background: predict_proba returned shape {predicted.shape} for {len(rows)} "
                f"windows and {len(theirs)} classes"
            )
        known = [theirs.index(x) if x in theirs else -1 for x in self.classes.tolist()]
        distributions = np.where(np.array(known) >= 0, predicted[:, known], 0.0)
        # Our symbols share what it gives to symbols that we do not have
        distributions += (1 - distributions.sum(axis=1, keepdims=True)) / N
        # No symbol may be impossible
        least = 1e-4
        return (1 - least) * distributions + least / N


def _with_model(partition: Partition, shape: Shape, model: ModelBackground) -> Partition:
    """A partition, its windows with the predictions of a model."""
    rows = partition.gather(np.tile(np.arange(shape.T), (shape.K, 1)), shape.N)
    distinct, state = np.unique(rows, axis=0, return_inverse=True)
    return partition.with_background(
        Background(model.distributions(distinct), state.reshape(-1).astype(np.int64))
    )
