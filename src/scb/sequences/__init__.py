"""Sequences of symbols: from what people have to codes, the model of lags, n-grams beside it, and
the scikit-learn estimator.
"""

from scb.lazy import submodules

__getattr__ = submodules(__name__)
