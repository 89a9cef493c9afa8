"""Tables of the default run, which take seconds each."""

from scb.paper.entries import Experiment
from scb.paper.experiments.checks import ErrorDecayJob, PlannedJob, StageOneEndJob
from scb.paper.experiments.noise import NoiseJob, RoundingJob, SeparationJob
from scb.paper.experiments.population import LineJob, NearOneJob, StageOneJob
from scb.paper.experiments.recovery import BoundJob, SequenceJob, SupportJob
from scb.paper.experiments.simulation import GaussianJob, PredictionJob
from scb.paper.experiments.training import (
    LastStageJob,
    PreconditionerJob,
    SoftmaxJob,
    TrainingJob,
)
from scb.paper.experiments.transfer import DriftJob, TransferJob

BOTH = ("softmax", "linear")
FOUR = ("proximal", "proximal, larger λ", "SGD", "SGD, small η₂'")
LARGE = {100: 1 << 17, 500: 1 << 20}  # N → batch size
SIMULATED = tuple((N, method, B) for N, B in LARGE.items() for method in ("proximal", "SGD"))
ATTENTION = (
    *((0.0, s) for s in (0.003, 0.01, 0.03, 0.1, 1.0)),
    *((a, 0.01) for a in (0.1, 0.3, 0.6)),
)  # a₁, distance from uniform
TENS = tuple(10**i for i in range(2, 9))
FIVES = (500, 5000, 50_000, 500_000)
DEFAULT_TABLES = {
    "convergence": Experiment(
        TrainingJob,
        {"methods": ((*FOUR, "proximal, sign settled"),)},
        seeds=60,
        quick=(6, {"T": (1000,)}),
    ),
    "curves": Experiment(
        TrainingJob,
        {"methods": (FOUR,), "ensemble": ("dirichlet",)},
        seeds=24,
        quick=(3, {"T": (1000,)}),
    ),
    "sizes": Experiment(
        TrainingJob, {"N": (10, 20)}, seeds=10, quick=(3, {"N": (10,), "T": (1000,)})
    ),
    "softmax": Experiment(SoftmaxJob, {"model": BOTH}, seeds=40, quick=(2, {})),
    "patterns": Experiment(SoftmaxJob, {"model": BOTH, "patterns": (True,), "replicate": (0,)}),
    "gaussian": Experiment(
        GaussianJob, {("N", "method", "batch_size"): SIMULATED}, seeds=40, quick=(2, {})
    ),
    "prediction": Experiment(
        PredictionJob,
        {"lam": (0.0, 8e-4), "gradients": ("real", "simulated")},
        seeds=10,
        quick=(3, {"T": (2000,)}),
    ),
    "transfer": Experiment(
        TransferJob,
        {"overlap": (0.0, 0.3, 0.6), "T": FIVES[:3]},
        seeds=10,
        quick=(3, {"T": FIVES[:2]}),
    ),
    "drift": Experiment(DriftJob, {"T": FIVES}, seeds=20, quick=(5, {})),
    "noise": Experiment(NoiseJob, {"T": TENS[:4]}, seeds=20, quick=(10, {"T": TENS[:3]})),
    "rounding": Experiment(RoundingJob, {"T": TENS[:4]}, seeds=10, quick=(3, {"T": TENS[:3]})),
    "separation": Experiment(
        SeparationJob, {"margin": (1.0, 2.0, 4.0, 8.0)}, seeds=50, quick=(5, {})
    ),
    "last stage": Experiment(
        LastStageJob, {"last": ("normalised", "not normalised")}, seeds=50, quick=(5, {})
    ),
    "preconditioner": Experiment(
        PreconditionerJob, {("first", "spread"): ATTENTION, "T": (50, 100, 200, 400)}, seeds=3
    ),
    "line": Experiment(
        LineJob,
        {("N", "T"): ((3, 5000), (10, 1000))},
        seeds=3,
        quick=(1, {("N", "T"): ((3, 500),)}),
    ),
    "stage 1": Experiment(StageOneJob, {"T": TENS}),
    "end of stage 1": Experiment(
        StageOneEndJob, {"T": (100, 300, 1000, 3000)}, seeds=40, quick=(3, {})
    ),
    "planned": Experiment(PlannedJob, {}, seeds=40, quick=(3, {})),
    "error decay": Experiment(ErrorDecayJob, {}, seeds=40, quick=(3, {})),
    "near one": Experiment(NearOneJob, {"direction": ("difference", "sum", "normalised")}),
    "support": Experiment(
        SupportJob, {"T": FIVES[:3]}, seeds=10, quick=(5, {"T": FIVES[:2]}), full={"T": FIVES}
    ),
    "bound": Experiment(
        BoundJob, {"N": (3, 10), "n": (1000, 5000, 20_000)}, seeds=10, quick=(5, {"n": (5000,)})
    ),
    "sequences": Experiment(
        SequenceJob,
        {"length": (250, 1000, 4000, 16_000)},
        seeds=50,
        quick=(4, {"length": (1000, 5000)}),
    ),
}
