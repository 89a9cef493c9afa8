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
        "The distances of V from P and of A from Q during training. Stage 1 is the same for all methods. After it, λ = 1e-4 "
        "brings A closer to Q than SGD does, while the paper's λ = 1e-5 is below the noise of one entry and does little more than "
        "SGD. Stars show the proximal method after A has been thresholded and normalised."),
    "F2": PaperFigure("Softmax and linear attention", "Figure 2", ("patterns", "softmax"), "models:softmax",
        "The softmax and the linear transformer find the same two positions for every token, and the same transition matrix."),
    "F3": PaperFigure("Signals and errors", "Appendix I, first figure", ("convergence",), "training:signals",
        "The signal α says how much has been learned: 0 at the start, 1 at the truth. The error ‖Δ‖ is the distance from the path "
        "that training without noise takes. With the larger λ the error of A stays small, while it grows without ℓ₁."),
    "F4": PaperFigure("Similarity with the truth", "Appendix I, second figure", ("convergence",), "training:similarity",
        "Before normalisation the proximal method is ahead of SGD in A. After it, both have found the same positions. V* is the "
        "best V for the normalised attention A*. It is computed from P itself, and is similar to P from step 0 on, so that only "
        "A* shows what has been learned."),
    "F5": PaperFigure("Large sizes", "Appendix I, simulation", ("gaussian", "prediction"), "models:simulation",
        "Training at N = 100 and 500 is simulated: exact expected gradients plus Gaussian noise. N = 40, which the authors could "
        "not run, has real gradients (lines); circles show the simulation of the same steps."),
    "F6": PaperFigure("Larger N", "Appendix I, last figure", ("convergence", "sizes"), "training:sizes",
        "The paper's settings with more tokens: N = 3, 10 and 20."),
    "F7": PaperFigure("Transfer", "Section 4 (a theorem, without a figure)", ("transfer", "drift"), "samples:transfer",
        "The number of samples until both V and A are within ε of the truth, against the length T. The dotted line is what Stage "
        "1 needs if its sign is decided by the drift of the expected gradient alone, as in the paper's proof."),
    "F8": PaperFigure("The sign", "no counterpart; found by running the algorithm", ("convergence",), "training:signs",
        "(V, A) and its mirror image, in which both signals have the opposite sign, fit almost equally well. At the paper's batch "
        "size of 64, noise chooses between them."),
    "F9": PaperFigure("Population theory", "Section 3.1 (no figure there)", ("convergence", "near one"), "models:flow",
        "Without noise, training is a flow of the two signals, and real runs follow it. Near the truth, (1, 1), the difference of "
        "the signals hardly moves, because all pairs with α_V·α_A = 1 fit equally well."),
    "F10": PaperFigure("Beyond the paper: the support from few samples", "Section 6, an open question",
        ("support", "transfer", "drift"), "samples:support",
        "The number of samples until the positions of Q are known. The covariances of label and token form a sparse matrix of "
        "rank one, whose support shows from a few hundred samples. Algorithm 1 and transfer count as successful once A, "
        "normalised, is within 0.1 of Q."),
    "F11": PaperFigure("Beyond the paper: down to the Cramér–Rao bound", "no counterpart", ("bound",), "samples:bound",
        "Lines: the smallest mean squared error that an unbiased estimate can have. Marks: that of maximum likelihood, on the "
        "support that it has found itself."),
    "F12": PaperFigure("Beyond the paper: sequences", "Section 6, an open question", ("sequences",), "samples:sequences",
        "How often the support is found exactly from one sequence, whose windows overlap. Maximum likelihood does not need "
        "independent samples. Estimates from moments do: they also mark neighbours of the true positions."),
    "F13": PaperFigure("Where noise wins", "Appendix I (no figure there)", ("noise wins",), "phase:noise_wins",
        "The share of tasks that are not lost to noise. A task is lost if after 1,000 steps A, normalised, is not within 0.1 of "
        "Q, and ‖Δ_A‖ is not below the signal either. Ordinary random matrices of this size have a K_P of about 0.03; at B = 64 "
        "all methods lose all of them. With larger batches or a larger K_P, the proximal method with λ = 1e-5 saves the most "
        "tasks overall."),
    "F14": PaperFigure("The projector", "Section 3, the preconditioner of V (no figure there)",
        ("start noise", "wrong signs", "stage one"), "projector:projectors",
        "Steps on V must keep Vμ = μ. The paper's projector leaves noise that does not fall as T grows, and the sign is lost in "
        "it. The projector of the μ-inner product leaves noise of order 1/T; with it, the samples of Stage 1 grow like T instead "
        "of T²."),
    "F15": PaperFigure("Rates", "Theorem 1 and its lemmas (no figure there)", ("rates",), "rates:rates",
        "The smallest number of samples with which each stage succeeds in real runs, as one size varies. Above each panel are the "
        "measured exponents and the one in the paper. The paper's bounds themselves are far larger; only slopes are compared."),
    "F16": PaperFigure("The need for ℓ₁", "Section 3.3 (no figure there)", ("stage two", "stage two error"), "rates:regulariser",
        "Without the proximal step, the error ‖Δ_A‖² grows like T, and so does the number of samples that Stage 2 needs. With it, "
        "the number of samples hardly depends on T."),
    "F17": PaperFigure("Softmax dynamics", "Section 5.2", ("attention", "one step"), "rates:softmax",
        "The samples until the signal shows, and the error ‖Δ_A‖ when half of the signal is there, for softmax attention, the "
        "proximal method and SGD. Last panel: the relative difference between one step of the softmax model and one of the linear "
        "model."),
    "F18": PaperFigure("Inside all assumptions", "Assumption 1, with (d)", ("theorem",), "rates:theorem",
        "Algorithm 1 as printed at T = (NQ)^10, where all assumptions hold, with the paper's projector and with that of the "
        "μ-inner product."),
    "F19": PaperFigure("Windows of one sequence", "Section 2.1, the extension", ("windows", "marginal"), "rates:windows",
        "The distances from the truth after training on windows of one sequence instead of independent samples, with the true μ "
        "and with μ estimated by the frequencies of tokens. Last panel: how far the frequencies in a long sequence are from μ."),
    "F20": PaperFigure("Transfer from end to end", "Section 4 and Appendix H (no figure there)", ("pretrained", "overlaps"),
        "transfer:pretrained",
        "V̂ is trained on a related task. First two panels: how often both V and A are learned, against the overlap of the two "
        "tasks. Transfer still works somewhat below the overlap that the paper requires. Last panel: other sizes, sparsities and "
        "laws."),
    "F21": PaperFigure("The simulated sizes with real gradients", "Appendix I, simulation", ("real gradients",), "large:real",
        "The sizes that the paper could only simulate, with real gradients on a GPU, beside the simulation at the same settings."),
    "F22": PaperFigure("The sign at long lengths", "Section 3.2 (no figure there)", ("long signs",), "large:signs",
        "Stage 1 with the sign decided by the drift alone, up to T = 500,000. The smallest batch that gives the right sign grows "
        "like T² with the paper's projector, and like T with that of the μ-inner product."),
    "F23": PaperFigure("Rates at large sizes", "Theorem 1 and its lemmas (no figure there)", ("large rates",), "large:rates",
        "The smallest number of samples of each stage, as in F15, at much larger sizes."),
    "F24": PaperFigure("At the planner's batch sizes", "the lemmas of Appendices D to F (no figure there)", ("plan",), "large:plan",
        "One run with exactly the settings that the lemmas ask for, on the smallest task for which they can be run. Crosses show "
        "what the lemmas guarantee."),
    "F25": PaperFigure("Real transformers", "no counterpart", ("transformers", "transformer rivals"), "transformers:samples",
        "First two panels: the number of samples until a tenth of the excess loss is left, against the length T. A transformer "
        "needs more samples the longer the context is, and many more than Algorithm 1 and recover. Triangles mark sizes that were "
        "not learned with that many samples. Centring the values, or keeping those of another task, helps. Last panel: the effect "
        "of one change."),
    "F26": PaperFigure("How a real transformer learns", "Figures 1 and 2, for another model", ("transformer stages", "decoders"),
        "transformers:stages",
        "After a plateau, attention and values grow together, and then the attention is ahead. With values kept from another "
        "task, the path comes from the other side. Last panel: a decoder trained on one sequence finds the lags if it predicts "
        "only the token after a window. If it predicts after every position, it is far from them after the same time."),
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
"""Tables that need PyTorch → the command that makes them. ``scb reproduce`` does not make them; they are shipped."""
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
