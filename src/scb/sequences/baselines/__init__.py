"""Baselines of a model of sequences: n-grams, context tree weighting and PPM, all computed from
counts of histories.
"""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
