"""Options that are "auto": which matrices, whether the current symbol chooses the lags, and which
background. They are chosen on held-out blocks of the data, then the model is fitted to all of them.

The usual choice is that the current symbol chooses the lags, and that the background is the
distribution of all labels: this is the easiest to read. Another choice is made only if it predicts
held-out symbols clearly better. For an n-gram no lags need be fitted again: a mixture of what it
predicts and what the lags predict comes close to a fit of both. Where sequences differ in the
symbols that they use, the lags are looked for once more beside frequencies of each sequence; if
that takes fewer parameters, what looked like memory was none. Windows count as often as their
weights say, except in an n-gram, which counts each of them once.
"""

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from scb.arrays import Array
from scb.mixture.data import Data
from scb.mixture.merging import bic_of, fit_matrices, matrices_of
from scb.mixture.partition import Partition, Shape
from scb.mixture.select import Progress
from scb.sequences.baselines.background import WindowBackground, histories_of
from scb.sequences.baselines.counts import (
    DEPTH,
    HistoryCounts,
    HistoryModel,
    deepest,
)
from scb.sequences.baselines.ngram import NGram, best_depth, logliks_by_depth
from scb.sequences.baselines.per_sequence import SequenceBackground, sequence_starts
from scb.sequences.lag_fit import (
    LagSettings,
    as_lags,
    chosen_background,
    fit_lags,
    is_auto,
)
from scb.sequences.lag_model import LagModel, said_of_matrices
from scb.sequences.tables import Classes

# With fewer windows everything is as usual; the choice is made on at most so many
FEWEST, MOST = 200, 50_000
# Windows come in so many blocks of neighbours, of which every fifth is held out
BLOCKS = 20
# What another choice must save: bits per symbol, and standard errors
WORTH, CLEAR = 0.01, 2.0
# Standard errors by which frequencies of each sequence must be better than those of all, and by how
# much they must lower the BIC of the lags
DIFFERENT, EXPLAINED = 3.0, 10.0
# Shares of another prediction in a mixture that are tried; the last one is all of it
SHARES = np.linspace(0, 1, 21)
# Entries of the distributions that frequencies of each sequence may take, which bounds memory
ENTRIES = 1 << 26
# An impossible label counts as this probable
LEAST = 1e-300
WEIGHTS = attrgetter("weights")
# Held by the executor of the data: for each partition (n,), the probability of each label
Likelihoods = list[Any]


def fit_chosen(
    data: Data,
    classes: Classes,
    settings: LagSettings,
    *,
    init: LagModel | None = None,
    progress: Progress | None = None,
) -> LagModel:
    """Choose the options that are left to the data, then fit all windows; see ``fit_lags``.

    Where context is "auto", the windows have the current symbol as their state.
    """
    chosen, bits = chosen_settings(data, classes, settings, init is not None)
    data = in_states(data, chosen.has_states)
    model = fit_lags(data, classes, chosen, init=init, progress=progress)
    facts = replace(model.facts, choices=bits, sequence_bits=_sequence_bits(model, data))
    return replace(model, facts=facts)


def in_states(data: Data, context: bool) -> Data:
    """Windows that have the current symbol as their state, or one state without context."""
    return data if context or data.K == 1 else data.with_one_state()


def chosen_settings(
    data: Data, classes: Classes, settings: LagSettings, has_start: bool = False
) -> tuple[LagSettings, dict[str, float]]:
    """The settings with every option chosen, and by name the bits per held-out symbol of what was
    tried, the usual choice first.

    If only the kind of matrix is open, the BIC decides later. If another model is the start of the
    search, or there are too few windows to hold any out, everything is as usual. If lags are asked
    for, these must explain what they can: the background is as usual.
    """
    open_background = is_auto(settings.background) and settings.selects_lags
    contexts = (True, False) if is_auto(settings.context) else (settings.has_states,)
    background = "labels" if is_auto(settings.background) else settings.background
    usual = replace(settings, context=contexts[0], background=background)
    nothing_open = len(contexts) == 1 and not open_background
    if nothing_open or has_start or data.n < FEWEST:
        return usual, {}
    blocks = HeldOutBlocks.of(data)
    if open_background:
        best, bits = _best_lags(blocks, classes, usual, contexts)
        best = _beside_frequencies(blocks, classes, best, usual, bits)
        best = _beside_ngram(blocks, best, bits)
    else:
        given = chosen_background(background, blocks.train, classes)
        best, bits = _best_lags(blocks.beside(given), classes, usual, contexts)
    return best.settings, bits


# --------------------------------------------------------------------------------- held-out windows


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
        """The same windows with a background that was fitted to those to fit."""
        if background is None:
            return self
        return HeldOutBlocks(background.cross_fitted(self.train), background.attached(self.test))

    def mapped(self, function: Callable[..., Any], *same: Any) -> list[Any]:
        """What a function makes of each held-out partition and the shape, held where it lies."""
        data = self.test
        return data.executor.map(function, zip(data.partitions, strict=True), data.shape, *same)

    def total(self, function: Callable[..., Any], *held: list[Any]) -> Any:
        """The sum of a function of what is held for each held-out partition, per window."""
        executor = self.test.executor
        return executor.total(executor.map(function, zip(*held, strict=True))) / self.test.n

    @property
    def weights(self) -> list[Any]:
        """For each held-out partition (n,), how often each window counts; held where it lies."""
        return self.test.executor.map(WEIGHTS, zip(self.test.partitions, strict=True))

    def bits(self, likelihoods: Likelihoods) -> float:
        """The mean number of bits per held-out symbol."""
        return float(-self.total(_loglik, likelihoods, self.weights) / np.log(2))

    def gain(self, own: Likelihoods, other: Likelihoods) -> "Gain":
        """What another prediction saves."""
        return Gain.of(self.total(_gains, own, other, self.weights)[-1], self.test.n)

    def gain_of_mixture(self, own: Likelihoods, other: Likelihoods) -> "Gain":
        """What the best mixture with another prediction saves."""
        sums = self.total(_gains, own, other, self.weights)
        return Gain.of(sums[np.argmax(sums[:, 0])], self.test.n)


class Gain(NamedTuple):
    """What another choice saves, in bits per held-out symbol, and the standard error of that."""

    bits: float
    error: float

    @classmethod
    def of(cls, moments: Array, n: float) -> "Gain":
        """From the means of the gains of n symbols and of their squares, in nats."""
        mean, square = moments
        error = np.sqrt(max(square - mean**2, 0.0) / n)
        return cls(float(mean / np.log(2)), float(error / np.log(2)))

    @property
    def is_clear(self) -> bool:
        """Whether it is worth a choice that is harder to read."""
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


# --------------------------------------------------------------------------------------- lags


class Tried(NamedTuple):
    """A choice, what it predicts for held-out windows, and its BIC on what was fitted."""

    settings: LagSettings
    likelihoods: Likelihoods
    bic: float


def _best_lags(
    blocks: HeldOutBlocks, classes: Classes, usual: LagSettings, contexts: tuple[bool, ...]
) -> tuple[Tried, dict[str, float]]:
    """Choose the kind of matrix, and whether the current symbol chooses the lags; and the bits of
    each. The usual choice is the first context, with the kind of matrix of the lower BIC; the other
    context is tried with this kind.
    """
    kinds = ("shared", "auto") if is_auto(usual.transition) else (usual.transition,)
    tried = [
        _try_lags(blocks, classes, replace(usual, transition=kind, context=contexts[0]))
        for kind in kinds
    ]
    best = first = min(tried, key=lambda one: one.bic)
    tried += [
        _try_lags(blocks, classes, replace(first.settings, context=context))
        for context in contexts[1:]
    ]
    bits = {_name(first): blocks.bits(first.likelihoods)}
    most = 0.0
    for one in tried:
        gain = blocks.gain(first.likelihoods, one.likelihoods)
        bits[_name(one)] = bits[_name(first)] - gain.bits
        if gain.is_clear and gain.bits > most:
            best, most = one, gain.bits
    return best, bits


def _name(tried: Tried) -> str:
    kind = tried.settings.transition
    if tried.settings.has_states:
        return said_of_matrices(kind)
    return f"{'one matrix' if kind == 'shared' else said_of_matrices(kind)}, no context"


def _try_lags(blocks: HeldOutBlocks, classes: Classes, settings: LagSettings) -> Tried:
    """Fit lags to the windows to fit."""
    blocks = HeldOutBlocks(*(in_states(data, settings.has_states) for data in blocks))
    options = {"shrink": settings.shrink} | settings.asked_lags()
    estimate = fit_matrices(blocks.train, settings.transition, **options)
    settings = replace(settings, transition=matrices_of(estimate))
    model = as_lags(estimate, blocks.train, classes, settings, {})
    likelihoods = blocks.mapped(_lag_likelihoods, model)
    return Tried(settings, likelihoods, bic_of(estimate, blocks.train.n))


def _lag_likelihoods(partition: Partition, shape: Shape, model: LagModel) -> Array:
    return partition.rows(shape, model.slots, counted=False).likelihoods(model.mixture)


# ------------------------------------------------------------------ frequencies of each sequence


def _beside_frequencies(
    blocks: HeldOutBlocks,
    classes: Classes,
    best: Tried,
    usual: LagSettings,
    bits: dict[str, float],
) -> Tried:
    """The best choice so far, or lags beside frequencies of each sequence, if sequences differ and
    these lags have the lower BIC.
    """
    several = sum(data.total(sequence_starts) for data in blocks) > 1
    if not several or sum(data.n_samples for data in blocks) * len(classes) > ENTRIES:
        return best
    frequencies = SequenceBackground.fit(blocks.train)
    alike = blocks.mapped(_prior_likelihoods, frequencies.prior)
    gain = blocks.gain(alike, blocks.mapped(frequencies.likelihoods))
    if gain.bits < DIFFERENT * gain.error:
        return best
    beside = replace(usual, background=frequencies.option)
    other, _ = _best_lags(blocks.beside(frequencies), classes, beside, (usual.has_states,))
    bits["beside frequencies of each sequence"] = blocks.bits(other.likelihoods)
    return other if other.bic < best.bic - EXPLAINED else best


def _prior_likelihoods(partition: Partition, shape: Shape, prior: Array) -> Array:
    return prior[partition.label]


def _sequence_bits(model: LagModel, data: Data) -> float:
    """What frequencies of each sequence need where lags were found without them, in bits per
    symbol; NaN where there is one sequence.
    """
    if model.background is not None or not model.attention.nnz or data.total(sequence_starts) < 2:
        return np.nan
    loglik = data.total(_frequency_loglik, SequenceBackground.fit(data))
    return float(-loglik / data.n / np.log(2))


def _frequency_loglik(partition: Partition, shape: Shape, frequencies: SequenceBackground) -> Array:
    return (partition.weights * np.log(frequencies.likelihoods(partition, shape))).sum()


# ----------------------------------------------------------------------------------------- n-grams


def _beside_ngram(blocks: HeldOutBlocks, best: Tried, bits: dict[str, float]) -> Tried:
    """The best choice so far, or its lags with an n-gram as background."""
    ngram = blocks.mapped(_ngram_likelihoods, _best_ngram(blocks))
    gain = blocks.gain_of_mixture(best.likelihoods, ngram)
    bits["beside an n-gram"] = blocks.bits(best.likelihoods) - gain.bits
    if not gain.is_clear:
        return best
    return best._replace(settings=replace(best.settings, background="ngram"))


def _best_ngram(blocks: HeldOutBlocks) -> HistoryModel:
    """The n-gram of the windows to fit that predicts those to predict best."""
    train = blocks.train
    longest = deepest(train.N, min(DEPTH, train.T))
    counts, held_out = (data.total(_counted, longest) for data in blocks)

    def logliks(depth: int) -> Array:
        return logliks_by_depth(counts.shortened(depth), held_out.shortened(depth))

    depth, smoothing = best_depth(logliks, longest)
    return NGram(counts.shortened(depth), smoothing)


def _counted(partition: Partition, shape: Shape, depth: int) -> HistoryCounts:
    return HistoryCounts.count(histories_of(partition, shape, depth), shape.N, depth)


def _ngram_likelihoods(partition: Partition, shape: Shape, model: HistoryModel) -> Array:
    return model.likelihoods(histories_of(partition, shape, model.counts.depth))
