"""Training: sources of gradients, updates, stages, recipes, engines, and the one loop."""

from scb.lazy import submodules

__getattr__ = submodules(__name__)
