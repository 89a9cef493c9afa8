"""``scb show``: a saved run."""

from scb.cli.train import show

__all__ = ["show"]
