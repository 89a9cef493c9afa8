"""The executable paper in one place: which tables are made, which figures are drawn from them,
which claims are judged by them."""

from collections.abc import Iterable

from scb.jobs.job import Job
from scb.paper.captions import FIGURES
from scb.paper.claims import (
    attention,
    convergence,
    course,
    large,
    limits,
    models,
    projector,
    rates,
    regulariser,
    samples,
    theory,
    transformers,
)
from scb.paper.claims.claim import Claim
from scb.paper.entries import Experiment
from scb.paper.experiments.checks import ErrorDecayJob, NegativeJob, StageOneEndJob
from scb.paper.experiments.large import LARGE_SEARCHES, LONG_LADDER, REAL, PlanJob, RealJob
from scb.paper.experiments.noise import NoiseJob, RoundingJob, SeparationJob
from scb.paper.experiments.population import LineJob, NearOneJob, StageOneJob
from scb.paper.experiments.projector import LADDER, SignJob, StartNoiseJob
from scb.paper.experiments.rates import BASE, SETTINGS, RateJob
from scb.paper.experiments.recovery import BoundJob, SequenceJob, SupportJob
from scb.paper.experiments.regulariser import StageTwoErrorJob, StageTwoJob
from scb.paper.experiments.simulation import GaussianJob, PredictionJob
from scb.paper.experiments.softmax import AttentionJob, OneStepJob
from scb.paper.experiments.theorem import AssumptionsJob
from scb.paper.experiments.training import (
    LastStageJob,
    LateJob,
    PreconditionerJob,
    SoftmaxJob,
    TrainingJob,
)
from scb.paper.experiments.transfer import END_TO_END, DriftJob, PretrainedJob, TransferJob
from scb.paper.experiments.windows import MarginalJob, WindowsJob
from scb.task import ENSEMBLES

_FILES = (
    theory,
    convergence,
    limits,
    models,
    samples,
    projector,
    rates,
    regulariser,
    attention,
    large,
    transformers,
    course,
)
_JUDGED = [claim for file in _FILES for claim in vars(file).values() if isinstance(claim, Claim)]
CLAIMS: tuple[Claim, ...] = tuple(
    sorted(_JUDGED, key=lambda claim: (claim.ours, int(claim.figure.removeprefix("F"))))
)
"""The paper's claims in the order of the figures, and ours after them."""

NOT_COVERED = (
    "the caption of the signals, Appendix I: that SGD's signal saturates, and that ‖Δ_A‖ grows by "
    "bias and slows the signal down",
    "curves of the test loss at N = 10 and 20, Appendix I",
    "the remark on condition (c), Section 2.1",
    "Lemma B.13 beyond second moments",
    "the theorem's and the lemmas' own batches, at sizes inside all assumptions, with real gradients",
)
"""What the paper says or shows, and no claim judges."""

BOTH = ("softmax", "linear")
FOUR = ("proximal", "proximal, larger λ", "SGD", "SGD, small η₂'")
THREE = ("proximal", "proximal, larger λ", "SGD")
SETTLED = ("proximal, sign settled", "proximal, larger λ", "SGD, sign settled")
# Of the runs of the strong ensemble only two in three come to fit
LATE = tuple((name, i) for name in ENSEMBLES for i in range(60 if name == "strong" else 50))
# B and the multiple of the paper's step sizes
STRAINED = (
    *((64, rate) for rate in (1.0, 2.0, 4.0, 8.0, 12.0)),
    *((batch, 1.0) for batch in (1, 8, 32)),
    *((batch, 8.0) for batch in (16, 32)),
)
LARGE = {100: 1 << 17, 500: 1 << 20}  # N → batch size
SIMULATED = tuple((N, method, B) for N, B in LARGE.items() for method in ("proximal", "SGD"))
ATTENTION = (
    *((0.0, s) for s in (0.003, 0.01, 0.03, 0.1, 1.0)),
    *((a, 0.01) for a in (0.1, 0.3, 0.6)),
)  # a₁, distance from uniform
TENS = tuple(10**i for i in range(2, 9))
FIVES = (500, 5000, 50_000, 500_000)
SIZES = (*BASE, "projector")
PROJECTORS = ("euclidean", "mu")
WINDOWS = (("sequence", "of the task"), ("sequence", "frequencies"), ("independent", "of the task"))
MULTIPLES = (0.0, 1.0, 2.0, 4.0)
TABLES = {
    "convergence": Experiment(
        TrainingJob, {"methods": (FOUR,)}, seeds=60, quick=(6, {"T": (1000,)})
    ),
    "ensembles": Experiment(
        TrainingJob,
        {"methods": (FOUR,), "ensemble": ENSEMBLES[1:], "summary": ((400, 700, 1000),)},
        seeds=50,
        quick=(3, {"T": (1000,)}),
        full_only=True,
    ),
    "sizes": Experiment(
        TrainingJob, {"N": (10, 20)}, seeds=10, quick=(3, {"N": (10,), "T": (1000,)})
    ),
    "larger N": Experiment(
        TrainingJob,
        {"ensemble": ENSEMBLES, "N": (10, 20), "batch_size": (64, 256), "summary": ((1000,),)},
        seeds=50,
        quick=(2, {"N": (10,), "T": (1000,)}),
        full_only=True,
    ),
    "stability": Experiment(
        TrainingJob,
        {
            "ensemble": ENSEMBLES,
            ("batch_size", "rate"): STRAINED,
            "methods": (THREE,),
            "summary": ((1000,),),
        },
        seeds=50,
        quick=(3, {"T": (1000,), "ensemble": ENSEMBLES[:2]}),
        full_only=True,
    ),
    "early stopping": Experiment(
        TrainingJob,
        {
            "ensemble": ENSEMBLES,
            "N": (10,),
            "steps": (3000,),
            "summary": (tuple(range(500, 3001, 500)),),
        },
        seeds=10,
        quick=(2, {"ensemble": ENSEMBLES[:1], "T": (1000,)}),
        full_only=True,
    ),
    "negative entries": Experiment(
        NegativeJob,
        {"ensemble": ENSEMBLES, "step": (500, 1000)},
        seeds=10,
        quick=(2, {"ensemble": ENSEMBLES[:1], "T": (1000,)}),
        full_only=True,
    ),
    "late": Experiment(
        LateJob,
        {("ensemble", "replicate"): LATE},
        quick=(None, {("ensemble", "replicate"): LATE[:3], "T": (1000,), "steps": (2000,)}),
        full_only=True,
    ),
    "noise wins": Experiment(
        TrainingJob,
        {
            "N": (10,),
            "ensemble": ("uniform",),
            "K_P": (0.01, 0.03, 0.1, 0.3),
            "batch_size": (16, 64, 256, 512),
            "methods": (SETTLED,),
            "summary": ((1000,),),
        },
        seeds=12,
        quick=(2, {"T": (1000,), "batch_size": (16, 64)}),
        full_only=True,
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
    "start noise": Experiment(
        StartNoiseJob,
        {"N": (3, 10), "T": TENS[:4], "projector": PROJECTORS},
        seeds=5,
        quick=(1, {"T": TENS[:2]}),
        full_only=True,
    ),
    "wrong signs": Experiment(
        SignJob,
        {"T": (500, 1500, 5000, 15_000), "projector": PROJECTORS},
        seeds=200,
        quick=(3, {"T": (200, 500)}),
        full_only=True,
    ),
    "stage one": Experiment(
        SignJob,
        {("T", "batch_size", "projector"): LADDER, "eta": (0.05,)},
        seeds=40,
        quick=(
            4,
            {("T", "batch_size", "projector"): tuple(point for point in LADDER if point[0] <= 400)},
        ),
        full_only=True,
    ),
    "pretrained": Experiment(
        PretrainedJob,
        {("N", "T", "sparsity", "family"): END_TO_END},
        seeds=50,
        quick=(1, {("N", "T", "sparsity", "family"): ((3, 200, 2, "strong"), (3, 200, 2, "flat"))}),
        full_only=True,
    ),
    "overlaps": Experiment(
        PretrainedJob,
        {
            "N": (3, 10),
            "T": (500,),
            "theta": (0.25, 0.5, 1.0),
            "overlap": (0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02),
        },
        seeds=10,
        quick=(1, {"N": (3,), "theta": (0.5,), "overlap": (0.6, 0.1)}),
        full_only=True,
    ),
    "rates": Experiment(
        RateJob,
        {SIZES: SETTINGS},
        seeds=6,
        quick=(
            1,
            {SIZES: tuple(size for size in SETTINGS if size[1] in (100, 400))[::3], "runs": (3,)},
        ),
        full_only=True,
    ),
    "stage two": Experiment(
        StageTwoJob,
        {"multiple": MULTIPLES, "T": (250, 500, 1000, 2000, 4000)},
        seeds=3,
        quick=(1, {"T": (50, 100), "runs": (3,)}),
        full_only=True,
    ),
    "stage two error": Experiment(
        StageTwoErrorJob,
        {"multiple": MULTIPLES, "T": (500, 2000, 8000, 32_000)},
        seeds=10,
        quick=(2, {"T": (100, 400), "batch_size": (512,)}),
        full_only=True,
    ),
    "attention": Experiment(
        AttentionJob,
        {
            "method": ("softmax", "softmax, small η", "proximal", "SGD"),
            "T": (50, 158, 500, 1580, 5000),
        },
        seeds=20,
        quick=(1, {"T": (50, 100), "steps": (1000,)}),
        full_only=True,
    ),
    "one step": Experiment(
        OneStepJob, {"size": (0.01, 0.1, 1.0, 10.0), "T": (50, 500, 5000)}, seeds=5, full_only=True
    ),
    "theorem": Experiment(
        AssumptionsJob,
        {"projector": PROJECTORS},
        seeds=20,
        quick=(1, {"T": (500,), "batch_size": (64,)}),
        full_only=True,
    ),
    "windows": Experiment(
        WindowsJob,
        {("data", "law"): WINDOWS, "length": (2000, 10_000, 50_000)},
        seeds=50,
        quick=(1, {"length": (2000,)}),
        full_only=True,
    ),
    "marginal": Experiment(
        MarginalJob, {}, seeds=20, quick=(2, {"length": (100_000,)}), full_only=True
    ),
    "real gradients": Experiment(
        RealJob,
        {("N", "method", "batch_size", "gradients", "trial"): REAL, "device": ("cuda",)},
        quick=(None, {"T": (2000,)}),
        gpu=True,
    ),
    "long signs": Experiment(
        SignJob,
        {("T", "batch_size", "projector"): LONG_LADDER, "eta": (0.05,), "device": ("cuda",)},
        seeds=10,
        quick=(
            2,
            {
                ("T", "batch_size", "projector"): tuple(
                    point for point in LONG_LADDER if point[0] <= 5000
                )
            },
        ),
        gpu=True,
    ),
    "large rates": Experiment(
        RateJob,
        {(*SIZES, "replicate"): LARGE_SEARCHES, "eta": (0.05,), "runs": (10,), "device": ("cuda",)},
        quick=(None, {(*SIZES, "replicate"): LARGE_SEARCHES[:2], "runs": (3,)}),
        gpu=True,
    ),
    "plan": Experiment(PlanJob, {"device": ("cuda",)}, quick=(None, {"epsilon": (0.3,)}), gpu=True),
}
ELSEWHERE = {
    "transformers": "python benchmarks/transformers.py run",
    "transformer rivals": "python benchmarks/transformers_baselines.py samples",
    "transformer stages": "python benchmarks/transformers_stages.py",
    "decoders": "python benchmarks/transformers_sequences.py",
}
"""Tables that need PyTorch → the command that makes them. ``scb reproduce`` does not make them;
they are shipped."""
EXPERIMENTS: dict[str, type[Job]] = {name: experiment.job for name, experiment in TABLES.items()}
"""What can be swept: name → job."""


def tables(
    quick: bool = False, seeds: int | None = None, full: bool = False, gpu: bool = False
) -> dict[str, Experiment]:
    """Name → settings of the tables to make.

    ``quick`` makes them smaller, ``full`` larger and more; ``gpu`` adds those that ask for one;
    ``seeds`` sets the random tasks.
    """
    made = {}
    for name, experiment in TABLES.items():
        if (experiment.full_only and not full) or (experiment.gpu and not gpu):
            continue
        if full:
            experiment = experiment.changed(axes=experiment.full)
        if quick:
            experiment = experiment.changed(*experiment.quick)
        made[name] = experiment.changed(seeds)
    return made


def drawable(figures: Iterable[str], made: Iterable[str]) -> list[str]:
    """Those of the figures whose tables are all made."""
    there = set(made)
    return [figure for figure in figures if there.issuperset(FIGURES[figure].needs)]


def claims_for(figures: Iterable[str]) -> dict[int, Claim]:
    """Number → claim, of those that stand beside these figures."""
    chosen = set(figures)
    return {number: claim for number, claim in enumerate(CLAIMS, start=1) if claim.figure in chosen}


def needed(figures: Iterable[str]) -> list[str]:
    """Names of the tables that these figures and their claims need."""
    chosen = list(figures)
    shown = [FIGURES[figure].needs for figure in chosen]
    judged = [claim.uses for claim in claims_for(chosen).values()]
    return list(dict.fromkeys(name for needs in (*shown, *judged) for name in needs))
