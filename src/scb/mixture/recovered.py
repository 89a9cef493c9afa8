"""The result of ``recover``: estimates of P and Q with their uncertainty, as text and as HTML."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from scb import notebook
from scb.arrays import Array, Flags
from scb.inputs import InputError, number
from scb.mixture.errors import Limit, quantile, weight_interval
from scb.mixture.fit import incomplete_from
from scb.mixture.profile import Profile
from scb.mixture.rows import Support
from scb.model import LinearTransformer

# In a notebook
_TABLE_ROWS = 60
_TABLE_COLUMNS = 15


class StandardErrors(NamedTuple):
    """Standard errors of the estimates V and A in a ``Recovery``, given the support.

    The standard errors are 0 where A is 0, and NaN for entries that the data do not determine.

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


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals for the estimates in a ``Recovery``; item k of the object is ``A[k]``.

    Attributes
    ----------
    V : (N, N, 2) array
        The lower and upper ends of the intervals for the entries of P; NaN for entries that the
        data do not determine.
    A : list of N arrays (s, 2)
        For each last token, the lower and upper ends of the intervals for its s weights, in the
        order of ``Recovery.support``.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=20, sparsity=2, seed=0)
    >>> intervals = scb.recover(scb.sample(task, 4000, seed=0)).intervals()
    >>> intervals.V[:, 0].round(2)
    array([[0.18, 0.23],
           [0.76, 0.8 ],
           [0.01, 0.03]])
    >>> intervals.A[0].round(2), len(intervals)
    (array([[0.41, 0.48],
           [0.52, 0.59]]), 3)
    """

    V: Array
    A: list[Array]

    def __len__(self) -> int:
        return len(self.A)

    def __getitem__(self, k: int) -> Array:
        return self.A[k]

    def __iter__(self) -> Iterator[Array]:
        return iter(self.A)


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
        so a column for which no position was found is uniform.
    support : list of N integer arrays (size,)
        The positions found for each last token, in ascending order; an array is empty if no
        position was found.
    stderr : StandardErrors
        The standard errors ``stderr.V`` and ``stderr.A``, from the Fisher information; NaN for the
        spectral method. In an incomplete column, the standard errors take the unexplained part into
        account.
    n_samples : int
        The number of samples, or of windows if the data are sequences.
    loglik : float
        The log-likelihood of the labels, in nats. If no position was found for a last token, its
        labels are predicted by the distribution of all labels. The value is NaN for the spectral
        method.
    gap : float
        A certificate of the optimum: an upper bound, in nats, on the sum of what the log-likelihood
        could still gain by changing V alone and by changing the weights of A alone.
    path : list of float
        The log-likelihood after each step of the last fit; it never decreases.
    unexplained : (N,) array
        The part of each column of Q that the positions found do not explain. This part is the
        fitted weight of a background, the distribution of the labels; it is 1 if no position was
        found, 0 if the background is not needed, and NaN for the spectral method.
    unexplained_ratio : (N,) array
        Twice the log-likelihood ratio for adding the background to a column, treating all other
        columns as complete unless they are marked as incomplete. The ratio is approximate where it
        is far from significant. For complete columns, the ratio is 0 half the time and otherwise
        follows a χ² distribution with one degree of freedom. The ratio is NaN if no position was
        found.
    mu : (N,) array
        The relative frequency of each token in the contexts.
    method : str
        The method used, "likelihood" or "spectral".
    n_parameters : int, default 0
        The number of parameters that the data can distinguish; 0 for the spectral method.
    rest_limit, profile : optional
        Internal objects that ``intervals`` uses. These objects keep the data of the last fit in
        memory.

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
    >>> found.support
    [array([ 0, 10]), array([5, 9]), array([0, 7])]
    >>> task.support
    [array([ 0, 10]), array([5, 9]), array([0, 7])]
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
    profile: Profile | None = field(default=None, repr=False, compare=False)

    @property
    def model(self) -> LinearTransformer:
        """The linear transformer with the estimated parameters V and A."""
        return LinearTransformer(self.V, self.A)

    @property
    def incomplete(self) -> Flags:
        """Whether positions are missing for each last token, as a boolean array (N,).

        An entry is true if no position was found or if ``unexplained_ratio`` is so large that the
        largest of N complete columns reaches it with a probability of 5 %: 4.5 for N = 3, 9.5 for
        N = 50.
        """
        none = np.array([s.size == 0 for s in self.support])
        return none | (self.unexplained_ratio >= incomplete_from(len(self.support)))

    def intervals(self, level: float = 0.95) -> Intervals:
        """Compute confidence intervals for P and for the attention weights.

        The interval for an entry of P contains the true value with a probability of about
        ``level``. The intervals for the weights are simultaneous: with that probability, all
        weights in a column lie within their intervals. Intervals extend the same number of standard
        errors to either side of the estimate, except near 0 and 1. Near 0 and 1, intervals are
        computed from the profile of the likelihood, unless this takes too long (with more than
        about 40 tokens). For entries of P close to 0, they allow for the fact that P cannot be
        negative.

        The intervals for the weights allow for a position that was not found, even if the column is
        not marked as incomplete, so a single position of weight 1 has an interval too. The
        computation takes about as long as ten fits for each column that is not marked as
        incomplete.

        Parameters
        ----------
        level : float, default 0.95
            The confidence level, between 0 and 1.

        Returns
        -------
        Intervals
            The ends of the intervals, for P in ``V`` and for the weights in ``A``. The ends are NaN
            if there are no standard errors.
        """
        if not 0 < number("level", level) < 1:
            raise InputError(f"level = {level}: it must lie between 0 and 1")
        freedom = self.n_samples, self.n_parameters
        N = len(self.V)
        if self.profile is None:
            nothing = [np.full((s.size, 2), np.nan) for s in self.support]
            return Intervals(np.full((N, N, 2), np.nan), nothing)
        below, above = self.profile.around_P(quantile(1, True, level, freedom))
        V = np.clip(np.stack([self.V - below, self.V + above], axis=-1), 0.0, 1.0)
        V[np.isnan(self.stderr.V)] = np.nan
        limits = [self._limit(k, level, freedom) for k in range(N)]
        reach = [
            quantile(s.size, limit is None, level, freedom)
            for s, limit in zip(self.support, limits, strict=True)
        ]
        below, above = self.profile.around_q(np.array(reach))
        intervals = []
        for k, (s, limit) in enumerate(zip(self.support, limits, strict=True)):
            here = k, slice(1, 1 + s.size)
            intervals.append(weight_interval(self.A[s, k], below[here], above[here], limit))
        return Intervals(V, intervals)

    def _limit(self, k: int, level: float, freedom: tuple[int, int]) -> Limit | None:
        """How large the background of a column may be that is not in the fit: what would not have
        been marked may be there.
        """
        s = self.support[k]
        complete = s.size and self.unexplained[k] == 0 and np.isfinite(self.stderr.A[s, k]).all()
        if self.rest_limit is None or not complete:
            return None
        drop = quantile(s.size, False, level, freedom) ** 2
        least = max(drop, incomplete_from(len(self.support)))
        return self.rest_limit(k, least, bool(self.incomplete.any()))

    def report(self) -> str:
        """Return a report as text, which is also what printing the object shows.

        The report shows the sizes, the log-likelihood and the certificate. For each last token, the
        report lists the positions found, with their weights and standard errors, and the
        unexplained part.

        Returns
        -------
        str
            The report, which has several lines.
        """
        nats = f"{self.loglik:.6g} nats ({self.loglik / self.n_samples:.5f} per sample)"
        lines = [self._sizes(), f"log-likelihood {nats}; certificate {self.gap:.1e} nats"]
        for k, positions in enumerate(self.support):
            parts = [f"{t}: {self.A[..., t, k].sum():.3f}{self._of_heads(t, k)}" for t in positions]
            if self.incomplete[k] and positions.size:
                # Half of P(χ² > ratio), one degree of freedom
                p = math.erfc(math.sqrt(self.unexplained_ratio[k] / 2)) / 2
                parts.append(f"({self._missing(k)}, p = {p:.1g})")
            said = "  ".join(parts) or "no position that stands out"
            lines.append(f"token {k} attends to  {said}")
        error = self.stderr.V[np.isfinite(self.stderr.V)]
        if error.size:
            lines.append(
                f"standard errors of V: median {np.median(error):.3g}, largest {error.max():.3g}"
            )
        if (never := np.flatnonzero(self.mu == 0)).size:
            lines.append(f"tokens that never occur in a context: {', '.join(map(str, never))}")
        return "\n".join(lines)

    def _of_heads(self, t: int, k: int) -> str:
        """The text after a weight: its standard error or, with several heads, the head that it
        belongs to.
        """
        if self.A.ndim == 2:
            return f" ± {self.stderr.A[t, k]:.3f}"
        owner = int(self.A[:, t, k].argmax())
        return f" ± {self.stderr.A[owner, t, k]:.3f} (head {owner})"

    def _sizes(self) -> str:
        T, N = self.A.shape[-2:]
        samples = f"{self.n_samples:,} samples, N = {N} tokens, T = {T:,} positions"
        return f"{samples}; method: {self.method}"

    def _missing(self, k: int) -> str:
        return f"incomplete: {self.unexplained[k]:.3f} unexplained"

    def __repr__(self) -> str:
        *heads, T, N = self.A.shape
        size = sum(s.size for s in self.support)
        said = "".join(f"{H} heads, " for H in heads)
        sizes = f"{said}N = {N}, T = {T:,}"
        return f"<Recovery: {sizes}, {size} positions from {self.n_samples:,} samples>"

    def __str__(self) -> str:
        return self.report()

    def _repr_html_(self) -> str:
        rows = []
        for k, positions in enumerate(self.support):
            note = self._missing(k) if self.incomplete[k] else ""
            for t in positions:
                numbers = f"{self.A[t, k]:.3f}", f"{self.stderr.A[t, k]:.3f}"
                rows.append([str(k), str(t), *numbers, note])
            if not positions.size:
                rows.append([str(k), "–", "", "", "no position stands out"])
        heads = ["last token", "position", "weight", "± s.e.", ""]
        page = notebook.text(self._sizes())
        page += notebook.table(heads, rows[:_TABLE_ROWS], left=[4])
        if len(rows) > _TABLE_ROWS:
            page += notebook.text(f"and {len(rows) - _TABLE_ROWS} more")
        N = len(self.V)
        if N <= _TABLE_COLUMNS:
            body = [[str(n), *(f"{p:.3f}" for p in row)] for n, row in enumerate(self.V)]
            page += notebook.text(
                "V, the estimate of P: the distribution of the next token in each column"
            )
            page += notebook.table(["", *map(str, range(N))], body)
        return page
