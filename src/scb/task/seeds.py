"""Seeds, and the generators that are made from them."""

import numpy as np

from scb.inputs import integer

Seed = int | np.random.Generator | np.random.SeedSequence | None


def generator(seed: Seed) -> np.random.Generator:
    """Return NumPy's generator for a seed; raise an InputError for anything that is not a seed."""
    if isinstance(seed, np.random.Generator | np.random.SeedSequence | None):
        return np.random.default_rng(seed)
    return np.random.default_rng(integer("seed", seed, low=0))
