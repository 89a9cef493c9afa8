"""From data to an estimate: where the search starts, the search, the last fit, and how sure it is.
``recover`` and the estimator are faces of ``fit_mixture``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit, maximise
from scb.mixture.errors import label_counts, standard_errors
from scb.mixture.evidence import PendingEvidence
from scb.mixture.model import Initial, Mixture, smoothed_columns
from scb.mixture.per_lag import MATRIX_PER_LAG, add_current, remove_current, settle_gauge
from scb.mixture.profile import Limit, rest_limit
from scb.mixture.rows import RowTable, Slots, Support
from scb.mixture.select import (
    Policy,
    Progress,
    Selection,
    em_from_scratch,
    first_estimate,
    thinned_for_start,
)
from scb.mixture.shared import SHARED_MATRIX
from scb.mixture.tuning import TUNING
from scb.mixture.weights import fit_weights

# a background whose ratio reaches this is kept: the context lacks a position. By chance in 1 of 40
INCOMPLETE = 3.84


@dataclass(frozen=True)
class Estimate:
    """What the data say."""

    # (N, C), one matrix, or those of ``owners`` side by side; distributions in columns
    P: Array
    P_errors: Array  # (N, C), standard errors
    # The positions that have a matrix of their own; None where all share one
    owners: tuple[int, ...] | None
    # List of K position arrays, ascending; empty where none was found: there the label has its own
    # distribution
    support: Support
    weights: list[Array]  # list of K arrays, the attention on the support
    weight_errors: list[Array]  # list of K arrays, standard errors
    # rest, rest_errors: (K,), the weight of the background, for positions that were not found, and
    # its standard error
    rest: Array
    rest_errors: Array
    # (K,), twice the log-likelihood ratio of the background beside the positions; NaN where there
    # are none, and where samples have backgrounds of their own
    rest_ratios: Array
    # (C,), how many labels each column of P was estimated from
    counts: Array
    loglik: float  # of the last maximum-likelihood fit, in nats
    gap: float  # its certificate
    path: list[float]  # its log-likelihood, step by step
    parameters: int  # how many the data can tell apart
    settled: bool  # whether the search for positions came to its end
    evidence: PendingEvidence  # what each position is worth, once somebody asks
    rest_limit: Callable[[int, float, bool], Limit]  # see ``scb.mixture.profile``


def fit_mixture(
    data: Data,
    *,
    matrices: Literal["shared", "per_lag"] = "shared",  # one for all positions, or one for each
    # So many positions in each context; those that the extended BIC asks for unless given
    number: int | None = None,
    # The positions themselves, ascending, the same in every context
    positions: NDArray[np.intp] | None = None,
    # Where the search starts; from EM over all positions unless given
    initial: Initial | None = None,
    known: Initial | None = None,  # matrices to start from, and nothing else
    progress: Progress | None = None,  # is called after every round of the search
) -> Estimate:
    """Find the positions that matter, then estimate by maximum likelihood."""
    per_lag = matrices == "per_lag"
    policy = MATRIX_PER_LAG if per_lag else SHARED_MATRIX
    # The likelihood of whole samples does not depend on the gauge of the matrices, and that of the
    # others hardly does, so that a climb would follow a long and nearly flat valley. They come in
    # once the gauge is settled.
    searched = data.whole() if per_lag else data
    if positions is not None:
        return _finish(_given(searched, policy, positions, known, per_lag), data, settled=True)
    search = Selection.start(searched, policy, initial or first_estimate(searched, known, per_lag))
    current_is_context = per_lag and data.K > 1
    if current_is_context:
        add_current(search)
    settled = search.settle(progress)
    if current_is_context:
        remove_current(search)
    if number is not None:
        search.settle_exactly(number)
    return _finish(search, data, settled)


def _given(
    data: Data, policy: Policy, positions: NDArray[np.intp], known: Initial | None, per_lag: bool
) -> Selection:
    """At these positions in every context that occurs; from known matrices where there are any."""
    support = [positions if n else positions[:0] for n in data.counts]
    weights = np.full((data.K, len(positions)), 1 / len(positions))
    owners = None
    if per_lag:
        owners = tuple(positions.tolist())
        rows = data.rows(Slots.everywhere(positions, data.K))
        matrices = [
            smoothed_columns(rows.total(RowTable.pairs, j, data.N), data.label_distribution)
            for j in range(len(owners))
        ]
        if known is not None and known.owners is not None:
            before = Mixture.of(known.P, data.label_distribution, weights, known.owners)
            matrices = [
                before.matrix(t) if t in known.owners else P
                for t, P in zip(owners, matrices, strict=True)
            ]
        P = np.column_stack(matrices)
    elif known is not None:
        P = known.P
    else:
        fitted = em_from_scratch(thinned_for_start(data), positions)
        P = fitted.P
        weights = fitted.q
    q = np.where(
        data.counts[:, None] > 0, np.c_[np.zeros(data.K), weights], np.eye(1, 1 + len(positions))
    )
    return Selection(data, policy, support, Mixture.of(P, data.label_distribution, q, owners))


def _finish(search: Selection, data: Data, settled: bool) -> Estimate:
    """Fit to the end, by a convention where the data leave something open, and say how sure it is.

    A search may have looked at a part of the data only.
    """
    rows, fit, ratios = _fit_to_the_end(search)
    held = np.zeros(search.mixture.P.shape, bool)
    if search.mixture.owners is not None:
        held = settle_gauge(search, rows)
    gauge_matters = held.any() and (data.present < data.counts[:, None]).any()
    if gauge_matters or search.data is not data:
        # Where a lag is not there, the background gets its weight, which is another one now.
        rows, fit = _fit_to_all(search, data, held)
    return _estimate(search, rows, fit, held, ratios, settled)


def _fit_to_the_end(search: Selection) -> tuple[Rows, Fit, Array]:
    """Maximum likelihood at the positions of a search that is over, without those that lose their
    weight.

    Also the ratios (K,) of the background beside the positions, which stays in contexts that lack a
    position.
    """
    search.put_in_order()
    # Where a search ends, the background stands beside the positions in every context.
    beside = search.mixture
    searched = bool(beside.q[:, 0].all())
    own = np.full(search.data.K, search.data.own_background)
    rows, fit = search.final_fit(own)
    empty = search.empty_slots(TUNING.empty_at_end)
    if empty:
        other = replace(search, support=list(search.support), mixture=beside)
        other.remove(empty)
        beside = other.mixture
        search.remove(empty)
        rows, fit = search.final_fit(own)
    if not searched:
        beside = search.with_background(TUNING.empty)
    ratios = np.full(search.data.K, np.nan) if own.any() else rest_ratios(rows, fit, beside)
    if (ratios >= INCOMPLETE).any():
        rows, fit = search.final_fit(ratios >= INCOMPLETE)
    return rows, fit, ratios


def _fit_to_all(search: Selection, data: Data, held: NDArray[np.bool_]) -> tuple[Rows, Fit]:
    """Maximum likelihood on all data, from the fit to the searched part; ``held`` (N, C) entries of
    P stay 0.
    """
    start = search.mixture
    if search.data is not data:
        # A label that the searched part has never seen is not impossible in the whole: it comes in
        # with all labels.
        start = replace(start, columns=np.c_[start.P, data.label_distribution]).lifted()
        P = np.where(held, 0.0, start.P)
        start = start.moved(P / P.sum(axis=0), start.q)
    search.data = data
    rows = search.rows()
    fit = maximise(rows, start, tolerance=1e-3, steps=5000, held=held, near=True)
    search.mixture = fit.mixture
    return rows, fit


def _estimate(
    search: Selection, rows: Rows, fit: Fit, held: NDArray[np.bool_], ratios: Array, settled: bool
) -> Estimate:
    """What a fit that has come to its end says, with standard errors and the number of free
    parameters.
    """
    mixture = search.mixture
    P_errors, q_errors = standard_errors(rows, mixture, held)
    counts = label_counts(rows, mixture)
    sizes = [s.size for s in search.support]
    distributions = (counts > 0).sum() + (1 if 0 in sizes else 0)
    weights = (mixture.q > 0).sum(axis=1) - 1
    free = (mixture.N - 1) * distributions + weights.sum() - held.sum()
    return Estimate(
        P=mixture.P,
        P_errors=P_errors,
        owners=mixture.owners,
        support=search.support,
        weights=[mixture.q[k, 1 : 1 + size] for k, size in enumerate(sizes)],
        weight_errors=[q_errors[k, 1 : 1 + size] for k, size in enumerate(sizes)],
        rest=mixture.q[:, 0].copy(),
        rest_errors=np.where(np.array(sizes) > 0, q_errors[:, 0], np.nan),
        rest_ratios=ratios,
        counts=counts,
        loglik=fit.loglik,
        gap=fit.gap,
        path=fit.path,
        parameters=int(free),
        settled=settled,
        evidence=PendingEvidence(search, rows, fit.loglik),
        rest_limit=partial(rest_limit, rows, mixture),
    )


def rest_ratios(rows: Rows, fit: Fit, beside: Mixture) -> Array:
    """(K,): twice the log-likelihood ratio of the background beside the positions of each context;
    NaN where there are none.

    A position that was not found leaves its weight to the background. From ``beside``, which has it
    in all contexts, everything is fitted again. What that gains on the fit without any background
    is no less than what one context gains. Where it is much, the background is taken out of each
    context: with P fixed first, which overstates the ratio, and with P fitted again where that one
    is large.
    """
    there = np.any(fit.mixture.q[:, 1:] > 0, axis=1)
    with_all = maximise(rows, beside, tolerance=TUNING.close / 10)
    gain = max(0.0, 2 * (with_all.loglik - fit.loglik))
    ratios = np.where(there, gain, np.nan)
    if gain <= TUNING.close or not there.any():
        return ratios
    q = with_all.mixture.q.copy()
    q[there, 0] = 0.0
    q[there] /= q[there].sum(axis=1, keepdims=True)
    lifted = with_all.mixture.lifted()  # no label is impossible without the background
    without = fit_weights(rows, replace(lifted, q=q), tolerance=TUNING.close / 10, contexts=there)
    fixed_P = 2 * (rows.total(RowTable.loglik_by_context, lifted) - without.logliks)
    ratios = np.minimum(ratios, np.maximum(fixed_P, 0.0))
    for k in np.flatnonzero(ratios >= INCOMPLETE).tolist():
        q = with_all.mixture.q.copy()
        q[k] = without.q[k]
        one_less = maximise(rows, replace(lifted, q=q), tolerance=TUNING.close / 10)
        ratios[k] = min(gain, max(0.0, 2 * (with_all.loglik - one_less.loglik)))
    return ratios
