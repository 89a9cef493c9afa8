"""Sweeps: many runs over a grid of settings, where their rows are kept, and their phase diagrams."""

from scb.lazy import submodules

__getattr__ = submodules(__name__)
