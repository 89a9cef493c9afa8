"""How a transformer learns a task: what ``probe`` sees along training, from a fresh start and with the values of another task.

    python benchmarks/transformers_stages.py [--tasks 8] [--steps 1200] [--out DIR]

One layer, N = 10, T = 128, Adam at 0.001, mini-batches of 256; on the CPU, a minute or two a run. Runs that the table has are not
made again.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import BATCH, VALUES, source_of
from transformers_table import TASKS, Sheet

from scb.jobs.job import random_task
from scb.metrics import measure
from scb.task import Task
from scb.torch import SampleStream, Transformer, probe

N, T = 10, 128
RATE = 1e-3
CONTEXTS = 4_000  # on which probe asks
STARTS = ("fresh", "values kept")
ENOUGH = 0.03  # training ends when this share of the excess loss is left


def train(model: Transformer, task: Task, seed: int, steps: int) -> Iterator[int]:
    """Adam on the cross-entropy; gives the number of steps that are done whenever it is time to look."""
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    batches = SampleStream(task, BATCH, seed=seed)
    next_look = 30.0
    for step in range(1, steps + 1):
        tokens, label = next(batches)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(tokens), label).backward()
        optimiser.step()
        if step >= next_look or step == steps:
            next_look *= 1.15
            yield step


def model_of(task: Task, i: int, start: str, steps: int) -> Transformer:
    """A fresh model, or one whose values were trained on a task with the same P and other positions."""
    torch.manual_seed(i)
    model = Transformer(N, T)
    if start == "fresh":
        return model
    source = source_of(task, 1.0, i)
    pretrained = Transformer(N, T)
    for _ in train(pretrained, source, 100 + i, steps):
        if probe(pretrained, source, CONTEXTS, seed=2).left <= ENOUGH:
            break
    model.load_state_dict(model.state_dict() | {name: x for name, x in pretrained.state_dict().items() if name.startswith(VALUES)})
    return model


def run(task: Task, i: int, start: str, steps: int) -> list[dict[str, Any]]:
    """A row for each look at one run."""
    model = model_of(task, i, start, steps)
    rows = []
    for step in train(model, task, i, steps):
        found = probe(model, task, CONTEXTS, seed=1)
        at = measure(task, found.V, found.A)
        names = ("alpha_V", "alpha_A", "delta_V", "delta_A")
        rows.append(
            {
                "start": start,
                "N": N,
                "T": T,
                "replicate": i,
                "step": step,
                "samples": step * BATCH,
                "left": found.left,
                **{name: at[name] if found.found else 0.0 for name in names},
                "signal": found.signal,
                "mass": found.mass if found.found else 0.0,
                "unexplained": found.unexplained if found.found else 1.0,
            }
        )
        if found.left <= ENOUGH:
            break
    return rows


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--steps", type=int, default=1_200)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "results" / "transformers")
    chosen = parser.parse_args()
    torch.set_num_threads(1)  # several would wait for each other at this size
    sheet = Sheet(chosen.out / "stages.csv")
    for i in range(chosen.tasks):
        for start in STARTS:
            if sheet.has(start=start, replicate=i):
                continue
            began = time.perf_counter()
            rows = run(random_task(N, T, 2, i), i, start, chosen.steps)
            sheet.add(rows)
            last = rows[-1]
            told = (
                f"left {last['left']:.3f} after {last['samples']:,} samples, mass {last['mass']:.2f}, signal {last['signal']:.2f}"
            )
            print(f"task {i}, {start}: {told}; {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
