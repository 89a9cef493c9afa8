"""The paper's mathematics: closed forms, dynamics, noise, inequalities with their constants, the
planner, and the Cramér–Rao bound.
"""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
