"""Experiments that need a GPU: the paper's simulated sizes with real gradients, the planner's batch
sizes, and signs and rates at large sizes.

Without a ``device``, these jobs run on the CPU, with the same samples, at sizes that are feasible
there.
"""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

import numpy as np

from scb.geometry import trivial_V
from scb.jobs.job import Job, Rows, random_task
from scb.paper.experiments import Gradients, history_of, shortened
from scb.paper.experiments.rates import BASE, one_varied
from scb.paper.experiments.simulation import GaussianJob
from scb.task import Task
from scb.theory.planner import Plan
from scb.theory.planner import plan as make_plan
from scb.training.loop import Device
from scb.training.recipes.knowledge import Knowledge
from scb.training.recipes.recipe import Recipe
from scb.training.roundings import ThresholdNormalize, ThresholdProject
from scb.training.starts import UniformAttention

KEPT = (
    "step",
    "stage",
    "samples",
    "loss",
    "alpha_V",
    "alpha_A",
    "delta_V",
    "delta_A",
    "dist_V",
    "dist_A",
)
"""Columns of a history that are kept."""


@dataclass(frozen=True)
class RealJob(Job):
    """A run of Figure 5 in the paper's appendix, with real gradients where the paper simulates
    them, or simulated with the same settings.
    """

    label: ClassVar = {"experiment": "large", "job": "RealJob"}

    N: int = 100
    method: Literal["proximal", "SGD"] = "proximal"
    batch_size: int = 1 << 17
    gradients: Gradients = "real"
    trial: int = 0
    T: int = 100_000
    every: int = 20
    device: Device | None = None

    @property
    def seed(self) -> int:
        """The number of the run; all runs of a size share one task."""
        return self.trial

    @property
    def cost(self) -> float:
        """Seconds: measured for simulated runs, and at 5·10¹¹ tokens per second for real runs."""
        return 2.0 if self.gradients == "simulated" else 2e-12 * self.batch_size * self.T * 1000

    def run(self) -> Rows:
        """The history, to six digits."""
        task = random_task(self.N, self.T, 2, 0)
        recipe = GaussianJob(
            N=self.N, T=self.T, method=self.method, batch_size=self.batch_size
        ).recipe(task)
        history = history_of(task, recipe, self.seed, self.every, self.gradients, self.device)
        return shortened({name: np.asarray(history[name], dtype=float) for name in KEPT})


@dataclass(frozen=True)
class PlanJob(Job):
    """Algorithm 1 with exactly the batch sizes, steps, step sizes, λ and thresholds that ``scb
    plan`` prescribes.
    """

    label: ClassVar = {"experiment": "large", "job": "PlanJob"}

    N: int = 2
    T: int = 20
    sparsity: int = 1
    epsilon: float = 0.1
    delta: float = 0.2
    replicate: int = 0
    every: int = 5
    device: Device | None = None

    @property
    def seed(self) -> int:
        """The number of the run."""
        return self.replicate

    @property
    def cost(self) -> float:
        """Seconds on a GPU, as measured."""
        return 90.0

    def plan(self, task: Task) -> Plan:
        """The settings that the lemmas require, with K_P and K_Q known."""
        return make_plan(
            self.N, self.T, self.sparsity, self.epsilon, self.delta, K_P=task.K_P, K_Q=task.K_Q
        )

    def recipe(self, task: Task, most: float = inf) -> Recipe:
        """The plan as a recipe, with a limit on the number of samples per step."""
        one, two, three = self.plan(task).stages
        assert two.threshold is not None
        assert three.threshold is not None
        known = Knowledge.from_task(task)
        rounding = (ThresholdProject(two.threshold),)
        normalising = (ThresholdNormalize(three.threshold),)
        first, second, third = (min(int(x.batch_size), most) for x in (one, two, three))
        stages = (
            known.stage("1", one.steps, one.eta, batch_size=first),
            known.stage("2", two.steps, two.eta, batch_size=second, lam=two.lam, enter=rounding),
            known.stage(
                "3",
                three.steps,
                three.eta,
                batch_size=third,
                eta_A=0.0,
                enter=normalising,
            ),
        )
        return Recipe(
            "plan", UniformAttention(trivial_V(known.mu), task.T), known.mu, stages=stages
        )

    def run(self) -> Rows:
        """The history."""
        task = Task.random(self.N, self.T, self.sparsity, seed=self.replicate)
        recipe = self.recipe(task)
        history = history_of(task, recipe, self.seed, self.every, device=self.device)
        return {name: np.asarray(history[name], dtype=float) for name in KEPT}


SIGNS = {
    "mu": {
        500: (4, 8, 16, 32),
        5000: (32, 64, 128, 256),
        50_000: (256, 512, 1024, 2048),
        500_000: (1024, 2048, 4096, 8192),
    },
    "euclidean": {
        500: (12, 24, 48, 96),
        1600: (160, 320, 640),
        5000: (1536, 3072, 6144),
        16_000: (16_384, 32_768, 65_536),
        50_000: (163_840, 327_680),
    },
}
"""Projector → T → batch sizes around the least that finds the sign; at T = 500,000 the paper's
would ask for 3·10⁷ a step."""
LONG_LADDER = tuple(
    (T, B, projector)
    for projector, ladder in SIGNS.items()
    for T, batches in ladder.items()
    for B in batches
)

LARGE_BASE = BASE | {"T": 25_600}
LARGE_AXES = {
    "T": (1600, 6400, 25_600, 102_400),
    "N": (3, 12, 48),
    "sparsity": (2, 8, 32),
    "epsilon": (0.0025, 0.0003125, 0.0000390625),
}
"""Sizes that are too large for a CPU; the rates of F15 are those of T = 400, and of T up to
12,800."""
# T for the paper's projector, whose Stage 1 takes T² samples
SHORTER = (400, 1600, 6400, 25_600)
LARGE_SETTINGS = one_varied(LARGE_BASE, LARGE_AXES, ("mu",)) + one_varied(
    LARGE_BASE, {"T": SHORTER}, ("euclidean",)
)
"""As ``SETTINGS`` of the rates: all sizes, one varied at a time, each with a projector."""


def _searches(N: int, T: int, projector: str) -> tuple[int, ...]:
    """Which replicates are searched: two, or one where a search takes long."""
    if max(LARGE_AXES["N"]) == N:
        return (1,)
    return (0,) if projector == "euclidean" or T in (1600, 102_400) else (0, 1)


LARGE_SEARCHES = tuple(
    (*setting, replicate)
    for setting in LARGE_SETTINGS
    for replicate in _searches(int(setting[0]), int(setting[1]), str(setting[-1]))
)
"""``LARGE_SETTINGS``, each with a replicate."""

REAL = tuple(
    (N, method, B, gradients, trial)
    for N, method, B, real in (
        (100, "proximal", 1 << 17, 3),
        (100, "SGD", 1 << 17, 1),
        (500, "proximal", 1 << 20, 1),
    )
    for gradients, runs in (("real", real), ("simulated", 5))
    for trial in range(runs)
)
"""(N, method, batch_size, gradients, trial) of Figure 5."""
