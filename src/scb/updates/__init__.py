"""Pure functions on arrays, each one line of Algorithm 1."""

from scb.updates.precondition import precondition_A, precondition_V
from scb.updates.project import project
from scb.updates.prox import soft_threshold
from scb.updates.sign import mirror, resolve_sign, skewness
from scb.updates.threshold import threshold_normalize, threshold_project

__all__ = [
    "mirror",
    "precondition_A",
    "precondition_V",
    "project",
    "resolve_sign",
    "skewness",
    "soft_threshold",
    "threshold_normalize",
    "threshold_project",
]
