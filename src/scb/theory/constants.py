"""The constants of the planner: what the paper hides in Θ(1), measured unless given."""

from dataclasses import dataclass, field

from scb.theory.bounds import BOUNDS


def _measured(name: str) -> float:
    return field(default=BOUNDS[name].constant)


@dataclass(frozen=True)
class Constants:
    """The factors c of the lemmas; those with a name of ``scb.theory.bounds`` stand there with their statement."""

    # Concentration, of all stages
    square_A: float = _measured("square_A")
    square_V: float = _measured("square_V")
    along_P: float = _measured("along_P")
    along_Q: float = _measured("along_Q")
    coordinate: float = _measured("coordinate")
    square_on_support: float = _measured("square_on_support")
    # Stage 1
    stage1_signal: float = 1.0  # of α at the end of Stage 1, min(1/2, c/(Q·N)): it defines 𝒯₁
    stage1_steps: float = _measured("stage1_steps")
    stage1_noise: float = _measured("stage1_noise")
    # Stage 2
    rounding: float = 0.25  # of the threshold c·α/Q before Stage 2: half of the least entry, α/(C·Q), for C = 2
    rounding_error: float = _measured("rounding_error")
    stage2_lambda: float = _measured("stage2_lambda")
    stage2_steps: float = _measured("stage2_steps")
    bias: float = _measured("bias")
    errors: float = _measured("errors")
    boundary: float = _measured("boundary")
    # Stage 3
    normalisation: float = 1 / 6  # of the threshold c/Q before Stage 3
    separated: float = 0.1  # of ‖Δ_A‖_μ ≤ c/(Q√N), up to which ``rounding_A`` was measured
    rounding_A: float = _measured("rounding_A_sharp")
    stage3_attention: float = _measured("stage3_attention")
    stage3_noise: float = _measured("stage3_noise")
    stage3_steps: float = _measured("stage3_steps")
    # Transfer
    theta: float = 1.0  # of θ = min(1/2, √(c/log(1/ε)))
    start_error: float = _measured("start_error")
    step_error: float = _measured("step_error")
