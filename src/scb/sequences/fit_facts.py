"""How a fit went."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class FitFacts:
    """How a fit went: see the attributes of ``SparseContextualBigram`` with the same names."""

    loglik: float = 0.0
    n_windows: int = 0
    n_symbols: int = 0
    n_parameters: int = 0
    n_iter: int = 0
    gap: float = 0.0
    converged: bool = False
    criterion: dict[str, float] = field(default_factory=dict)
    choices: dict[str, float] = field(default_factory=dict)
    sequence_bits: float = np.nan
    # Those that were offered, and whether the model uses them
    covariates: dict[str, bool] = field(default_factory=dict)
