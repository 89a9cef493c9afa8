"""The distribution of symbols some steps ahead, from random continuations side by side."""

import numpy as np

from scb.arrays import Array
from scb.mixture.arrays import Ints
from scb.sequences.lag_model import LagModel
from scb.sequences.tables import Codes
from scb.task.sampling import token_dtype


def forecast(
    model: LagModel,
    before: Codes,
    beside: Ints | None,
    steps: int,
    n_samples: int,
    rng: np.random.Generator,
) -> Array:
    """(steps, N): the distribution of the symbol 1, 2, … steps after the end of a sequence, whose
    covariates are ``beside`` (steps, covariates).

    Every step is the mean of the distributions after ``n_samples`` continuations. That is less
    noisy than a count of what was drawn, and the first step is exact.
    """
    N = len(model.classes)
    T = model.max_lag
    known = before[-T:]
    paths = np.full((n_samples, T + steps), N, dtype=token_dtype(N + 1))
    paths[:, T - known.size : T] = np.where(known < 0, N, known)
    starts = np.arange(n_samples) * (T + steps)
    result = np.empty((steps, N))
    for step in range(steps):
        own = None if beside is None else beside[step : step + 1]
        if model.learns:
            drawn = (np.r_[before, x] for x in paths[:, T : T + step])
            distributions = np.array([model.next_distribution(x, own) for x in drawn])
        else:
            own = None if own is None else np.repeat(own, n_samples, axis=0)
            distributions = model.distributions_after(paths.reshape(-1), starts + step, own)
        result[step] = distributions.mean(axis=0)
        u = rng.random((n_samples, 1))
        # The last column is left out: sums that round to less than 1 must not lead beyond it
        paths[:, T + step] = (np.cumsum(distributions[:, :-1], axis=1) <= u).sum(axis=1)
    return result
