"""``scb plan`` prints what the paper's lemmas require."""

from dataclasses import asdict
from typing import Annotated

import tyro
from rich.table import Table

from scb.cli.json_output import print_json
from scb.cli.terminal import terminal
from scb.theory.planner import plan as make_plan


def plan(
    n: Annotated[int, tyro.conf.Positional, tyro.conf.arg(name="N", metavar="N")],
    t: Annotated[int, tyro.conf.Positional, tyro.conf.arg(name="T", metavar="T")],
    sparsity: Annotated[int, tyro.conf.Positional, tyro.conf.arg(metavar="SPARSITY")],
    eps: float = 0.05,
    delta: float = 0.05,
    k_p: float | None = None,
    k_q: float | None = None,
    overlap: float | None = None,
    eta: float | None = None,
    json: bool = False,
) -> None:
    """Print the batch sizes, λ, step counts and thresholds that the paper's lemmas require for each
    stage.

    The numbers are sufficient conditions for the worst case. Only their scaling is of practical
    interest; a run needs far fewer samples (see 'scb reproduce'). The constants of the lemmas were
    measured on random tasks; in Python, scb.plan accepts other values.

    Example: scb plan 3 5000 2 --eps 0.05 --delta 0.05

    Args:
        n: Number of tokens.
        t: Number of positions.
        sparsity: Number of positions that each token attends to (the paper's Q).
        eps: Target ε for ‖A − Q‖_μ² and ‖V − P‖_μ².
        delta: Failure probability of the whole run.
        k_p: K_P of the task, if known. The default is 1/N.
        k_q: K_Q of the task, if known. The default is 1/Q.
        overlap: Centred μ-cosine of the pretrained P̂ and P. The default is the smallest that the
            paper allows.
        eta: Step size η. The default is the largest that the lemma on Stage 1 allows.
        json: Print the results as one JSON object on stdout, and the human-readable text on stderr.
    """
    result = make_plan(n, t, sparsity, eps, delta, K_P=k_p, K_Q=k_q, overlap=overlap, eta=eta)
    table = Table(
        title=f"N = {n}, T = {t}, Q = {sparsity}, ε = {eps:g}, δ = {delta:g}", title_justify="left"
    )
    for name in ("stage", "η", "steps", "batch", "λ", "threshold", "leaves"):
        table.add_column(name, justify="left" if name in ("stage", "leaves") else "right")
    for stage in (*result.stages, *result.transfer):
        threshold = "-" if stage.threshold is None else f"{stage.threshold:.2g}"
        lam = f"{stage.lam:.1e}" if stage.lam else "-"
        cells = (f"{stage.eta:.2g}", f"{stage.steps:,}", f"{stage.batch_size:.1e}", lam, threshold)
        table.add_row(stage.name, *cells, stage.leaves, end_section=stage.name == "Stage 3")
    console = terminal(stderr=json)
    console.print(table)
    if result.warning:
        console.print(f"warning: {result.warning}", style="yellow")
    console.print(
        f"samples: {result.samples:.1e} from scratch, {result.transfer_samples:.1e} with transfer "
        f"(θ = {result.theta:.2g})"
    )
    console.print(
        f"K_P = {result.K_P:.3g}, K_Q = {result.K_Q:.3g}; η_V = η/K_Q, η_A = η/K_P. 'threshold' is "
        "applied on entering a stage (after the step, for transfer). These are worst-case "
        "guarantees, with measured constants: read them for how they scale. 'scb train' learns a "
        "task of the paper's size from far fewer samples.",
        style="dim",
    )
    if json:
        given = {"N": n, "T": t, "sparsity": sparsity, "eps": eps, "delta": delta}
        samples = {"samples": result.samples, "transfer_samples": result.transfer_samples}
        print_json("plan", given | asdict(result) | samples)
