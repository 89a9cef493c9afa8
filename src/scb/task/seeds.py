"""What may be given as a seed."""

import numpy as np

from scb.inputs import integer

Seed = int | np.random.Generator | np.random.SeedSequence | None


def generator(seed: Seed) -> np.random.Generator:
    """NumPy's generator for a seed; raises an InputError for anything else."""
    if isinstance(seed, np.random.Generator | np.random.SeedSequence | None):
        return np.random.default_rng(seed)
    return np.random.default_rng(integer("seed", seed, low=0))
