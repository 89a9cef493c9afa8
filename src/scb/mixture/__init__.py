"""The mixture Σ_j q_j P[o, x_j] fitted to data: which positions matter, with which weights, and by
which matrices.
"""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
