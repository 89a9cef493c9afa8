"""Sequences drawn from a model, and the distribution of symbols some steps ahead, estimated from
random continuations.
"""

import numpy as np

from scb.arrays import AnyArray, Array, Ints
from scb.kernels.random import continue_lags
from scb.sequences.lag_model import LagModel
from scb.sequences.symbols import MISSING
from scb.sequences.tables import Codes
from scb.task.sampling import closed_cumulative, token_dtype


def forecast(
    model: LagModel,
    before: Codes,
    beside: Ints,
    steps: int,
    n_samples: int,
    rng: np.random.Generator,
) -> Array:
    """(steps, N): the distribution of the symbol 1, 2, … steps after the end of a sequence, whose
    covariates are ``beside`` (steps, covariates).

    The distribution at each step is the mean of the distributions after ``n_samples``
    continuations. This mean is less noisy than counts of the drawn symbols, and the first step is
    exact.
    """
    N = len(model.classes)
    T = model.max_lag
    known = before[-T:]
    paths = np.full((n_samples, T + steps), N, dtype=token_dtype(N + 1))
    paths[:, T - known.size : T] = np.where(known < 0, N, known)
    starts = np.arange(n_samples) * (T + steps)
    result = np.empty((steps, N))
    for step in range(steps):
        own = beside[step : step + 1]
        if model.learns:
            drawn = (np.r_[before, x] for x in paths[:, T : T + step])
            distributions = np.array([model.next_distribution(x, own) for x in drawn])
        else:
            every = np.repeat(own, n_samples, axis=0)
            distributions = model.distributions_after(paths.reshape(-1), starts + step, every)
        result[step] = distributions.mean(axis=0)
        u = rng.random((n_samples, 1))
        # The last column is left out: sums that round to less than 1 must not lead beyond it
        paths[:, T + step] = (np.cumsum(distributions[:, :-1], axis=1) <= u).sum(axis=1)
    return result


def draw(
    model: LagModel,
    length: int,
    before: Codes | None,
    rng: np.random.Generator,
    beside: Ints,
) -> AnyArray:
    """(length,): codes that continue the codes ``before``, with covariates ``beside`` (length,
    covariates). If there is no start, a random start is drawn, and the first 10·max_lag codes after
    it, whose covariates are missing, are discarded.
    """
    N = len(model.classes)
    skipped = 0
    if before is None:
        before = rng.choice(N, size=model.max_lag, p=model.prior / model.prior.sum())
        skipped = 10 * model.max_lag
    has_gaps = before.size < model.max_lag or (before < 0).any()
    if model.background is not None or has_gaps or model.covariates:
        beside = np.pad(beside, ((skipped, 0), (0, 0)), constant_values=MISSING)
        return _draw_step_by_step(model, skipped + length, before, rng, beside)[skipped:]
    tokens = np.empty(before.size + skipped + length, dtype=token_dtype(N))
    tokens[: before.size] = before
    lags = np.where(model.slots.positions >= 0, model.max_lag - model.slots.positions, 0)
    first = np.where(lags > 0, N * model.slots.matrix, model.mixture.P.shape[1])
    u = rng.random((skipped + length, 2))
    weights = closed_cumulative(model.mixture.q.T)
    columns = closed_cumulative(np.c_[model.mixture.P, model.mixture.background])
    continue_lags(tokens, before.size, weights, lags.T, columns, first.T, u)
    return tokens[before.size + skipped :]


def _draw_step_by_step(
    model: LagModel, length: int, before: Codes, rng: np.random.Generator, beside: Ints
) -> Codes:
    """Draw one symbol at a time, as gaps, covariates or a background of its own for each window
    require.
    """
    codes = before.tolist()
    for i, u in enumerate(rng.random(length).tolist()):
        past = np.array(model.past(codes), np.int64)
        distribution = model.next_distribution(past, beside[i : i + 1])
        codes.append(int(np.searchsorted(np.cumsum(distribution)[:-1], u, side="right")))
    return np.array(codes[before.size :], np.int64)
