"""Tables of the full run and of runs on a GPU, which take minutes and are shipped with the docs."""

from functools import partial
from typing import Any

from scb.paper.entries import Axes, Experiment
from scb.paper.experiments.checks import NegativeJob
from scb.paper.experiments.heads import HeadsJob
from scb.paper.experiments.large import LARGE_SEARCHES, LONG_LADDER, REAL, PlanJob, RealJob
from scb.paper.experiments.letter import PAIRS, LetterJob
from scb.paper.experiments.projector import LADDER, SignJob, StartNoiseJob
from scb.paper.experiments.rates import BASE, LONGER, SETTINGS, SHORTER, RateJob
from scb.paper.experiments.regulariser import StageTwoErrorJob, StageTwoJob
from scb.paper.experiments.softmax import STEPS, AttentionJob, OneStepJob, StepJob
from scb.paper.experiments.spread import FACTORS, SPREADS, SpreadJob
from scb.paper.experiments.theorem import AssumptionsJob
from scb.paper.experiments.to_the_end import ENDS, SEARCHED, TWO, EndJob, LeastEndJob
from scb.paper.experiments.training import LateJob, TrainingJob
from scb.paper.experiments.transfer import END_TO_END, PretrainedJob
from scb.paper.experiments.windows import MarginalJob, WindowsJob
from scb.paper.tables import FOUR, TENS
from scb.task import ENSEMBLES

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
SIZES = (*BASE, "projector")
PROJECTORS = ("euclidean", "mu")
Points = tuple[tuple[Any, ...], ...]
WINDOWS = (("sequence", "of the task"), ("sequence", "frequencies"), ("independent", "of the task"))
MULTIPLES = (0.0, 1.0, 2.0, 4.0)
# Names of fields whose values change together
TASK = ("ensemble", "replicate")
SIGN = ("T", "batch_size", "projector")
FAMILY = ("N", "T", "sparsity", "family")
ONE_SEARCH = (*SIZES, "replicate")
STEP = ("T", "step", "steps")
SEARCH = ("N", "T", "multiple", "eta")
END = ("T", "batch_size", "gradients")
SPREAD = ("T", "spread", "chain", "gradients")
PAIR = ("N", "T", "chain", "gradients", "overlap", "c")
ATTENTION: Axes = {
    "method": ("softmax", "softmax, small η", "proximal", "SGD"),
    "T": (50, 158, 500, 1580, 5000),
}


def _up_to(T: int, points: Points) -> Points:
    """The points whose first coordinate is at most T."""
    return tuple(point for point in points if point[0] <= T)


in_full_run = partial(Experiment, full_only=True)
on_gpu = partial(Experiment, gpu=True)
FULL_TABLES = {
    "ensembles": in_full_run(
        TrainingJob,
        {"methods": (FOUR,), "ensemble": ENSEMBLES[1:], "summary": ((400, 700, 1000),)},
        seeds=50,
        quick=(3, {"T": (1000,)}),
    ),
    "larger N": in_full_run(
        TrainingJob,
        {"ensemble": ENSEMBLES, "N": (10, 20), "batch_size": (64, 256), "summary": ((1000,),)},
        seeds=50,
        quick=(2, {"N": (10,), "T": (1000,)}),
    ),
    "stability": in_full_run(
        TrainingJob,
        {
            "ensemble": ENSEMBLES,
            ("batch_size", "rate"): STRAINED,
            "methods": (THREE,),
            "summary": ((1000,),),
        },
        seeds=50,
        quick=(3, {"T": (1000,), "ensemble": ENSEMBLES[:2]}),
    ),
    "early stopping": in_full_run(
        TrainingJob,
        {
            "ensemble": ENSEMBLES,
            "N": (10,),
            "steps": (3000,),
            "summary": (tuple(range(500, 3001, 500)),),
        },
        seeds=10,
        quick=(2, {"ensemble": ENSEMBLES[:1], "T": (1000,)}),
    ),
    "negative entries": in_full_run(
        NegativeJob,
        {"ensemble": ENSEMBLES, "step": (500, 1000)},
        seeds=10,
        quick=(2, {"ensemble": ENSEMBLES[:1], "T": (1000,)}),
    ),
    "late": in_full_run(
        LateJob,
        {TASK: LATE},
        quick=(None, {TASK: LATE[:3], "T": (1000,), "steps": (2000,)}),
    ),
    "noise wins": in_full_run(
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
    ),
    "start noise": in_full_run(
        StartNoiseJob,
        {"N": (3, 10), "T": TENS[:4], "projector": PROJECTORS},
        seeds=5,
        quick=(1, {"T": TENS[:2]}),
    ),
    "wrong signs": in_full_run(
        SignJob,
        {"T": (500, 1500, 5000, 15_000), "projector": PROJECTORS},
        seeds=200,
        quick=(3, {"T": (200, 500)}),
    ),
    "stage one": in_full_run(
        SignJob,
        {SIGN: LADDER, "eta": (0.05,)},
        seeds=40,
        quick=(4, {SIGN: _up_to(400, LADDER)}),
    ),
    "pretrained": in_full_run(
        PretrainedJob,
        {FAMILY: END_TO_END},
        seeds=50,
        quick=(1, {FAMILY: ((3, 200, 2, "strong"), (3, 200, 2, "flat"))}),
    ),
    "overlaps": in_full_run(
        PretrainedJob,
        {
            "N": (3, 10),
            "T": (500,),
            "theta": (0.25, 0.5, 1.0),
            "overlap": (0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02),
        },
        seeds=10,
        quick=(1, {"N": (3,), "theta": (0.5,), "overlap": (0.6, 0.1)}),
    ),
    "rates": in_full_run(
        RateJob,
        {SIZES: SETTINGS},
        seeds=6,
        quick=(
            1,
            {SIZES: tuple(size for size in SETTINGS if size[1] in (100, 400))[::3], "runs": (3,)},
        ),
    ),
    "stage two": in_full_run(
        StageTwoJob,
        {"multiple": MULTIPLES, "T": (250, 500, 1000, 2000, 4000)},
        seeds=3,
        quick=(1, {"T": (50, 100), "runs": (3,)}),
    ),
    "stage two error": in_full_run(
        StageTwoErrorJob,
        {"multiple": MULTIPLES, "T": (500, 2000, 8000, 32_000)},
        seeds=10,
        quick=(2, {"T": (100, 400), "batch_size": (512,)}),
    ),
    "attention": in_full_run(
        AttentionJob,
        ATTENTION,
        seeds=20,
        quick=(1, {"T": (50, 100), "steps": (1000,)}),
    ),
    "one step": in_full_run(
        OneStepJob, {"size": (0.01, 0.1, 1.0, 10.0), "T": (50, 500, 5000)}, seeds=5
    ),
    "theorem": in_full_run(
        AssumptionsJob,
        {"projector": PROJECTORS},
        seeds=20,
        quick=(1, {"T": (500,), "batch_size": (64,)}),
    ),
    "windows": in_full_run(
        WindowsJob,
        {("data", "law"): WINDOWS, "length": (2000, 10_000, 50_000)},
        seeds=50,
        quick=(1, {"length": (2000,)}),
    ),
    "marginal": in_full_run(MarginalJob, {}, seeds=20, quick=(2, {"length": (100_000,)})),
    "real gradients": on_gpu(
        RealJob,
        {("N", "method", "batch_size", "gradients", "trial"): REAL, "device": ("cuda",)},
        quick=(None, {"T": (2000,)}),
    ),
    "long signs": on_gpu(
        SignJob,
        {SIGN: LONG_LADDER, "eta": (0.05,), "device": ("cuda",)},
        seeds=10,
        quick=(2, {SIGN: _up_to(5000, LONG_LADDER)}),
    ),
    "large rates": on_gpu(
        RateJob,
        {ONE_SEARCH: LARGE_SEARCHES, "eta": (0.05,), "runs": (10,), "device": ("cuda",)},
        quick=(None, {ONE_SEARCH: LARGE_SEARCHES[:2], "runs": (3,)}),
    ),
    "plan": on_gpu(PlanJob, {"device": ("cuda",)}, quick=(None, {"epsilon": (0.3,)})),
    "dirichlet rates": in_full_run(
        RateJob,
        {SIZES: SHORTER, "ensemble": ("dirichlet",)},
        seeds=3,
        quick=(1, {SIZES: SHORTER[:4:2], "runs": (3,)}),
    ),
    "longer rates": in_full_run(
        RateJob,
        {SIZES: LONGER},
        seeds=3,
        quick=(1, {SIZES: LONGER[1:4:2], "runs": (3,)}),
    ),
    "dirichlet attention": in_full_run(
        AttentionJob,
        {"ensemble": ("dirichlet",)} | ATTENTION,
        seeds=10,
        quick=(1, {"T": (50, 100), "steps": (1000,)}),
    ),
    "least to the end": in_full_run(
        LeastEndJob,
        {SEARCH: SEARCHED, "ensemble": TWO},
        seeds=20,
        quick=(2, {SEARCH: tuple((3, T, m, 0.1) for T in (1000, 4000) for m in (0.0, 3.0))}),
    ),
    "to the end": in_full_run(
        EndJob,
        {END: ENDS, "ensemble": TWO, "multiple": (0.0, 3.0)},
        seeds=20,
        quick=(2, {END: ((200, 256, "simulated"), (200, 256, "real"))}),
    ),
    "spread of mu": in_full_run(
        SpreadJob,
        {SPREAD: SPREADS, "projector": PROJECTORS, "factor": FACTORS},
        seeds=30,
        quick=(2, {SPREAD: _up_to(2000, SPREADS)}),
    ),
    "transfer to the letter": in_full_run(
        LetterJob,
        {PAIR: PAIRS},
        seeds=10,
        quick=(1, {PAIR: tuple(pair for pair in PAIRS if pair[:2] == (3, 500))}),
    ),
    "softmax steps": in_full_run(
        StepJob,
        {STEP: STEPS, "ensemble": TWO},
        seeds=10,
        quick=(1, {STEP: tuple((T, name, 300) for T, name, _ in STEPS[:10])}),
    ),
    "heads": in_full_run(
        HeadsJob,
        {"heads": (2, 3), "start": ("random", "equal", "spare")},
        seeds=40,
        quick=(1, {"heads": (2,), "T": (100,)}),
    ),
    "sparse heads": in_full_run(
        HeadsJob, {"heads": (2,), "start": ("sparse",)}, seeds=20, quick=(1, {"T": (100,)})
    ),
    "long ends": on_gpu(
        EndJob,
        {
            END: tuple((1_000_000, B, "real") for B in (256, 1024)),
            "multiple": (0.0, 3.0),
            "device": ("cuda",),
        },
        seeds=12,
        quick=(2, {END: ((4000, 256, "real"),)}),
    ),
}
