"""Sequences of symbols: the coding of users' data, the model of lags, its baselines such as
n-grams, and the scikit-learn estimator.
"""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
