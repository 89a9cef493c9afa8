"""How often each lag is found again in random halves of the data."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError, integer
from scb.mixture.data import Data, Here
from scb.mixture.errors import unknown_errors
from scb.mixture.merging import fit_matrices
from scb.sequences.lag_fit import LagSettings, chosen_background
from scb.sequences.lag_model import LagModel
from scb.task.task import generator


def found_again(
    model: LagModel,
    data: Data,
    settings: LagSettings,
    halves: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Array:
    """For each lag in the support, the fraction of random halves in which it is found.

    Halves come in pairs that have no window in common (Shah and Samworth 2013). They are made of
    blocks of neighbouring windows, because neighbours are not independent.
    """
    if integer("n_halves", halves, low=2) % 2:
        raise InputError(f"n_halves = {halves}: it must be an even number of at least 2")
    if not settings.selects_lags:
        raise InputError("the lags were given, not found, so there is nothing to find again")
    background = model.background
    if background is not None:
        background = chosen_background(background.option, data, model.classes)
    windows = data if background is None else background.cross_fitted(data)
    # The same covariates as sources, and the same one that chooses
    fitted = replace(
        settings,
        transition=model.transition,
        covariates=model.covariates,
        chooser=model.chooser,
    )
    windows = fitted.sourced(windows)
    rng = generator(seed)
    positions = windows.T - 1 - model.attention.indices
    blocks = min(100, data.n_samples)
    firsts = [rng.permutation(blocks) < blocks // 2 for _ in range(halves // 2)]
    chosen = [half for first in firsts for half in (first, ~first)]

    def found(turn: int) -> list[bool]:
        if progress is not None:
            progress(turn + 1, halves)
        half = windows.of_groups(chosen[turn])
        support = fit_matrices(half, model.transition, errors=unknown_errors).support
        return [t in support[k] for k, t in zip(model.rows, positions, strict=True)]

    # Kernels release Python's lock, so that halves are fitted side by side
    here = isinstance(data.executor, Here)
    with ThreadPoolExecutor(min(halves, os.cpu_count() or 1) if here else 1) as pool:
        return np.mean(list(pool.map(found, range(halves))), axis=0)
