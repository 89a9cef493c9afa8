"""Speed of fresh samples: ``scb.torch.SampleStream`` beside samplers that one would write in PyTorch, in int64 tokens per second.

    python benchmarks/transformers_throughput.py [--device cpu|cuda] [--N 3 10] [--T 512] [--batch 256]

Each is timed several times in turns; the best of each counts. Rows are added to benchmarks/streams/throughput.jsonl, from where the
documentation takes its figures; those of the same device, N, T and batch are replaced.
"""

import argparse
import itertools
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from study import keep

from scb.jobs.job import random_task
from scb.task import Task
from scb.torch import SampleStream


def by_multinomial(task: Task, B: int, device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Everything by ``torch.multinomial``, in single precision: the shortest sampler that one can write."""
    mu = torch.tensor(task.mu, dtype=torch.float32, device=device)
    weights = torch.tensor(task.weights.T.copy(), dtype=torch.float32, device=device)
    positions = torch.tensor(task.positions.T.copy().astype("int64"), device=device)
    P = torch.tensor(task.P.T.copy(), dtype=torch.float32, device=device)
    while True:
        tokens = torch.multinomial(mu, B * (task.T + 1), replacement=True).view(B, -1)
        last = tokens[:, -1]
        slot = torch.multinomial(weights[last], 1)
        source = tokens.gather(1, positions[last].gather(1, slot))[:, 0]
        yield tokens, torch.multinomial(P[source], 1)[:, 0]


def by_inversion(task: Task, B: int, device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Uniform numbers in single precision, looked up in cumulative sums: what one writes after a look at the clock."""
    mu = torch.tensor(task.mu, dtype=torch.float32, device=device).cumsum(0)[:-1]
    weights = torch.tensor(task.weights.T.copy(), dtype=torch.float32, device=device).cumsum(1)[:, :-1]
    positions = torch.tensor(task.positions.T.copy().astype("int64"), device=device)
    P = torch.tensor(task.P.T.copy(), dtype=torch.float32, device=device).cumsum(1)[:, :-1]
    while True:
        tokens = torch.bucketize(torch.rand(B, task.T + 1, device=device), mu, right=True)
        last = tokens[:, -1]
        slot = (torch.rand(B, 1, device=device) >= weights[last]).sum(dim=1, keepdim=True)
        source = tokens.gather(1, positions[last].gather(1, slot))[:, 0]
        yield tokens, (torch.rand(B, 1, device=device) >= P[source]).sum(dim=1)


KEPT = Path(__file__).parent / "streams" / "throughput.jsonl"
SAMPLERS: dict[str, Callable[[Task, int, str], Iterator[tuple[torch.Tensor, torch.Tensor]]]] = {
    "scb.torch.Stream": lambda task, B, device: SampleStream(task, B, seed=1, device=device),
    "torch.multinomial": by_multinomial,
    "torch.rand and torch.bucketize": by_inversion,
}


def tokens_per_second(batches: Iterator[tuple[torch.Tensor, torch.Tensor]], device: str, seconds: float) -> float:
    """Of this sampler now, over about so many seconds."""
    count = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(10):
            tokens, _ = next(batches)
            count += tokens.numel()
        if device == "cuda":
            torch.cuda.synchronize()
    return count / (time.perf_counter() - began)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--N", type=int, nargs="+", default=[3, 10])
    parser.add_argument("--T", type=int, default=512)
    parser.add_argument("--batch", type=int, nargs="+", default=[256])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--out", type=Path, default=KEPT)
    chosen = parser.parse_args()
    machine = (
        torch.cuda.get_device_name() if chosen.device == "cuda" else f"{platform.machine()}, {torch.get_num_threads()} threads"
    )
    for N, B in itertools.product(chosen.N, chosen.batch):
        task = random_task(N, chosen.T, 2, 0)
        samplers = {name: make(task, B, chosen.device) for name, make in SAMPLERS.items()}
        best = dict.fromkeys(samplers, 0.0)
        for turn in range(chosen.turns + 1):
            for name, sampler in samplers.items():
                found = tokens_per_second(sampler, chosen.device, chosen.seconds)
                best[name] = max(best[name], found) if turn else 0.0  # the first turn warms up
        ours = best["scb.torch.Stream"]
        settings = {"device": chosen.device, "machine": machine, "torch": torch.__version__, "N": N, "T": chosen.T, "B": B}
        what = {"what": f"{chosen.device}, N = {N}, T = {chosen.T}, B = {B}"}
        rows = [{"sampler": name, "billions": round(x / 1e9, 4), "times": round(ours / x, 2)} for name, x in best.items()]
        keep(chosen.out, what["what"], [what | settings | row for row in rows])
        for name, found in best.items():
            print(
                f"N {N}, T {chosen.T:,}, B {B:,}: {name:28} {found / 1e9:8.3f}e9 tokens/s, {ours / found:5.1f} times",
                flush=True,
            )


if __name__ == "__main__":
    main()
