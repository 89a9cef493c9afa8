"""Fits of the mixture Σ_j q_j P[o, x_j] to data: which positions matter, with which weights, and
with which matrices.
"""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
