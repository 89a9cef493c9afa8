"""Sweeps: many runs over a grid of settings, where their rows are kept, and their phase diagrams."""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
