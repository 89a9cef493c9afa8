"""Sweeps: many runs over a grid of settings, the store of their rows, and phase diagrams."""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
