"""What the theorem and the paper could only simulate, with real gradients on a GPU; each study writes a table as it goes.

    python benchmarks/gpu_studies.py figure5 --N 100 --batch 131072 --method proximal --out DIR
    python benchmarks/gpu_studies.py sign --out DIR
    python benchmarks/gpu_studies.py plan --out DIR

Rows that a table has already are not made again, so that a study can be stopped and gone on with.
"""

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np

from scb.geometry import Projector, trivial_V
from scb.jobs.job import random_task
from scb.paper.experiments.projector import SignJob, same_chain
from scb.paper.experiments.simulation import GaussianJob
from scb.task import Task
from scb.theory.planner import plan as make_plan
from scb.training.loop import train
from scb.training.recipes import paper
from scb.training.recipes.algorithm1 import Knowledge
from scb.training.roundings import ThresholdNormalize, ThresholdProject
from scb.training.run import Run
from scb.training.simulation import simulate
from scb.training.stages import Recipe, UniformAttention

NAMES = ("step", "stage", "samples", "loss", "alpha_V", "alpha_A", "delta_V", "delta_A", "dist_V", "dist_A")


class Rows:
    """A CSV file to which rows are added."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.rows: list[dict[str, str]] = []
        if path.exists():
            with path.open() as file:
                self.rows = list(csv.DictReader(file))

    def has(self, **facts: Any) -> bool:
        """Whether there is a row with these facts."""
        return any(all(row[name] == str(value) for name, value in facts.items()) for row in self.rows)

    def add(self, **row: Any) -> None:
        """Write a row, at once."""
        new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)
        self.rows.append({name: str(value) for name, value in row.items()})


def figure5(N: int, batch: int, method: str, every: int, out: Path) -> None:
    """One run of Figure 5 with real gradients, and five with simulated ones, at the same settings."""
    job = GaussianJob(N=N, method="SGD" if method == "SGD" else "proximal", batch_size=batch)
    task = random_task(N, job.T, 2, 0)
    table = Rows(out / "figure5.csv")
    facts = {"N": N, "T": job.T, "method": method, "batch_size": batch}
    begin = time.perf_counter()

    def note(run: Run) -> None:
        last = {name: run.history[name][-1] for name in NAMES}
        table.add(**facts, gradients="real", seed=0, seconds=round(time.perf_counter() - begin, 2), **last)

    train(task, job.recipe(task), seed=0, device="cuda", every=every, callbacks=[note])
    print(facts, f"{time.perf_counter() - begin:.0f} s", table.rows[-1], flush=True)
    for seed in range(5):
        with np.errstate(over="ignore", invalid="ignore"):
            history = simulate(task, job.recipe(task), seed, every=every)
        for i in range(len(history["step"])):
            values = {name: history[name][i] for name in NAMES}
            table.add(**facts, gradients="simulated", seed=seed, seconds=0, **values)


LADDER: dict[Projector, dict[int, tuple[int, ...]]] = {
    "mu": {500: (8, 16, 32), 5000: (64, 128, 256), 50_000: (512, 1024, 2048), 500_000: (8192, 16_384)},
    "euclidean": {500: (24, 48, 96), 5000: (1536, 3072, 6144), 50_000: (196_608, 393_216)},
}
"""Batch sizes on both sides of the least that finds the sign in nine runs of ten; T = 500,000 would ask for 3·10⁷ a step."""


def sign(replicates: int, seconds: float, out: Path) -> None:
    """Stage 1 by its drift alone: whether the sign is right, for batch sizes around the least that does it."""
    table = Rows(out / "sign.csv")
    begin = time.perf_counter()
    cases: list[tuple[int, int, Projector]] = [
        (T, B, p) for p, ladder in LADDER.items() for T, batches in ladder.items() for B in batches
    ]
    cases.sort(key=lambda case: case[0] * case[1])
    for T, B, projector in cases:
        for replicate in range(replicates):
            facts = {"T": T, "batch_size": B, "projector": projector, "replicate": replicate}
            if table.has(**facts):
                continue
            if time.perf_counter() - begin > seconds:
                return
            job = SignJob(T=T, batch_size=B, projector=projector, replicate=replicate, eta=0.05)
            task = same_chain(3, T, replicate)
            recipe = paper(
                task,
                eta=(job.eta, job.eta, job.eta),
                steps=(job.steps, 0, 0),
                batch_size=B,
                resolve_sign=False,
                projector=projector,
                signal=(0.1, None),
            )
            run = train(task, recipe, job.seed, device="cuda", every=job.steps)
            alpha = float(run.history["alpha_A"][-1])
            table.add(**facts, right=alpha > 0, alpha_A=alpha, steps=run.step, samples=run.samples)
        done = [row["right"] == "True" for row in table.rows if row["T"] == str(T) and row["batch_size"] == str(B)]
        print(T, B, projector, f"{sum(done)} of {len(done)} right, {time.perf_counter() - begin:.0f} s", flush=True)


def plan(out: Path) -> None:
    """Algorithm 1 with exactly what the lemmas ask for, on the smallest task for which that can be run."""
    task = Task.random(2, 20, 1, seed=0)
    asked = make_plan(2, 20, 1, 0.1, 0.2, K_P=task.K_P, K_Q=task.K_Q)
    known = Knowledge.of(task)
    one, two, three = asked.stages
    assert three.threshold is not None
    stages = (
        known.stage("1", one.steps, one.eta, batch_size=int(one.batch_size)),
        known.stage("2", two.steps, two.eta, batch_size=int(two.batch_size), lam=two.lam, enter=(ThresholdProject(two.threshold),)),
        known.stage(
            "3", three.steps, three.eta, batch_size=int(three.batch_size), eta_A=0.0, enter=(ThresholdNormalize(three.threshold),)
        ),
    )
    print([(s.name, s.steps, f"{s.batch_size:.2e}", s.lam) for s in stages], flush=True)
    recipe = Recipe("plan", UniformAttention(trivial_V(known.mu), task.T), known.mu, stages=stages)
    table = Rows(out / "plan.csv")
    begin = time.perf_counter()

    def note(run: Run) -> None:
        last = {name: run.history[name][-1] for name in NAMES}
        table.add(**last, seconds=round(time.perf_counter() - begin, 2))
        print(table.rows[-1], flush=True)

    train(task, recipe, seed=0, device="cuda", every=5, callbacks=[note])


def main() -> None:
    """Run one study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("figure5", "sign", "plan"))
    parser.add_argument("--N", type=int, default=100)
    parser.add_argument("--batch", type=int, default=131_072)
    parser.add_argument("--method", choices=("proximal", "SGD"), default="proximal")
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--out", type=Path, default=Path("results/gpu"))
    options = parser.parse_args()
    if options.study == "figure5":
        figure5(options.N, options.batch, options.method, options.every, options.out)
    elif options.study == "sign":
        sign(options.replicates, options.seconds, options.out)
    else:
        plan(options.out)


if __name__ == "__main__":
    main()
