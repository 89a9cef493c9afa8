"""The proximal step of the ℓ1 norm."""

from __future__ import annotations

import numpy as np

from scb.norms import Array


def soft_threshold(a: Array, lam: float | Array) -> Array:
    """sign(a)·max(|a| − λ, 0), entry by entry: argmin_z ½(z − a)² + λ|z|.

    The paper writes the branch a ≥ −λ only; this is the two-sided operator.
    """
    return np.sign(a) * np.maximum(np.abs(a) - lam, 0.0)
