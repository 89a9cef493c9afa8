"""``scb train``: one run, its summary and its curves."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from scb.cli.terminal import terminal
from scb.files import alone

if TYPE_CHECKING:
    from scb.training.run import Run
    from scb.training.settings import TrainingSettings


def train(
    config: Path | None = None,
    recipe: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    n: Annotated[int | None, tyro.conf.arg(name="N", metavar="INT")] = None,
    t: Annotated[int | None, tyro.conf.arg(name="T", metavar="INT")] = None,
    sparsity: int | None = None,
    ensemble: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    k_p: Annotated[float | None, tyro.conf.arg(name="K-P", metavar="FLOAT")] = None,
    task_seed: int | None = None,
    seed: int | None = None,
    every: int | None = None,
    device: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None,
    set: tuple[str, ...] = (),
    out: Path = Path("runs/latest"),
    resume: bool = False,
) -> None:
    """Train on a random task, print a summary, save the run and draw its curves.

    Options win over the file. Without any, this is the paper's experiment: N = 3, T = 5,000, sparsity 2, 400 + 600 steps.

    - Tuned hyperparameters: scb train --recipe tuned --N 10

    - The literal paper: scb train --set resolve_sign=false --seed 3

    - An ordinary random transition matrix: scb train --ensemble dirichlet

    - Transfer: scb train --recipe transfer --set overlap=0.3 --T 50000

    - On an NVIDIA GPU, the same samples: scb train --device cuda --T 100000 --set batch_size=131072

    - Go on after a break: scb train --out runs/a --resume

    Args:
        config: TOML file with any of: N, T, sparsity, ensemble, K_P, task_seed, recipe, seed, every, device, and a table [options]
            for the recipe.
        recipe: paper (Algorithm 1 as in the paper's experiment), tuned (with tuned hyperparameters), sgd, softmax, transfer, or any
            other of scb.recipes.
        n: Number of tokens.
        t: Number of positions.
        sparsity: Positions that each token attends to.
        ensemble: Law of the random P: strong (meets the paper's assumptions a to c), dirichlet, uniform, or softmax.
        k_p: Move P to this K_P = ‖P − μ1ᵀ‖²_μ, towards μ1ᵀ or towards the identity.
        task_seed: Seed of the random task.
        seed: Seed of the training run.
        every: Steps between two rows of the history.
        device: cpu, or cuda for an NVIDIA GPU ('pip install scb[cuda13]' brings what is needed; cuda12 for an older driver).
        set: Options of the recipe as name=value (see 'help(scb.recipes.paper)' in Python for names).
        out: Directory for the run; it is written every 100 steps, so that a run can be resumed.
        resume: Go on with the run in OUT, with its own settings; the result is the same as without the break.
    """
    from scb.training.loop import train as run_training
    from scb.training.run import FILE
    from scb.training.settings import TrainingSettings, parse_option

    console = terminal()
    if resume:
        settings = TrainingSettings.load(out)
    else:
        settings = TrainingSettings() if config is None else TrainingSettings.read(config)
        given = {"recipe": recipe, "N": n, "T": t, "sparsity": sparsity, "ensemble": ensemble, "K_P": k_p}
        given |= {"task_seed": task_seed, "seed": seed, "every": every, "device": device}
        options = settings.options | dict(parse_option(text) for text in set)
        changed = {name: value for name, value in given.items() if value is not None}
        settings = replace(settings, options=options, **changed)
    task, built = settings.build()
    with alone(out, "training"):
        if not resume:
            (out / FILE).unlink(missing_ok=True)
            settings.save(out)
        task.save(out / "task.npz")
        with _progress(console, built.steps) as show:
            run = run_training(
                task,
                built,
                settings.seed,
                device=settings.device,
                every=settings.every,
                callbacks=[show],
                checkpoint=out,
                resume=resume,
            )
        report_run(console, run, out, settings)


@contextmanager
def _progress(console: Console, steps: int) -> "Iterator[Callable[[Run], None]]":
    """A bar with the state of the run; gives the function that moves it."""
    signals = "α_V {task.fields[a_V]:+.3f}  α_A {task.fields[a_A]:+.3f}"
    text = TextColumn("stage {task.fields[stage]}  step {task.completed:.0f}  " + signals)
    samples = TextColumn("{task.fields[samples]:,.0f} samples")
    with Progress(BarColumn(16), text, samples, TimeRemainingColumn(compact=True), console=console) as progress:
        bar = progress.add_task("", total=steps, stage=1, a_V=0.0, a_A=0.0, samples=0)

        def show(run: "Run") -> None:
            last = {name: column[-1] for name, column in run.history.items()}
            fields = {"stage": int(last["stage"]), "a_V": last["alpha_V"], "a_A": last["alpha_A"], "samples": run.samples}
            progress.update(bar, completed=run.step, total=run.step if run.finished else None, **fields)

        yield show


def report_run(console: Console, run: "Run", out: Path, settings: "TrainingSettings") -> None:
    """Print a table with the last row of each stage, and what is wrong with the run if anything is; draw its curves into OUT."""
    from scb.paper.figures.style import save
    from scb.paper.figures.training import curves

    size = f"N = {settings.N}, T = {settings.T:,}, sparsity {settings.sparsity}"
    if settings.ensemble != "strong":
        size += f", {settings.ensemble}"
    if settings.K_P is not None:
        size += f", K_P = {settings.K_P:g}"
    title = f"{run.recipe}: {size}, task {settings.task_seed}, seed {run.seed}"
    names = ("stage", "step", "samples", "α_V", "α_A", "‖V−P‖", "‖A−Q‖", "‖A*−Q‖", "loss")
    table = Table(*(Column(name, justify="right") for name in names), title=title, title_justify="left")
    h = run.history
    for number in sorted(set(h["stage"].astype(int).tolist())):
        i = (h["stage"] == number).nonzero()[0][-1]
        values = [f"{h[name][i]:.3f}" for name in ("alpha_V", "alpha_A", "dist_V", "dist_A", "dist_A_star")]
        table.add_row(str(number), f"{h['step'][i]:.0f}", f"{h['samples'][i]:,.0f}", *values, f"{h['loss'][i]:.4f}")
    console.print(table)
    if run.diverged is not None:
        console.print(f"diverged at step {run.diverged}: smaller step sizes are needed", style="bold red")
    elif run.verdict is not None:
        console.print(run.verdict, style="green" if run.verdict == "learned" else "bold red")
    elif not run.finished:
        console.print(f"not finished: go on with 'scb train --out {out} --resume'")
    for path in save(curves(run.history, title), out / "curves", ("png",)):
        console.print(f"wrote {path}")
