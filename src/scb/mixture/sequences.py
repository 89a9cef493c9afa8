"""Fit lags to sequences: the windows, where the search starts, and the final estimate. The estimator's work is done here.

Position t of a window of T = max_lag symbols is lag T − t: the last position is lag 1, the current symbol, which may be a source
here too. A window that a missing symbol (code −1) or the end of a sequence cuts is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.data import Data, Part, Samples
from scb.mixture.lags import LagSelection
from scb.mixture.likelihood import standard_errors
from scb.mixture.scratch import columns, from_scratch, with_known
from scb.mixture.selection import Progress, Selection, Support
from scb.task.sampling import token_dtype

_LEAST = 1e-4  # a weight below this is none
_SCRATCH_CELLS = 8_000_000  # windows times lags in the search for a start


def windows(codes: Sequence[NDArray[np.int64]], N: int, max_lag: int, context: bool) -> Data:
    """Every window of max_lag + 1 symbols without a gap; the current symbol is its context, or there is one context for all."""
    parts = window_parts(codes, N, max_lag, context)
    if not parts:
        raise no_window(max((len(sequence) for sequence in codes), default=0), max_lag)
    counts = symbol_counts(codes, N)
    return Data.of(parts, N, N if context else 1, max_lag, counts / counts.sum(), independent=False)


def symbol_counts(codes: Sequence[NDArray[np.int64]], N: int) -> Array:
    """(N,): how often each symbol occurs."""
    return sum((np.bincount(x[x >= 0], minlength=N).astype(float) for x in codes), np.zeros(N))


def window_parts(codes: Sequence[NDArray[np.int64]], N: int, max_lag: int, context: bool) -> list[Part]:
    """The windows of each sequence that has any."""
    parts = []
    for sequence in codes:
        missing = np.cumsum(np.r_[0, sequence < 0])
        starts = np.flatnonzero(missing[max_lag + 1 :] == missing[: -max_lag - 1])
        if starts.size:
            tokens = np.maximum(sequence, 0).astype(token_dtype(N))
            last = tokens[starts + max_lag - 1].astype(np.int64) if context else np.zeros(starts.size, np.int64)
            parts.append(Part(tokens, starts, last, tokens[starts + max_lag].astype(np.int64)))
    return parts


def no_window(longest: int, max_lag: int) -> ValueError:
    """All sequences are too short, or have too many gaps."""
    return ValueError(
        f"no window of max_lag + 1 = {max_lag + 1} symbols without a gap; the longest sequence has {longest}"
    )


@dataclass(frozen=True)
class LagFit:
    """What the sequences say.

    Attributes
    ----------
    P : (N, C), one matrix or those of the positions in ``matrices`` side by side; distributions in columns
    matrices : the positions that have a matrix of their own, ascending; None where all share one
    support : list of K position arrays; empty where none was found: there the label has its own law
    weights, stderr : lists of K arrays: the attention on the support, and its standard errors
    counts : (C,), how many labels each column of P was estimated from
    loglik, gap : of the final maximum-likelihood fit, in nats
    steps : of that fit
    parameters : how many the data can tell apart
    """

    P: Array
    matrices: list[int] | None
    support: Support
    weights: list[Array]
    stderr: list[Array]
    counts: Array
    loglik: float
    gap: float
    steps: int
    parameters: int


@dataclass(frozen=True)
class Known:
    """What another fit found: a matrix P (N, N), or (N, M·N) those of the positions in ``matrices`` side by side."""

    P: Array
    matrices: list[int] | None


def fit_lags(
    data: Samples,
    *,
    per_lag: bool,
    lags: str | int | Sequence[int] = "auto",
    known: Known | None = None,
    progress: Progress | None = None,
) -> LagFit:
    """Find the lags, then estimate by maximum likelihood.

    Parameters
    ----------
    per_lag : whether each lag has a matrix of its own
    lags : "auto", by the extended BIC; a number, so many for each context; or the lags themselves, for every context
    known : matrices to start from
    progress : is called after every round of the search
    """
    if isinstance(lags, str | int | np.integer):
        selection = _per_lag(data, known) if per_lag else _shared(data, known)
        selection.settle(progress)
        if not isinstance(lags, str):
            _exactly(selection, int(lags))
    else:
        positions = data.T - np.unique(np.asarray(lags, dtype=np.intp))[::-1]
        selection = _given(data, positions, per_lag, known)
    return _finish(selection)


def _few(data: Samples) -> Samples:
    """Enough windows to begin with."""
    return data.thinned(max(1, _SCRATCH_CELLS // data.T))


def _shared(data: Samples, known: Known | None) -> Selection:
    """From EM over all lags; a concave problem where the matrix is known."""
    first = from_scratch(_few(data)) if known is None else with_known(_few(data), known.P, np.arange(data.T))
    return Selection.start(data, first.positions, first.weights, first.P)


def _per_lag(data: Samples, known: Known | None) -> LagSelection:
    """From nothing; where matrices are known, from EM over their lags."""
    if known is None or not known.matrices:
        nothing = [np.zeros(0, np.intp) for _ in range(data.K)]
        return LagSelection(data, nothing, np.repeat(data.label_law[:, None], data.N + 1, axis=1), np.ones((data.K, 1)))
    first = with_known(_few(data), known.P, np.array(known.matrices), np.arange(len(known.matrices)))
    selection = LagSelection.start(data, first.positions, first.weights, first.P)
    selection.matrices = list(known.matrices)
    selection.drop_unused()
    return selection


def _given(data: Samples, positions: NDArray[np.intp], per_lag: bool, known: Known | None) -> Selection:
    """At these positions in every context that occurs."""
    law, s = data.label_law, len(positions)
    support = [positions.copy() if n else np.zeros(0, np.intp) for n in data.counts]
    q = np.array([[0.0] + [1 / s] * s if n else [1.0] + [0.0] * s for n in data.counts])
    if not per_lag:
        P = known.P if known is not None else from_scratch(_few(data), positions).P
        return Selection(data, support, np.c_[P, law], q)
    rows, N = data.rows(np.tile(positions, (data.K, 1))), data.N
    blocks = [columns(rows.pairs(j, N), law)[:, :-1] for j in range(s)]
    for j, t in enumerate(positions.tolist()):
        if known is not None and known.matrices is not None and t in known.matrices:
            b = known.matrices.index(t)
            blocks[j] = known.P[:, b * N : (b + 1) * N]
    return LagSelection(data, support, np.column_stack([*blocks, law]), q, positions.tolist())


def _exactly(selection: Selection, number: int) -> None:
    """Take the weakest lags out, or the best ones in, until each context has so many."""
    while True:
        rows = selection.rows()
        fit = selection.fit(rows)
        counts = [len(s) for s in selection.support]
        if over := [k for k, count in enumerate(counts) if count > number]:
            at_fit = rows.loglik_of(fit.P, fit.q)
            of = {k: [selection.ratio(rows.of(k), k, j, at_fit[k]) for j in range(1, 1 + counts[k])] for k in over}
            selection.remove([(k, 1 + int(np.argmin(of[k]))) for k in over])
        elif new := selection.candidates(rows, fit, [], least=0.0, most=number):
            selection.add(new)
        else:
            return


def _finish(selection: Selection) -> LagFit:
    """The last fit, what it leaves open settled, standard errors."""
    data = selection.data
    rows, fit = selection.final_fit()
    selection.P, selection.q = fit.P, fit.q
    if empty := selection.empty(_LEAST):
        selection.remove(empty)
        rows, fit = selection.final_fit()
    selection.P, selection.q = fit.P, fit.q
    held = selection.settle_gauge(rows) if isinstance(selection, LagSelection) else None
    P, q = selection.P, selection.q
    of_q = standard_errors(rows, P, q, held)[1]
    counts = (P * rows.evaluate(P, q).gP)[:, :-1].sum(axis=0)
    sizes = [s.size for s in selection.support]
    free = (data.N - 1) * ((counts > 0).sum() + (0 in sizes)) + sum(max(size - 1, 0) for size in sizes)
    return LagFit(
        P=P[:, :-1],
        matrices=selection.matrices if isinstance(selection, LagSelection) else None,
        support=selection.support,
        weights=[q[k, 1 : 1 + size] for k, size in enumerate(sizes)],
        stderr=[of_q[k, 1 : 1 + size] for k, size in enumerate(sizes)],
        counts=counts,
        loglik=fit.loglik,
        gap=fit.gap,
        steps=len(fit.path),
        parameters=int(free) - (0 if held is None else int(held.sum())),
    )
