"""The parts of recipes that differ with several heads: the start, the ends of stages, and the
roundings.
"""

from typing import Literal

from scb.geometry import trivial_V
from scb.inputs import InputError, integer, one_of
from scb.task import Seed, Task
from scb.training.recipes.knowledge import Knowledge
from scb.training.roundings import (
    ResolveSign,
    RotateHeads,
    Rounding,
    SignalAbove,
    SingularValuesAbove,
    Stop,
    ThresholdNormalize,
    ThresholdProject,
)
from scb.training.starts import UniformAttention, random_start

HeadStart = Literal["random", "equal"]
"""How several heads start: each at a small random V, or all alike, as one head does."""


def head_count(task: Task, heads: int | None) -> int:
    """Return the number of heads to train: the task's number, or more."""
    if heads is None:
        return task.heads
    if integer("heads", heads, low=1) < task.heads:
        raise InputError(f"heads = {heads}: the task has {task.heads} heads, and each needs one")
    return heads


def first_point(k: Knowledge, T: int, heads: int, start: str, seed: Seed) -> UniformAttention:
    """Return uniform attention with V = μ1ᵀ; with several heads, some noise makes them differ."""
    one_of("start", start, ("random", "equal"))
    if heads == 1:
        return UniformAttention(trivial_V(k.mu), T)
    return random_start(k.mu, T, heads, seed, size=0.01 if start == "random" else 0.0)


def sign_or_gauge(k: Knowledge, heads: int) -> Rounding:
    """Return the rounding that fixes the sign of one head, or the gauge of several heads."""
    return ResolveSign() if heads == 1 else RotateHeads(len(k.singular_values))


def reached(k: Knowledge, heads: int, level: float) -> Stop:
    """Return the condition that the signal has reached ``level``: α_A of one head, or each singular
    value of several heads.
    """
    if heads == 1:
        return SignalAbove(level)
    return SingularValuesAbove(tuple(level * value for value in k.singular_values))


def normalising(k: Knowledge, heads: int, threshold: float) -> tuple[Rounding, ...]:
    """Return roundings that keep the entries above a threshold, with columns that sum to 1.

    The columns of one head are divided by their sums. With several heads, V_h holds the size of
    A_h, and a column must not change this size. In this case, the gauge is fixed, and the missing
    mass is spread over all entries.
    """
    if heads == 1:
        return (ThresholdNormalize(threshold),)
    return sign_or_gauge(k, heads), ThresholdProject(threshold)


def slowness(k: Knowledge, heads: int) -> float:
    """Return how many times longer the last singular value takes than the first, σ_1/σ_H."""
    return k.singular_values[0] / k.singular_values[-1] if heads > 1 else 1.0
