"""What one needs without a transformer, for the tasks of benchmarks/transformers.py: samples, and tokens of a sequence.

    python benchmarks/transformers_baselines.py samples [--out docs/tables]     # Algorithm 1, both projectors, and recover
    python benchmarks/transformers_baselines.py sequences [--out docs/tables]   # SparseContextualBigram

Everything runs on one CPU core. Rows that a table has already are not made again.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from transformers_table import LAG_TASK, LENGTHS, SHARES, TASKS, Sheet, generated, held_out, samples_until

import scb
from scb.geometry import trivial_V
from scb.jobs.job import random_task
from scb.metrics import measure
from scb.task import Task
from scb.task.sampling import sample

BATCHES = {3: (64, 256), 10: (64, 256), 50: (1024, 4096)}  # of Algorithm 1, by N; with each
ETAS = (0.05, 0.1)  # that makes four settings, as there are four learning rates elsewhere
PROJECTORS = ("mu", "euclidean")
SIZES = (*((N, T) for N in (10, 3) for T in (32, 128, 512, 2048, 8192)), (50, 32))
LARGEST = 1 << 17  # samples that recover gets at most


def excess_square(task: Task, V: np.ndarray, A: np.ndarray) -> float:
    """What is left of the excess loss of a model that always predicts μ, in the paper's loss and in closed form."""
    best = measure(task, task.P, task.Q)["loss"]
    trivial = measure(task, trivial_V(task.mu), np.full((task.T, task.N), 1 / task.T))["loss"]
    return (measure(task, V, A)["loss"] - best) / (trivial - best)


def by_algorithm(task: Task, i: int, projector: Any) -> Iterator[dict[str, Any]]:
    """A row for each setting: samples until shares of the excess loss are left."""
    best = measure(task, task.P, task.Q)["loss"]
    trivial = measure(task, trivial_V(task.mu), np.full((task.T, task.N), 1 / task.T))["loss"]
    for eta, batch_size in product(ETAS, BATCHES[task.N]):
        began = time.perf_counter()
        recipe = scb.recipes.tuned(task, eta=eta, batch_size=batch_size, projector=projector)
        history = scb.train(task, recipe, seed=i, every=5, judge=False).history
        left = (history["loss"] - best) / (trivial - best)
        yield {
            "rival": f"Algorithm 1, {projector}",
            "setting": f"eta {eta:g}, B {batch_size}",
            **samples_until(history["samples"], left),
            "left": left[-1],
            "samples": int(history["samples"][-1]),
            "seconds": time.perf_counter() - began,
        }


def by_recover(task: Task, i: int) -> Iterator[dict[str, Any]]:
    """One row: the least number of samples, in steps of √2, from which on ``recover`` leaves so little."""
    samples = []
    left = []
    began = time.perf_counter()
    n = 128.0
    while n <= LARGEST and min(left, default=1.0) > SHARES[-1]:
        fit = scb.recover(sample(task, round(n), seed=1_000 * i + len(left), compiled=True), N=task.N)
        samples.append(round(n))
        left.append(excess_square(task, fit.V, fit.A))
        n *= 2**0.5
    found = samples_until(samples, left)
    facts = {"left": left[-1], "samples": samples[-1], "seconds": time.perf_counter() - began}
    yield {"rival": "recover", "setting": "none", **found, **facts}


def run_samples(sheet: Sheet) -> None:
    """Algorithm 1 with both projectors, and recover, for all sizes."""
    for N, T in SIZES:
        for baseline in (*PROJECTORS, "recover"):
            name = "recover" if baseline == "recover" else f"Algorithm 1, {baseline}"
            if sheet.has(N=N, T=T, rival=name):
                continue
            rows = []
            for i in range(TASKS):
                task = random_task(N, T, 2, i)
                found = by_recover(task, i) if baseline == "recover" else by_algorithm(task, i, baseline)
                rows += [{"N": N, "T": T, "replicate": i, **row} for row in found]
            sheet.add(rows)
            reached = sorted(row["samples_10"] for row in rows)
            print(N, T, name, f"{sum(row['seconds'] for row in rows):.1f} s", reached[:TASKS], flush=True)


def run_sequences(sheet: Sheet) -> None:
    """SparseContextualBigram on the first tokens of the sequences that decoders are trained on."""
    N, T = LAG_TASK
    for length in LENGTHS:
        if sheet.has(length=length, model="SparseContextualBigram"):
            continue
        rows = []
        for i in range(TASKS):
            task = random_task(N, T, 2, i)
            began = time.perf_counter()
            fit = scb.SparseContextualBigram(max_lag=T + 1, context=True, background="labels").fit(generated(task, i)[:length])
            seconds = time.perf_counter() - began
            windows, truth = held_out(task, i)
            F = np.stack([fit.predict_proba(window)[-1] for window in windows[:, -(T + 1) :]])
            distributions = np.full(truth.shape, 1e-12)
            distributions[:, fit.classes_] = F
            share, mass = _lags_found(task, fit)
            rows.append(
                {
                    "model": "SparseContextualBigram",
                    "length": length,
                    "replicate": i,
                    "rate": 0.0,
                    "step": 0,
                    "valid": 0.0,
                    "nats": _divergence(truth, distributions),
                    "trivial": _divergence(truth, np.broadcast_to(task.mu, truth.shape)),
                    "lags": share,
                    "mass": mass,
                    "seconds": seconds,
                }
            )
        sheet.add(rows)
        print(length, [f"{row['nats']:.4f}" for row in rows], [f"{row['lags']:.2f}" for row in rows], flush=True)


def _lags_found(task: Task, fit: Any) -> tuple[float, float]:
    """The share of the true lags that were found, and the share of all weight that lies on true ones."""
    attention = fit.attention_.toarray()  # (contexts, max_lag)
    lag = task.T - task.positions  # (Q, N): column ℓ − 1 is the symbol ℓ steps before; position T − 1 is lag 2
    on = attention[np.arange(task.N), lag]
    return float((on > 0).mean()), float(on.sum() / max(attention.sum(), 1e-300))


def _divergence(truth: np.ndarray, distributions: np.ndarray) -> float:
    """Mean of KL(truth ‖ distribution), in nats."""
    return float((truth * (np.log(np.maximum(truth, 1e-300)) - np.log(np.maximum(distributions, 1e-12)))).sum(axis=1).mean())


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("samples", "sequences"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "results" / "transformers")
    chosen = parser.parse_args()
    if chosen.study == "samples":
        run_samples(Sheet(chosen.out / "baselines.csv"))
    else:
        run_sequences(Sheet(chosen.out / "lag-models.csv"))


if __name__ == "__main__":
    main()
