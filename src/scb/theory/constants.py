"""The constants of the planner: the factors that the paper hides in Θ(1). Their defaults are
measured values.
"""

from dataclasses import dataclass, field

from scb.theory.bounds import BOUNDS


def _measured(name: str) -> float:
    return field(default=BOUNDS[name].constant)


@dataclass(frozen=True)
class Constants:
    """The constant factors c in the lemmas, as used by ``scb.plan``.

    If no default is given here, an attribute has the value that ``scb.theory.bounds.BOUNDS`` lists
    under the same name. The statement in which the factor occurs is listed there too.

    Attributes
    ----------
    square_A, square_V, along_P, along_Q, coordinate, square_on_support : float
        The factors of the concentration lemmas, which are used in all stages.
    stage1_signal : float, default 1
        The factor of the signal min(1/2, c/(Q·N)) at which Stage 1 ends.
    stage1_steps, stage1_noise : float
        The factors of the number of steps and of the allowed noise in Stage 1.
    rounding : float, default 1/4
        The factor of the threshold c·α/Q before Stage 2. The default gives half of the smallest
        entry α/(C·Q), for C = 2.
    rounding_error, stage2_lambda, stage2_steps, bias, errors, boundary : float
        The factors of the lemmas on Stage 2.
    normalisation : float, default 1/6
        The factor of the threshold c/Q before Stage 3.
    separated : float, default 0.1
        The factor of ‖Δ_A‖_μ ≤ c/(Q√N), the range of errors for which ``rounding_A`` was measured.
    rounding_A : float
        The factor of the error after the rounding before Stage 3, listed in ``BOUNDS`` as
        ``rounding_A_sharp``.
    stage3_attention, stage3_noise, stage3_steps : float
        The factors of the lemmas on Stage 3.
    theta : float, default 1
        The factor in transfer's θ = min(1/2, √(c/log(1/ε))).
    start_error, step_error : float
        The factors of the lemmas on transfer.

    Examples
    --------
    Plan twice as many steps in Stage 3:

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


def attention_error(N: int, sparsity: int, eps: float, constants: Constants | None = None) -> float:
    """Compute the error ‖Δ_A‖_μ² = O(ε²/(NQ)) that Stage 2 must reach.

    With this error, ‖V − P‖_μ² ≤ ε holds after Stage 3.

    Stage 3 requires ‖A_* − Q‖_μ ≤ c·ε/√Q, and rounding gives ‖A_* − Q‖_μ² ≤ c'·(‖Δ_A‖_μ² + Q/T²).
    (The paper's corollary has ε/(Q√N), which does not follow. The paper's bound on rounding has
    NQ‖Δ_A‖_μ²; the factor N is kept here, to be safe.) For rounding to find the positions, ‖Δ_A‖_μ
    must also be well below 1/(Q√N).

    Parameters
    ----------
    N, sparsity : int
        The number of tokens, and the number of positions that each token attends to.
    eps : float
        The target accuracy ε of ‖V − P‖_μ².
    constants : Constants, optional
        The factors of the lemmas. The default is ``Constants()``, with the measured values.

    Returns
    -------
    float

    Examples
    --------
    >>> from scb.theory.constants import attention_error
    >>> round(attention_error(N=3, sparsity=2, eps=0.01), 8)
    4.444e-05
    """
    c = constants or Constants()
    for_V = (c.stage3_attention * eps) ** 2 / (c.rounding_A * N * sparsity)
    return min(for_V, (c.separated / sparsity) ** 2 / N)
