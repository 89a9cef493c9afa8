"""Options that are "auto": how many matrices, whether the current symbol chooses the lags, and
which background. They are chosen on held-out blocks of the data; then the model is fitted to all
the data.

The usual choice is that the current symbol chooses the lags and that the background is the
distribution of all labels, because such a model is the easiest to interpret. Another choice is made
only if it predicts held-out symbols clearly better. To try an n-gram, no lags need to be fitted
again: a mixture of the predictions of the n-gram and of the lags comes close to a joint fit. Where
sequences differ in the symbols that they use, the search for lags is repeated with the frequencies
of each sequence as background. If this model needs fewer parameters, what looked like memory was a
difference between sequences. Windows count as often as their weights say, except in an n-gram,
which counts each window once.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scb.arrays import Array
from scb.mixture.data import Data
from scb.mixture.errors import unknown_errors
from scb.mixture.merging import fit_matrices, matrices_of
from scb.mixture.partition import Partition, Shape
from scb.mixture.select import Progress
from scb.sequences.baselines.background import histories_of
from scb.sequences.baselines.counts import (
    DEPTH,
    HistoryCounts,
    HistoryModel,
    deepest,
)
from scb.sequences.baselines.ngram import NGram, best_depth, logliks_by_depth
from scb.sequences.baselines.per_sequence import SequenceBackground, sequence_starts
from scb.sequences.held_out import HeldOutBlocks, Likelihoods
from scb.sequences.lag_fit import (
    LagSettings,
    as_lags,
    chosen_background,
    fit_lags,
    is_auto,
)
from scb.sequences.lag_model import LagModel, said_of_matrices
from scb.sequences.tables import Classes

# With fewer windows everything is as usual
FEWEST = 200
# Standard errors by which frequencies of each sequence must be better than those of all, and by how
# much they must lower the BIC of the lags
DIFFERENT, EXPLAINED = 3.0, 10.0
# Entries of the distributions that frequencies of each sequence may take, which bounds memory
ENTRIES = 1 << 26


def fit_chosen(
    data: Data,
    classes: Classes,
    settings: LagSettings,
    *,
    init: LagModel | None = None,
    progress: Progress | None = None,
) -> LagModel:
    """Choose the options that are "auto" from the data, then fit all windows; see ``fit_lags``.

    If ``context`` is "auto", the windows have the current symbol as their state.
    """
    chosen, bits = chosen_settings(data, classes, settings, init is not None)
    data = in_states(data, chosen.has_states)
    model = fit_lags(data, classes, chosen, init=init, progress=progress)
    facts = replace(model.facts, choices=bits, sequence_bits=_sequence_bits(model, data))
    return replace(model, facts=facts)


def in_states(data: Data, context: bool) -> Data:
    """Windows that have the current symbol as their state or, without context, a single state."""
    return data if context or data.K == 1 else data.with_one_state()


def chosen_settings(
    data: Data, classes: Classes, settings: LagSettings, has_start: bool = False
) -> tuple[LagSettings, dict[str, float]]:
    """The settings with every option chosen, and the bits per held-out symbol of each choice tried,
    by name, with the usual choice first.

    If only the kind of matrix is open, the BIC decides later. If the search starts from another
    model, or there are too few windows to hold any out, the usual choice is made for every option.
    If lags are given, the usual background is chosen, so the given lags explain as much as they
    can.
    """
    open_background = is_auto(settings.background) and settings.selects_lags
    contexts = (True, False) if is_auto(settings.context) else (settings.has_states,)
    background = "labels" if is_auto(settings.background) else settings.background
    usual = replace(settings, context=contexts[0], background=background)
    nothing_open = len(contexts) == 1 and not open_background and not settings.covariates
    if nothing_open or has_start or data.n < FEWEST:
        return usual, {}
    blocks = HeldOutBlocks.of(data)
    if open_background:
        best, bits = _best_lags(blocks, classes, usual, contexts)
        best = _beside_chooser(blocks, classes, best, bits)
        best = _beside_frequencies(blocks, classes, best, usual, bits)
        best = _beside_ngram(blocks, best, bits)
    else:
        given = chosen_background(background, blocks.train, classes)
        blocks = blocks.beside(given)
        best, bits = _best_lags(blocks, classes, usual, contexts)
        best = _beside_chooser(blocks, classes, best, bits)
    return best.settings, bits


# --------------------------------------------------------------------------------------- lags


class Tried(NamedTuple):
    """A choice, its predictions for held-out windows, and its BIC on the data that were fitted."""

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
    tried = [
        _try_lags(blocks, classes, replace(usual, transition=kind, context=contexts[0]))
        for kind in usual.kinds
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
    settings = tried.settings
    kind = settings.transition
    name = said_of_matrices(kind)
    if not settings.has_states:
        name = f"{'one matrix' if kind == 'shared' else name}, no context"
    return f"{name}, covariates" if settings.sources else name


def _beside_chooser(
    blocks: HeldOutBlocks, classes: Classes, best: Tried, bits: dict[str, float]
) -> Tried:
    """The best choice so far, or one of the covariates that chooses with the current symbol, if the
    current symbol may choose at all.
    """
    if not best.settings.has_states:
        return best
    for i, one in enumerate(best.settings.covariates):
        # It cannot pay with fewer than 20 windows for each state
        if 20 * len(classes) * len(one.values) > blocks.train.n:
            continue
        chosen = replace(best.settings, transition="per_lag", chooser=i)
        other = _try_lags(blocks, classes, chosen)
        gain = blocks.gain(best.likelihoods, other.likelihoods)
        bits[f"current symbol and {one.name!r} choose"] = blocks.bits(other.likelihoods)
        if gain.is_clear:
            best = other
    return best


def _try_lags(blocks: HeldOutBlocks, classes: Classes, settings: LagSettings) -> Tried:
    """Fit lags to the windows to fit."""
    blocks = HeldOutBlocks(
        *(settings.sourced(in_states(data, settings.has_states)) for data in blocks)
    )
    options = {"shrink": settings.shrink, "errors": unknown_errors} | settings.asked_lags()
    estimate = fit_matrices(blocks.train, settings.transition, **options)
    settings = replace(settings, transition=matrices_of(estimate))
    model = as_lags(estimate, blocks.train, classes, settings, {})
    likelihoods = blocks.mapped(_lag_likelihoods, model)
    return Tried(settings, likelihoods, estimate.bic)


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
    whole = counts + held_out

    def logliks(depth: int) -> Array:
        return logliks_by_depth(whole.shortened(depth), held_out.shortened(depth))

    best = best_depth(logliks, longest)
    return NGram(counts.shortened(best.depth), best.smoothing)


def _counted(partition: Partition, shape: Shape, depth: int) -> HistoryCounts:
    return HistoryCounts.count(histories_of(partition, shape, depth), shape.N, depth)


def _ngram_likelihoods(partition: Partition, shape: Shape, model: HistoryModel) -> Array:
    return model.likelihoods(histories_of(partition, shape, model.counts.depth))
