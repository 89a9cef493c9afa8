"""The executable paper in one place: which tables are made, which figures are drawn from them, which claims are judged by them."""

from collections.abc import Iterable

from scb.jobs.job import Job
from scb.paper.claims import convergence, large, limits, models, projector, rates, samples, theory, transformers
from scb.paper.claims.claim import Claim
from scb.paper.entries import Experiment, PaperFigure
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
from scb.paper.experiments.training import LastStageJob, LateJob, PreconditionerJob, SoftmaxJob, TrainingJob
from scb.paper.experiments.transfer import END_TO_END, DriftJob, PretrainedJob, TransferJob
from scb.paper.experiments.windows import MarginalJob, WindowsJob
from scb.task import ENSEMBLES

# fmt: off
FIGURES = {
    "F1": PaperFigure("Convergence", "Figure 1", ("convergence",), "training:convergence",
        "After the common Stage 1, λ = 1e-4 brings A closer to Q than SGD does; λ = 1e-5, the paper's value, is below the noise "
        "of one entry and does little more than SGD. Stars show the proximal method after thresholding and normalising A."),
    "F2": PaperFigure("Softmax and linear attention", "Figure 2", ("patterns", "softmax"), "models:softmax",
        "Both transformers find the same two positions for every token and the same transition matrix."),
    "F3": PaperFigure("Signals and errors", "Appendix I, first figure", ("convergence",), "training:signals",
        "α is what has been learned, ‖Δ‖ the distance to the path that the algorithm would take without noise."),
    "F4": PaperFigure("Similarity with the truth", "Appendix I, second figure", ("convergence",), "training:similarity",
        "Before normalisation the proximal method is ahead; after it SGD has the same support. V* is the population's regression "
        "on the normalised A*: it is computed from P itself and similar to it from step 0 on. Only A* shows what was learned."),
    "F5": PaperFigure("Large sizes", "Appendix I, simulation", ("gaussian", "prediction"), "models:simulation",
        "N = 100 and 500 are simulated; N = 40 has real gradients, at a size that the authors could not run, and circles for the "
        "simulation of the same steps."),
    "F6": PaperFigure("Larger N", "Appendix I, last figure", ("convergence", "sizes"), "training:sizes",
        "The paper's settings at N = 3, 10 and 20."),
    "F7": PaperFigure("Transfer", "Section 4 (a theorem there; no figure)", ("transfer", "drift"), "samples:transfer",
        "Samples until both layers are within ε. The dotted line is what Stage 1 asks for when nothing but the drift may "
        "decide the sign."),
    "F8": PaperFigure("The sign", "nothing; found by running it", ("convergence",), "training:signs",
        "(V, A) and its mirror image fit almost equally well; at B = 64 noise chooses between them."),
    "F9": PaperFigure("Population theory", "Section 3.1 (no figure there)", ("convergence", "near one"), "models:flow",
        "Real runs follow the flow of the two signals; near (1, 1) their difference hardly moves."),
    "F10": PaperFigure("Beyond: the support from few samples", "Section 6, an open question", ("support", "transfer", "drift"),
        "samples:support",
        "The covariances of label and token form a sparse rank-one matrix; its support shows from a few hundred samples. "
        "Algorithm 1 and transfer count as there once A, normalised, is within 0.1 of Q."),
    "F11": PaperFigure("Beyond: down to the Cramér–Rao bound", "nothing", ("bound",), "samples:bound",
        "Lines: the least that unbiased estimates can have. Marks: maximum likelihood on the support that it found itself."),
    "F12": PaperFigure("Beyond: sequences", "Section 6, an open question", ("sequences",), "samples:sequences",
        "The likelihood asks for no independence; the moments do, and mark neighbours of the true sources as well."),
    "F13": PaperFigure("Where noise wins", "Appendix I (no figure there)", ("noise wins",), "phase:noise_wins",
        "A task is lost if after 1,000 steps A, normalised, is not within 0.1 of Q, and ‖Δ_A‖ is not below the signal either. "
        "Ordinary random matrices of this size have K_P of about 0.03: at B = 64 both methods lose all of them. ℓ₁ helps above."),
    "F14": PaperFigure("The projector", "Section 3, the preconditioner of V (no figure there)",
        ("start noise", "wrong signs", "stage one"), "projector:projectors",
        "The paper's projector leaves noise that does not fall with T, and the sign is lost in it; that of the μ-inner product "
        "leaves O(1/T), and Stage 1 needs a number of samples that grows like T instead of T²."),
    "F15": PaperFigure("Rates", "Theorem 1 and its lemmas (no figure there)", ("rates",), "rates:rates",
        "The least number of samples of each stage, real runs. The printed bounds are far above; here are their slopes."),
    "F16": PaperFigure("The need of ℓ₁", "Section 3.3 (no figure there)", ("stage two", "stage two error"), "rates:regulariser",
        "Without the proximal step ‖Δ_A‖² grows like T, and so do the samples that Stage 2 needs."),
    "F17": PaperFigure("Softmax dynamics", "Section 5.2", ("attention", "one step"), "rates:softmax",
        "Samples until the signal shows, and ‖Δ_A‖ when half of it is there, for softmax, ℓ₁ and SGD."),
    "F18": PaperFigure("Inside all assumptions", "Assumption 1, with (d)", ("theorem",), "rates:theorem",
        "Algorithm 1 by its letter at T = (NQ)^10, with the paper's projector and with that of the μ-inner product."),
    "F19": PaperFigure("Windows of one sequence", "Section 2.1, the extension", ("windows", "marginal"), "rates:windows",
        "Distances after Algorithm 1 on windows of one sequence, with the μ of the task and with the frequencies of its tokens."),
    "F20": PaperFigure("Transfer from end to end", "Section 4 and Appendix H (no figure there)", ("pretrained", "overlaps"),
        "transfer:pretrained",
        "V̂ is trained on a related task. First: how often both layers are learned, against the overlap of the two tasks; "
        "below what the paper asks for it goes on working for a while. Last: other sizes, sparsities and laws."),
    "F21": PaperFigure("The simulated sizes for real", "Appendix I, simulation", ("real gradients",), "large:real",
        "The sizes that the paper could only simulate, with real gradients on a GPU, beside the simulation at the same settings."),
    "F22": PaperFigure("The sign at long lengths", "Section 3.2 (no figure there)", ("long signs",), "large:signs",
        "Stage 1 by the drift alone, up to T = 500,000: the least batch grows like T² with the paper's projector, and like T with "
        "the other."),
    "F23": PaperFigure("Rates at large sizes", "Theorem 1 and its lemmas (no figure there)", ("large rates",), "large:rates",
        "F15 again, far beyond its sizes: the least number of samples of each stage."),
    "F24": PaperFigure("At the planner's batch sizes", "the lemmas of Appendices D to F (no figure there)", ("plan",), "large:plan",
        "One run with exactly what the lemmas ask for, on the smallest task for which that can be run; crosses are promises."),
    "F25": PaperFigure("Real transformers", "nothing; what its readers ask next", ("transformers", "transformer rivals"),
        "transformers:samples",
        "First two: a transformer needs more samples the longer the context, tens of times those of Algorithm 1, a hundred times "
        "those of recover, and at N = 10 nothing at T = 2,048 in the time that it had. Centred values and kept ones help. Last: "
        "what one change does."),
    "F26": PaperFigure("How a real transformer learns", "Figures 1 and 2, for another model", ("transformer stages", "decoders"),
        "transformers:stages",
        "A plateau, then attention and values together, then attention ahead of the values. With kept values the path comes from "
        "the other side. Last: a decoder on one sequence finds the lags if it is asked for the token after a window; asked after "
        "every position, it is far from them after the same time."),
}
# fmt: on

_FILES = (theory, convergence, limits, models, samples, projector, rates, large, transformers)
_JUDGED = [claim for file in _FILES for claim in file.CLAIMS]
CLAIMS: tuple[Claim, ...] = tuple(sorted(_JUDGED, key=lambda claim: (claim.ours, int(claim.figure.removeprefix("F")))))
"""The paper's claims in the order of the figures, and ours after them."""

BOTH = ("softmax", "linear")
FOUR = ("proximal", "proximal, larger λ", "SGD", "SGD, small η₂'")
THREE = ("proximal", "proximal, larger λ", "SGD")
SETTLED = ("proximal, sign settled", "proximal, larger λ", "SGD, sign settled")
STRAINED = (  # B and the multiple of the paper's step sizes
    *((64, rate) for rate in (1.0, 2.0, 4.0, 8.0, 12.0)),
    *((batch, 1.0) for batch in (1, 8, 32)),
    *((batch, 8.0) for batch in (16, 32)),
)
LARGE = {100: 1 << 17, 500: 1 << 20}  # N → batch size
SIMULATED = tuple((N, method, B) for N, B in LARGE.items() for method in ("proximal", "SGD"))
ATTENTION = (*((0.0, s) for s in (0.003, 0.01, 0.03, 0.1, 1.0)), *((a, 0.01) for a in (0.1, 0.3, 0.6)))  # a₁, distance from uniform
TENS = tuple(10**i for i in range(2, 9))
FIVES = (500, 5000, 50_000, 500_000)
SIZES = (*BASE, "projector")
PROJECTORS = ("euclidean", "mu")
WINDOWS = (("sequence", "of the task"), ("sequence", "frequencies"), ("independent", "of the task"))
MULTIPLES = (0.0, 1.0, 2.0, 4.0)
TABLES = {
    "convergence": Experiment(TrainingJob, {"methods": (FOUR,)}, seeds=50, quick=(6, {"T": (1000,)})),
    "ensembles": Experiment(
        TrainingJob,
        {"methods": (FOUR,), "ensemble": ENSEMBLES[1:], "summary": ((400, 700, 1000),)},
        seeds=50,
        quick=(3, {"T": (1000,)}),
        full_only=True,
    ),
    "sizes": Experiment(TrainingJob, {"N": (10, 20)}, seeds=10, quick=(3, {"N": (10,), "T": (1000,)})),
    "larger N": Experiment(
        TrainingJob,
        {"ensemble": ENSEMBLES, "N": (10, 20), "batch_size": (64, 256), "summary": ((1000,),)},
        seeds=50,
        quick=(2, {"N": (10,), "T": (1000,)}),
        full_only=True,
    ),
    "stability": Experiment(
        TrainingJob,
        {"ensemble": ENSEMBLES, ("batch_size", "rate"): STRAINED, "methods": (THREE,), "summary": ((1000,),)},
        seeds=50,
        quick=(3, {"T": (1000,), "ensemble": ENSEMBLES[:2]}),
        full_only=True,
    ),
    "late": Experiment(
        LateJob,
        {"ensemble": ENSEMBLES},
        seeds=50,
        quick=(3, {"ensemble": ENSEMBLES[:1], "T": (1000,), "steps": (2000,)}),
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
    "softmax": Experiment(SoftmaxJob, {"model": BOTH}, seeds=10, quick=(2, {})),
    "patterns": Experiment(SoftmaxJob, {"model": BOTH, "patterns": (True,), "replicate": (0,)}),
    "gaussian": Experiment(GaussianJob, {("N", "method", "batch_size"): SIMULATED}, seeds=10, quick=(2, {})),
    "prediction": Experiment(
        PredictionJob, {"lam": (0.0, 8e-4), "gradients": ("real", "simulated")}, seeds=10, quick=(3, {"T": (2000,)})
    ),
    "transfer": Experiment(TransferJob, {"overlap": (0.0, 0.3, 0.6), "T": FIVES[:3]}, seeds=10, quick=(3, {"T": FIVES[:2]})),
    "drift": Experiment(DriftJob, {"T": FIVES}, seeds=20, quick=(5, {})),
    "noise": Experiment(NoiseJob, {"T": TENS[:4]}, seeds=20, quick=(10, {"T": TENS[:3]})),
    "rounding": Experiment(RoundingJob, {"T": TENS[:4]}, seeds=10, quick=(3, {"T": TENS[:3]})),
    "separation": Experiment(SeparationJob, {"margin": (1.0, 2.0, 4.0, 8.0)}, seeds=50, quick=(5, {})),
    "last stage": Experiment(LastStageJob, {"last": ("normalised", "not normalised")}, seeds=50, quick=(5, {})),
    "preconditioner": Experiment(PreconditionerJob, {("first", "spread"): ATTENTION, "T": (50, 100, 200, 400)}, seeds=3),
    "line": Experiment(LineJob, {("N", "T"): ((3, 5000), (10, 1000))}, seeds=3, quick=(1, {("N", "T"): ((3, 500),)})),
    "stage 1": Experiment(StageOneJob, {"T": TENS}),
    "near one": Experiment(NearOneJob, {"direction": ("difference", "sum", "normalised")}),
    "support": Experiment(SupportJob, {"T": FIVES[:3]}, seeds=10, quick=(5, {"T": FIVES[:2]}), full={"T": FIVES}),
    "bound": Experiment(BoundJob, {"N": (3, 10), "n": (1000, 5000, 20_000)}, seeds=10, quick=(5, {"n": (5000,)})),
    "sequences": Experiment(SequenceJob, {"length": (250, 1000, 4000, 16_000)}, seeds=50, quick=(4, {"length": (1000, 5000)})),
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
        quick=(4, {("T", "batch_size", "projector"): tuple(point for point in LADDER if point[0] <= 400)}),
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
        {"N": (3, 10), "T": (500,), "theta": (0.25, 0.5, 1.0), "overlap": (0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02)},
        seeds=10,
        quick=(1, {"N": (3,), "theta": (0.5,), "overlap": (0.6, 0.1)}),
        full_only=True,
    ),
    "rates": Experiment(
        RateJob,
        {SIZES: SETTINGS},
        seeds=6,
        quick=(1, {SIZES: tuple(size for size in SETTINGS if size[1] in (100, 400))[::3], "runs": (3,)}),
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
        {"method": ("softmax", "softmax, small η", "proximal", "SGD"), "T": (50, 158, 500, 1580, 5000)},
        seeds=20,
        quick=(1, {"T": (50, 100), "steps": (1000,)}),
        full_only=True,
    ),
    "one step": Experiment(OneStepJob, {"size": (0.01, 0.1, 1.0, 10.0), "T": (50, 500, 5000)}, seeds=5, full_only=True),
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
    "marginal": Experiment(MarginalJob, {}, seeds=20, quick=(2, {"length": (100_000,)}), full_only=True),
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
        quick=(2, {("T", "batch_size", "projector"): tuple(point for point in LONG_LADDER if point[0] <= 5000)}),
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
    "transformer rivals": "python benchmarks/transformers_rivals.py samples",
    "transformer stages": "python benchmarks/transformers_stages.py",
    "decoders": "python benchmarks/transformers_sequences.py",
}
"""Tables that want PyTorch → the command that makes them. No run of ``scb reproduce`` does; they are shipped."""
EXPERIMENTS: dict[str, type[Job]] = {name: experiment.job for name, experiment in TABLES.items()}
"""What can be swept: name → job."""


def tables(quick: bool = False, seeds: int | None = None, full: bool = False, gpu: bool = False) -> dict[str, Experiment]:
    """Name → settings of the tables to make.

    ``quick`` makes them smaller, ``full`` larger and more; ``gpu`` adds those that ask for one; ``seeds`` sets the random tasks.
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
