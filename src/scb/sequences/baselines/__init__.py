"""What a model of sequences has to be compared with: n-grams, context tree weighting, PPM. All are
read off counts of contexts.
"""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
