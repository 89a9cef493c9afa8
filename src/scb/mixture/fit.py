"""The steps from data to an estimate: the start of the search, the search, the last fit, and its
uncertainty. ``recover`` and the estimator are interfaces to ``fit_mixture``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from scb.arrays import Array, Flags, Positions
from scb.mixture.cross_fit import CrossFit, has_few_samples, revise
from scb.mixture.data import Data, Rows
from scb.mixture.em import Fit, last_gap, maximise
from scb.mixture.errors import Errors, Limit, background_limit, label_counts, standard_errors
from scb.mixture.evidence import PendingEvidence
from scb.mixture.lag_costs import bic_of
from scb.mixture.model import Initial, Mixture, smoothed_columns, weight_table
from scb.mixture.per_lag import MATRIX_PER_LAG, add_current, remove_current, settle_gauge
from scb.mixture.profile import Profile
from scb.mixture.rows import RowTable, Slots, Support
from scb.mixture.select import Policy, Selection
from scb.mixture.settle import Progress, settle, settle_exactly
from scb.mixture.shared import SHARED_MATRIX
from scb.mixture.shrink import shrunk
from scb.mixture.starts import em_from_scratch, first_estimate, thinned_for_start
from scb.mixture.tuning import TUNING
from scb.mixture.weights import fit_weights
from scb.theory.gaussian import noise_quantile


def incomplete_from(states: int) -> float:
    """The likelihood ratio at which a background is kept because the state lacks a position.

    If no state lacks a position, the ratio is 0 half the time and otherwise follows a χ²
    distribution with one degree of freedom. In 1 of 20 fits, some state reaches the level by
    chance.
    """
    return noise_quantile(max(states, 2), 0.05) ** 2


@dataclass(frozen=True)
class Estimate:
    """The result of a fit."""

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
    # (K,), the weight of the background, for positions that were not found
    background: Array
    background_errors: Array  # (K,), its standard errors
    # (K,), twice the log-likelihood ratio of the background beside the positions; NaN where there
    # are none, and where samples have backgrounds of their own
    background_ratios: Array
    # (C,), how many labels each column of P was estimated from
    counts: Array
    loglik: float  # of the last maximum-likelihood fit, in nats
    gap: float  # its certificate
    path: list[float]  # its log-likelihood, step by step
    parameters: int  # how many the data can tell apart
    bic: float  # of the last maximum-likelihood fit (``lag_costs.bic_of``)
    settled: bool  # whether the search for positions came to its end
    evidence: PendingEvidence  # what each position is worth, found on demand
    # See ``scb.mixture.errors``
    background_limit: Callable[[int, float, bool], Limit]
    profile: Profile


def fit_mixture(
    data: Data,
    *,
    matrices: Literal["shared", "per_lag"] = "shared",  # one for all positions, or one for each
    # So many positions in each state; those that the extended BIC asks for unless given
    number: int | None = None,
    # The positions themselves, ascending, the same in every state
    positions: Positions | None = None,
    # Where searches start, of which the best counts; from EM over all positions unless given
    initial: Sequence[Initial] = (),
    known: Initial | None = None,  # matrices to start from, and nothing else
    # Matrices are shrunk where that is worth more than so many labels for each column; None: never
    shrink: float | None = None,
    errors: Errors = standard_errors,  # ``unknown_errors`` where nobody asks for them
    progress: Progress | None = None,  # is called after every round of the search
    stoppable: bool = False,  # whether an interrupt ends the search, with what it has so far
) -> Estimate:
    """Find the positions that matter, then estimate by maximum likelihood."""
    per_lag = matrices == "per_lag"
    policy = MATRIX_PER_LAG if per_lag else SHARED_MATRIX
    # The likelihood of whole samples does not depend on the gauge of the matrices, and that of the
    # others hardly does, so that a climb would follow a long and nearly flat valley. They come in
    # once the gauge is settled.
    searched = data.whole() if per_lag else data
    if positions is not None:
        search = _given(searched, policy, positions, known, per_lag)
        return _finish(search, data, True, shrink, errors)
    starts = initial or [first_estimate(searched, known, per_lag)]
    searches = [Selection.from_initial(searched, policy, start) for start in starts]
    current_is_state = per_lag and data.K > 1
    if current_is_state:
        for search in searches:
            add_current(search)
    settled = [
        _settle_or_stop(search, progress) if stoppable else settle(search, progress)
        for search in searches
    ]
    best = _best(searches)
    search = searches[best]
    if current_is_state:
        remove_current(search)
    if number is not None:
        settle_exactly(search, number)
    elif has_few_samples(search):
        crossed = CrossFit.from_search(search)
        if crossed.value() > 0:
            revise(search, crossed)
        else:
            search.remove(search.all_slots())
    return _finish(search, data, settled[best], shrink, errors)


def _best(searches: list[Selection]) -> int:
    """The number of the search whose positions say most, with the P of others."""
    if len(searches) == 1:
        return 0
    return int(np.argmax([CrossFit.from_search(search).value() for search in searches]))


def _settle_or_stop(search: Selection, progress: Progress | None) -> bool:
    """Search until nothing changes, or until an interrupt, at what was fitted last; whether nothing
    changed.
    """
    try:
        return settle(search, progress)
    except KeyboardInterrupt:
        if search.fitted is None:
            raise
        support, search.mixture = search.fitted
        search.support = list(support)
        return False


def _given(
    data: Data, policy: Policy, positions: Positions, known: Initial | None, per_lag: bool
) -> Selection:
    """At these positions in every state that occurs; from known matrices where there are any."""
    distribution = data.label_distribution
    weights = np.full((data.K, len(positions)), 1 / len(positions))
    owners = None
    if per_lag:
        owners = tuple(positions.tolist())
        rows = data.rows(Slots.everywhere(positions, data.K))
        pairs = [rows.total(RowTable.pairs, j, data.N) for j in range(len(owners))]
        P = np.column_stack([smoothed_columns(table, distribution) for table in pairs])
        if known is not None:
            theirs = Mixture(known.P, distribution, weights, known.owners)
            ours = Mixture(P, distribution, weights, owners)
            for t in set(owners) & set(known.owners or ()):
                P[:, ours.place(t)] = theirs.matrix(t)
    elif known is not None:
        P = known.P
    else:
        fitted = em_from_scratch(thinned_for_start(data), positions)
        P = fitted.P
        weights = fitted.q
    occurs = [slice(None) if n else slice(0) for n in data.counts]
    q = weight_table(
        [w[used] for w, used in zip(weights, occurs, strict=True)],
        np.zeros(data.K),
        1 + len(positions),
    )
    support = [positions[used] for used in occurs]
    mixture = Mixture(P, distribution, q, owners)
    return Selection(data, policy, support, mixture, np.zeros(data.K, np.intp))


def _finish(
    search: Selection, data: Data, settled: bool, shrink: float | None, errors: Errors
) -> Estimate:
    """Fit to the end, by a convention where the data leave something open, and say how sure it is.

    A search may have looked at only some of the data.
    """
    options = {"tolerance": last_gap(search.mixture.P)}
    if search.data is not data:
        # A fit to some of the data is not the last, and need not be exact
        options = {"tolerance": TUNING.close, "stall": TUNING.close / 10}
    rows, fit, ratios, crossed = _fit_to_the_end(search, options)
    held = np.zeros(search.mixture.P.shape, bool)
    if search.mixture.owners is not None:
        held = settle_gauge(search, rows)
    gauge_matters = held.any() and (data.present < data.counts[:, None]).any()
    if gauge_matters or search.data is not data:
        # Where a lag is not there, the background gets its weight, which has changed.
        rows, fit = _fit_to_all(search, data, held)
    fitted = mixture = search.mixture
    never = data.label_distribution == 0
    P_errors, q_errors = errors(rows, mixture, held | never[:, None])
    evidence = PendingEvidence(search, rows, fit.loglik)
    smaller = None
    if shrink is not None:
        smaller = shrunk(rows, mixture, data.label_distribution, shrink)
    if smaller is not None:
        point, shrinkage = smaller
        mixture = search.mixture = point.at
        evidence = replace(evidence, loglik=point.loglik, shrinkage=shrinkage)
    counts = label_counts(rows, mixture)
    sizes = np.array([s.size for s in search.support])
    entries = (data.labels - 1) * (counts > 0).sum() - held[~never].sum()
    # Weights, and the distribution of all labels where that stands alone
    others = ((mixture.q > 0).sum(axis=1) - 1).sum()
    others += (data.labels - 1) * (sizes[data.counts > 0] == 0).any()
    return Estimate(
        P=mixture.P,
        P_errors=P_errors,
        owners=mixture.owners,
        support=search.support,
        weights=[q[1 : 1 + size] for q, size in zip(mixture.q, sizes, strict=True)],
        weight_errors=[q[1 : 1 + size] for q, size in zip(q_errors, sizes, strict=True)],
        background=mixture.q[:, 0].copy(),
        background_errors=np.where(sizes > 0, q_errors[:, 0], np.nan),
        background_ratios=ratios,
        counts=counts,
        loglik=fit.loglik,
        gap=fit.gap,
        path=fit.path,
        parameters=int(entries + others),
        bic=bic_of(data, rows, fitted, fit.loglik, entries=entries, others=others),
        settled=settled,
        evidence=evidence,
        background_limit=_limit(rows, mixture, crossed),
        profile=Profile(rows, mixture, (P_errors, q_errors), _rows_in(rows, data)),
    )


def _limit(rows: Rows, at: Mixture, crossed: CrossFit | None) -> Callable[..., Limit]:
    """The function that bounds the background of a state."""
    if crossed is None:
        return partial(background_limit, rows, at)
    return partial(crossed.background_limit, at)


def _rows_in(rows: Rows, data: Data) -> int:
    """How many rows there are, at most."""
    return data.n_samples if rows.counted is None else len(rows.counted.label)


def _fit_to_the_end(
    search: Selection, options: dict[str, Any]
) -> tuple[Rows, Fit, Array, CrossFit | None]:
    """Maximum likelihood at the positions of a search that is over, without those that lose their
    weight.

    Also the ratios (K,) of the background beside the positions; it stays in states that lack a
    position. The options are those of ``maximise``.
    """
    search.put_in_order()
    own = np.full(search.data.K, search.data.own_background)
    rows, fit = search.final_fit(own, **options)
    empty = search.empty_slots(TUNING.empty_at_end)
    if empty:
        search.remove(empty)
        rows, fit = search.final_fit(own, **options)
    if own.any():
        return rows, fit, np.full(search.data.K, np.nan), None
    crossed = CrossFit.from_search(search) if has_few_samples(search) else None
    shares = search.data.counts / search.data.n
    ratios = crossed.ratios() if crossed else background_ratios(rows, fit, shares)
    least = incomplete_from(len(ratios))
    if (ratios >= least).any():
        rows, fit = search.final_fit(ratios >= least, **options)
    return rows, fit, ratios, crossed


def _fit_to_all(search: Selection, data: Data, held: Flags) -> tuple[Rows, Fit]:
    """Maximum likelihood on all data, from the fit to the searched part; ``held`` (N, C) entries of
    P stay 0.
    """
    start = replace(search.mixture, background=data.label_distribution)
    search.data = data
    rows = search.rows()
    if not np.isfinite(rows.total(RowTable.evaluate, start).loglik):
        # A label that the searched part has never seen is not impossible in the whole: it comes in
        # with all labels.
        P = np.where(held, 0.0, start.lifted().P)
        start = replace(start, P=P / P.sum(axis=0))
    fit = maximise(rows, start, tolerance=last_gap(start.P), steps=5000, held=held, near=True)
    search.mixture = fit.mixture
    return rows, fit


def background_ratios(rows: Rows, fit: Fit, shares: Array) -> Array:
    """(K,): twice the log-likelihood ratio for adding the background to the positions of each
    state; NaN for states without positions. ``shares`` (K,) are the fractions of the samples in
    each state.

    The weight of a position that was not found goes to the background. Adding backgrounds in all
    states at once would show little: if no entry of P is near 0, a sharper P compensates for all of
    them. So each state is tested separately, with the other states taken to be complete. States
    that reach the level of ``incomplete_from`` keep their background, which makes P sharper. The
    other states are then tested again, until no further state reaches the level.

    With P fixed, the ratio is too small, by about the state's share of the samples. If the ratio
    may reach half of the level, P is fitted again.
    """
    there = np.any(fit.mixture.q[:, 1:] > 0, axis=1)
    level = incomplete_from(len(there))
    ratios = np.where(there, 0.0, np.nan)
    asked = there.copy()
    while asked.any():
        q = np.where(asked[:, None], _with_background(fit.mixture.q), fit.mixture.q)
        beside = fit_weights(rows, replace(fit.mixture, q=q), tolerance=TUNING.close / 10)
        gains = 2 * (beside.logliks - rows.total(RowTable.logliks, fit.mixture))
        ratios[asked] = (np.maximum(gains, 0.0) / np.maximum(1 - shares, TUNING.empty))[asked]
        for k in np.flatnonzero(asked & (ratios >= level / 2)).tolist():
            one = _fit_beside(rows, fit, beside.q, np.arange(len(there)) == k)
            ratios[k] = max(0.0, 2 * (one.loglik - fit.loglik))
        new = asked & (ratios >= level)
        if not new.any():
            break
        fit = _fit_beside(rows, fit, beside.q, new)
        asked &= ~new
    return ratios


def _with_background(q: Array) -> Array:
    """(K, s): weights of which the background has a part that can grow."""
    return (1 - TUNING.background_left) * q + TUNING.background_left * np.eye(1, q.shape[1])


def _fit_beside(rows: Rows, fit: Fit, q: Array, states: Flags) -> Fit:
    """Maximum likelihood from a fit, in which some states (K,) have other weights (K, s)."""
    start = replace(fit.mixture, q=np.where(states[:, None], q, fit.mixture.q))
    return maximise(rows, start.lifted(), tolerance=TUNING.close / 10)
