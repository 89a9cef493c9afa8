"""A causal decoder trained on one long sequence that a task generates: what it needs to predict held-out tokens, and its lags.

    python benchmarks/transformers_sequences.py [--device cuda] [--steps 3000 1200] [--lengths …] [--rates …] [--out DIR]

Two decoders: one is trained to predict every token of a window of 64 from those before it, as language models are; the other one
the token after a window of T + 1 tokens, so that a position is a lag. Of the n tokens that a decoder may see, the last tenth
chooses learning rate and step. Lengths, tasks and rates are trained side by side. ``probe`` then looks for the lags of those that
saw the longest sequence.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import RATES, looks
from transformers_ensemble import Ensemble
from transformers_table import LAG_TASK, LENGTHS, TASKS, WINDOW, Sheet, generated, held_out

from scb.jobs.job import random_task
from scb.torch import Transformer, probe

BATCH = 64  # windows
CHECKED = 1_000  # windows of the part that chooses step and rate


class EveryPosition(nn.Module):
    """A decoder whose output are the logits after every token, (B, L, N)."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(B, L) → (B, L, N)."""
        return self.model(tokens, last=False)


class Data:
    """The sequences of all tasks on a device, and random windows of the part that each model may see."""

    def __init__(self, directory: Path, device: str) -> None:
        N, T = LAG_TASK
        self.tasks = [random_task(N, T, 2, i) for i in range(TASKS)]
        kept = directory / "sequences.npz"
        if not kept.exists():
            pairs = [held_out(task, i) for i, task in enumerate(self.tasks)]
            sequences = np.stack([generated(task, i) for i, task in enumerate(self.tasks)])
            np.savez_compressed(kept, sequences=sequences, windows=[x for x, _ in pairs], distributions=[y for _, y in pairs])
        with np.load(kept) as file:
            self.sequences = torch.tensor(file["sequences"].astype(np.int64), device=device)  # (tasks, longest)
            self.windows = torch.tensor(file["windows"].astype(np.int64), device=device)  # (tasks, looks, WINDOW)
            self.distributions = torch.tensor(file["distributions"], device=device)  # (tasks, looks, N)
        self.device = device

    def window(self, starts: torch.Tensor, task: torch.Tensor, L: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(G, B, L) tokens from these starts (G, B) on, and (G, B, L), the tokens one further on."""
        at = starts[..., None] + torch.arange(L + 1, device=self.device)
        tokens = self.sequences[task[:, None, None], at]
        return tokens[..., :-1], tokens[..., 1:]


def train(
    data: Data, every: bool, steps: int, lengths: Sequence[int], rates: Sequence[float], tasks: int = TASKS
) -> tuple[list[dict[str, Any]], dict[int, dict[str, torch.Tensor]]]:
    """Rows of one kind of decoder, and the parameters of the best ones on the longest sequence, by task."""
    N, T = LAG_TASK
    L = WINDOW if every else T + 1
    device = data.device
    grid = [(length, i, rate) for length in lengths for rate in rates for i in range(tasks)]
    models = []
    for _, i, _ in grid:
        torch.manual_seed(i)
        model = Transformer(N, L - 1)
        models.append((EveryPosition(model) if every else model).to(device))
    ensemble = Ensemble(models, [rate for _, _, rate in grid])
    task = torch.tensor([i for _, i, _ in grid], device=device)
    seen = torch.tensor([length * 9 // 10 for length, _, _ in grid], device=device)
    length = torch.tensor([length for length, _, _ in grid], device=device)
    spread = torch.linspace(0, 1, CHECKED, device=device, dtype=torch.float64)
    checked = (seen[:, None] + spread * (length - seen - L - 1)[:, None]).long()  # where windows for choosing begin
    generator = torch.Generator(device).manual_seed(3)
    best = torch.full((len(grid),), torch.inf, device=device, dtype=torch.float64)
    nats = best.clone()
    at = torch.zeros(len(grid), device=device)
    kept = {name: x.detach().clone() for name, x in ensemble.parameters.items()}
    began = time.perf_counter()
    when = looks(steps)
    for step in range(1, steps + 1):
        u = torch.rand((len(grid), BATCH), device=device, dtype=torch.float64, generator=generator)
        tokens, following = data.window((u * (seen - L)[:, None]).long(), task, L)
        ensemble.step(tokens, following if every else following[..., -1])
        if step in when:
            valid, found = judge(ensemble, data, checked, task, L, every)
            better = valid < best
            best = best.where(~better, valid)
            nats = nats.where(~better, found)
            at = at.where(~better, torch.tensor(float(step), device=device))
            for name, x in ensemble.parameters.items():
                kept[name] = torch.where(better.view(-1, *[1] * (x.ndim - 1)), x.detach(), kept[name])
    seconds = time.perf_counter() - began
    distributions = data.distributions[:, :CHECKED]
    mu = torch.tensor(np.stack([one.mu for one in data.tasks]), device=device)
    trivial = divergence(distributions, mu[:, None].expand_as(distributions))
    rows = [
        {
            "model": "decoder, every position" if every else "decoder, last position",
            "length": length,
            "replicate": i,
            "rate": rate,
            "step": int(at[g]),
            "valid": float(best[g]),
            "nats": float(nats[g]),
            "trivial": float(trivial[i]),
            "lags": np.nan,
            "mass": np.nan,
            "seconds": seconds,
        }
        for g, (length, i, rate) in enumerate(grid)
    ]
    longest = {}
    for i in range(tasks):
        mine = [g for g, row in enumerate(rows) if row["length"] == max(lengths) and row["replicate"] == i]
        g = min(mine, key=lambda g: rows[g]["valid"])
        longest[g] = {name.removeprefix("model."): x[g].cpu() for name, x in kept.items()}
    return rows, longest


@torch.no_grad()
def judge(
    ensemble: Ensemble, data: Data, checked: torch.Tensor, task: torch.Tensor, L: int, every: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """(G,) nats a token on the part that chooses, and (G,) excess nats on held-out windows; both after whole windows only."""
    losses = []
    for part in checked.split(250, dim=1):
        tokens, following = data.window(part, task, L)
        logits = ensemble.logits(tokens)
        logits = (logits[:, :, -1] if every else logits).double()
        losses.append(-logits.log_softmax(dim=2).gather(2, following[..., -1:])[..., 0])
    distributions = []
    for part in data.windows[task, :CHECKED].split(250, dim=1):
        logits = ensemble.logits(part[..., -L:])
        distributions.append((logits[:, :, -1] if every else logits).double().softmax(dim=2))
    return torch.cat(losses, dim=1).mean(dim=1), divergence(data.distributions[task, :CHECKED], torch.cat(distributions, dim=1))


def divergence(truth: torch.Tensor, distributions: torch.Tensor) -> torch.Tensor:
    """(G,): mean of KL(truth ‖ distribution), in nats."""
    return (truth * (truth.clamp(min=1e-300).log() - distributions.clamp(min=1e-12).log())).sum(dim=2).mean(dim=1)


def probed(rows: list[dict[str, Any]], longest: dict[int, dict[str, torch.Tensor]], data: Data, every: bool) -> None:
    """Ask the decoders of the longest sequence for their lags: the share of true ones that stand out, and the mass on them."""
    N, T = LAG_TASK
    for g, state in longest.items():
        model = Transformer(N, (WINDOW if every else T + 1) - 1)
        model.load_state_dict(state)
        task = data.tasks[rows[g]["replicate"]]
        found = probe(model, task, 10_000)
        hits = [np.isin(task.positions[:, k], found.support[k]) for k in range(N)]
        rows[g]["lags"] = float(np.mean(hits))
        rows[g]["mass"] = found.mass


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--steps", type=int, nargs=2, default=(3_000, 1_200), help="of the two decoders, last position first; 0 leaves one out"
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "results" / "transformers")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    sheet = Sheet(chosen.out / "decoders.csv")
    data = Data(chosen.out, chosen.device)
    for every, steps in zip((False, True), chosen.steps, strict=True):
        if not steps:
            continue
        rows, longest = train(data, every, steps, chosen.lengths, chosen.rates, chosen.tasks)
        probed(rows, longest, data, every)
        sheet.add(rows)
        print(rows[0]["model"], f"{rows[0]['seconds']:.1f} s", flush=True)


if __name__ == "__main__":
    main()
