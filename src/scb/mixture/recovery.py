"""``recover``: from data to (P, Q) with its support, standard errors and a certificate."""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from scb.geometry import Array
from scb.mixture.fit import fit_mixture
from scb.mixture.reading import as_data
from scb.mixture.rows import Support
from scb.mixture.select import from_scratch
from scb.mixture.spectral import spectral
from scb.model import LinearTransformer

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
        See ``scb.mixture.reading.as_data`` for what is accepted and what is held in memory. Sequences want ``max_lag``.
        Collections of Dask stay where they are: see ``scb.mixture.dask``
    N : number of tokens; the largest that occurs plus one unless given
    max_lag : for sequences, the T of each window. The token before the label chooses the attention; position t lies T + 1 − t
        tokens before the label, so position 0 is the oldest
    method : "likelihood" finds positions by score tests and likelihood ratios and estimates by maximum likelihood; "spectral"
        stops at the moments, which ask for contexts of iid tokens
    start : "spectral" (batches unless given), or "scratch": EM over all positions (sequences unless given), which takes n·T work a
        step and n·T bytes
    false_positions : how many of all N·T positions may pass the spectral threshold without signal, on average. The criterion of the
        likelihood (``scb.mixture.shared``) is stricter, and does not depend on it

    Returns
    -------
    Recovery
    """
    if not 0 < false_positions < 1:
        raise ValueError(f"false_positions = {false_positions}: it must lie between 0 and 1")
    known = {"method": (method, ("likelihood", "spectral")), "start": (start, (None, "spectral", "scratch"))}
    for name, (value, values) in known.items():
        if value not in values:
            raise ValueError(f"{name} = {value!r}: it must be one of {', '.join(map(repr, values))}")
    samples = as_data(data, N, max_lag)
    T = samples.T
    if samples.N > _LARGEST:
        raise ValueError(f"N = {samples.N} tokens: recover takes at most {_LARGEST}, since P has N² entries")
    facts: dict[str, Any] = {"n_samples": samples.n, "mu": samples.mu, "method": method}
    if method == "spectral":
        moments = spectral(samples, false_positions)
        A = _dense(moments.positions, moments.weights, T, otherwise=1 / T)
        errors = StandardErrors(np.full_like(moments.P, np.nan), np.full_like(A, np.nan))
        return Recovery(V=moments.P, A=A, support=moments.positions, stderr=errors, loglik=np.nan, gap=np.nan, path=[], **facts)
    scratch = start == "scratch" or (start is None and not samples.independent)
    initial = from_scratch(samples) if scratch else spectral(samples, false_positions)
    found = fit_mixture(samples, initial=initial)
    # What says nothing of P or of a column of Q is made plain.
    unused = found.counts <= 0
    V = np.where(unused, samples.label_law[:, None], found.P)
    A = _dense(found.support, found.weights, T, otherwise=1 / T)
    A_errors = _dense(found.support, found.weight_errors, T, otherwise=np.nan)
    errors = StandardErrors(np.where(unused, np.nan, found.P_errors), A_errors)
    return Recovery(V=V, A=A, support=found.support, stderr=errors, loglik=found.loglik, gap=found.gap, path=found.path, **facts)


def _dense(support: Support, values: list[Array], T: int, otherwise: float) -> Array:
    """(T, N): the values at the support of each column, 0 elsewhere; a column without support is ``otherwise`` throughout."""
    dense = np.zeros((T, len(support)), order="F")
    for k, s in enumerate(support):
        if s.size == 0:
            dense[:, k] = otherwise
        dense[s, k] = values[k]
    return dense
