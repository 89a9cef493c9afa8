"""The paper's mathematics: closed forms, dynamics, noise, inequalities with their constants, the
planner, the Cramér–Rao bound.
"""

from scb.lazy import submodules

__getattr__ = submodules(__name__)
