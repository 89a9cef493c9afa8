"""Algorithm 1: projected preconditioned ℓ1-proximal gradient descent in three stages."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from scb.arrays import Array
from scb.geometry import Projector, centred_square, keep_mu, trivial_V
from scb.inputs import InputError, one_of, typed
from scb.task import Seed, Task
from scb.theory.gaussian import residual_variance
from scb.training.roundings import ResolveSign, SignalAbove, ThresholdNormalize, ThresholdProject
from scb.training.stages import Recipe, Stage
from scb.training.starts import GivenStart, UniformAttention

if TYPE_CHECKING:
    from scb.task.sampling import Batch

Rate = float | Callable[[int], float]
"""A step size or a λ: a number, or a function of the step of a stage."""


@dataclass(frozen=True)
class Knowledge:
    """The stationary distribution μ and the constants K_P and K_Q of a task.

    They determine the preconditioner and the step sizes.

    Attributes
    ----------
    mu : (N,) array
        The stationary distribution of the tokens.
    K_P, K_Q : float
        The constants K_P = ‖P − μ1ᵀ‖_μ² and K_Q = ‖Q − 11ᵀ/T‖_μ².
    samples : int, default 0
        The number of samples from which they were estimated; 0 if they are exact.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> truth = scb.recipes.Knowledge.of(task)
    >>> guess = scb.recipes.Knowledge.of(task, known=False, seed=0)
    >>> round(truth.K_P, 2), round(guess.K_P, 2), guess.samples
    (0.48, 0.49, 4000)
    >>> round(truth.stage("1", steps=400, eta=0.01).eta_V, 4)
    0.0208
    """

    mu: Array
    K_P: float
    K_Q: float
    samples: int = 0

    @classmethod
    def of(cls, task: Task, known: bool = True, seed: Seed = 0) -> "Knowledge":
        """Take the constants from a task, or estimate them from 4,000 fresh samples of it.

        Parameters
        ----------
        task : Task
            The task to learn.
        known : bool, default True
            Whether to take the true values. If not, they are estimated from samples and nothing
            else.
        seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
            The source of randomness of the samples.

        Returns
        -------
        Knowledge
        """
        if known:
            return cls(task.mu, task.K_P, task.K_Q)
        from scb.task.sampling import sample

        return estimate(sample(task, 4000, seed), task.N)

    def stage(self, name: str, steps: int, eta: Rate, **rest: Any) -> Stage:
        """Make a stage with the step sizes of the paper, η_V = η/K_Q and η_A = η/K_P.

        Parameters
        ----------
        name, steps : str and int
            The name of the stage, and its number of steps.
        eta : float or callable
            The step size η, or a function that gives it for each step of the stage.
        **rest : any
            Further arguments of ``Stage``; ``eta_V`` and ``eta_A`` among them replace the step
            sizes.

        Returns
        -------
        Stage
        """
        rates: dict[str, Any] = {"eta_V": _divided(eta, self.K_Q), "eta_A": _divided(eta, self.K_P)}
        return Stage(name, steps, **(rates | rest))


def _divided(eta: Rate, constant: float) -> Rate:
    if callable(eta):
        return lambda step: eta(step) / constant
    return eta / constant


@dataclass(frozen=True)
class Enough:
    """Batch sizes of the three stages, λ of Stage 2 and 1/η that keep the noise below a target; see
    ``tuned``.
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


def estimate(data: "Batch", N: int) -> Knowledge:
    """Estimate μ, K_P and K_Q from samples alone, by the norms of the spectral estimates of P and
    Q.

    Tokens for which no position was found carry no information about K_Q, and are left out of its
    mean.
    """
    from scb.mixture.samples_in import as_data
    from scb.mixture.spectral import spectral

    n, T = data.context.shape
    if n == 0:
        raise InputError("the batch is empty: there must be at least 1 sample to estimate from")
    mu = np.bincount(data.context.ravel(), minlength=N) + np.bincount(
        data.last, minlength=N
    ).astype(float)
    if (mu == 0).any():
        raise InputError(
            f"token {int(np.argmin(mu))} never occurs in {n} samples: more samples are needed"
        )
    mu /= mu.sum()
    # False positions: one distorts K_Q more than a weak one that is missed
    found = spectral(as_data(data, N), 1e-3)
    # (N,): ‖q^(k)‖², 0 without positions
    squares = np.array([weights @ weights for weights in found.weights])
    seen = squares > 0
    if not seen.any():
        # The least K_P that assumption (c) allows, and sparsity 1.
        return Knowledge(mu, K_P=float(mu @ mu), K_Q=1.0, samples=n)
    K_P = max(centred_square(found.P, mu), float(mu @ mu) / 2)
    K_Q = mu[seen] @ squares[seen] / mu[seen].sum() - 1 / T
    return Knowledge(mu, K_P=K_P, K_Q=float(np.clip(K_Q, 1 / T, 1.0)), samples=n)


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
    start: Literal["uniform", "spectral"] = "uniform",
    start_samples: int = 4000,
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
        The proximal threshold λ of Stage 2, a number or a function of the step.
    threshold : float, optional
        The threshold of the thresholding-projection after Stage 1. By default there is none, as in
        the paper's experiment.
    normalize_at : float, optional
        The threshold of the thresholding-normalisation before Stage 3. The default is
        1/(6·sparsity).
    resolve_sign : bool, default True
        Whether to resolve the sign after Stage 1, and again after Stage 2 in case the signal was
        not clear before: if A is skewed to the left, (V, A) is replaced by its mirror image (2μ1ᵀ −
        V, 2·11ᵀ/T − A). False is the paper's algorithm.
    projector : {"euclidean", "mu"}, default "euclidean"
        The projector with which steps on V keep Vμ = μ. "euclidean" is the paper's, "mu" has less
        noise.
    signal : two of float or None, default (None, None)
        Estimated signals at which Stages 1 and 2 end early; None means that all steps are taken.
    known : bool, default True
        Whether μ, K_P and K_Q are taken from the task. If not, they are estimated from 4,000
        samples.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness of these samples and of those for the spectral start.
    start : {"uniform", "spectral"}, default "uniform"
        The initial point. "uniform" is the paper's. "spectral" replaces Stage 1 by a spectral
        estimate from samples; there is then no sign to resolve and no thresholding before Stage 2.
    start_samples : int, default 4000
        The number of samples for the spectral start. The number that suffices grows only as log T.

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
    one_of("start", start, ("uniform", "spectral"))
    k = Knowledge.of(task, known, seed)
    point: GivenStart | UniformAttention = UniformAttention(trivial_V(k.mu), task.T)
    samples = k.samples
    if start == "spectral":
        point = spectral_start(task, k.mu, start_samples, seed)
        samples += start_samples
        steps = (0, steps[1], steps[2])
        resolve_sign = False
        threshold = None
    sign = (ResolveSign(),) if resolve_sign else ()
    rounding = sign if threshold is None else (*sign, ThresholdProject(threshold))
    normalize = ThresholdNormalize(task.weight_threshold if normalize_at is None else normalize_at)
    stop_1, stop_2 = (None if level is None else SignalAbove(level) for level in signal)
    common: dict[str, Any] = {"batch_size": batch_size, "projector": projector}
    stages = (
        k.stage("1", steps[0], eta[0], stop=stop_1, **common),
        k.stage("2", steps[1], eta[1], lam=lam, enter=rounding, leave=sign, stop=stop_2, **common),
        k.stage("3", steps[2], eta[2], eta_A=0.0, enter=(normalize,), **common),
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
    found = recover(sample(task, samples, rng), N=task.N, method="spectral")
    return GivenStart(mu[:, None] + keep_mu(found.V - mu[:, None], mu), found.A)


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
) -> Recipe:
    """Make the recipe for Algorithm 1 with batch sizes and λ that keep the noise small.

    In one step with batch size B, the noise in one entry of column k of A has standard deviation
    η_A √(K_V ρ / (B μ_k)), where ρ = E‖r‖²/(N − 1) is the variance of the residual per dimension
    (see ``theory.gaussian``). It determines, with Q = sparsity:

    - Stage 1: B such that a position of weight 1/(3Q) is ten times the noise. The stage ends at an
      estimated signal of 0.2.
    - Stage 2: B such that the remaining noise of a true position is ``accuracy``, and λ =
      η·accuracy/Q, which lowers a position by accuracy/Q. The stage ends at an estimated signal of
      0.95, before the regulariser distorts the weights.
    - Stage 3: B such that the error ‖Δ_V‖_μ stays at ``accuracy``.

    Parameters
    ----------
    task : Task
        The task to learn.
    accuracy : float, default 0.02
        The target for the noise in A and in V.
    eta : float, default 0.02
        The η of all stages. Batch sizes are proportional to it, and numbers of steps to 1/η.
    batch_size : int, optional
        A batch size for all stages, in place of those that follow from the noise.
    lam : float, optional
        The λ of Stage 2, in place of the one that follows from the accuracy.
    projector : {"euclidean", "mu"}, default "mu"
        The projector with which steps on V keep Vμ = μ. "mu" has less noise than the paper's
        "euclidean".
    known : bool, default True
        Whether μ, K_P and K_Q are taken from the task. If not, they are estimated from 4,000
        samples.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness of these samples.

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
    k = Knowledge.of(task, known, seed)
    for name, value in (("accuracy", accuracy), ("eta", eta)):
        if not value > 0:
            raise InputError(f"{name} = {value}: it must be positive")
    plan = enough(k, task.sparsity, eta, accuracy)
    B1, B2, B3 = plan.batch_sizes if batch_size is None else (batch_size, batch_size, batch_size)
    first, second, third = plan.steps
    stop_1, stop_2 = (SignalAbove(goal) for goal in plan.goals)
    rounding = (ResolveSign(), ThresholdProject())
    stage = partial(k.stage, projector=projector)
    normalize = ThresholdNormalize(task.weight_threshold)
    lam_2 = plan.lam if lam is None else lam
    stages = (
        stage("1", first, eta, batch_size=B1, stop=stop_1),
        stage(
            "2", second, eta, batch_size=B2, lam=lam_2, centred=True, enter=rounding, stop=stop_2
        ),
        stage("3", third, eta, batch_size=B3, eta_A=0.0, enter=(normalize,)),
    )
    start = UniformAttention(trivial_V(k.mu), task.T)
    return Recipe("tuned", start, k.mu, stages=stages, samples=k.samples)
