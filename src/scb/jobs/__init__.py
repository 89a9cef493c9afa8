"""The machinery behind ``scb reproduce`` and ``scb sweep``: jobs with seeds, pools that run them,
and stores that keep results.
"""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
