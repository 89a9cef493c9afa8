"""Types of the arrays that the fitter uses, in addition to ``Array`` for real numbers."""

from scb.arrays import AnyArray, Flags, Ints, Positions

__all__ = ["AnyArray", "Flags", "Ints", "Positions"]
