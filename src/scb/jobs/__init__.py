"""Jobs with seeds, the workers that run them, and the files that keep their results. ``scb
reproduce`` and ``scb sweep`` are built on them.
"""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
