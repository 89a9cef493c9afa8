"""``recover`` estimates (P, Q) from data, with the support, standard errors and a certificate."""

from typing import Any, Literal

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError, number, one_of
from scb.mixture.cross_fit import are_few
from scb.mixture.data import Data
from scb.mixture.fit import Estimate, fit_mixture
from scb.mixture.heads import recover_heads
from scb.mixture.model import Initial
from scb.mixture.recovered import Recovery, StandardErrors
from scb.mixture.rows import Support
from scb.mixture.samples_in import as_data
from scb.mixture.spectral import spectral
from scb.mixture.starts import from_scratch
from scb.mixture.tuning import TUNING
from scb.task.sampling import Batch

_MOST_TOKENS = 4096


def recover(
    data: Any,
    *,
    N: int | None = None,
    max_lag: int | None = None,
    method: Literal["likelihood", "spectral"] = "likelihood",
    start: Literal["spectral", "scratch"] | None = None,
    false_positions: float = 0.05,
    heads: int | Literal["auto"] | None = None,
) -> Recovery:
    """Estimate the transition matrix P and the sparse attention Q from data.

    Parameters
    ----------
    data : Batch, iterable of batches, or sequences of tokens
        The samples: a ``Batch``; a list or other iterable of batches; a function that returns an
        iterator of batches, which is called once for each pass, so the data need not fit into
        memory; or, together with ``max_lag``, one sequence of tokens or a list of sequences. Dask
        collections of batches or sequences are processed where they are stored.
    N : int, optional
        The number of tokens. The default is the largest token that occurs plus one.
    max_lag : int, optional
        The number T of positions in a window, which is required for sequences. The token before the
        label selects the attention, and position t is T + 1 − t tokens before the label, so
        position 0 is the oldest.
    method : {"likelihood", "spectral"}, default "likelihood"
        "likelihood" finds positions by score tests and likelihood ratios and estimates by maximum
        likelihood. "spectral" stops at the estimates from moments, which are valid only if the
        tokens of the contexts are independent.
    start : {"spectral", "scratch"}, optional
        The starting point of the likelihood method: "spectral", the default for batches, or
        "scratch", the default for sequences. "scratch" is an EM algorithm over all positions, which
        needs n·T operations per step and n·T bytes of memory.
    false_positions : float, default 0.05
        The expected number of positions without signal, among all N·T, that pass the threshold of
        the spectral method. The likelihood method selects its final positions by a stricter
        criterion, which does not depend on this option.
    heads : int or "auto", optional
        The number of heads of the task, or "auto" for the number with the least BIC. The data must
        be a ``Batch`` in which the tokens of the contexts are independent. By default there is one
        head.

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
    one_of("method", method, ("likelihood", "spectral"))
    one_of("start", start, (None, "spectral", "scratch"))
    samples = as_data(data, N, max_lag)
    if samples.N > _MOST_TOKENS:
        raise InputError(
            f"N = {samples.N} tokens: recover accepts at most {_MOST_TOKENS}, since P has N² "
            "entries"
        )
    if heads is not None:
        if not isinstance(data, Batch):
            raise InputError("heads: several heads can be recovered only from a Batch of samples")
        return recover_heads(data, samples, heads)
    if method == "spectral":
        return _from_moments(samples, spectral(samples, false_positions))
    initial = []
    if start == "spectral" or (start is None and samples.independent):
        initial.append(spectral(samples, false_positions))
    if start == "scratch" or (start is None and _is_scratch_worth_it(samples)):
        initial.append(from_scratch(samples))
    return _from_estimate(samples, fit_mixture(samples, initial=initial))


def _is_scratch_worth_it(samples: Data) -> bool:
    """Whether EM over all positions is needed, or affordable where it may end in a higher
    likelihood than moments do.
    """
    affordable = samples.n * samples.T <= TUNING.start_cells
    return not samples.independent or (are_few(samples) and affordable)


def _from_moments(samples: Data, moments: Initial) -> Recovery:
    """What the spectral method says; it knows nothing of its errors."""
    elsewhere = [0.0 if s.size else 1 / samples.T for s in moments.positions]
    A = _dense(moments.positions, moments.weights, samples.T, np.array(elsewhere))
    unknown = np.full(samples.N, np.nan)
    return Recovery(
        V=moments.P,
        A=A,
        support=moments.positions,
        stderr=StandardErrors(np.full_like(moments.P, np.nan), np.full_like(A, np.nan)),
        n_samples=samples.n_samples,
        loglik=np.nan,
        gap=np.nan,
        path=[],
        unexplained=unknown,
        unexplained_ratio=unknown,
        mu=samples.mu,
        method="spectral",
    )


def _from_estimate(samples: Data, estimate: Estimate) -> Recovery:
    """What maximum likelihood says, as dense matrices."""
    T = samples.T
    support = estimate.support
    unused = estimate.counts <= 0
    A = _dense(support, estimate.weights, T, estimate.background / T)
    A_errors = _dense(support, estimate.weight_errors, T, estimate.background_errors / T)
    return Recovery(
        V=np.where(unused, samples.label_distribution[:, None], estimate.P),
        A=A,
        support=support,
        stderr=StandardErrors(np.where(unused, np.nan, estimate.P_errors), A_errors),
        n_samples=samples.n_samples,
        loglik=estimate.loglik,
        gap=estimate.gap,
        path=estimate.path,
        unexplained=estimate.background,
        unexplained_ratio=estimate.background_ratios,
        mu=samples.mu,
        method="likelihood",
        n_parameters=estimate.parameters,
        rest_limit=estimate.background_limit,
        profile=estimate.profile,
    )


def _dense(support: Support, values: list[Array], T: int, elsewhere: Array) -> Array:
    """(T, N): the values at the support of each column, added to those ``elsewhere`` (N,)."""
    dense = np.zeros((T, len(support)), order="F")
    for k, s in enumerate(support):
        dense[:, k] = elsewhere[k]
        dense[s, k] += values[k] if np.isfinite(elsewhere[k]) else 0.0
    return dense
