"""What of the theory survives in a real transformer: samples until a share of the excess loss is left, by T, N, start and design.

    python benchmarks/transformers.py list [STUDY ...]
    python benchmarks/transformers.py run [STUDY ...] [--seconds 500] [--device cuda] [--out docs/tables]
    python benchmarks/transformers.py quick            # T = 32 on the CPU, a minute

Studies: scaling (T and N, from scratch), transfer (what is kept of a model of another task), design (one factor at a time),
proximal (shrunk attention, centred values). A unit is one cell of a study: eight tasks, each at all learning rates, trained side
by side. Rows are curves: the share of excess loss that is left at each look, for each task and rate. A unit that is in the table
is not run again, so that ``run`` goes on where it stopped; the linear transformer under Algorithm 1 and ``recover`` are measured by
``python benchmarks/transformers.py rivals``, on the CPU.
"""

import argparse
import csv
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import scb
from scb.metrics import distance_A, distance_V
from scb.task import Task
from scb.task.sampling import sample
from scb.torch import Transformer
from scb.torch.ensemble import Draws, Ensemble, excess

TASKS = 8
RATES = (3e-4, 1e-3, 3e-3, 1e-2)
BATCH = 256
LOOKS = 2_000  # contexts on which a model is judged
DONE = 0.05  # nothing is trained on once this share of the excess loss is left
COLUMNS = ("study", "N", "T", "variant", "task", "rate", "step", "samples", "left", "left_square", "seconds", "device")
KEPT = {  # what a transferred model keeps; the rest is fresh
    "all": ("",),
    "values": ("embed", "blocks.0.value", "blocks.0.out", "blocks.0.mlp", "blocks.0.norm", "norm", "readout"),
    "frozen": ("embed", "blocks.0.value", "blocks.0.out", "blocks.0.mlp", "blocks.0.norm", "norm", "readout"),
}


@dataclass(frozen=True)
class Unit:
    """One cell of a study."""

    study: str
    N: int
    T: int
    variant: str = "standard"
    steps: int = 8_000
    model: dict[str, Any] = field(default_factory=dict)  # options of ``Transformer``
    optimiser: str = "adam"
    loss: str = "cross-entropy"
    rates: tuple[float, ...] = RATES
    overlap: float | None = None  # of the task from which something is kept
    keep: str = "all"

    @property
    def key(self) -> tuple[str, int, int, str]:
        """By what rows of the table belong to it."""
        return self.study, self.N, self.T, self.variant


def units() -> Iterator[Unit]:
    """All units, those of one study together."""
    for N in (3, 10, 50):
        for T in (32, 128, 512, 2048, 8192):
            yield Unit("scaling", N, T)
    for T in (32, 128, 512, 2048, 8192):
        for overlap in (1.0, 0.6, 0.3):
            for keep in KEPT:
                yield Unit("transfer", 10, T, f"{keep} {overlap:g}", overlap=overlap, keep=keep)
    designs: dict[str, dict[str, Any]] = {
        "standard": {},
        "linear attention": {"model": {"attention": "linear"}},
        "no layer norm": {"model": {"norm": False}},
        "no MLP": {"model": {"mlp": 0}},
        "SGD": {"optimiser": "sgd", "rates": (1e-2, 3e-2, 1e-1, 3e-1)},
        "square loss": {"loss": "square"},
        "two layers": {"model": {"layers": 2}},
        "four heads": {"model": {"heads": 4}},
        "linear, no norm, no MLP": {"model": {"attention": "linear", "norm": False, "mlp": 0}},
    }
    for variant, options in designs.items():
        yield Unit("design", 10, 128, variant, **options)
    for T in (128, 512, 2048):
        yield Unit("proximal", 10, T, "shrunk 0.5", model={"attention": "shrunk", "shrink": 0.5})
        yield Unit("proximal", 10, T, "shrunk 0.9", model={"attention": "shrunk", "shrink": 0.9})
        yield Unit("proximal", 10, T, "centred", model={"centre": True})


def tasks_of(N: int, T: int) -> list[Task]:
    """The eight tasks of a size."""
    return [Task.random(N, T, 2, seed=1_000 + i) for i in range(TASKS)]


def source_of(task: Task, overlap: float, seed: int) -> Task:
    """A task with other positions and weights, and a P with this overlap; 1 is the same P."""
    other = Task.random(task.N, task.T, 2, seed=5_000 + seed)
    P = task.P if overlap == 1 else task.related(overlap, seed).P
    return Task.sparse(P, other.positions, other.weights, task.T)


def models_of(unit: Unit, tasks: list[Task], device: str) -> list[Transformer]:
    """A fresh model for each task, the same for all learning rates."""
    made = []
    for i, task in enumerate(tasks):
        options = dict(unit.model)
        if options.get("centre"):
            options["centre"] = task.mu
        torch.manual_seed(i)
        made.append(Transformer(unit.N, unit.T, **options).to(device))
    return made


def looks(steps: int) -> set[int]:
    """After which steps models are judged: a tenth further each time."""
    found = {steps}
    at = 20.0
    while at < steps:
        found.add(round(at))
        at *= 1.1
    return found


def learn(
    ensemble: Ensemble, draws: Draws, mu: torch.Tensor, rates: int, steps: int, say: Callable[[str], None]
) -> list[tuple[int, float, np.ndarray, np.ndarray]]:
    """Train; at each look: the step, seconds, and what is left of the excess loss (rates, tasks), in both losses."""
    tokens, _ = draws(1 << 40, LOOKS)
    truth = draws.truth(tokens)
    every = looks(steps)
    found = []
    began = time.perf_counter()
    for step in range(1, steps + 1):
        batch = [x.repeat(rates, *[1] * (x.ndim - 1)) for x in draws(step, BATCH)]
        ensemble.step(*batch)
        if step in every:
            left, square = judged(ensemble, tokens, truth, mu, rates)
            found.append((step, time.perf_counter() - began, left, square))
            say(f"step {step}: {np.nanmedian(left, axis=1).round(3)}")
            if np.nanmin(np.nanmax(left, axis=1)) < DONE:
                break
    return found


@torch.no_grad()
def judged(ensemble: Ensemble, tokens: torch.Tensor, truth: torch.Tensor, mu: torch.Tensor, rates: int) -> tuple[np.ndarray, ...]:
    """What is left of the excess loss, (rates, tasks), as KL divergence and as squared error."""
    parts = []
    for part in tokens.split(250, dim=1):
        parts.append(ensemble.logits(part.repeat(rates, 1, 1)).double().softmax(dim=2))
    F = torch.cat(parts, dim=1)
    left, square = excess(truth.repeat(rates, 1, 1), F, mu.repeat(rates, 1))
    return left.view(rates, -1).cpu().numpy(), square.view(rates, -1).cpu().numpy()


def run_unit(unit: Unit, device: str, best: float | None, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Rows of one unit. ``best`` is the rate at which the source of a transfer is trained."""
    tasks = tasks_of(unit.N, unit.T)
    models = models_of(unit, tasks, device)
    frozen: tuple[str, ...] = ()
    if unit.overlap is not None:
        sources = [source_of(task, unit.overlap, i) for i, task in enumerate(tasks)]
        trained = Ensemble(models_of(unit, sources, device), [best or 3e-3] * TASKS)
        learn(trained, Draws(sources, 2, device), stationary(sources, device), 1, unit.steps, lambda text: None)
        for i, model in enumerate(models):
            state = model.state_dict()
            state |= {name: x[i].detach() for name, x in trained.parameters.items() if name.startswith(KEPT[unit.keep])}
            model.load_state_dict(state)
        frozen = KEPT["values"] if unit.keep == "frozen" else ()
    rates = [rate for rate in unit.rates for _ in tasks]
    ensemble = Ensemble(models * len(unit.rates), rates, loss=unit.loss, optimiser=unit.optimiser, frozen=frozen)  # type: ignore[arg-type]
    curves = learn(ensemble, Draws(tasks, 1, device), stationary(tasks, device), len(unit.rates), unit.steps, say)
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    return [
        dict(
            zip(
                COLUMNS,
                (*unit.key, i, rate, step, step * BATCH, f"{left[r, i]:.5g}", f"{square[r, i]:.5g}", f"{seconds:.3f}", name),
                strict=True,
            )
        )
        for step, seconds, left, square in curves
        for r, rate in enumerate(unit.rates)
        for i in range(TASKS)
    ]


def stationary(tasks: list[Task], device: str) -> torch.Tensor:
    """(G, N): μ of each task."""
    return torch.tensor(np.stack([task.mu for task in tasks]), device=device)


def read(path: Path) -> list[dict[str, str]]:
    """Rows of a table, none if it is not there."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def append(path: Path, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Add rows to a table, with its header if it is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns)
        if new:
            writer.writeheader()
        writer.writerows(rows)


def samples_to(rows: list[dict[str, str]], share: float, column: str = "left") -> dict[tuple[str, str], float]:
    """(task, rate) → samples until ``share`` of the excess loss is left, infinite where that did not happen."""
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        key = row["task"], row["rate"]
        found.setdefault(key, math.inf)
        if found[key] == math.inf and float(row[column]) <= share:
            found[key] = float(row["samples"])
    return found


def best_rate(rows: list[dict[str, str]], share: float = 0.1) -> float | None:
    """The rate with the least median of samples over the tasks; None if at none of them half of the tasks get there."""
    reached = samples_to(rows, share)
    medians = {rate: np.median([n for (_, r), n in reached.items() if r == rate]) for rate in {rate for _, rate in reached}}
    if not medians or min(medians.values()) == math.inf:
        return None
    return float(min(medians, key=lambda rate: medians[rate]))


def run(studies: list[str], seconds: float, device: str, table: Path) -> None:
    """Run the units that are not in the table, until the time is over."""
    until = time.monotonic() + seconds
    for unit in units():
        rows = read(table)
        of = {}
        for row in rows:
            of.setdefault((row["study"], int(row["N"]), int(row["T"]), row["variant"]), []).append(row)
        if (studies and unit.study not in studies) or unit.key in of:
            continue
        if time.monotonic() > until:
            print("out of time")
            return
        began = time.monotonic()
        best = best_rate(of.get(("scaling", unit.N, unit.T, "standard"), []))
        found = run_unit(unit, device, best, lambda text: None)
        append(table, found, COLUMNS)
        reached = samples_to([{k: str(v) for k, v in row.items()} for row in found], 0.1)
        print(
            unit.key,
            f"{time.monotonic() - began:.1f} s,",
            len(found),
            "rows; to 10 %:",
            sorted(reached.values())[:TASKS],
            flush=True,
        )


def rivals(table: Path) -> None:
    """Samples that ``recover`` and Algorithm 1 (both projectors) need for the same tasks, on the CPU."""
    columns = ("N", "T", "rival", "task", "samples", "left_square", "dist_V", "dist_A")
    done = {(row["N"], row["T"], row["rival"]) for row in read(table)}
    for N in (3, 10):
        for T in (32, 128, 512, 2048):
            tasks = tasks_of(N, T)
            if (str(N), str(T), "recover") not in done:
                rows = [row for i, task in enumerate(tasks) for row in recovered(task, i)]
                append(table, rows, columns)
            for projector in ("mu", "euclidean"):
                if (str(N), str(T), f"Algorithm 1, {projector}") not in done:
                    rows = [row for i, task in enumerate(tasks) for row in trained(task, i, projector)]
                    append(table, rows, columns)
            print(N, T, flush=True)


def recovered(task: Task, i: int) -> Iterator[dict[str, Any]]:
    """Rows of ``recover`` for a growing number of samples."""
    for n in (250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000):
        fit = scb.recover(sample(task, n, seed=i, compiled=True))
        yield row_of(task, i, "recover", n, fit.V, fit.A)


def trained(task: Task, i: int, projector: str) -> Iterator[dict[str, Any]]:
    """Rows of a run of ``tuned``, look by look."""
    run = scb.train(task, scb.recipes.tuned(task, projector=projector), seed=i, every=20)
    history = run.history
    for samples, V, A, loss in zip(history["samples"], history["dist_V"], history["dist_A"], history["loss"], strict=True):
        best, trivial = scb.theory.best_loss(task), scb.theory.trivial_loss(task)
        left = (loss - best) / (trivial - best)
        facts = (task.N, task.T, f"Algorithm 1, {projector}", i, int(samples), f"{left:.5g}", f"{V:.5g}", f"{A:.5g}")
        yield dict(zip(("N", "T", "rival", "task", "samples", "left_square", "dist_V", "dist_A"), facts, strict=True))


def row_of(task: Task, i: int, rival: str, n: int, V: np.ndarray, A: np.ndarray) -> dict[str, Any]:
    """One row: how far (V, A) is from the task."""
    fresh = sample(task, LOOKS, seed=10_000, compiled=True)
    truth = scb.LinearTransformer(task.P, task.Q).predict(fresh)
    found = scb.LinearTransformer(V, A).predict(fresh)
    left = np.square(found - truth).sum() / np.square(task.mu - truth).sum()
    facts = (task.N, task.T, rival, i, n, f"{left:.5g}", f"{distance_V(task, V):.5g}", f"{distance_A(task, A):.5g}")
    return dict(zip(("N", "T", "rival", "task", "samples", "left_square", "dist_V", "dist_A"), facts, strict=True))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("list", "run", "quick", "rivals"))
    parser.add_argument("studies", nargs="*")
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs" / "tables")
    chosen = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    if chosen.action == "list":
        for unit in units():
            print(*unit.key)
    elif chosen.action == "run":
        run(chosen.studies, chosen.seconds, chosen.device, chosen.out / "transformers.csv")
    elif chosen.action == "rivals":
        rivals(chosen.out / "transformers_rivals.csv")
    else:
        unit = Unit("quick", 3, 32, steps=1_500, rates=(3e-3,))
        rows = run_unit(unit, "cpu", None, print)
        print("samples until a tenth is left:", sorted(samples_to([{k: str(v) for k, v in r.items()} for r in rows], 0.1).values()))


if __name__ == "__main__":
    sys.exit(main())
