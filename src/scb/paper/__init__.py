"""The executable paper: experiments, figures, claims, and the report."""

from scb.lazy import submodules

__getattr__ = submodules(__name__)
