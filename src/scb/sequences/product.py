"""Experts whose predictions are multiplied, p ∝ Π_j p_j^w_j, and their weights. The weights
maximise the likelihood of held-out symbols, which is a concave problem.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from scb.arrays import Array, Ints, Positions
from scb.sequences.baselines.adaptive import LongestMatch, RecentFrequencies, RecentPairs
from scb.sequences.baselines.counts import DEPTH, HistoryModel, history_codes
from scb.sequences.baselines.crossfit import HeldLabels, best_recent
from scb.sequences.baselines.ngram import NGram
from scb.sequences.coding import labels_among
from scb.sequences.lag_model import LagModel
from scb.sequences.tables import Arrays, Codes

# Half-lives that are tried, in symbols
HALF_LIVES = (8.0, 32.0, 128.0, 512.0)
# Logarithms of probabilities that the weights are fitted to, at most
ENTRIES = 1 << 23
# No expert makes a symbol impossible
LEAST = 1e-6
# How strongly the weights are held to those of the lags alone, in nats
RIDGE = 20.0
# What an expert must be worth for held-out symbols, in nats
WORTH = 4.0
NAMES = ("lags", "n-gram", "recent symbols", "recent pairs", "longest match")


# Its method ``distributions`` maps the codes of a sequence to the distribution (n + 1, N) of each
# symbol, and of the one after the last
Expert = Any
Experts = dict[str, Expert]


@dataclass(frozen=True)
class LagExpert:
    """A model of lags as an expert."""

    model: LagModel

    def distributions(self, codes: Codes) -> Array:
        """(n + 1, N): the distribution of each symbol, and of the one after the last."""
        after = self.model.distributions(codes)[: codes.size]
        return np.concatenate([self.model.prior[None], after])


@dataclass(frozen=True)
class HistoryExpert:
    """An n-gram or a context tree as an expert."""

    model: HistoryModel

    def distributions(self, codes: Codes) -> Array:
        """(n + 1, N): the distribution of each symbol, and of the one after the last."""
        histories = history_codes(codes, self.model.N, self.model.counts.depth)
        distinct, place = np.unique(histories, return_inverse=True)
        return self.model.distributions(distinct)[place]


def fit_experts(
    lags: LagModel, sequences: Sequence[Codes], tuned: Experts | None = None
) -> Experts:
    """The experts for sequences of codes. How fast they forget, and how reliable a match is, are
    taken from the experts that were ``tuned``.
    """
    N = len(lags.classes)
    bigram = NGram.fit(sequences, N, 2, "witten-bell")
    prior = bigram.distributions(np.zeros(1, np.int64))[0]
    pairs = bigram.distributions(np.arange(1, N + 1))
    recent = best_recent(HeldLabels.here(sequences, N, DEPTH)).model
    match = LongestMatch.fit(sequences, N)
    half_lives = (HALF_LIVES[0], HALF_LIVES[0])
    if tuned is not None:
        half_lives = (tuned["recent symbols"].half_life, tuned["recent pairs"].half_life)
        sure = tuned["longest match"]
        match = replace(match, right=sure.right, wrong=sure.wrong)
    experts = (
        LagExpert(lags),
        HistoryExpert(recent),
        RecentFrequencies(prior, half_lives[0]),
        RecentPairs(pairs, prior, half_lives[1]),
        match,
    )
    return dict(zip(NAMES, experts, strict=True))


def logs_of(expert: Expert, codes: Codes) -> Array:
    """(n + 1, N): the logarithms of the probabilities, bounded from below."""
    return np.log((1 - LEAST) * expert.distributions(codes) + LEAST / 2)


def predicted(codes: Codes, skipped: int = 0) -> Positions:
    """The places of the symbols that follow another, after the symbols to skip."""
    return np.flatnonzero(labels_among([codes], skipped))


@dataclass(frozen=True)
class HeldOut:
    """Sequences to fit the weights to."""

    sequences: list[Codes]
    skipped: list[int]  # symbols at the start of each that are history only

    @cached_property
    def places(self) -> list[Positions]:
        """The symbols of each sequence that are predicted."""
        pairs = zip(self.sequences, self.skipped, strict=True)
        return [predicted(x, skipped) for x, skipped in pairs]

    @cached_property
    def labels(self) -> Ints:
        """(n,): the symbols to be predicted."""
        pairs = zip(self.sequences, self.places, strict=True)
        return np.concatenate([x[at] for x, at in pairs])

    def logs_of(self, expert: Expert) -> Array:
        """(n, N): the log-probabilities that an expert predicts for each of these symbols."""
        pairs = zip(self.sequences, self.places, strict=True)
        return np.concatenate([logs_of(expert, x)[at] for x, at in pairs if at.size])

    def logs(self, experts: Experts) -> Array:
        """(n, N, experts): the log-probabilities that all experts predict."""
        return np.stack([self.logs_of(expert) for expert in experts.values()], axis=2)

    def tuned(self, experts: Experts) -> Experts:
        """The experts with the half-lives that predict best, and with matches as probable as they
        are right in these sequences.
        """
        own = np.arange(self.labels.size), self.labels
        tuned = dict(experts)
        for name in ("recent symbols", "recent pairs"):
            choices = [replace(experts[name], half_life=one) for one in HALF_LIVES]
            tuned[name] = max(choices, key=lambda one: float(self.logs_of(one)[own].sum()))
        for x, at in zip(self.sequences, self.places, strict=True):
            tuned["longest match"].learn(x, at)
        return tuned


def fit_weights(logs: Array, labels: Ints, start: Array) -> Array:
    """(J,): the weights w that maximise Σ log p, p ∝ exp(Σ_j w_j·logs[…, j]), by Newton steps from
    the weights towards which they are regularised; ``logs`` is (n, N, J).
    """
    n, N, J = logs.shape
    if J == 0:
        return start
    some = np.linspace(0, n - 1, min(n, max(1, ENTRIES // (N * J)))).astype(int)
    logs = logs[some]
    labels = labels[some]
    own = logs[np.arange(labels.size), labels]

    def value(w: Array) -> float:
        score = log_softmax(logs @ w, axis=1)[np.arange(labels.size), labels].sum()
        return float(score - RIDGE / 2 * ((w - start) ** 2).sum())

    w = start
    for _ in range(50):
        p = softmax(logs @ w, axis=1)
        mean = np.einsum("ns,nsj->nj", p, logs)
        gradient = (own - mean).sum(axis=0) - RIDGE * (w - start)
        weighted = (logs * p[:, :, None]).reshape(-1, J)
        hessian = logs.reshape(-1, J).T @ weighted - mean.T @ mean + RIDGE * np.eye(J)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while value(w + size * step) < value(w) and size > 1e-4:
            size /= 2
        w = w + size * step
        if gradient @ step < 1e-3:  # nats
            break
    return w


def useful_weights(logs: Array, labels: Ints) -> Array:
    """(J,): the weights of the experts that are worth having, and 0 for the other experts. The
    first expert always stays; if all weights together are not worth having, only the first expert
    stays, with weight 1.
    """
    J = logs.shape[2]
    start = np.eye(J)[0]
    kept = np.arange(J)

    def fitted(some: Positions) -> tuple[float, Array]:
        weights = fit_weights(logs[:, :, some], labels, start[some])
        return bits_of(logs[:, :, some], labels, weights), weights

    bits, weights = fitted(kept)
    while kept.size > 1:
        without = [np.delete(kept, j) for j in range(1, kept.size)]
        best = min(without, key=lambda some: fitted(some)[0])
        less, fewer = fitted(best)
        if (less - bits) * labels.size * np.log(2) > WORTH:
            break
        kept, bits, weights = best, less, fewer
    alone = bits_of(logs, labels, start)
    if (alone - bits) * labels.size * np.log(2) <= WORTH * kept.size:
        return start
    whole = np.zeros(J)
    whole[kept] = weights
    return whole


def bits_of(logs: Array, labels: Ints, weights: Array) -> float:
    """The bits per symbol of a product of experts."""
    scores = log_softmax(logs @ weights, axis=1)[np.arange(labels.size), labels]
    return float(-scores.mean() / np.log(2))


def what_each_adds(names: Sequence[str], logs: Array, labels: Ints, weights: Array) -> Arrays:
    """For each expert, its weight, the bits per symbol that it needs alone, and how many more bits
    the other experts need without it, after their weights are fitted again; 0 if the expert has no
    weight.
    """
    together = bits_of(logs, labels, weights)
    start = np.eye(len(names))[0]
    alone = [bits_of(logs, labels, only) for only in np.eye(len(names))]
    adds = np.zeros(len(names))
    for j in np.flatnonzero(weights):
        others = np.setdiff1d(np.flatnonzero(weights), j)
        without = fit_weights(logs[:, :, others], labels, start[others])
        adds[j] = bits_of(logs[:, :, others], labels, without) - together
    columns = {"weight": weights, "alone": np.array(alone), "adds": adds}
    return {"expert": np.array(names), **columns}
