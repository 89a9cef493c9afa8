"""The projection onto columns that sum to one."""

from __future__ import annotations

from scb.norms import Array


def project(A: Array) -> Array:
    """Proj onto {1ᵀa = 1}, column by column: a + (1 − 1ᵀa)·1/T. Shape (T, N)."""
    return A + (1.0 - A.sum(axis=0)) / A.shape[0]
