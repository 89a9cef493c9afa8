"""The figures of the report: from which tables each is drawn, by which function, and what to see in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from scb.jobs.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the report."""

    title: str
    paper: str  # where it is in the paper
    needs: tuple[str, ...]  # the tables that it is drawn from
    drawn_by: str  # "module:function" of scb.paper.figures, loaded when it is asked to draw: matplotlib is heavy
    see: str  # what to see in it

    def draw(self, tables: Mapping[str, Table]) -> "Figure":
        """Draw it from its tables, in the style of all figures."""
        from scb.drawing import quiet

        module, _, name = self.drawn_by.partition(":")
        function = getattr(import_module(f"scb.paper.figures.{module}"), name)
        return quiet(function)(*(tables[need] for need in self.needs))


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
    "F21": PaperFigure("Real transformers", "nothing; what its readers ask next", ("transformers", "transformer rivals"),
        "transformers:samples",
        "First two: a transformer needs more samples the longer the context, tens of times those of Algorithm 1, a hundred times "
        "those of recover, and at N = 10 nothing at T = 2,048 in the time that it had. Centred values and kept ones help. Last: "
        "what one change does."),
    "F22": PaperFigure("How a real transformer learns", "Figures 1 and 2, for another model", ("transformer stages", "decoders"),
        "transformers:stages",
        "A plateau, then attention and values together, then attention ahead of the values. With kept values the path comes from "
        "the other side. Last: a decoder on one sequence finds the lags if it is asked for the token after a window; asked after "
        "every position, it is far from them after the same time."),
}
# fmt: on
