"""Training: sources of gradients, updates, stages, recipes, engines, and the one loop."""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
