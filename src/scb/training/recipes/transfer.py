"""In transfer, a value matrix that was trained on another task takes the place of Stage 1."""

from functools import partial
from math import ceil

from scb.arrays import Array
from scb.geometry import Projector, keep_mu, trivial_V
from scb.inputs import InputError, real_array, typed
from scb.task import Seed, Task
from scb.theory.gaussian import residual_variance
from scb.training.head_verdict import HeadsHeldOut
from scb.training.recipes.heads import normalising, sign_or_gauge
from scb.training.recipes.knowledge import Knowledge
from scb.training.recipes.recipe import Recipe
from scb.training.roundings import ThresholdProject
from scb.training.schedules import MeasuredNoise
from scb.training.stages import Stage
from scb.training.starts import UniformAttention
from scb.training.verdict import HeldOut


@typed
def transfer(
    task: Task,
    V_hat: Array,
    *,
    theta: float = 0.5,
    least_overlap: float = 0.5,
    accuracy: float = 0.02,
    eta: float = 0.2,
    multiple: float = 2.0,
    projector: Projector = "mu",
    known: bool = True,
    seed: Seed = 0,
) -> Recipe:
    """Make a recipe for transfer learning from a value matrix P̂ that was trained on another task.

    Training starts at V = θP̂ + (1 − θ)μ1ᵀ and uniform attention. One step on A takes the place of
    Stage 1; Stages 2 and 3 and another step on A follow. After the first step, an entry of A is α_V
    q plus noise of variance K_V ρ/(B μ_k K_P²), where q is the entry of Q and B is the batch size.
    Here, α_V = θ·overlap·√(K_P̂/K_P), K_V = θ²K_P̂ and ρ = E‖r‖²/(N − 1) (see ``theory.gaussian``).
    The ratio of signal to noise does not depend on θ. The noise determines the batch sizes, with Q
    = sparsity:

    - In the first step, B is such that the signal from a position of weight 1/(2Q) is six times the
      noise if the overlap of P̂ is ``least_overlap``.
    - In Stage 2, B is such that λ, which is ``multiple`` standard deviations of the noise in one
      entry per step, lowers the weight of a position by at most 1/(6Q).
    - In Stage 3, B is such that the error ‖Δ_V‖_μ stays at ``accuracy``.
    - In the last step, B is such that the noise on the support is ``accuracy``. This step undoes
      the shrinkage by λ: at V = P, a step with η = 1 leads from any A to Q.

    Neither the batch sizes nor the numbers of steps depend on T. The result is tested on held-out
    samples at the end.

    Parameters
    ----------
    task : Task
        The task to learn.
    V_hat : (N, N) array, or (H, N, N) with several heads
        The pretrained matrix P̂, which has the same stationary distribution μ as the task.
    theta : float, default 0.5
        The weight θ of P̂ in the initial V, in (0, 1].
    least_overlap : float, default 0.5
        The smallest overlap (the μ-cosine of P̂ − μ1ᵀ and P − μ1ᵀ) for which the first step is
        designed.
    accuracy : float, default 0.02
        The target for the noise in A and in V.
    eta : float, default 0.2
        The η of Stages 2 and 3.
    multiple : float, default 2
        The λ of Stage 2, in standard deviations of the noise of one entry in each step.
    projector : {"euclidean", "mu"}, default "mu"
        The projector with which steps on V keep Vμ = μ: the paper's projector, or the μ-projector,
        which has less noise.
    known : bool, default True
        Whether μ, K_P and K_Q are taken from the task. If not, these constants are estimated from
        4,000 samples.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness of these samples.

    Returns
    -------
    Recipe
        The recipe, with four stages.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> pretrained = task.related(overlap=0.6, seed=1).P  # or the V of a run on another task
    >>> run = scb.train(task, scb.recipes.transfer(task, pretrained), seed=0)
    >>> run.verdict, run.step, round(float(run.history["dist_A"][-1]), 2)
    ('learned', 57, 0.03)
    """
    V_hat = real_array("V_hat", V_hat)
    if V_hat.shape != task.P.shape:
        raise InputError(
            f"V_hat has shape {V_hat.shape}: it must be {task.P.shape}, like the task's P"
        )
    shares = {"theta": theta, "least_overlap": least_overlap, "accuracy": accuracy, "eta": eta}
    for name, value in shares.items():
        if not 0 < value <= 1:
            raise InputError(f"{name} = {value}: it must lie in (0, 1]")
    k = Knowledge.from_task(task, known, seed)
    # ‖Q‖_μ², the curvature of V's loss; the paper's K_Q is 0 at T = 1.
    square_Q = k.K_Q + 1 / task.T
    B1, B2, B3, B4 = _batch_sizes(
        k, task.sparsity, square_Q, least_overlap, accuracy, eta, multiple
    )
    length = ceil(1 / eta)
    on_A = partial(Stage, eta_V=0.0, eta_A=1 / k.K_P, projector=projector)
    on_V = partial(Stage, eta_V=eta / square_Q, projector=projector)
    # If most positions of a column matter, its other entries do not tell what is noise.
    rounding = (ThresholdProject(),) if 4 * task.sparsity <= task.T else ()
    rounding = rounding if task.heads == 1 else (sign_or_gauge(k, task.heads), *rounding)
    normalize = normalising(k, task.heads, task.weight_threshold)
    second = {"lam": MeasuredNoise(multiple), "centred": True, "enter": rounding}
    stages = (
        on_A("first", 1, batch_size=B1),
        on_V("2", 6 * length, eta_A=eta / k.K_P, batch_size=B2, **second),
        on_V("3", 5 * length, eta_A=0.0, batch_size=B3, enter=normalize),
        on_A("last", 1, batch_size=B4, leave=(*rounding, *normalize)),
    )
    trivial = trivial_V(k.mu)
    start = UniformAttention(trivial + theta * keep_mu(V_hat - trivial, k.mu, "mu"), task.T)
    check: HeldOut | HeadsHeldOut = HeldOut.sized(k.mu, k.K_P, task.sparsity)
    if task.heads > 1:
        check = HeadsHeldOut.sized(k.mu, task.singular_values, task.sparsity)
    return Recipe("transfer", start, k.mu, stages=stages, samples=k.samples, check=check)


def _batch_sizes(
    k: Knowledge,
    sparsity: int,
    square_Q: float,
    least_overlap: float,
    accuracy: float,
    eta: float,
    multiple: float,
) -> tuple[int, int, int, int]:
    """The batch sizes of the four stages, as ``transfer`` explains them."""
    N = len(k.mu)
    rho = residual_variance(1 - float(k.mu @ k.mu), N)
    # B times the variance of one coordinate of a after a step with η = 1 from V = P
    spread = rho / (k.K_P * float(k.mu.min()))
    return (
        ceil(spread * (6 * 2 * sparsity / least_overlap) ** 2),
        ceil(spread * (multiple * 6 * sparsity) ** 2),
        ceil((N - 1) ** 2 * eta * rho / (2 * square_Q * accuracy**2)),
        ceil(N * sparsity * rho / (k.K_P * accuracy**2)),
    )
