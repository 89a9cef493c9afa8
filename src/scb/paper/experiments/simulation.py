"""The Gaussian simulation at the paper's large sizes (N = 100 and 500, T = 100,000), and whether it
predicts real gradients."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from scb.geometry import line_A, line_V
from scb.jobs.job import Job, Rows
from scb.paper.experiments import Gradients, history_of, task_of
from scb.task import Task
from scb.training.recipes import Knowledge, Recipe, paper, sgd
from scb.training.roundings import ResolveSign, ThresholdProject
from scb.training.schedules import MeasuredNoise
from scb.training.starts import GivenStart

RATES = (0.02, 0.01, 0.01)
STEPS = (600, 300, 100)


@dataclass(frozen=True)
class GaussianJob(Job):
    """One simulated run: SGD, or Algorithm 1, rounded after Stage 1, with λ at 4.5 standard
    deviations of one entry's noise."""

    label: ClassVar = {"experiment": "gaussian", "job": "Job"}

    N: int
    T: int = 100_000
    method: Literal["proximal", "SGD"] = "proximal"
    batch_size: int = 64
    replicate: int = 0

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        return 0.08 if self.method == "SGD" else 0.3

    def recipe(self, task: Task) -> Recipe:
        """The recipe to run, with simulated or real gradients."""
        if self.method == "SGD":
            return sgd(
                task,
                eta=RATES[:2],
                steps=(STEPS[0], STEPS[1] + STEPS[2]),
                batch_size=self.batch_size,
            )
        recipe = paper(task, eta=RATES, steps=STEPS, batch_size=self.batch_size)
        one, two, three = recipe.stages
        two = replace(
            two,
            lam=MeasuredNoise(4.5),
            centred=True,
            enter=(ResolveSign(), ThresholdProject()),
            leave=(),
        )
        return replace(recipe, stages=(one, two, three))

    def run(self) -> Rows:
        """The history of the run."""
        task = task_of(self)
        return history_of(task, self.recipe(task), self.seed, 10, "simulated")


@dataclass(frozen=True)
class PredictionJob(Job):
    """A part of Stage 2 from α_V = α_A = 0.3 on the population's lines, with λ > 0 or as SGD.

    The sizes are well above those of the authors' largest real run (N = 20, T = 5,000).
    """

    label: ClassVar = {"experiment": "prediction", "job": "Job"}

    N: int = 40
    T: int = 10_000
    lam: float = 8e-4
    gradients: Gradients = "real"
    replicate: int = 0
    batch_size: int = 256
    eta: float = 8e-3
    steps: int = 30

    @property
    def cost(self) -> float:
        """Seconds, measured."""
        if self.gradients == "real":
            return self.batch_size * self.T * self.steps * 1.5e-9 + 0.02
        return 0.2 if self.lam > 0 else 0.01

    def run(self) -> Rows:
        """The history of this part."""
        task = task_of(self)
        known = Knowledge.from_task(task)
        stage = known.stage("2", self.steps, self.eta, lam=self.lam, batch_size=self.batch_size)
        recipe = Recipe(
            "prediction", GivenStart(line_V(task, 0.3), line_A(task, 0.3)), task.mu, (stage,)
        )
        history = history_of(task, recipe, self.seed, 5, self.gradients)
        return {
            name: history[name]
            for name in ("step", "alpha_V", "alpha_A", "delta_V", "delta_A", "loss")
        }
