"""``recover``: from data to (P, Q) with its support, standard errors and a certificate."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb import notebook
from scb.geometry import Array
from scb.inputs import InputError, number, one_of
from scb.mixture.errors import quantile, weight_interval
from scb.mixture.fit import INCOMPLETE, fit_mixture
from scb.mixture.profile import Limit
from scb.mixture.reading import as_data
from scb.mixture.rows import Support
from scb.mixture.select import from_scratch
from scb.mixture.spectral import spectral
from scb.model import LinearTransformer

_LARGEST = 4096
_SHOWN = 60  # rows of a table in a notebook, and columns of P


class StandardErrors(NamedTuple):
    """Standard errors of V and A, given the support; 0 where A is 0, NaN where the data say nothing.

    Attributes
    ----------
    V : (N, N) array
        Of the entries of V.
    A : (T, N) array
        Of the entries of A.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=20, sparsity=2, seed=0)
    >>> errors = scb.recover(scb.sample(task, 4000, seed=0)).stderr
    >>> errors.V.shape, errors.A.shape
    ((3, 3), (20, 3))
    """

    V: Array
    A: Array


@dataclass(frozen=True, repr=False)
class Recovery:
    """What the data say about P and Q.

    Attributes
    ----------
    V : (N, N) array
        The estimate of P. The column of a token that never occurs at a position that matters is the law of the labels.
    A : (T, N) array
        The estimate of Q. What is unexplained in a column is spread evenly over its T positions; a column for which no
        position was found is uniform, 1/T.
    support : list of N integer arrays (size,)
        The positions of each column, ascending; empty where none was found.
    stderr : StandardErrors
        Standard errors ``stderr.V`` and ``stderr.A`` from the Fisher information; NaN for the spectral method. In an incomplete
        column they allow for what is unexplained.
    n_samples : int
        Samples, or windows of sequences.
    loglik : float
        Log-likelihood of the labels, in nats; where the last token has no position, by the law of the labels. NaN for the spectral
        method.
    gap : float
        Certificate, in nats: what the log-likelihood could still gain in V alone plus in A's weights alone, at most.
    path : list of float
        Log-likelihood in the last fit, step by step; it never decreases.
    unexplained : (N,) array
        The part of each column of Q that lies on positions that were not found: the weight of a background, the law of the labels,
        beside the positions. 1 where none was found, 0 where the background is not needed; NaN for the spectral method.
    unexplained_ratio : (N,) array
        Twice the log-likelihood ratio of that background, P fitted again without it (with P fixed, which is more, where even that
        is no sign of anything). If nothing is missing, it is 0 for half of the columns and χ² with one degree of freedom for the
        others. NaN where no position was found.
    mu : (N,) array
        How often each token occurs in the contexts.
    method : str
        "likelihood" or "spectral".
    n_parameters : int, default 0
        How many the data can tell apart; 0 for the spectral method.
    rest_limit : callable, optional
        What ``intervals`` asks, of the rows of the last fit, which it holds.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=20, sparsity=2, seed=0)
    >>> found = scb.recover(scb.sample(task, 4000, seed=0))
    >>> found
    <Recovery: N = 3, T = 20, 6 positions from 4,000 samples>
    >>> for line in found.report().splitlines()[2:5]:
    ...     print(line)
    token 0 attends to  0: 0.444 ± 0.017  10: 0.556 ± 0.017
    token 1 attends to  5: 0.596 ± 0.019  9: 0.404 ± 0.019
    token 2 attends to  0: 0.453 ± 0.021  7: 0.547 ± 0.021
    >>> found.support, task.support
    ([array([ 0, 10]), array([5, 9]), array([0, 7])], [array([ 0, 10]), array([5, 9]), array([0, 7])])
    >>> found.intervals()[0].round(2), found.incomplete
    (array([[0.41, 0.48],
           [0.52, 0.59]]), array([False, False, False]))
    >>> found.model.predict(scb.sample(task, 1, seed=1)).round(2)
    array([[0.02, 0.01, 0.97]])
    """

    V: Array
    A: Array
    support: Support
    stderr: StandardErrors
    n_samples: int
    loglik: float
    gap: float
    path: list[float] = field(repr=False)
    unexplained: Array
    unexplained_ratio: Array
    mu: Array = field(repr=False)
    method: str
    n_parameters: int = 0
    rest_limit: Callable[[int, float, bool], Limit] | None = field(default=None, repr=False, compare=False)

    @property
    def model(self) -> LinearTransformer:
        """The transformer that predicts with these parameters."""
        return LinearTransformer(self.V, self.A)

    @property
    def incomplete(self) -> NDArray[np.bool_]:
        """(N,): whether a position is missing in a column.

        That is where ``unexplained_ratio`` is 3.84 or more (a chance of 2.5 % where nothing is missing), or no position was found.
        """
        none = np.array([s.size == 0 for s in self.support])
        return none | (self.unexplained_ratio >= INCOMPLETE)

    def intervals(self, level: float = 0.95) -> list[Array]:
        """Intervals of the weights, in the order of ``support``.

        All weights of a column lie in their intervals together, with a chance of about ``level``. They allow for a position that
        was not found, also where the column is not marked as incomplete: a single position of weight 1 has an interval, too. NaN
        where there are no standard errors. It takes about ten fits for each column that is not incomplete.

        Parameters
        ----------
        level : float, default 0.95
            The chance, between 0 and 1.

        Returns
        -------
        list of N arrays (s, 2)
            For each last token the low and the high end of the interval of each of its s positions.
        """
        if not 0 < number("level", level) < 1:
            raise InputError(f"level = {level}: it must lie between 0 and 1")
        freedom = self.n_samples, self.n_parameters
        found = []
        for k, s in enumerate(self.support):
            limit = None
            if self.rest_limit is not None and s.size and self.unexplained[k] == 0 and np.isfinite(self.stderr.A[s, k]).all():
                limit = self.rest_limit(k, quantile(s.size, False, level, freedom) ** 2, bool(self.incomplete.any()))
            found.append(weight_interval(self.A[s, k], self.stderr.A[s, k], limit, level=level, freedom=freedom))
        return found

    def report(self) -> str:
        """A text: sizes, likelihood, certificate; for each last token its positions with weights, errors and what is missing.

        Returns
        -------
        str
        """
        T, N = self.A.shape
        lines = [
            f"{self.n_samples:,} samples, N = {N} tokens, T = {T:,} positions; method: {self.method}",
            f"log-likelihood {self.loglik:.6g} nats ({self.loglik / self.n_samples:.5f} a sample); certificate {self.gap:.1e} nats",
        ]
        for k, positions in enumerate(self.support):
            parts = [f"{t}: {self.A[t, k]:.3f} ± {self.stderr.A[t, k]:.3f}" for t in positions]
            if self.incomplete[k] and positions.size:
                p = math.erfc(math.sqrt(self.unexplained_ratio[k] / 2)) / 2  # half of P(χ² > ratio), one degree of freedom
                parts.append(f"(incomplete: {self.unexplained[k]:.3f} unexplained, p = {p:.1g})")
            lines.append(f"token {k} attends to  " + ("  ".join(parts) or "no position that stands out"))
        error = self.stderr.V[np.isfinite(self.stderr.V)]
        if error.size:
            lines.append(f"standard errors of V: median {np.median(error):.3g}, largest {error.max():.3g}")
        if (never := np.flatnonzero(self.mu == 0)).size:
            lines.append(f"tokens that never occur in a context: {', '.join(map(str, never))}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        T, N = self.A.shape
        found = sum(s.size for s in self.support)
        return f"<Recovery: N = {N}, T = {T:,}, {found} positions from {self.n_samples:,} samples>"

    def __str__(self) -> str:
        return self.report()

    def _repr_html_(self) -> str:
        T, N = self.A.shape
        said = f"{self.n_samples:,} samples, N = {N} tokens, T = {T:,} positions; method: {self.method}"
        rows = []
        for k, positions in enumerate(self.support):
            note = f"incomplete: {self.unexplained[k]:.3f} unexplained" if self.incomplete[k] and positions.size else ""
            rows += [[str(k), str(t), f"{self.A[t, k]:.3f}", f"{self.stderr.A[t, k]:.3f}", note] for t in positions]
            if not positions.size:
                rows.append([str(k), "–", "", "", "no position stands out"])
        left_out = notebook.text(f"and {len(rows) - _SHOWN} more") if len(rows) > _SHOWN else ""
        page = notebook.text(said)
        page += notebook.table(["last token", "position", "weight", "± s.e.", ""], rows[:_SHOWN], left=[4]) + left_out
        if N <= _SHOWN // 4:
            law = [[str(n), *(f"{p:.3f}" for p in row)] for n, row in enumerate(self.V)]
            page += notebook.text("V, the estimate of P: the law of the next token in each column")
            page += notebook.table(["", *map(str, range(N))], law)
        return page


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
    data : Batch, iterable of batches, or sequences of tokens
        See ``scb.mixture.reading.as_data`` for what is accepted and what is held in memory. Sequences want ``max_lag``.
        Collections of Dask stay where they are: see ``scb.mixture.dask``.
    N : int, optional
        Number of tokens; the largest that occurs plus one unless given.
    max_lag : int, optional
        For sequences, the T of each window. The token before the label chooses the attention; position t lies T + 1 − t
        tokens before the label, so position 0 is the oldest.
    method : {"likelihood", "spectral"}, default "likelihood"
        "likelihood" finds positions by score tests and likelihood ratios and estimates by maximum likelihood; "spectral"
        stops at the moments, which ask for contexts of iid tokens.
    start : {"spectral", "scratch"}, optional
        "spectral" (batches unless given), or "scratch": EM over all positions (sequences unless given), which takes n·T work a
        step and n·T bytes.
    false_positions : float, default 0.05
        How many of all N·T positions may pass the spectral threshold without signal, on average. The criterion of the
        likelihood (``scb.mixture.shared``) is stricter, and does not depend on it.

    Returns
    -------
    Recovery
        Estimates V (N, N) and A (T, N), the support, standard errors, and a certificate.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=20, sparsity=2, seed=0)
    >>> found = scb.recover(scb.sample(task, 4000, seed=0))
    >>> all((a == b).all() for a, b in zip(found.support, task.support))
    True
    >>> round(float(abs(found.V - task.P).max()), 2), round(float(abs(found.A - task.Q).max()), 2)
    (0.01, 0.05)

    From one long sequence that the task generates:

    >>> found = scb.recover(scb.generate(task, 8000, seed=0), max_lag=20)
    >>> found.support
    [array([ 0, 10]), array([5, 9]), array([0, 7])]
    """
    if not 0 < number("false_positions", false_positions) < 1:
        raise InputError(f"false_positions = {false_positions}: it must lie between 0 and 1")
    known = {"method": (method, ("likelihood", "spectral")), "start": (start, (None, "spectral", "scratch"))}
    for name, (value, values) in known.items():
        one_of(name, value, values)
    samples = as_data(data, N, max_lag)
    T = samples.T
    if samples.N > _LARGEST:
        raise InputError(f"N = {samples.N} tokens: recover takes at most {_LARGEST}, since P has N² entries")
    facts: dict[str, Any] = {"n_samples": samples.n, "mu": samples.mu, "method": method}
    if method == "spectral":
        moments = spectral(samples, false_positions)
        A = _dense(moments.positions, moments.weights, T, rest=np.array([0.0 if s.size else 1 / T for s in moments.positions]))
        errors = StandardErrors(np.full_like(moments.P, np.nan), np.full_like(A, np.nan))
        facts |= dict.fromkeys(("unexplained", "unexplained_ratio"), np.full(samples.N, np.nan))
        return Recovery(V=moments.P, A=A, support=moments.positions, stderr=errors, loglik=np.nan, gap=np.nan, path=[], **facts)
    scratch = start == "scratch" or (start is None and not samples.independent)
    initial = from_scratch(samples) if scratch else spectral(samples, false_positions)
    found = fit_mixture(samples, initial=initial)
    # What says nothing of P or of a column of Q is made plain.
    unused = found.counts <= 0
    V = np.where(unused, samples.label_law[:, None], found.P)
    A = _dense(found.support, found.weights, T, rest=found.rest / T)
    A_errors = _dense(found.support, found.weight_errors, T, rest=found.rest_errors / T)
    errors = StandardErrors(np.where(unused, np.nan, found.P_errors), A_errors)
    facts |= {"unexplained": found.rest, "unexplained_ratio": found.rest_ratios}
    facts |= {"n_parameters": found.parameters, "rest_limit": found.rest_limit}
    return Recovery(V=V, A=A, support=found.support, stderr=errors, loglik=found.loglik, gap=found.gap, path=found.path, **facts)


def _dense(support: Support, values: list[Array], T: int, rest: Array) -> Array:
    """(T, N): the values at the support of each column, ``rest`` (N,) elsewhere."""
    dense = np.zeros((T, len(support)), order="F")
    for k, s in enumerate(support):
        dense[:, k] = rest[k]
        dense[s, k] += values[k] if np.isfinite(rest[k]) else 0.0
    return dense
