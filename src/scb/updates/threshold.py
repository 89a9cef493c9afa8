"""The two roundings between the stages of Algorithm 1."""

from __future__ import annotations

import numpy as np

from scb.norms import Array
from scb.updates.project import project


def threshold_project(A: Array, threshold: float | Array) -> Array:
    """Thresholding-projection: â = a·1{a ≥ λ₀}, then a ← â + (1 − 1ᵀâ)·1/T.

    As printed in Algorithm 1, the constant is lost and columns would sum to 0; the lemma on the effect of rounding has
    it as here. ``threshold`` is one number or one a column.
    """
    return project(np.where(threshold <= A, A, 0.0))


def threshold_normalize(A: Array, threshold: float | Array) -> Array:
    """Thresholding-normalisation: â = a·1{a ≥ c/Q}, then a ← â / 1ᵀâ.

    A column in which nothing reaches the threshold knows nothing yet: it becomes uniform, 1/T.
    """
    if np.any(np.asarray(threshold) <= 0):
        raise ValueError(f"threshold = {threshold}: it must be positive, or a column's kept mass could be 0")
    kept = np.where(threshold <= A, A, 0.0)
    mass = kept.sum(axis=0)
    return np.where(mass > 0, kept / np.where(mass > 0, mass, 1.0), 1.0 / A.shape[0])
