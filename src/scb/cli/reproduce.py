"""``scb reproduce``: the main job."""

from __future__ import annotations

from pathlib import Path


def reproduce(out: Path = Path("results"), seeds: int = 10) -> None:
    """Redraw the paper's convergence figure from real runs.

    Trains the proximal method and SGD (with both of the paper's step sizes) at N = 3, T = 5,000, sparsity 2, batch size
    64, on a new random task for each seed, and draws both distances to the truth.

    Args:
        out: Directory for the results.
        seeds: Number of random tasks.
    """
    import numpy as np
    from rich.console import Console
    from rich.progress import Progress, TimeRemainingColumn

    from scb.experiments.convergence import Config, run
    from scb.figures.convergence import convergence
    from scb.figures.style import save

    if seeds < 1:
        raise ValueError(f"seeds = {seeds}: it must be at least 1")
    config = Config(seeds=seeds)
    console = Console()
    with Progress(*Progress.get_default_columns()[:3], TimeRemainingColumn(), console=console) as bar:
        job = bar.add_task("training", total=None)
        table = run(config, lambda done, total: bar.update(job, completed=done, total=total))
    setting = f"N = {config.N}, T = {config.T:,}, sparsity {config.sparsity}, B = 64"
    for path in save(convergence(table, setting), out / "convergence"):
        console.print(f"wrote {path}", highlight=False)
    for method in dict.fromkeys(table["method"].tolist()):
        last = (table["method"] == method) & (table["step"] == table["step"].max())
        medians = {name: np.median(table[name][last]) for name in ("dist_V", "dist_A", "dist_A_star")}
        console.print(
            f"{method:<22} " + "  ".join(f"{name} {value:.3f}" for name, value in medians.items()), highlight=False
        )
