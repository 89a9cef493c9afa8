"""The executable paper in one place: which tables are made, which figures are drawn from them, which claims are judged by them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from scb.jobs.job import Job
from scb.jobs.table import Table
from scb.paper.claims import beyond, simulation, theory, training, transfer
from scb.paper.claims.claim import Claim
from scb.paper.experiments.experiment import Axes, Experiment
from scb.paper.experiments.noise import NoiseJob, RoundingJob
from scb.paper.experiments.population import LineJob, NearOneJob, StageOneJob
from scb.paper.experiments.recovery import BoundJob, SequenceJob, SupportJob
from scb.paper.experiments.simulation import GaussianJob, PredictionJob
from scb.paper.experiments.softmax import PreconditionerJob, SoftmaxJob
from scb.paper.experiments.training import TrainingJob
from scb.paper.experiments.transfer import DriftJob, TransferJob

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIMS: tuple[Claim, ...] = tuple(
    sorted(
        (*theory.CLAIMS, *training.CLAIMS, *simulation.CLAIMS, *transfer.CLAIMS, *beyond.CLAIMS),
        key=lambda claim: int(claim.figure[1:]),
    )
)


@dataclass(frozen=True)
class PaperFigure:
    """A figure: where in the paper, what to see in it, the tables that it is drawn from, and by which function.

    The function is named as "module:function" of scb.paper.figures, and loaded when it is asked to draw: matplotlib is heavy.
    """

    title: str
    paper: str
    see: str
    needs: tuple[str, ...]
    drawn_by: str

    def draw(self, tables: Mapping[str, Table]) -> "Figure":
        """Draw it from its tables."""
        module, _, name = self.drawn_by.partition(":")
        function: Callable[..., Figure] = getattr(import_module(f"scb.paper.figures.{module}"), name)
        return function(*(tables[need] for need in self.needs))


FIGURES = {
    "F1": PaperFigure(
        title="Convergence",
        paper="Figure 1",
        see="After the common Stage 1, λ = 1e-4 brings both layers to the truth; λ = 1e-5, the paper's value, is below the noise "
        "of one entry and does little more than SGD. Stars show the proximal method after thresholding and normalising A.",
        needs=("convergence",),
        drawn_by="convergence:convergence",
    ),
    "F2": PaperFigure(
        title="Softmax and linear attention",
        paper="Figure 2",
        see="Both transformers find the same two positions for every token and the same transition matrix.",
        needs=("patterns", "softmax"),
        drawn_by="softmax:softmax",
    ),
    "F3": PaperFigure(
        title="Signals and errors",
        paper="Appendix I, first figure",
        see="α is what has been learned, ‖Δ‖ the distance to the path that the algorithm would take without noise.",
        needs=("convergence",),
        drawn_by="convergence:signals",
    ),
    "F4": PaperFigure(
        title="Similarity with the truth",
        paper="Appendix I, second figure",
        see="Before normalisation the proximal method is ahead; after it SGD has the same support.",
        needs=("convergence",),
        drawn_by="convergence:similarity",
    ),
    "F5": PaperFigure(
        title="Large sizes",
        paper="Appendix I, simulation",
        see="Upper rows: simulated. Last row: real gradients at a size the authors could not run, and the simulation of the same "
        "steps as circles.",
        needs=("gaussian", "prediction"),
        drawn_by="simulation:simulation",
    ),
    "F6": PaperFigure(
        title="Larger N",
        paper="Appendix I, last figure",
        see="The paper's settings at N = 3, 10 and 20.",
        needs=("convergence", "sizes"),
        drawn_by="convergence:sizes",
    ),
    "F7": PaperFigure(
        title="Transfer",
        paper="Section 4 (a theorem there; no figure)",
        see="Samples until both layers are within ε. The dotted line is what Stage 1 asks for when nothing but the drift may "
        "decide the sign.",
        needs=("transfer", "drift"),
        drawn_by="transfer:transfer",
    ),
    "F8": PaperFigure(
        title="The sign",
        paper="nothing; found by running it",
        see="(V, A) and its mirror image fit almost equally well; at B = 64 noise chooses between them.",
        needs=("signs",),
        drawn_by="convergence:signs",
    ),
    "F9": PaperFigure(
        title="Population theory",
        paper="Section 3.1 (no figure there)",
        see="Real runs follow the flow of the two signals; near (1, 1) their difference hardly moves.",
        needs=("convergence", "near one"),
        drawn_by="flow:flow",
    ),
    "F10": PaperFigure(
        title="Beyond: the support from few samples",
        paper="Section 6, an open question",
        see="The covariances of label and token form a sparse rank-one matrix; its support shows from a few hundred samples. "
        "Algorithm 1 and transfer count as there once A, normalised, is within 0.1 of Q.",
        needs=("support", "transfer", "drift"),
        drawn_by="recovery:support",
    ),
    "F11": PaperFigure(
        title="Beyond: down to the Cramér–Rao bound",
        paper="nothing",
        see="Lines: the least that unbiased estimates can have. Marks: maximum likelihood on the support that it found itself.",
        needs=("bound",),
        drawn_by="recovery:bound",
    ),
    "F12": PaperFigure(
        title="Beyond: sequences",
        paper="Section 6, an open question",
        see="The likelihood asks for no independence; the moments do, and mark neighbours of the true sources as well.",
        needs=("sequences",),
        drawn_by="recovery:sequences",
    ),
}


BOTH = ("softmax", "linear")
FOUR = ("proximal", "proximal, larger λ", "SGD", "SGD, small η₂'")
LARGE = {100: 1 << 17, 500: 1 << 20}  # N → batch size; SGD with the experiment's 64 samples beside it
SIMULATED = tuple(case for N, B in LARGE.items() for case in ((N, "proximal", B), (N, "SGD", B), (N, "SGD", 64)))
TABLES = {
    "convergence": Experiment(TrainingJob, {"methods": (FOUR,), "steps": (1400,)}, seeds=10),
    "signs": Experiment(TrainingJob, {"methods": (("literal", "proximal"),)}, seeds=12),
    "sizes": Experiment(TrainingJob, {"N": (10, 20)}, seeds=10),
    "softmax": Experiment(SoftmaxJob, {"model": BOTH}, seeds=10),
    "patterns": Experiment(SoftmaxJob, {"model": BOTH, "patterns": (True,), "replicate": (0,)}),
    "gaussian": Experiment(GaussianJob, {("N", "method", "batch_size"): SIMULATED}, seeds=10),
    "prediction": Experiment(PredictionJob, {"lam": (0.0, 8e-4), "gradients": ("real", "simulated")}, seeds=10),
    "transfer": Experiment(TransferJob, {"overlap": (0.0, 0.3, 0.6), "T": (500, 5000, 50_000)}, seeds=10),
    "drift": Experiment(DriftJob, {"T": (500, 5000, 50_000, 500_000)}, seeds=20),
    "noise": Experiment(NoiseJob, {"T": (100, 1000, 10_000, 100_000)}, seeds=20),
    "rounding": Experiment(RoundingJob, {"T": (100, 1000, 10_000, 100_000)}, seeds=10),
    "preconditioner": Experiment(PreconditionerJob, {"first": (0.0, 0.1, 0.3, 0.6), "T": (50, 100, 200, 400)}, seeds=3),
    "line": Experiment(LineJob, {("N", "T"): ((3, 5000), (10, 1000))}, seeds=3),
    "stage 1": Experiment(StageOneJob, {"T": tuple(10**i for i in range(2, 9))}),
    "near one": Experiment(NearOneJob, {"direction": ("difference", "sum", "normalised")}),
    "support": Experiment(SupportJob, {"T": (500, 5000, 50_000)}, seeds=10),
    "bound": Experiment(BoundJob, {"N": (3, 10), "n": (1000, 5000, 20_000)}, seeds=10),
    "sequences": Experiment(SequenceJob, {"length": (250, 500, 1000, 4000, 16_000)}, seeds=10),
}
EXPERIMENTS: dict[str, type[Job]] = {name: experiment.job for name, experiment in TABLES.items()}
"""What can be swept: name → job."""
FULL: dict[str, Axes] = {"support": {"T": (500, 5000, 50_000, 500_000)}}
QUICK: dict[str, tuple[int, Axes]] = {
    "convergence": (3, {"T": (1000,)}),
    "signs": (6, {"T": (1000,)}),
    "sizes": (3, {"N": (10,), "T": (1000,)}),
    "softmax": (2, {}),
    "gaussian": (2, {}),
    "prediction": (3, {"T": (2000,)}),
    "transfer": (3, {"T": (500, 5000)}),
    "drift": (5, {}),
    "noise": (10, {"T": (100, 1000, 10_000)}),
    "rounding": (3, {"T": (100, 1000, 10_000)}),
    "line": (1, {("N", "T"): ((3, 500),)}),
    "support": (5, {"T": (500, 5000)}),
    "bound": (5, {"n": (5000,)}),
    "sequences": (4, {"length": (1000, 5000)}),
}
"""Random tasks, and values of parameters, for a first look."""


def tables(quick: bool = False, seeds: int | None = None, full: bool = False) -> dict[str, Experiment]:
    """Name → settings of every table; ``quick`` makes them smaller, ``full`` larger; ``seeds`` sets the random tasks."""
    made = dict(TABLES)
    if full:
        made |= {name: made[name].changed(axes=axes) for name, axes in FULL.items()}
    if quick:
        made |= {name: made[name].changed(fewer, axes) for name, (fewer, axes) in QUICK.items()}
    return {name: experiment.changed(seeds) for name, experiment in made.items()}


def claims_for(figures: Iterable[str]) -> dict[int, Claim]:
    """Number → claim, of those that stand beside these figures."""
    chosen = set(figures)
    return {number: claim for number, claim in enumerate(CLAIMS, start=1) if claim.figure in chosen}


def needed(figures: Iterable[str]) -> list[str]:
    """Names of the tables that these figures and their claims need."""
    chosen = list(figures)
    shown = [FIGURES[figure].needs for figure in chosen]
    judged = [claim.needs for claim in claims_for(chosen).values()]
    return list(dict.fromkeys(name for needs in (*shown, *judged) for name in needs))
