"""``scb train`` trains one run, prints its summary and verdict, and draws its curves."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.table import Column, Table

from scb.cli.advice import advise
from scb.cli.json_output import print_run_json
from scb.cli.terminal import interruptible, terminal
from scb.extras import MissingExtraError
from scb.folders import Folder, opened
from scb.inputs import InputError

if TYPE_CHECKING:
    from scb.training.directory import PreparedRun
    from scb.training.run import Run
    from scb.training.settings import TrainingSettings

RUNS = Path("runs")
CURVES = "curves.png"
Int = Annotated[int | None, tyro.conf.arg(metavar="INT")]
Float = Annotated[float | None, tyro.conf.arg(metavar="FLOAT")]
Name = Annotated[str | None, tyro.conf.arg(metavar="NAME")]


def train(
    config: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    recipe: Name = None,
    n: Annotated[int | None, tyro.conf.arg(name="N", metavar="INT")] = None,
    t: Annotated[int | None, tyro.conf.arg(name="T", metavar="INT")] = None,
    sparsity: Int = None,
    ensemble: Name = None,
    k_p: Annotated[float | None, tyro.conf.arg(name="K-P", metavar="FLOAT")] = None,
    task_seed: Int = None,
    seed: Int = None,
    eta: Annotated[tuple[float, ...] | None, tyro.conf.arg(metavar="FLOAT [FLOAT ...]")] = None,
    lam: Float = None,
    batch_size: Int = None,
    source: Name = None,
    every: Int = None,
    device: Name = None,
    judge_samples: Int = None,
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")] = (),
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    resume: bool = False,
    overwrite: bool = False,
    lock: bool = True,
    json: bool = False,
) -> None:
    """Train on a random task, say whether it has been learned, save the run and draw its curves.

    Options take precedence over the file. Without options or a file, Algorithm 1 is run with
    hyperparameters that work, on a task of the paper's size: N = 3, T = 5,000, sparsity 2.

    - The paper's experiment, 400 + 600 steps: scb train --recipe paper

    - Algorithm 1 exactly as printed: scb train --recipe paper --set resolve_sign=false --seed 3

    - Other hyperparameters: scb train --recipe paper --lam 1e-4 --eta 0.02 --set steps=1000

    - An ordinary random transition matrix: scb train --ensemble dirichlet

    - Transfer from a related task: scb train --recipe transfer --set overlap=0.3 --T 50000

    - On an NVIDIA GPU, with the same samples: scb train --device cuda --T 100000 --batch-size
      131072

    - Continue after an interruption: scb train --resume

    Args:
        config: TOML file with any of: N, T, sparsity, ensemble, K_P, task_seed, recipe, source,
            seed, every, device. A table [options] in it sets options of the recipe.
        recipe: tuned (Algorithm 1 with tuned hyperparameters), paper (Algorithm 1 with the
            hyperparameters of the paper's experiment), sgd, softmax or transfer. Installed packages
            may provide others.
        n: Number of tokens.
        t: Number of positions.
        sparsity: Number of positions that each token attends to.
        ensemble: Distribution of the random P: strong (meets the paper's assumptions a to c),
            dirichlet, uniform, or softmax.
        k_p: Value of K_P = ‖P − μ1ᵀ‖²_μ. P is moved along the line to μ1ᵀ or to the identity until
            K_P has this value.
        task_seed: Seed of the random task.
        seed: Seed of the training run.
        eta: Step size η, or a list with one step size for each stage. Steps on V have size η/K_Q;
            steps on A have size η/K_P.
        lam: Threshold λ of the proximal steps, which shrink all entries of A by λ and set those
            smaller than λ to 0.
        batch_size: Number of samples per step.
        source: Source of the gradients: fresh (new samples), reference (the same, in NumPy),
            population (exact expectations) or gaussian (exact expectations with noise). Installed
            packages may provide others.
        every: Number of steps between two rows of the history.
        device: cpu, or cuda for an NVIDIA GPU ("pip install '.[cuda13]'" in the clone installs what
            is needed; cuda12 for an older driver).
        judge_samples: Number of held-out samples by which the run is judged, for cases where the
            default leaves the verdict undecided.
        set: Further options of the recipe; 'help(scb.recipes.paper)' in Python lists them. Where a
            list is expected, a single value is used for all its entries.
        out: Directory for the run, which must not contain a run yet; by default, a new directory in
            runs. The run is saved every 100 steps.
        resume: Continue the run in OUT or, by default, the latest run in runs. The result is the
            same as without the interruption.
        overwrite: Replace a run in OUT, and files there that scb did not write.
        lock: Keep other processes out of OUT. Some file systems do not support this.
        json: Print the results as one JSON object on stdout, and the human-readable text on stderr.
    """
    from scb.training.directory import prepared
    from scb.training.settings import parse_option

    console = terminal(stderr=json)
    sizes = {"N": n, "T": t, "sparsity": sparsity, "ensemble": ensemble, "K_P": k_p}
    others = {"task_seed": task_seed, "seed": seed, "source": source, "every": every}
    given = {"recipe": recipe, "device": device} | sizes | others
    options = _options(eta, lam, batch_size) | dict(parse_option(text) for text in set)
    directory = (out or latest_run()) if resume else out
    settings = _settings(directory if resume else None, config, given, options)
    asked = prepared(settings)  # refuses a device before a directory is made
    directory = directory or _new_directory()
    inputs = () if config is None else (config,)
    with (
        opened(directory, "training", lock=lock, overwrite=overwrite, inputs=inputs) as folder,
        interruptible(f"go on with: {going_on(directory)}"),
    ):
        if not resume and not overwrite:
            _refuse_overwriting(directory)
        run = _train(console, folder, asked, resume, judge_samples)
    advise(console, run.verdict, settings)
    if json:
        print_run_json(run, settings, directory)
    if run.diverged is not None:
        raise SystemExit(1)


def _settings(
    resumed: Path | None, config: Path | None, given: dict[str, Any], options: dict[str, Any]
) -> "TrainingSettings":
    """The settings of a run: those of the run that is resumed, of a file, or the defaults, changed
    by the options given.
    """
    from scb.training.settings import TrainingSettings

    changed = {name: value for name, value in given.items() if value is not None}
    if resumed is not None:
        settings = TrainingSettings.load(resumed)
        _refuse_changes(settings, config, changed, options, resumed)
        return settings
    settings = TrainingSettings() if config is None else TrainingSettings.read(config)
    return replace(settings, options=settings.options | options, **changed)


def _train(
    console: Console,
    folder: Folder,
    asked: "PreparedRun",
    resume: bool,
    judge_samples: int | None,
) -> "Run":
    """Train in a folder, and show the result."""
    from scb.training.directory import train_in
    from scb.training.progress import ProgressBar

    bar = ProgressBar(asked.recipe.steps)
    folder.claim(CURVES)
    run = train_in(folder, asked, resume, [bar], judge_samples)
    if not bar.begun:
        console.print(f"the run in {folder.path} is finished: there is nothing left to go on with")
    report_run(console, run, folder.path, asked.settings)
    draw_run(console, run, asked.settings, folder)
    return run


def _options(
    eta: tuple[float, ...] | None, lam: float | None, batch_size: int | None
) -> dict[str, Any]:
    """The options of a recipe that are also options of the command."""
    steps = eta if eta is None else eta[0] if len(eta) == 1 else list(eta)
    given = {"eta": steps, "lam": lam, "batch_size": batch_size}
    return {name: value for name, value in given.items() if value is not None}


# -------------------------------------------------------------------------------------- directories


def going_on(directory: Path) -> str:
    """Return the command that continues the run in a directory."""
    return f"scb train --out {shlex.quote(str(directory))} --resume"


def latest_run() -> Path:
    """Return the directory in ``RUNS`` whose run was begun last."""
    from scb.training.settings import FILE

    found = sorted(RUNS.glob(f"*/{FILE}"), key=lambda path: path.stat().st_mtime_ns)
    if not found:
        raise InputError(f"{RUNS} holds no run: name the directory of one")
    return found[-1].parent


def _new_directory() -> Path:
    """A new directory in ``RUNS``, made here so that no other process has it: its name is the next
    number.
    """
    RUNS.mkdir(exist_ok=True)
    number = 1 + max(
        (int(path.name) for path in RUNS.iterdir() if path.name.isdecimal()), default=0
    )
    while True:
        try:
            (RUNS / str(number)).mkdir()
        except FileExistsError:
            number += 1
        else:
            return RUNS / str(number)


def _refuse_overwriting(directory: Path) -> None:
    from scb.training.run import FILE

    if (directory / FILE).exists():
        raise InputError(
            f"{directory} holds a run, which is kept: give another directory as --out (without it,"
            f" a new one is made), go on with '{going_on(directory)}', look at it with"
            f" 'scb show {directory}', or replace it with --overwrite"
        )


def _refuse_changes(
    settings: "TrainingSettings",
    config: Path | None,
    changed: dict[str, Any],
    options: dict[str, Any],
    directory: Path,
) -> None:
    """InputError if a run is to be resumed with settings other than its own."""
    from scb.training.settings import TrainingSettings

    asked = settings if config is None else TrainingSettings.read(config)
    kept = asked.options if changed.get("recipe", asked.recipe) == asked.recipe else {}
    asked = replace(asked, options=kept | options, **changed)
    different = settings.differences(asked)
    if different:
        has = ", ".join(f"{name} = {here}" for name, (here, _) in different.items())
        wanted = ", ".join(f"{name} = {there}" for name, (_, there) in different.items())
        raise InputError(
            f"the run in {directory} has {has}, where {wanted} is asked for: resume it without"
            " these options, or begin another run without --resume"
        )


# ------------------------------------------------------------------------------------ what is shown


def report_run(console: Console, run: "Run", out: Path, settings: "TrainingSettings") -> None:
    """Print a table with the last row of each stage, and the verdict."""
    headings, rows = run.summary().cells()
    right = (Column(heading, justify="right") for heading in headings)
    table = Table(*right, title=_title(run, settings), title_justify="left")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    _say_verdict(console, run, out, settings)


def _title(run: "Run", settings: "TrainingSettings") -> str:
    size = f"N = {settings.N}, T = {settings.T:,}, sparsity {settings.sparsity}"
    if settings.ensemble != "strong":
        size += f", {settings.ensemble}"
    if settings.K_P is not None:
        size += f", K_P = {settings.K_P:g}"
    return f"{run.recipe}: {size}, task {settings.task_seed}, seed {run.seed}"


def draw_run(console: Console, run: "Run", settings: "TrainingSettings", folder: Folder) -> None:
    """Draw the run's curves into a folder."""
    from scb.training.run_summary import curves

    try:
        drawn = curves(run.history, _title(run, settings))
    except MissingExtraError as error:
        console.print(f"wrote {folder.path}; {error}")
        return
    from scb.drawing import save

    for path in save(drawn, folder.file(CURVES).with_suffix(""), ("png",)):
        console.print(f"wrote {path}")


def _say_verdict(console: Console, run: "Run", out: Path, settings: "TrainingSettings") -> None:
    """What held-out samples say of a run, and what the true P and Q, known here, say of it.

    The first is an estimate that knows neither P nor Q; the further (V, A) is from them, the
    rougher it is.
    """
    from scb.training.verdict import GOOD, by_truth

    if not run.finished:
        console.print(f"not finished: go on with '{going_on(out)}'")
        return
    if run.mirrored is not None:
        console.print(
            f"sign: after step {run.mirrored:,} the columns of A were skewed to the left, so (V, "
            "A) was replaced by its mirror image (resolve_sign)"
        )
    if run.verdict is not None:
        console.print(
            f"verdict, estimated from held-out samples: {run.verdict}",
            style="bold green" if run.verdict == GOOD else "bold red",
        )
    if run.diverged is None:
        last = {name: float(column[-1]) for name, column in run.history.items()}
        distances = (("‖V−P‖", "dist_V"), ("‖A−Q‖", "dist_A"), ("‖A*−Q‖", "dist_A_star"))
        numbers = ", ".join(f"{symbol} = {last[name]:.3f}" for symbol, name in distances)
        exact = (
            ""
            if run.verdict in (None, GOOD)
            else "; these distances are exact, the estimate knows neither P nor Q"
        )
        console.print(
            f"checked against the true P and Q: {by_truth(last).partition(':')[0]}"
            f" ({numbers}{exact})"
        )
