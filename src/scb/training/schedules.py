"""Step sizes and λ, as numbers or schedules, and a λ that follows the noise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError, number, real_array


@dataclass(frozen=True)
class MeasuredNoise:
    """A proximal threshold λ that is proportional to the noise in one entry of A per step.

    In column k, the noise has standard deviation η_A √(K_V ρ / (B μ_k)). Here, η_A is the step
    size, B is the batch size, and K_V = ‖V − μ1ᵀ‖_μ² for the current V. The variance of the
    residual per dimension is ρ = (1 − ‖μ‖²)/(N − 1), its value at the start of training, where it
    is largest.

    Attributes
    ----------
    multiple : float
        The number of standard deviations that make up λ.

    Examples
    --------
    >>> import numpy as np, scb
    >>> lam = scb.recipes.MeasuredNoise(2.0)
    >>> stage = scb.Stage("2", steps=10, eta_V=0.1, eta_A=0.1, lam=lam, batch_size=100)
    >>> stage.levels(K_V=0.5, mu=np.array([0.5, 0.25, 0.25])).round(4)
    array([0.0112, 0.0158, 0.0158])
    """

    multiple: float


Schedule = float | Callable[[int], float] | Sequence[float] | Array
"""A step size or a λ: a number, a function of the step within a stage, or a value per step."""


def tabulated(name: str, value: Any, steps: int, where: str = "") -> float | Array:
    """Return a schedule as a number, or as a read-only array (steps,) of its values, which a
    resumed run can compare.
    """
    if callable(value) and not isinstance(value, type):
        value = [value(step) for step in range(steps)]
    elif not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return number(name, value, low=0, where=where)
    values = real_array(name, value)
    if values.shape != (steps,):
        raise InputError(
            f"{name} has shape {values.shape}{where}: "
            f"a schedule must have one value for each of the {steps} steps"
        )
    for step, one in enumerate(values):
        number(f"{name} of step {step}", float(one), low=0, where=where)
    values.flags.writeable = False
    return values
