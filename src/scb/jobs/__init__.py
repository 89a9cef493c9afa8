"""This package holds jobs with seeds, the workers that run them, and the files that keep their
results. ``scb reproduce`` and ``scb sweep`` are built on this package.
"""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
