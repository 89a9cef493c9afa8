"""The executable paper: which tables are made, which figures are drawn from them, and which claims are judged by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scb.jobs.job import Config
from scb.paper.claims import beyond, theory, training
from scb.paper.claims.claim import Claim
from scb.paper.experiments import (
    gaussian,
    noise,
    population,
    preconditioner,
    prediction,
    recovery,
    rounding,
    softmax,
    transfer,
)
from scb.paper.experiments import training as runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIMS: tuple[Claim, ...] = tuple(
    sorted((*theory.CLAIMS, *training.CLAIMS, *beyond.CLAIMS), key=lambda claim: int(claim.figure[1:]))
)


@dataclass(frozen=True)
class Shown:
    """A figure: where in the paper, what to see in it, the tables that it is drawn from, and by which function."""

    title: str
    paper: str
    see: str
    needs: tuple[str, ...]
    drawn_by: str

    def draw(self, tables: dict[str, Any]) -> Figure:
        """The figure."""
        module, _, name = self.drawn_by.partition(":")
        function: Callable[..., Figure] = getattr(import_module(f"scb.paper.figures.{module}"), name)
        return function(*(tables[need] for need in self.needs))


FIGURES = {
    "F1": Shown(
        "Convergence",
        "Figure 1",
        "After the common Stage 1, λ = 1e-4 brings both layers to the truth; λ = 1e-5, the paper's value, is below the noise of "
        "one entry and does little more than SGD. Stars show the proximal method after thresholding and normalising A.",
        ("convergence",),
        "convergence:convergence",
    ),
    "F2": Shown(
        "Softmax and linear attention",
        "Figure 2",
        "Both transformers find the same two positions for every token and the same transition matrix.",
        ("patterns", "softmax"),
        "softmax:softmax",
    ),
    "F3": Shown(
        "Signals and errors",
        "Appendix I, first figure",
        "α is what has been learned, ‖Δ‖ the distance to the path that the algorithm would take without noise.",
        ("convergence",),
        "convergence:signals",
    ),
    "F4": Shown(
        "Similarity with the truth",
        "Appendix I, second figure",
        "Before normalisation the proximal method is ahead; after it SGD has the same support.",
        ("convergence",),
        "convergence:similarity",
    ),
    "F5": Shown(
        "Large sizes",
        "Appendix I, simulation",
        "Upper rows: simulated. Last row: real gradients at a size the authors could not run, and the simulation of the same "
        "steps as circles.",
        ("gaussian", "prediction"),
        "simulation:simulation",
    ),
    "F6": Shown(
        "Larger N",
        "Appendix I, last figure",
        "The paper's settings at N = 3, 10 and 20.",
        ("convergence", "sizes"),
        "convergence:sizes",
    ),
    "F7": Shown(
        "Transfer",
        "Section 4 (a theorem there; no figure)",
        "Samples until both layers are within ε. The dotted line is what Stage 1 asks for when nothing but the drift may decide "
        "the sign.",
        ("transfer", "drift"),
        "transfer:transfer",
    ),
    "F8": Shown(
        "The sign",
        "nothing; found by running it",
        "(V, A) and its mirror image fit almost equally well; at B = 64 noise chooses between them.",
        ("signs",),
        "convergence:signs",
    ),
    "F9": Shown(
        "Population theory",
        "Section 3.1 (no figure there)",
        "Real runs follow the flow of the two signals; near (1, 1) their difference hardly moves.",
        ("convergence", "near one"),
        "flow:flow",
    ),
    "F10": Shown(
        "Beyond: the support from few samples",
        "Section 6, an open question",
        "The covariances of label and token form a sparse rank-one matrix; its support shows from a few hundred samples. "
        "Algorithm 1 and transfer count as there once A, normalised, is within 0.1 of Q.",
        ("support", "transfer", "drift"),
        "recovery:support",
    ),
    "F11": Shown(
        "Beyond: down to the Cramér–Rao bound",
        "nothing",
        "Lines: the least that unbiased estimates can have. Marks: maximum likelihood on the support that it found itself.",
        ("bound",),
        "recovery:bound",
    ),
    "F12": Shown(
        "Beyond: sequences",
        "Section 6, an open question",
        "The likelihood asks for no independence; the moments do, and mark neighbours of the true sources as well.",
        ("sequences",),
        "recovery:sequences",
    ),
}


def datasets(quick: bool = False, seeds: int | None = None, full: bool = False) -> dict[str, Config]:
    """Name → config of every table; ``quick`` makes them smaller, ``full`` larger; ``seeds`` sets the replicates."""
    made: dict[str, Any] = {
        "convergence": runs.Config(
            methods=("proximal", "proximal, larger λ", "SGD", "SGD, small η₂'"), steps=1400, every=20
        ),
        "signs": runs.Config(methods=("literal", "proximal"), seeds=12),
        "sizes": runs.Config(N=(10, 20), methods=("proximal", "SGD")),
        "softmax": softmax.Config(),
        "patterns": softmax.Config(patterns=True),
        "gaussian": gaussian.Config(),
        "prediction": prediction.Config(),
        "transfer": transfer.Config(),
        "drift": transfer.DriftConfig(seeds=20),
        "noise": noise.Config(),
        "rounding": rounding.Config(),
        "preconditioner": preconditioner.Config(),
        "line": population.Config("line"),
        "stage 1": population.Config("stage 1"),
        "near one": population.Config("near one"),
        "support": recovery.Config("support"),
        "bound": recovery.Config("bound"),
        "sequences": recovery.Config("sequences"),
    }
    if full:
        made["support"] = replace(made["support"], T=(500, 5000, 50_000, 500_000))
    if quick:
        smaller = {
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
            "bound": {"bound": ((3, 5000), (10, 5000)), "seeds": 5},
            "sequences": {"lengths": (1000, 5000), "seeds": 4},
        }
        made |= {name: replace(made[name], **changes) for name, changes in smaller.items()}
    if seeds is not None:
        made |= {name: replace(config, seeds=seeds) for name, config in made.items()}
    return made


def claims_for(figures: Iterable[str]) -> list[Claim]:
    """The claims that stand beside these figures."""
    return [claim for claim in CLAIMS if claim.figure in set(figures)]


def needed(figures: Iterable[str]) -> list[str]:
    """Names of the tables that these figures and their claims need."""
    chosen = list(figures)
    names = [need for figure in chosen for need in FIGURES[figure].needs]
    return list(dict.fromkeys([*names, *(need for claim in claims_for(chosen) for need in claim.needs)]))
