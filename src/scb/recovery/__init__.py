"""Recover P and Q from fixed data: by moments (``spectral``) and by likelihood."""

from scb.recovery.methods import Recovery, StandardErrors, recover

__all__ = ["Recovery", "StandardErrors", "recover"]
