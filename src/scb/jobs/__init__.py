"""One machinery for all runs: seed → job → table → Parquet → resume → pool. ``scb reproduce`` and ``scb sweep`` use it alike."""

from scb.lazy import submodules

__getattr__ = submodules(__name__)
