"""The distribution of the next symbol that a model of lags starts from: what the recent symbols
say, or another model.

A background gives each window a distribution of its own. While a model is fitted, a window's
distribution must not have seen its label (``cross_fitted``); afterwards, to score and to predict,
it comes from all the data (``attached``).
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
from scb.sequences.baselines.counts import ContextCounts, Labels, deepest
from scb.sequences.baselines.crossfit import (
    BLOCKS,
    LONGEST,
    CrossFit,
    HeldLabels,
    HistoryModel,
    bare,
    best_recent,
    blocks_of,
)
from scb.sequences.baselines.ctw import ContextTree
from scb.sequences.baselines.ngram import SMOOTHINGS, NGram

_KINDS = (*SMOOTHINGS, "context-tree")
# Part of a foreign model's distribution that all symbols share alike, so that none is impossible
_LEAST = 1e-4


class WindowBackground(Protocol):
    """A background distribution for every window: ``RecentBackground`` or ``ModelBackground``."""

    @property
    def name(self) -> str:
        """What it is, in words."""
        ...

    def cross_fitted(self, data: Data) -> Data:
        """The data of the fit, each window with a distribution that has not seen its label."""
        ...

    def attached(self, data: Data) -> Data:
        """Any data, each window with its distribution."""
        ...


# ------------------------------------------------------------------------------- the recent symbols


@dataclass(frozen=True)
class RecentBackground:
    """An n-gram or a context tree as background: which of them, and how far it looks back, was
    chosen on blocks it had not seen.
    """

    model: HistoryModel
    fitted: CrossFit | None = None  # None after it was read from a file

    @classmethod
    def fit(cls, data: Data, blocks: int = BLOCKS) -> "RecentBackground":
        """Choose and count on windows, wherever they lie; no context is longer than a window."""
        found = best_recent(_held(data, deepest(data.N, min(LONGEST, data.T))), blocks)
        return cls(found.model, found)

    @property
    def name(self) -> str:
        """Kind and order, in words."""
        return self.model.name

    def cross_fitted(self, data: Data) -> Data:
        """The windows that were counted, each with the distribution from the blocks to which it
        does not belong.
        """
        if self.fitted is None:
            raise InputError(
                "a distribution that was read from a file has not kept its blocks: fit it again"
            )
        labels = _held(data, self.model.counts.depth)
        places = zip(data.partitions, labels.held, labels.firsts, strict=True)
        held = data.executor.map(_with_folds, places, labels.n, self.fitted.folds)
        return replace(data, partitions=held, own_background=True)

    def attached(self, data: Data) -> Data:
        """Windows, each with the distribution from all the data of the fit."""
        held = data.executor.map(
            _with_background, zip(data.partitions, strict=True), data.shape, self.model
        )
        return replace(data, partitions=held, own_background=True)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What has to be kept of it in a file."""
        counts = self.model.counts
        kind = self.model.smoothing if isinstance(self.model, NGram) else "context-tree"
        alpha = self.model.alpha if isinstance(self.model, ContextTree) else 0.0
        about = np.array([counts.N, counts.depth, _KINDS.index(kind)])
        return {
            "about": about,
            "alpha": np.array([alpha]),
            "codes": counts.codes,
            "counts": counts.counts,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> "RecentBackground":
        """The distribution that was kept as these arrays."""
        N, depth, kind = (int(x) for x in arrays["about"])
        counts = ContextCounts(N, depth, arrays["codes"], arrays["counts"])
        if _KINDS[kind] == "context-tree":
            return cls(ContextTree(counts, float(arrays["alpha"][0])))
        return cls(NGram(counts, SMOOTHINGS[kind]))


def labels_in(partition: Partition, shape: Shape, depth: int) -> Labels:
    """The labels of windows, with contexts of up to ``depth`` symbols; a start or a gap ends a
    context.
    """
    positions = np.arange(shape.T - 1, shape.T - 1 - depth, -1)
    tokens = partition.gather(np.tile(positions, (shape.K, 1)), shape.N).astype(np.int64)
    there = np.logical_and.accumulate(tokens < shape.N, axis=1)
    digits = np.where(there, tokens + 1, 0) * (shape.N + 1) ** np.arange(depth)
    return Labels(digits.sum(axis=1), partition.label)


def _held(data: Data, depth: int) -> HeldLabels:
    """The labels of all partitions, where these lie."""
    held = data.executor.map(labels_in, zip(data.partitions, strict=True), data.shape, depth)
    return HeldLabels(data.executor, held, data.sizes, data.N, depth)


def _with_folds(
    partition: Partition, labels: Labels, first: int, n: int, folds: list[Any]
) -> Partition:
    """Where a partition lies: its windows with the distributions of the folds that have not seen
    them.
    """
    parts = [
        _distributions_of(bare(fold), part.context)
        for fold, part in zip(folds, blocks_of(labels, first, n, len(folds)), strict=True)
    ]
    offsets = np.cumsum([0, *(len(distributions) for distributions, _ in parts[:-1])])
    states = [state + offset for (_, state), offset in zip(parts, offsets, strict=True)]
    return partition.with_background(
        Background(
            np.concatenate([distributions for distributions, _ in parts]), np.concatenate(states)
        )
    )


def _with_background(partition: Partition, shape: Shape, model: HistoryModel) -> Partition:
    """Where a partition lies: its windows with their distributions."""
    context = labels_in(partition, shape, model.counts.depth).context
    return partition.with_background(Background(*_distributions_of(model, context)))


def _distributions_of(
    model: HistoryModel, contexts: NDArray[np.int64]
) -> tuple[Array, NDArray[np.int64]]:
    """The distributions (S, N) after the different contexts, and which of them each has."""
    different, state = np.unique(contexts, return_inverse=True)
    return model.distributions(different), state.astype(np.int64)


# ------------------------------------------------------------------------------------ another model


@dataclass(frozen=True)
class ModelBackground:
    """A fitted model with ``predict_proba`` as background; it must not have seen the data, since it
    cannot be cross-fitted here.

    It is asked for the distribution of the next symbol after rows (n, max_lag) of symbols, the
    oldest first, None where there is none: ``SparseContextualBigram`` takes these as sequences, a
    classifier of scikit-learn as features.
    """

    model: Any
    classes: NDArray[Any]  # our symbols, in the order of the codes

    @property
    def name(self) -> str:
        """The class of the model."""
        return type(self.model).__name__

    def cross_fitted(self, data: Data) -> Data:
        """The data of the fit, each window with what the model says."""
        return self.attached(data)

    def attached(self, data: Data) -> Data:
        """Windows, each with what the model says."""
        held = data.executor.map(_with_model, zip(data.partitions, strict=True), data.shape, self)
        return replace(data, partitions=held, own_background=True)

    def distributions(self, rows: NDArray[Any]) -> Array:
        """(n, N): what the model says after rows (n, T) of codes, N where there is none."""
        symbols = np.array([*self.classes.tolist(), None], dtype=object)[rows]
        if not (rows == len(self.classes)).any():
            symbols = symbols.astype(self.classes.dtype)
        said = np.asarray(self.model.predict_proba(symbols), float)
        theirs = np.asarray(self.model.classes_).tolist()
        if said.shape != (len(rows), len(theirs)):
            raise InputError(
                f"background: predict_proba gave {said.shape} for {len(rows)} windows and {len(theirs)} classes"
            )
        known = [theirs.index(x) if x in theirs else -1 for x in self.classes.tolist()]
        distributions = np.where(np.array(known) >= 0, said[:, known], 0.0)
        distributions += (1 - distributions.sum(axis=1, keepdims=True)) / len(
            self.classes
        )  # what they give to symbols that we do not have
        return (1 - _LEAST) * distributions + _LEAST / len(self.classes)


def _with_model(partition: Partition, shape: Shape, model: ModelBackground) -> Partition:
    """Where a partition lies: its windows with what a model says of them."""
    rows = partition.gather(np.tile(np.arange(shape.T), (shape.K, 1)), shape.N)
    different, state = np.unique(rows, axis=0, return_inverse=True)
    return partition.with_background(
        Background(model.distributions(different), state.reshape(-1).astype(np.int64))
    )
