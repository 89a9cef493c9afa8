"""Which lags are found again in other data: random halves of the windows, in pairs without a window
in common (Shah and Samworth 2013). Halves are made of blocks of neighbours, because neighbours are
not independent.
"""

from collections.abc import Callable

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError, integer
from scb.mixture.data import Data
from scb.mixture.fit import fit_mixture
from scb.sequences.lag_fit import LagSettings, chosen_background
from scb.sequences.lag_model import LagModel
from scb.task.task import generator

_BLOCKS = 100


def found_again(
    model: LagModel,
    data: Data,
    settings: LagSettings,
    halves: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Array:
    """For each row of ``model.table``, the fraction of the random halves of the data in which its
    lag is found.
    """
    if integer("n_halves", halves, low=2) % 2:
        raise InputError(f"n_halves = {halves}: it must be an even number of at least 2")
    if not (isinstance(settings.lags, str) and settings.lags == "auto"):
        raise InputError("lags were given, not found: there is nothing to be found again")
    distribution = chosen_background(settings.background, data, model.classes)
    windows = data if distribution is None else distribution.cross_fitted(data)
    rng = generator(seed)
    attention = model.attention
    contexts = np.repeat(np.arange(len(attention.indptr) - 1), np.diff(attention.indptr))
    times = np.zeros(contexts.size)
    for pair in range(halves // 2):
        blocks = min(_BLOCKS, data.n)
        first = rng.permutation(blocks) < blocks // 2
        for turn, chosen in enumerate((first, ~first)):
            if progress is not None:
                progress(2 * pair + turn + 1, halves)
            half = windows.of_groups(chosen)
            found = fit_mixture(half, matrices=model.transition)
            times += [
                data.T - 1 - lag in found.support[k]
                for k, lag in zip(contexts, attention.indices, strict=True)
            ]
    return times / halves
