"""Sequences of symbols: from users' data to codes, the model of lags, n-grams beside it, and the
scikit-learn estimator.
"""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
