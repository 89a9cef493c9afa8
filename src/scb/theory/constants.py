"""The constants of the planner: what the paper hides in Θ(1), measured unless given."""

from dataclasses import dataclass, field

from scb.theory.bounds import BOUNDS


def _measured(name: str) -> float:
    return field(default=BOUNDS[name].constant)


@dataclass(frozen=True)
class Constants:
    """The factors c of the lemmas, as the planner uses them.

    Attributes
    ----------
    square_A, square_V, along_P, along_Q, coordinate, square_on_support : float
        Of concentration, in all stages; each stands in ``scb.theory.bounds`` under its name, with its statement.
    stage1_signal : float, default 1
        Of α at the end of Stage 1, min(1/2, c/(Q·N)): it defines 𝒯₁.
    stage1_steps, stage1_noise : float
        Of Stage 1, in ``scb.theory.bounds``.
    rounding : float, default 1/4
        Of the threshold c·α/Q before Stage 2: half of the least entry, α/(C·Q), for C = 2.
    rounding_error, stage2_lambda, stage2_steps, bias, errors, boundary : float
        Of Stage 2, in ``scb.theory.bounds``.
    normalisation : float, default 1/6
        Of the threshold c/Q before Stage 3.
    separated : float, default 0.1
        Of ‖Δ_A‖_μ ≤ c/(Q√N), up to which ``rounding_A`` was measured.
    rounding_A : float
        Of the rounding before Stage 3: ``rounding_A_sharp`` in ``scb.theory.bounds``.
    stage3_attention, stage3_noise, stage3_steps : float
        Of Stage 3, in ``scb.theory.bounds``.
    theta : float, default 1
        Of transfer's θ = min(1/2, √(c/log(1/ε))).
    start_error, step_error : float
        Of transfer, in ``scb.theory.bounds``.

    Examples
    --------
    Twice as many steps in Stage 3:

    >>> import scb
    >>> from scb.theory.constants import Constants
    >>> twice = scb.plan(3, 5000, 2, constants=Constants(stage3_steps=2 * Constants().stage3_steps))
    >>> twice.stages[2].steps / scb.plan(3, 5000, 2).stages[2].steps
    2.0
    """

    # Concentration, of all stages
    square_A: float = _measured("square_A")
    square_V: float = _measured("square_V")
    along_P: float = _measured("along_P")
    along_Q: float = _measured("along_Q")
    coordinate: float = _measured("coordinate")
    square_on_support: float = _measured("square_on_support")
    # Stage 1
    stage1_signal: float = 1.0
    stage1_steps: float = _measured("stage1_steps")
    stage1_noise: float = _measured("stage1_noise")
    # Stage 2
    rounding: float = 0.25
    rounding_error: float = _measured("rounding_error")
    stage2_lambda: float = _measured("stage2_lambda")
    stage2_steps: float = _measured("stage2_steps")
    bias: float = _measured("bias")
    errors: float = _measured("errors")
    boundary: float = _measured("boundary")
    # Stage 3
    normalisation: float = 1 / 6
    separated: float = 0.1
    rounding_A: float = _measured("rounding_A_sharp")
    stage3_attention: float = _measured("stage3_attention")
    stage3_noise: float = _measured("stage3_noise")
    stage3_steps: float = _measured("stage3_steps")
    # Transfer
    theta: float = 1.0
    start_error: float = _measured("start_error")
    step_error: float = _measured("step_error")
