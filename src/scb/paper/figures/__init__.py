"""Figures: pure functions from a table (column name → array) to a matplotlib figure."""

from scb.lazy import submodules

__getattr__ = submodules(__name__)
