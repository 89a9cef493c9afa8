"""What of the theory survives in a real transformer: samples until a share of the excess loss is left, by T, N, start and design.

    python benchmarks/transformers.py list                       # what there is to run, and what of it is in the table
    python benchmarks/transformers.py run [STUDY ...] [--seconds 500] [--device cuda] [--out DIR]
    python benchmarks/transformers.py quick [--out DIR]          # T = 32 on the CPU, ten seconds
    python benchmarks/transformers.py ship [--out DIR]           # the tables of all studies → docs/tables

Studies: scaling (T and N, from scratch), transfer (what is kept of a model of another task), design (one factor at a time),
proximal (shrunk attention, centred values). A unit is one cell of a study: eight tasks, each at all learning rates, trained side
by side. A unit whose rows are in the table is not run again, so that ``run`` goes on where it stopped. Stages and sequences have
scripts of their own, and so has what one needs without a transformer: transformers_stages.py, transformers_sequences.py,
transformers_baselines.py.
"""

import argparse
import gc
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers_ensemble import Ensemble, excess
from transformers_table import LOOKS, TASKS, Sheet, samples_until, ship

from scb.jobs.job import random_task
from scb.task import Task
from scb.torch import Transformer
from scb.torch.data import Draws

RATES = (3e-4, 1e-3, 3e-3, 1e-2)
LOWER = (1e-4, 3e-4, 1e-3, 3e-3)  # where the smallest of these would be the best: many positions or tokens
HIGHER = (1e-3, 3e-3, 1e-2, 3e-2)  # where the largest would be: frozen values
BATCH = 256
DONE = 0.1  # a unit is over once this share of the excess loss is left at one of the rates, for all tasks but one
TRAINED = 0.05  # the same for a model from which something is transferred
VALUES = ("embed", "blocks.0.value", "blocks.0.out", "blocks.0.mlp", "blocks.0.norm", "norm", "readout")
KEPT = {"all": ("",), "values": VALUES, "frozen": VALUES}  # what a transferred model keeps; the rest is fresh
SHORT = (32, 128, 512)


@dataclass(frozen=True)
class Unit:
    """One cell of a study."""

    study: str
    N: int
    T: int
    variant: str = "standard"
    steps: int = 4_000
    model: dict[str, Any] = field(default_factory=dict)  # options of ``Transformer``
    optimiser: str = "adam"
    loss: str = "cross-entropy"
    rates: tuple[float, ...] = RATES
    overlap: float | None = None  # of the task from which something is kept, and what
    keep: str = "all"
    source_T: int | None = None  # positions of that task; as many as here unless given
    tasks: int = TASKS
    contexts: int = LOOKS  # on which models are judged

    @property
    def key(self) -> dict[str, Any]:
        """By what its rows are known in the table."""
        return {"study": self.study, "N": self.N, "T": self.T, "variant": self.variant}


DESIGNS: dict[str, dict[str, Any]] = {
    "linear attention": {"model": {"attention": "linear"}},
    "no layer norm": {"model": {"norm": False}},
    "no MLP": {"model": {"mlp": 0}},
    "square loss": {"loss": "square"},
    "SGD": {"optimiser": "sgd", "rates": (0.01, 0.03, 0.1, 0.3)},
    "four heads": {"model": {"heads": 4}},
    "linear, no norm, no MLP": {"model": {"attention": "linear", "norm": False, "mlp": 0}},
    "two layers": {"model": {"layers": 2}, "steps": 2_000},
}
PROXIMAL: dict[str, dict[str, Any]] = {
    "weights shrunk by 0.5/L": {"attention": "shrunk", "shrink": 0.5},
    "weights shrunk by 0.9/L": {"attention": "shrunk", "shrink": 0.9},
    "logits thresholded at 1σ": {"attention": "thresholded", "shrink": 1.0},
    "values centred": {"centre": True},
    "values centred, weights shrunk by 0.9/L": {"centre": True, "attention": "shrunk", "shrink": 0.9},
}


def units() -> Iterator[Unit]:
    """All units, in the order in which they are run: the questions that matter most come first."""
    longer = {"steps": 8_000, "rates": LOWER}
    short = {"steps": 2_500}
    for N in (10, 3):
        for T in SHORT:
            yield Unit("scaling", N, T)
        yield Unit("scaling", N, 2048, **longer)
    for variant, options in list(DESIGNS.items())[:-1]:
        yield Unit("design", 10, 128, variant, **options)
    for T in SHORT[1:]:
        for variant, options in PROXIMAL.items():
            yield Unit("proximal", 10, T, variant, model=options)
    for T in SHORT:
        for overlap in (1.0, 0.6, 0.3):
            for keep in KEPT:
                yield transfer(10, T, keep, overlap)
    for T in SHORT:
        for keep in KEPT:
            yield transfer(3, T, keep)
    yield Unit("proximal", 10, 2048, "values centred", model=PROXIMAL["values centred"], **short)
    for keep, overlap in (("values", 1.0), ("frozen", 1.0), ("values", 0.6), ("values", 0.3)):
        yield transfer(10, 2048, keep, overlap, source_T=128)
    for N, T in ((10, 32), (3, 32), (3, 128), (3, 512), (3, 2048)):
        yield Unit("proximal", N, T, "values centred", model=PROXIMAL["values centred"], **short)
    yield Unit("scaling", 50, 32, steps=32_000, rates=LOWER)
    for keep in ("values", "frozen"):
        yield transfer(50, 32, keep, steps=16_000)
    yield Unit("scaling", 50, 128, steps=16_000, rates=LOWER)
    yield Unit("design", 10, 128, "two layers", **DESIGNS["two layers"])
    small = {"init": 0.02}  # GPT-2's initial weights
    for N in (10, 3):
        for T in SHORT[:-1]:
            yield Unit("scaling, init 0.02", N, T, model=small)
        yield Unit("scaling, init 0.02", N, 512, model=small, rates=LOWER)
        yield Unit("scaling, init 0.02", N, 2048, model=small, **longer)
        yield Unit("scaling, init 0.02", N, 8192, model=small, steps=2_000)
    for variant, options in DESIGNS.items():
        yield Unit("design, init 0.02", 10, 128, variant, **options | {"model": options.get("model", {}) | small})
    for T in SHORT[1:]:
        for variant, options in list(PROXIMAL.items())[:-1]:
            yield Unit("proximal, init 0.02", 10, T, variant, model=options | small)
    for variant, options in list(PROXIMAL.items())[:2]:
        yield Unit("proximal, init 0.02", 10, 2048, variant, model=options | small)
    yield Unit("scaling", 3, 8192, steps=14_000, rates=LOWER)
    for N, T in ((10, 8192), (3, 2048), (3, 8192)):
        yield transfer(N, T, "frozen", source_T=128)
    yield Unit("scaling", 50, 512, **longer)
    yield Unit("proximal", 10, 8192, "values centred", model=PROXIMAL["values centred"], steps=7_500, rates=LOWER)
    yield Unit("scaling", 10, 8192, steps=7_500, rates=LOWER)
    yield transfer(10, 8192, "values", source_T=128)


def transfer(N: int, T: int, keep: str, overlap: float = 1.0, source_T: int | None = None, steps: int = 4_000) -> Unit:
    """The unit in which this is kept of models of other tasks, with fewer positions where ``source_T`` says so."""
    variant = f"{keep}, overlap {overlap:g}" if source_T is None else f"{keep} of T = {source_T}, overlap {overlap:g}"
    rates = HIGHER if keep == "frozen" else RATES
    return Unit("transfer", N, T, variant, steps, rates=rates, overlap=overlap, keep=keep, source_T=source_T)


def tasks_of(unit: Unit) -> list[Task]:
    """The eight tasks of a size."""
    return [random_task(unit.N, unit.T, 2, i) for i in range(unit.tasks)]


def source_of(task: Task, overlap: float, i: int, T: int | None = None) -> Task:
    """A task with other positions, T of them if that is given, other weights, and a P with this overlap; 1 is the same P."""
    other = random_task(task.N, T or task.T, 2, 100 + i)
    P = task.P if overlap == 1 else task.related(overlap, seed=i).P
    return Task.sparse(P, other.positions, other.weights, other.T)


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


@dataclass(frozen=True)
class Look:
    """How far models are: what is left of the excess loss, (rates, tasks), as KL divergence and as squared error."""

    step: int
    seconds: float
    left: np.ndarray
    square: np.ndarray


def learn(
    ensemble: Ensemble, tasks: list[Task], seed: int, steps: int, contexts: int, done: float, say: Callable[[str], None]
) -> list[Look]:
    """Train an ensemble of rates × tasks until ``done`` is left at one rate, for all tasks but one, or for so many steps."""
    device = ensemble.rates.device
    rates = len(ensemble.rates) // len(tasks)
    draws = Draws(tasks, seed, device)
    mu = torch.tensor(np.stack([task.mu for task in tasks]), device=device)
    tokens, _ = draws(1 << 40, contexts)
    truth = draws.truth(tokens)
    every = looks(steps)
    found = []
    began = time.perf_counter()
    for step in range(1, steps + 1):
        ensemble.step(*(x.repeat(rates, *[1] * (x.ndim - 1)) for x in draws(step, BATCH)))
        if step in every:
            found.append(Look(step, time.perf_counter() - began, *judged(ensemble, tokens, truth, mu, rates)))
            say(f"step {step}, {found[-1].seconds:.1f} s: left {np.median(found[-1].left, axis=1).round(3)}")
            if np.sort(found[-1].left, axis=1)[:, -2:].min(axis=1).min() <= done:
                break
    return found


@torch.no_grad()
def judged(
    ensemble: Ensemble, tokens: torch.Tensor, truth: torch.Tensor, mu: torch.Tensor, rates: int
) -> tuple[np.ndarray, np.ndarray]:
    """What is left of the excess loss, (rates, tasks), as KL divergence and as squared error; 10 where a model has diverged."""
    parts = []
    entries = tokens.shape[2] * truth.shape[2] * len(ensemble.rates)  # of the tables that a context takes in all models
    for part in tokens.split(max(1, (1 << 30) // entries), dim=1):
        parts.append(ensemble.logits(part.repeat(rates, 1, 1)).double().softmax(dim=2))
    left = excess(truth.repeat(rates, 1, 1), torch.cat(parts, dim=1), mu.repeat(rates, 1))
    kl, square = (x.nan_to_num(10.0).view(rates, -1).cpu().numpy() for x in left)
    return kl, square


class Sources:
    """Models of other tasks from which something is kept, trained when they are first asked for."""

    def __init__(self, sheet: Sheet, device: str, say: Callable[[str], None]) -> None:
        self.sheet = sheet
        self.device = device
        self.say = say
        self._made: dict[tuple[int, int, float], dict[str, torch.Tensor]] = {}

    def give(self, unit: Unit, overlap: float, models: list[Transformer]) -> None:
        """Put what the unit keeps into fresh models."""
        size = (unit.N, unit.T, overlap)
        if size not in self._made:
            self._made = {size: self._train(unit, overlap)}
        for i, model in enumerate(models):
            kept = {name: x[i] for name, x in self._made[size].items() if name.startswith(KEPT[unit.keep])}
            model.load_state_dict(model.state_dict() | kept)

    def _train(self, unit: Unit, overlap: float) -> dict[str, torch.Tensor]:
        tasks = [source_of(task, overlap, i, unit.source_T) for i, task in enumerate(tasks_of(unit))]
        source = replace(unit, T=tasks[0].T)
        rate = best_rate(self.sheet, source.N, source.T)
        ensemble = Ensemble(models_of(source, tasks, self.device), [rate] * unit.tasks)
        found = learn(ensemble, tasks, 2, unit.steps, unit.contexts, TRAINED, lambda text: None)
        self.say(f"sources of {unit.key}: {found[-1].left.max():.3f} left after {found[-1].step} steps at rate {rate:g}")
        return {name: x.detach().clone() for name, x in ensemble.parameters.items()}


def best_rate(sheet: Sheet, N: int, T: int) -> float:
    """The rate at which a standard transformer of this size needs the fewest samples, in the median; 0.003 if nobody knows."""
    rows = [row for row in sheet.rows if (row["study"], row["N"], row["T"]) == ("scaling", str(N), str(T))]
    medians = {
        rate: np.median([float(row["samples_10"]) for row in rows if row["rate"] == rate]) for rate in {row["rate"] for row in rows}
    }
    return float(min(medians, key=lambda rate: medians[rate])) if medians else 3e-3


def run_unit(unit: Unit, sources: Sources, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """The rows of one unit."""
    tasks = tasks_of(unit)
    models = models_of(unit, tasks, sources.device)
    if unit.overlap is not None:
        sources.give(unit, unit.overlap, models)
    ensemble = Ensemble(
        models * len(unit.rates),
        [rate for rate in unit.rates for _ in tasks],
        loss=unit.loss,
        optimiser=unit.optimiser,
        frozen=VALUES if unit.overlap is not None and unit.keep == "frozen" else (),
    )
    found = learn(ensemble, tasks, 1, unit.steps, unit.contexts, DONE, say)
    samples = np.array([look.step * BATCH for look in found])
    seconds = np.array([look.seconds for look in found])
    name = torch.cuda.get_device_name() if sources.device == "cuda" else platform.machine()
    rows = []
    for r, rate in enumerate(unit.rates):
        for i in range(unit.tasks):
            kl = samples_until(samples, [look.left[r, i] for look in found])
            square = samples_until(samples, [look.square[r, i] for look in found])
            rows.append(
                {
                    **unit.key,
                    "replicate": i,
                    "rate": rate,
                    **kl,
                    **{f"square_{key.removeprefix('samples_')}": x for key, x in square.items()},
                    "left": found[-1].left[r, i],
                    "samples": int(samples[-1]),
                    "seconds": float(np.interp(kl["samples_10"], samples, seconds)),
                    "device": name,
                }
            )
    return rows


def run(studies: list[str], seconds: float, device: str, sheet: Sheet, say: Callable[[str], None]) -> None:
    """Run the units that are not in the table, until the time is over."""
    until = time.monotonic() + seconds
    sources = Sources(sheet, device, say)
    for unit in units():
        if (studies and unit.study not in studies) or sheet.has(**unit.key):
            continue
        if time.monotonic() > until:
            say("out of time; the same command goes on")
            return
        began = time.monotonic()
        rows = run_unit(unit, sources, lambda text: None)
        sheet.add(rows)
        say(f"{time.monotonic() - began:.1f} s {told(unit, rows)}")
        gc.collect()
        torch.cuda.empty_cache()


def told(unit: Unit, rows: list[dict[str, Any]]) -> str:
    """A line about a unit: samples until a tenth is left, for each task, at the best rate."""
    reached = {rate: sorted(round(row["samples_10"], -3) for row in rows if row["rate"] == rate) for rate in unit.rates}
    best = min(unit.rates, key=lambda rate: np.median(reached[rate]))
    steps = rows[0]["samples"] // BATCH
    return f"{' '.join(map(str, unit.key.values()))}, {steps} steps; samples to 10 % at rate {best:g}: {reached[best]}"


def quick(sheet: Sheet) -> None:
    """Two small units on the CPU: from scratch, and with the values kept."""
    torch.set_num_threads(1)  # several would wait for each other at this size
    sources = Sources(sheet, "cpu", print)
    for unit in (Unit("scaling", 3, 32), Unit("transfer", 3, 32, "values, overlap 1", overlap=1.0, keep="values")):
        unit = replace(unit, steps=150, rates=(3e-3,), model={"width": 32}, tasks=4, contexts=500)
        if not sheet.has(**unit.key):
            sheet.add(run_unit(unit, sources, print))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("list", "run", "quick", "ship"))
    parser.add_argument("studies", nargs="*", help="those to run; all unless given")
    parser.add_argument("--seconds", type=float, default=1e9, help="no unit is begun after so many")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "results" / "transformers")
    parser.add_argument("--machine", default="", help="for ship: where the tables were made, in words")
    chosen = parser.parse_args()
    sheet = Sheet(chosen.out / "transformers.csv")
    if chosen.action == "list":
        for unit in units():
            print("done" if sheet.has(**unit.key) else "    ", *unit.key.values())
    elif chosen.action == "run":
        torch.backends.cuda.matmul.allow_tf32 = True
        run(chosen.studies, chosen.seconds, chosen.device, sheet, lambda text: print(text, flush=True))
    elif chosen.action == "quick":
        quick(sheet)
    else:
        ship(chosen.out, Path(__file__).parent.parent / "docs" / "tables", chosen.machine)


if __name__ == "__main__":
    main()
