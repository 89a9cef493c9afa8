"""``recover``: from data to (P, Q) with its support, standard errors and a certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.data import Samples, as_data
from scb.mixture.likelihood import standard_errors
from scb.mixture.scratch import from_scratch
from scb.mixture.selection import Selection, Support
from scb.mixture.spectral import spectral
from scb.model import LinearTransformer
from scb.sequences.symbols import is_dask

_LARGEST = 4096


class StandardErrors(NamedTuple):
    """Of V (N, N) and of A (T, N), given the support; 0 where A is 0, NaN where the data say nothing."""

    V: Array
    A: Array


@dataclass(frozen=True)
class Recovery:
    """What the data say about P and Q.

    Attributes
    ----------
    V : (N, N), the estimate of P. The column of a token that never occurs at a position that matters is the law of the labels
    A : (T, N), the estimate of Q. A column for which no position was found is uniform, 1/T
    support : list of N position arrays, ascending; empty where none was found
    stderr : standard errors of V and A from the Fisher information; NaN for the spectral method
    n_samples : samples, or windows of sequences
    loglik : log-likelihood of the labels, in nats; where the last token has no position, by the law of the labels. NaN for the
        spectral method
    gap : certificate, in nats: what the log-likelihood could still gain in V alone plus in A's weights alone, at most
    path : log-likelihood in the last fit, step by step; it never decreases
    mu : (N,), how often each token occurs in the contexts
    method : "likelihood" or "spectral"
    """

    V: Array
    A: Array
    support: Support
    stderr: StandardErrors
    n_samples: int
    loglik: float
    gap: float
    path: list[float] = field(repr=False)
    mu: Array = field(repr=False)
    method: str

    @property
    def model(self) -> LinearTransformer:
        """The transformer that predicts with these parameters."""
        return LinearTransformer(self.V, self.A)

    def report(self) -> str:
        """A text: sizes, likelihood, certificate, and for each last token its positions with weights and standard errors."""
        T, N = self.A.shape
        lines = [
            f"{self.n_samples:,} samples, N = {N} tokens, T = {T:,} positions; method: {self.method}",
            f"log-likelihood {self.loglik:.6g} nats ({self.loglik / self.n_samples:.5f} a sample); certificate {self.gap:.1e} nats",
        ]
        for k, positions in enumerate(self.support):
            parts = [f"{t}: {self.A[t, k]:.3f} ± {self.stderr.A[t, k]:.3f}" for t in positions]
            lines.append(f"token {k} attends to  " + ("  ".join(parts) or "no position that stands out"))
        error = self.stderr.V[np.isfinite(self.stderr.V)]
        if error.size:
            lines.append(f"standard errors of V: median {np.median(error):.3g}, largest {error.max():.3g}")
        if (never := np.flatnonzero(self.mu == 0)).size:
            lines.append(f"tokens that never occur in a context: {', '.join(map(str, never))}")
        return "\n".join(lines)


def recover(
    data: Any,
    *,
    N: int | None = None,
    max_lag: int | None = None,
    method: Literal["likelihood", "spectral"] = "likelihood",
    start: Literal["spectral", "scratch"] | None = None,
    false_positions: float = 0.05,
) -> Recovery:
    """Estimate P and Q, and which positions matter, from data alone.

    Parameters
    ----------
    data : Batch, batches, or sequences of tokens
        See ``scb.mixture.data`` for what is accepted and what is held in memory. Sequences want ``max_lag``. Collections of
        Dask stay where they are: see ``scb.mixture.distributed``
    N : number of tokens; the largest that occurs plus one unless given
    max_lag : for sequences, the T of each window. The token before the label chooses the attention; position t lies T + 1 − t
        tokens before the label, so position 0 is the oldest
    method : "likelihood" finds positions by score tests and likelihood ratios and estimates by maximum likelihood; "spectral"
        stops at the moments, which ask for contexts of iid tokens
    start : "spectral" (batches unless given), or "scratch": EM over all positions (sequences unless given), which takes n·T work a
        step and n·T bytes
    false_positions : how many of all N·T positions may pass the spectral threshold without signal, on average. The criterion of the
        likelihood (``scb.mixture.selection``) is stricter, and does not depend on it

    Returns
    -------
    Recovery
    """
    if not 0 < false_positions < 1:
        raise ValueError(f"false_positions = {false_positions}: it must lie between 0 and 1")
    for name, value, known in (
        ("method", method, ("likelihood", "spectral")),
        ("start", start, (None, "spectral", "scratch")),
    ):
        if value not in known:
            raise ValueError(f"{name} = {value!r}: it must be one of {', '.join(repr(x) for x in known)}")
    checked = _checked(data, N, max_lag)
    if checked.N > _LARGEST:
        raise ValueError(f"N = {checked.N} tokens: recover takes at most {_LARGEST}, since P has N² entries")
    if method == "spectral":
        found = spectral(checked, false_positions)
        return _moments_only(checked, found.P, found.positions, found.weights)
    scratch = start == "scratch" or (start is None and not checked.independent)
    first = from_scratch(checked) if scratch else spectral(checked, false_positions)
    selection = Selection.start(checked, first.positions, first.weights, first.P)
    selection.settle()
    return _finish(selection)


def _checked(data: Any, N: int | None, max_lag: int | None) -> Samples:
    if not is_dask(data):
        return as_data(data, N, max_lag)
    from scb.mixture.distributed import as_partitioned

    return as_partitioned(data, N, max_lag)


def _finish(selection: Selection) -> Recovery:
    """The last fit, without background where there are positions; standard errors; dense arrays."""
    data = selection.data
    rows, fit = selection.final_fit()
    V = fit.P[:, :-1].copy()
    of_V, of_q = standard_errors(rows, fit.P, fit.q)
    used = rows.evaluate(fit.P, fit.q).gP[:, :-1].sum(axis=0) > 0
    V[:, ~used], of_V[:, ~used] = data.label_law[:, None], np.nan
    A, of_A = np.zeros((data.T, data.N), order="F"), np.zeros((data.T, data.N), order="F")
    for k, s in enumerate(selection.support):
        A[s, k], of_A[s, k] = fit.q[k, 1 : 1 + s.size], of_q[k, 1 : 1 + s.size]
        if s.size == 0:
            A[:, k], of_A[:, k] = 1 / data.T, np.nan
    errors = StandardErrors(of_V, of_A)
    return Recovery(
        V, A, selection.support, errors, data.n, fit.loglik, fit.gap, fit.path, data.mu, method="likelihood"
    )


def _moments_only(data: Samples, P: Array, positions: list[NDArray[np.intp]], weights: list[Array]) -> Recovery:
    A = np.zeros((data.T, data.N), order="F")
    for k, (s, w) in enumerate(zip(positions, weights, strict=True)):
        A[s, k] = w
        if s.size == 0:
            A[:, k] = 1 / data.T
    errors = StandardErrors(np.full_like(P, np.nan), np.full_like(A, np.nan))
    return Recovery(P, A, positions, errors, data.n, np.nan, np.nan, [], data.mu, method="spectral")
