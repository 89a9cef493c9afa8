"""The executable paper in one place: which tables are made, which figures are drawn from them, which claims are judged by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scb.jobs.table import Table
from scb.paper.claims import beyond, simulation, theory, training, transfer
from scb.paper.claims.claim import Claim
from scb.paper.experiments.experiment import Experiment, ExperimentJob
from scb.paper.experiments.gaussian import GaussianExperiment, GaussianJob
from scb.paper.experiments.noise import NoiseExperiment, NoiseJob
from scb.paper.experiments.population import (
    LineExperiment,
    LineJob,
    NearOneExperiment,
    NearOneJob,
    StageOneExperiment,
    StageOneJob,
)
from scb.paper.experiments.preconditioner import PreconditionerExperiment, PreconditionerJob
from scb.paper.experiments.prediction import PredictionExperiment, PredictionJob
from scb.paper.experiments.recovery import (
    BoundExperiment,
    BoundJob,
    SequenceExperiment,
    SequenceJob,
    SupportExperiment,
    SupportJob,
)
from scb.paper.experiments.rounding import RoundingExperiment, RoundingJob
from scb.paper.experiments.softmax import SoftmaxExperiment, SoftmaxJob
from scb.paper.experiments.training import TrainingExperiment, TrainingJob
from scb.paper.experiments.transfer import DriftExperiment, DriftJob, TransferExperiment, TransferJob

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXPERIMENTS: dict[str, type[ExperimentJob]] = {
    "training": TrainingJob,
    "softmax": SoftmaxJob,
    "gaussian": GaussianJob,
    "prediction": PredictionJob,
    "transfer": TransferJob,
    "drift": DriftJob,
    "noise": NoiseJob,
    "rounding": RoundingJob,
    "preconditioner": PreconditionerJob,
    "line": LineJob,
    "stage 1": StageOneJob,
    "near one": NearOneJob,
    "support": SupportJob,
    "bound": BoundJob,
    "sequences": SequenceJob,
}
"""What can be run, and swept: name → job."""

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

    def draw(self, tables: Mapping[str, Table]) -> Figure:
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


TABLES: dict[str, Experiment] = {
    "convergence": TrainingExperiment(
        methods=("proximal", "proximal, larger λ", "SGD", "SGD, small η₂'"), steps=1400, every=20
    ),
    "signs": TrainingExperiment(methods=("literal", "proximal"), seeds=12),
    "sizes": TrainingExperiment(N=(10, 20), methods=("proximal", "SGD")),
    "softmax": SoftmaxExperiment(),
    "patterns": SoftmaxExperiment(patterns=True),
    "gaussian": GaussianExperiment(),
    "prediction": PredictionExperiment(),
    "transfer": TransferExperiment(),
    "drift": DriftExperiment(seeds=20),
    "noise": NoiseExperiment(),
    "rounding": RoundingExperiment(),
    "preconditioner": PreconditionerExperiment(),
    "line": LineExperiment(),
    "stage 1": StageOneExperiment(),
    "near one": NearOneExperiment(),
    "support": SupportExperiment(),
    "bound": BoundExperiment(),
    "sequences": SequenceExperiment(),
}
FULL: dict[str, dict[str, Any]] = {"support": {"T": (500, 5000, 50_000, 500_000)}}
QUICK: dict[str, dict[str, Any]] = {
    "convergence": {"T": 1000, "seeds": 3},
    "signs": {"T": 1000, "seeds": 6},
    "sizes": {"N": (10,), "T": 1000, "seeds": 3},
    "softmax": {"seeds": 2},
    "gaussian": {"seeds": 2},
    "prediction": {"T": 2000, "seeds": 3},
    "transfer": {"T": (500, 5000), "seeds": 3},
    "drift": {"seeds": 5},
    "noise": {"T": (100, 1000, 10_000), "seeds": 10},
    "rounding": {"T": (100, 1000, 10_000), "seeds": 3},
    "line": {"sizes": ((3, 500),), "seeds": 1},
    "support": {"T": (500, 5000), "seeds": 5},
    "bound": {"sizes": ((3, 5000), (10, 5000)), "seeds": 5},
    "sequences": {"lengths": (1000, 5000), "seeds": 4},
}


def tables(quick: bool = False, seeds: int | None = None, full: bool = False) -> dict[str, Experiment]:
    """Name → settings of every table; ``quick`` makes them smaller, ``full`` larger; ``seeds`` sets the replicates."""
    made: dict[str, Any] = dict(TABLES)
    for wanted, changes in ((full, FULL), (quick, QUICK)):
        if wanted:
            made |= {name: replace(made[name], **change) for name, change in changes.items()}
    if seeds is not None:
        made |= {name: replace(one, seeds=seeds) for name, one in made.items() if hasattr(one, "seeds")}
    return made


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
