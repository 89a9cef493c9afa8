"""Claims of the paper as checks: pure functions from tables to what was measured and a verdict."""

from scb.lazy import submodules

__getattr__ = submodules(__name__)
