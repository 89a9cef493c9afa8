"""Algorithm 1: projected preconditioned ℓ1-proximal gradient descent in three stages."""

from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, Literal

import numpy as np

from scb.arrays import Array
from scb.geometry import Projector, keep_mu
from scb.inputs import InputError, one_of, typed
from scb.task import Seed, Task
from scb.theory.gaussian import residual_variance
from scb.training.recipes.heads import (
    HeadStart,
    first_point,
    head_count,
    normalising,
    reached,
    sign_or_gauge,
    slowness,
)
from scb.training.recipes.knowledge import Knowledge, Rate
from scb.training.recipes.recipe import Recipe
from scb.training.roundings import ThresholdProject
from scb.training.starts import GivenStart, UniformAttention


@dataclass(frozen=True)
class Enough:
    """Settings that keep the noise below a target: the batch sizes of the three stages, λ of Stage
    2 and 1/η; see ``tuned``.
    """

    batch_sizes: tuple[int, int, int]
    lam: float
    length: int  # 1/η, in steps
    goals: tuple[float, float] = (0.2, 0.95)  # the estimated signals at which Stages 1 and 2 end

    @property
    def steps(self) -> tuple[int, int, int]:
        """The largest number of steps of each stage."""
        return 30 * self.length, 10 * self.length, 5 * self.length


def enough(k: Knowledge, sparsity: int, eta: float, accuracy: float) -> Enough:
    """Return the settings of ``tuned`` for steps of size η and a target for the noise in A and in
    V.
    """
    N = len(k.mu)
    rho = residual_variance(1 - float(k.mu @ k.mu) - k.K_P * k.K_Q, N)
    # B times the variance of one coordinate of a, up to factors
    spread = eta * rho / (k.K_P * float(k.mu.min()))
    B1 = ceil(spread * (10 * 3 * sparsity) ** 2)
    B2 = ceil(max(spread / 2 * sparsity / accuracy**2, B1))
    B3 = ceil((N - 1) ** 2 * eta * rho / (2 * k.K_Q * accuracy**2))
    return Enough(batch_sizes=(B1, B2, B3), lam=eta * accuracy / sparsity, length=ceil(1 / eta))


@typed
def paper(
    task: Task,
    *,
    eta: tuple[Rate, Rate, Rate] = (0.01, 0.005, 0.005),
    steps: tuple[int, int, int] = (400, 600, 0),
    batch_size: int = 64,
    lam: Rate = 1e-5,
    threshold: float | None = None,
    normalize_at: float | None = None,
    resolve_sign: bool = True,
    projector: Projector = "euclidean",
    signal: tuple[float | None, float | None] = (None, None),
    known: bool = True,
    seed: Seed = 0,
    start: Literal["uniform", "spectral", "equal"] = "uniform",
    start_samples: int = 4000,
    heads: int | None = None,
) -> Recipe:
    """Make the recipe for Algorithm 1, with the settings of the paper's experiment as defaults.

    Parameters
    ----------
    task : Task
        The task to learn.
    eta : float, callable or three of them, default (0.01, 0.005, 0.005)
        The η of Stages 1, 2 and 3, which gives the step sizes η_V = η/K_Q and η_A = η/K_P. Each may
        be a function of the step within its stage. A single value is used for all stages.
    steps : int or three of them, default (400, 600, 0)
        The numbers of steps of Stages 1, 2 and 3. The paper's experiment has no separate Stage 3.
    batch_size : int, default 64
        The number of samples per step.
    lam : float or callable, default 1e-5
        The proximal threshold λ of Stage 2, as a number or a function of the step.
    threshold : float, optional
        The threshold of the thresholding-projection after Stage 1. By default, there is no
        threshold, as in the paper's experiment.
    normalize_at : float, optional
        The threshold of the thresholding-normalisation before Stage 3. The default is
        1/(6·sparsity).
    resolve_sign : bool, default True
        Whether to resolve the sign after Stage 1, and again after Stage 2 in case the signal was
        not clear before: if A is skewed to the left, (V, A) is replaced by its mirror image (2μ1ᵀ −
        V, 2·11ᵀ/T − A). With False, the algorithm is the paper's.
    projector : {"euclidean", "mu"}, default "euclidean"
        The projector with which steps on V keep Vμ = μ: the paper's projector, or the μ-projector,
        which has less noise.
    signal : two of float or None, default (None, None)
        Estimated signals at which Stages 1 and 2 end early; None means that all steps are taken.
    known : bool, default True
        Whether μ, K_P and K_Q are taken from the task. If not, these constants are estimated from
        4,000 samples.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness for these samples and for the samples of the spectral start.
    start : {"uniform", "spectral", "equal"}, default "uniform"
        The initial point. "uniform" is the paper's start; with several heads, each head has a small
        random V, drawn with ``seed``. "spectral", which is for one head, replaces Stage 1 by a
        spectral estimate from samples; there is then no sign to resolve and no thresholding before
        Stage 2. With "equal", several heads start alike and stay alike.
    start_samples : int, default 4000
        The number of samples for the spectral start. The number that suffices grows only as log T.
    heads : int, optional
        The number of heads to train. The default is the task's number; any further heads are spare.
        Several heads are rotated into the sparse gauge (``scb.rotate_heads``) at the point where
        the sign of a single head would be resolved, and again before Stage 3.

    Returns
    -------
    Recipe

    Examples
    --------
    Change λ and η of Stage 2, with everything else as in the paper:

    >>> import scb
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> recipe = scb.recipes.paper(task, lam=1e-4, eta=(0.01, 0.002, 0.005))
    >>> [(stage.name, stage.steps, stage.lam) for stage in recipe.stages]
    [('1', 400, 0.0), ('2', 600, 0.0001)]
    >>> run = scb.train(task, recipe, seed=0)
    >>> run.samples, round(float(run.history["sim_A"][-1]), 2)
    (64000, 1.0)
    """
    H = head_count(task, heads)
    one_of("start", start, ("uniform", "spectral") if H == 1 else ("uniform", "equal"))
    k = Knowledge.from_task(task, known, seed)
    heads_start = "equal" if start == "equal" else "random"
    point: GivenStart | UniformAttention = first_point(k, task.T, H, heads_start, seed)
    samples = k.samples
    if start == "spectral":
        point = spectral_start(task, k.mu, start_samples, seed)
        samples += start_samples
        steps = (0, steps[1], steps[2])
        resolve_sign = False
        threshold = None
    sign = (sign_or_gauge(k, H),) if resolve_sign else ()
    rounding = sign if threshold is None else (*sign, ThresholdProject(threshold))
    normalize = normalising(k, H, task.weight_threshold if normalize_at is None else normalize_at)
    stop_1, stop_2 = (None if level is None else reached(k, H, level) for level in signal)
    common: dict[str, Any] = {"batch_size": batch_size, "projector": projector}
    stages = (
        k.stage("1", steps[0], eta[0], stop=stop_1, **common),
        k.stage("2", steps[1], eta[1], lam=lam, enter=rounding, leave=sign, stop=stop_2, **common),
        k.stage("3", steps[2], eta[2], eta_A=0.0, enter=normalize, **common),
    )
    return Recipe("paper", point, k.mu, stages=stages, samples=samples)


def spectral_start(task: Task, mu: Array, samples: int, seed: Seed = 0) -> GivenStart:
    """Return the spectral estimate from fresh samples, changed so that 1ᵀV = 1ᵀ, Vμ = μ and 1ᵀA =
    1ᵀ.
    """
    from scb.mixture.recovery import recover
    from scb.task.sampling import sample

    # Not the samples from which μ, K_P and K_Q were estimated
    rng = np.random.default_rng(seed).spawn(1)[0]
    recovery = recover(sample(task, samples, rng), N=task.N, method="spectral")
    return GivenStart(mu[:, None] + keep_mu(recovery.V - mu[:, None], mu), recovery.A)


@typed
def tuned(
    task: Task,
    *,
    accuracy: float = 0.02,
    eta: float = 0.02,
    batch_size: int | None = None,
    lam: float | None = None,
    projector: Projector = "mu",
    known: bool = True,
    seed: Seed = 0,
    heads: int | None = None,
    start: HeadStart = "random",
) -> Recipe:
    """Make the recipe for Algorithm 1 with batch sizes and λ that keep the noise small.

    In one step with batch size B, the noise in one entry of column k of A has standard deviation
    η_A √(K_V ρ / (B μ_k)), where ρ = E‖r‖²/(N − 1) is the variance of the residual per dimension
    (see ``theory.gaussian``). With Q = sparsity, this noise determines the settings of the stages:

    - In Stage 1, B is such that the signal from a position of weight 1/(3Q) is ten times the noise.
      The stage ends at an estimated signal of 0.2.
    - In Stage 2, B is such that the remaining noise at a true position is ``accuracy``, and λ is
      η·accuracy/Q, which lowers the weight of a position by accuracy/Q. The stage ends at an
      estimated signal of 0.95, before the regulariser distorts the weights.
    - In Stage 3, B is such that the error ‖Δ_V‖_μ stays at ``accuracy``.

    With several heads, K_P and K_Q are those of the first singular value, and Stages 1 and 2 end
    when every singular value has reached its threshold. Heads are rotated into the sparse gauge
    (``scb.rotate_heads``) at the point where the sign of a single head would be resolved, and again
    before Stage 3.

    Parameters
    ----------
    task : Task
        The task to learn.
    accuracy : float, default 0.02
        The target for the noise in A and in V.
    eta : float, default 0.02
        The η of all stages. Batch sizes are proportional to η, and numbers of steps are
        proportional to 1/η.
    batch_size : int, optional
        A batch size for all stages, in place of the sizes that follow from the noise.
    lam : float, optional
        The λ of Stage 2, in place of the value that follows from the accuracy.
    projector : {"euclidean", "mu"}, default "mu"
        The projector with which steps on V keep Vμ = μ: the paper's projector, or the μ-projector,
        which has less noise.
    known : bool, default True
        Whether μ, K_P and K_Q are taken from the task. If not, these constants are estimated from
        4,000 samples.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness of these samples, and of the start of several heads.
    heads : int, optional
        The number of heads to train. The default is the task's number; any further heads are spare.
    start : {"random", "equal"}, default "random"
        The start of several heads. With "random", they start at uniform attention with a small
        random V in each head, drawn with ``seed``. With "equal", they start alike and stay alike.

    Returns
    -------
    Recipe

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> recipe = scb.recipes.tuned(task)
    >>> [(stage.name, stage.batch_size) for stage in recipe.stages]
    [('1', 120), ('2', 120), ('3', 45)]
    >>> scb.train(task, recipe, seed=0).verdict
    'learned'
    """
    k = Knowledge.from_task(task, known, seed)
    for name, value in (("accuracy", accuracy), ("eta", eta)):
        if not value > 0:
            raise InputError(f"{name} = {value}: it must be positive")
    plan = enough(k, task.sparsity, eta, accuracy)
    B1, B2, B3 = plan.batch_sizes if batch_size is None else (batch_size, batch_size, batch_size)
    H = head_count(task, heads)
    first, second, third = (ceil(steps * slowness(k, task.heads)) for steps in plan.steps)
    stop_1, stop_2 = (reached(k, H, goal) for goal in plan.goals)
    rounding = (sign_or_gauge(k, H), ThresholdProject())
    stage = partial(k.stage, projector=projector)
    normalize = normalising(k, H, task.weight_threshold)
    lam_2 = plan.lam if lam is None else lam
    stages = (
        stage("1", first, eta, batch_size=B1, stop=stop_1),
        stage(
            "2", second, eta, batch_size=B2, lam=lam_2, centred=True, enter=rounding, stop=stop_2
        ),
        stage("3", third, eta, batch_size=B3, eta_A=0.0, enter=normalize),
    )
    point = first_point(k, task.T, H, start, seed)
    return Recipe("tuned", point, k.mu, stages=stages, samples=k.samples)
