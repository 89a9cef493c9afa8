"""``recover``: from data to (P, Q) with its support, standard errors and a certificate."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb import notebook
from scb.arrays import Array
from scb.inputs import InputError, number, one_of
from scb.mixture.errors import quantile, weight_interval
from scb.mixture.fit import INCOMPLETE, fit_mixture
from scb.mixture.profile import Limit
from scb.mixture.rows import Support
from scb.mixture.samples_in import as_data
from scb.mixture.select import from_scratch
from scb.mixture.spectral import spectral
from scb.model import LinearTransformer

_LARGEST = 4096
_SHOWN = 60  # rows of a table in a notebook, and columns of P


class StandardErrors(NamedTuple):
    """Standard errors of the estimates V and A of a ``Recovery``, given the support.

    They are 0 where A is 0, and NaN for entries that the data do not determine.

    Attributes
    ----------
    V : (N, N) array
        The standard errors of the entries of V.
    A : (T, N) array
        The standard errors of the entries of A.

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
    """The estimates of P and Q that ``scb.recover`` returns, with their uncertainty.

    Attributes
    ----------
    V : (N, N) array
        The estimate of P. For a token that never occurs at a position in the support, the column is
        the distribution of the labels.
    A : (T, N) array
        The estimate of Q. The unexplained part of a column is spread evenly over its T positions,
        so that a column for which no position was found is uniform.
    support : list of N integer arrays (size,)
        The positions found for each last token, in ascending order; empty if none was found.
    stderr : StandardErrors
        The standard errors ``stderr.V`` and ``stderr.A``, from the Fisher information; NaN for the
        spectral method. In an incomplete column they take the unexplained part into account.
    n_samples : int
        The number of samples, or of windows if the data are sequences.
    loglik : float
        The log-likelihood of the labels, in nats. If no position was found for a last token, its
        labels are predicted by the distribution of all labels. NaN for the spectral method.
    gap : float
        A certificate of the optimum: an upper bound, in nats, on what the log-likelihood could
        still gain by changing V alone plus what it could gain by changing the weights of A alone.
    path : list of float
        The log-likelihood after each step of the last fit; it never decreases.
    unexplained : (N,) array
        The part of each column of Q that the positions found do not explain. It is the fitted
        weight of a background, the distribution of the labels: 1 if no position was found, and 0 if
        the background is not needed. NaN for the spectral method.
    unexplained_ratio : (N,) array
        Twice the log-likelihood ratio for that background, with P refitted without it. (If the
        ratio with P fixed, which is larger, is already insignificant, it is reported instead.) For
        complete columns it is 0 half of the time and otherwise follows a χ² distribution with one
        degree of freedom. NaN if no position was found.
    mu : (N,) array
        The relative frequency of each token in the contexts.
    method : str
        The method used, "likelihood" or "spectral".
    n_parameters : int, default 0
        The number of parameters that the data can distinguish; 0 for the spectral method.
    rest_limit : callable, optional
        A function that ``intervals`` uses. It keeps the data of the last fit alive.

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
    rest_limit: Callable[[int, float, bool], Limit] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def model(self) -> LinearTransformer:
        """The linear transformer with the estimated parameters V and A."""
        return LinearTransformer(self.V, self.A)

    @property
    def incomplete(self) -> NDArray[np.bool_]:
        """Whether positions are missing for each last token, as an (N,) boolean array.

        An entry is true if no position was found or if ``unexplained_ratio`` is 3.84 or more. For a
        complete column the latter happens with a probability of 2.5 %.
        """
        none = np.array([s.size == 0 for s in self.support])
        return none | (self.unexplained_ratio >= INCOMPLETE)

    def intervals(self, level: float = 0.95) -> list[Array]:
        """Compute simultaneous confidence intervals for the attention weights.

        With probability of about ``level``, all weights of a column lie in their intervals. The
        intervals allow for a position that was not found, even if the column is not marked as
        incomplete, so that a single position of weight 1 has an interval too. The computation takes
        about ten fits for each column that is not incomplete.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level, between 0 and 1.

        Returns
        -------
        list of N arrays (s, 2)
            For each last token, the lower and upper ends of the intervals of its s positions, in
            the order of ``support``. NaN if there are no standard errors.
        """
        if not 0 < number("level", level) < 1:
            raise InputError(f"level = {level}: it must lie between 0 and 1")
        freedom = self.n_samples, self.n_parameters
        found = []
        for k, s in enumerate(self.support):
            limit = None
            if (
                self.rest_limit is not None
                and s.size
                and self.unexplained[k] == 0
                and np.isfinite(self.stderr.A[s, k]).all()
            ):
                limit = self.rest_limit(
                    k, quantile(s.size, False, level, freedom) ** 2, bool(self.incomplete.any())
                )
            found.append(
                weight_interval(
                    self.A[s, k], self.stderr.A[s, k], limit, level=level, freedom=freedom
                )
            )
        return found

    def report(self) -> str:
        """Return a report as text, which is also what printing the object shows.

        It has the sizes, the log-likelihood and the certificate, and for each last token the
        positions found, with weights, standard errors and the unexplained part.

        Returns
        -------
        str
            The report, in several lines.
        """
        T, N = self.A.shape
        lines = [
            f"{self.n_samples:,} samples, N = {N} tokens, T = {T:,} positions; method: {self.method}",
            f"log-likelihood {self.loglik:.6g} nats ({self.loglik / self.n_samples:.5f} a sample); certificate {self.gap:.1e} nats",
        ]
        for k, positions in enumerate(self.support):
            parts = [f"{t}: {self.A[t, k]:.3f} ± {self.stderr.A[t, k]:.3f}" for t in positions]
            if self.incomplete[k] and positions.size:
                # Half of P(χ² > ratio), one degree of freedom
                p = math.erfc(math.sqrt(self.unexplained_ratio[k] / 2)) / 2
                parts.append(f"(incomplete: {self.unexplained[k]:.3f} unexplained, p = {p:.1g})")
            lines.append(
                f"token {k} attends to  " + ("  ".join(parts) or "no position that stands out")
            )
        error = self.stderr.V[np.isfinite(self.stderr.V)]
        if error.size:
            lines.append(
                f"standard errors of V: median {np.median(error):.3g}, largest {error.max():.3g}"
            )
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
            note = (
                f"incomplete: {self.unexplained[k]:.3f} unexplained"
                if self.incomplete[k] and positions.size
                else ""
            )
            rows += [
                [str(k), str(t), f"{self.A[t, k]:.3f}", f"{self.stderr.A[t, k]:.3f}", note]
                for t in positions
            ]
            if not positions.size:
                rows.append([str(k), "–", "", "", "no position stands out"])
        left_out = notebook.text(f"and {len(rows) - _SHOWN} more") if len(rows) > _SHOWN else ""
        page = notebook.text(said)
        page += (
            notebook.table(
                ["last token", "position", "weight", "± s.e.", ""], rows[:_SHOWN], left=[4]
            )
            + left_out
        )
        if N <= _SHOWN // 4:
            distribution = [[str(n), *(f"{p:.3f}" for p in row)] for n, row in enumerate(self.V)]
            page += notebook.text(
                "V, the estimate of P: the distribution of the next token in each column"
            )
            page += notebook.table(["", *map(str, range(N))], distribution)
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
    """Estimate the transition matrix P and the sparse attention Q from data.

    Parameters
    ----------
    data : Batch, iterable of batches, or sequences of tokens
        The samples: a ``Batch``; a list or other iterable of batches; a function that returns an
        iterator of batches, which is called for each pass so that the data need not fit into
        memory; or one sequence of tokens or a list of them, together with ``max_lag``. Dask
        collections of batches or sequences are processed where they are stored.
    N : int, optional
        The number of tokens. The default is the largest token that occurs plus one.
    max_lag : int, optional
        Required for sequences: the number T of positions in a window. The token before the label
        selects the attention, and position t lies T + 1 − t tokens before the label, so that
        position 0 is the oldest.
    method : {"likelihood", "spectral"}, default "likelihood"
        "likelihood" finds positions by score tests and likelihood ratios and estimates by maximum
        likelihood. "spectral" stops at estimates from moments, which are valid only if the tokens
        of the contexts are independent.
    start : {"spectral", "scratch"}, optional
        The starting point of the likelihood method: "spectral", the default for batches, or
        "scratch", the default for sequences. "scratch" is an EM algorithm over all positions, which
        takes n·T operations per step and n·T bytes.
    false_positions : float, default 0.05
        The expected number of positions without signal, among all N·T, that pass the threshold of
        the spectral method. The likelihood method has a stricter criterion for its final positions,
        which does not depend on this.

    Returns
    -------
    Recovery
        The estimates V (N, N) of P and A (T, N) of Q, with the support of A, standard errors and a
        certificate.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=20, sparsity=2, seed=0)
    >>> found = scb.recover(scb.sample(task, 4000, seed=0))
    >>> all((a == b).all() for a, b in zip(found.support, task.support))
    True
    >>> round(float(abs(found.V - task.P).max()), 2), round(float(abs(found.A - task.Q).max()), 2)
    (0.01, 0.05)

    The data may also be one long sequence that the task generated:

    >>> found = scb.recover(scb.generate(task, 8000, seed=0), max_lag=20)
    >>> found.support
    [array([ 0, 10]), array([5, 9]), array([0, 7])]
    """
    if not 0 < number("false_positions", false_positions) < 1:
        raise InputError(f"false_positions = {false_positions}: it must lie between 0 and 1")
    known = {
        "method": (method, ("likelihood", "spectral")),
        "start": (start, (None, "spectral", "scratch")),
    }
    for name, (value, values) in known.items():
        one_of(name, value, values)
    samples = as_data(data, N, max_lag)
    T = samples.T
    if samples.N > _LARGEST:
        raise InputError(
            f"N = {samples.N} tokens: recover takes at most {_LARGEST}, since P has N² entries"
        )
    facts: dict[str, Any] = {"n_samples": samples.n, "mu": samples.mu, "method": method}
    if method == "spectral":
        moments = spectral(samples, false_positions)
        A = _dense(
            moments.positions,
            moments.weights,
            T,
            rest=np.array([0.0 if s.size else 1 / T for s in moments.positions]),
        )
        errors = StandardErrors(np.full_like(moments.P, np.nan), np.full_like(A, np.nan))
        facts |= dict.fromkeys(("unexplained", "unexplained_ratio"), np.full(samples.N, np.nan))
        return Recovery(
            V=moments.P,
            A=A,
            support=moments.positions,
            stderr=errors,
            loglik=np.nan,
            gap=np.nan,
            path=[],
            **facts,
        )
    scratch = start == "scratch" or (start is None and not samples.independent)
    initial = from_scratch(samples) if scratch else spectral(samples, false_positions)
    found = fit_mixture(samples, initial=initial)
    # What says nothing of P or of a column of Q is made plain.
    unused = found.counts <= 0
    V = np.where(unused, samples.label_distribution[:, None], found.P)
    A = _dense(found.support, found.weights, T, rest=found.rest / T)
    A_errors = _dense(found.support, found.weight_errors, T, rest=found.rest_errors / T)
    errors = StandardErrors(np.where(unused, np.nan, found.P_errors), A_errors)
    facts |= {"unexplained": found.rest, "unexplained_ratio": found.rest_ratios}
    facts |= {"n_parameters": found.parameters, "rest_limit": found.rest_limit}
    return Recovery(
        V=V,
        A=A,
        support=found.support,
        stderr=errors,
        loglik=found.loglik,
        gap=found.gap,
        path=found.path,
        **facts,
    )


def _dense(support: Support, values: list[Array], T: int, rest: Array) -> Array:
    """(T, N): the values at the support of each column, ``rest`` (N,) elsewhere."""
    dense = np.zeros((T, len(support)), order="F")
    for k, s in enumerate(support):
        dense[:, k] = rest[k]
        dense[s, k] += values[k] if np.isfinite(rest[k]) else 0.0
    return dense
