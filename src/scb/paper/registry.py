"""The registry of the executable paper: which tables are computed, which figures are drawn from
them, and which claims are judged by them."""

from collections.abc import Iterable

from scb.jobs.job import Job
from scb.paper.captions import FIGURES
from scb.paper.claims import (
    attention,
    convergence,
    course,
    heads,
    large,
    limits,
    models,
    noise,
    preconditioner,
    projector,
    rates,
    regulariser,
    samples,
    theory,
    transformers,
)
from scb.paper.claims.claim import Claim
from scb.paper.entries import Experiment
from scb.paper.full_tables import FULL_TABLES
from scb.paper.tables import DEFAULT_TABLES

_FILES = (
    theory,
    preconditioner,
    convergence,
    limits,
    noise,
    models,
    samples,
    projector,
    rates,
    regulariser,
    attention,
    large,
    transformers,
    course,
    heads,
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
    "that A can be normalised *only* after the approximation error has become small, Section 3.4",
    "the simulation of Appendix I at batch sizes of 64, 128 or 256",
    "the theorem's and the lemmas' own batches, at sizes inside all assumptions, with real "
    "gradients",
)
"""What the paper says or shows, and no claim judges."""

TABLES = DEFAULT_TABLES | FULL_TABLES
"""Name → experiment of every table that ``scb reproduce`` can make."""
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
    """The settings of the tables to compute, by name.

    ``quick`` makes the tables smaller, and ``full`` makes them larger and adds more. ``gpu`` adds
    the tables that need a GPU, and ``seeds`` sets the number of random tasks.
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
    """The figures whose tables are all available."""
    there = set(made)
    return [figure for figure in figures if there.issuperset(FIGURES[figure].needs)]


def claims_for(figures: Iterable[str]) -> dict[int, Claim]:
    """The claims that belong to these figures, by number."""
    chosen = set(figures)
    return {number: claim for number, claim in enumerate(CLAIMS, start=1) if claim.figure in chosen}


def needed(figures: Iterable[str]) -> list[str]:
    """The names of the tables that these figures and their claims need."""
    chosen = list(figures)
    shown = [FIGURES[figure].needs for figure in chosen]
    judged = [claim.uses for claim in claims_for(chosen).values()]
    return list(dict.fromkeys(name for needs in (*shown, *judged) for name in needs))
