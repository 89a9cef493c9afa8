"""A real transformer with H heads on a task with H heads: in which order does it learn, and can its heads be read?

    python benchmarks/transformers_heads.py benchmarks/heads --device cuda --seconds 240

Rows go to FOLDER/transformers.jsonl, one for each task and design. Nothing of the model but its predictions is used for the
function: given the last token k, the covariance of predictions and token t is the row (k, t) of a matrix F, as of our heads. What a
head does is what is left of the predictions when each other head puts out its mean given k.

Criteria, fixed before the runs; N = 4, T = 64, two heads, 10 tasks with σ₂ at most 0.7 σ₁ for each design:

- order: half of σ₁ is learned before half of σ₂ in 9 of 10;
- reading: the worst overlap of a head with the true one is above 0.95 in at least 8 of 10 after the rotation, and in at most 5 of
  10 before it.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import scb
from scb.geometry.heads import left_factor, right_factor
from scb.torch import Transformer

N, T, H = 4, 64, 2
DESIGNS: dict[str, dict[str, Any]] = {"transformer": {}, "no norm, no MLP": {"norm": False, "mlp": 0}}
STEPS, BATCH, CONTEXTS = 1500, 512, 40_000
LOOKS = np.unique(np.geomspace(20, STEPS, 100).astype(int))


def chosen_tasks(count: int) -> list[scb.Task]:
    """Tasks whose second singular value lies between a fifth and 0.7 of the first."""
    found: list[scb.Task] = []
    seed = 91_000
    while len(found) < count:
        task = scb.Task.random(N, T, 2, seed=seed, heads=H)
        seed += 1
        if 0.2 <= task.singular_values[1] / task.singular_values[0] <= 0.7:
            found.append(task)
    return found


class Sampler:
    """Fresh tokens (B, T + 1) and labels (B,) of a task, on a device."""

    def __init__(self, task: scb.Task, device: str) -> None:
        arrays = (task.mu, task.P, task.weights.T, task.positions.T, task.owners.T)
        tensors = (torch.as_tensor(np.array(x), device=device) for x in arrays)
        self.mu, self.P, self.weights, self.positions, self.owners = tensors

    def tokens(self, n: int) -> torch.Tensor:
        """Independent tokens."""
        return torch.multinomial(self.mu, n * (T + 1), replacement=True).view(n, T + 1)

    def __call__(self, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens and labels."""
        tokens = self.tokens(n)
        last = tokens[:, -1]
        slot = torch.multinomial(self.weights[last], 1)
        source = tokens.gather(1, self.positions[last].gather(1, slot))[:, 0]
        owner = self.owners[last].gather(1, slot)[:, 0]
        return tokens, torch.multinomial(self.P[owner, :, source], 1)[:, 0]


class OnlyHead:
    """A hook that puts the mean given the last token in the place of what other heads put out."""

    def __init__(self, head: int, last: torch.Tensor) -> None:
        self.head, self.last = head, last

    def __call__(self, module: Any, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """What is put out instead."""
        x = inputs[0]
        by_head = x.view(len(x), -1, H, x.shape[-1] // H).clone()
        for k in range(N):
            mine = self.last == k
            for h in range(H):
                if h != self.head:
                    by_head[mine, :, h] = by_head[mine, :, h].mean(dim=0)
        return by_head.view(x.shape)


def function_rows(model: Transformer, tokens: torch.Tensor, mu: np.ndarray, head: int | None = None) -> np.ndarray:
    """(T·N, N²): covariances of predictions and tokens, of all heads or of one, in the μ-geometry."""
    handle = None
    if head is not None:
        handle = model.blocks[0].out.register_forward_pre_hook(OnlyHead(head, tokens[:, -1]))
    with torch.no_grad():
        F = model(tokens).double().softmax(dim=1)
    if handle is not None:
        handle.remove()
    rows = np.zeros((T, N, N, N))  # position, last token, label, token
    one_hot = torch.nn.functional.one_hot(tokens[:, :-1], N).double()
    for k in range(N):
        mine = tokens[:, -1] == k
        G = F[mine] - F[mine].mean(dim=0)
        C = torch.einsum("bn,btm->tnm", G, one_hot[mine]) / mine.sum()
        rows[:, k] = C.cpu().numpy()
    # The covariance is Σ_h q_ht P̃_h diag(μ); a column has √μ, and so has a row
    return (rows / np.sqrt(mu) * np.sqrt(mu)[:, None, None]).reshape(T * N, N * N)


def rank_one(rows: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """V (N, N) and A (T, N) of one head, from its function."""
    U, values, W = np.linalg.svd(rows, full_matrices=False)
    sign = np.sign(np.square(U[:, 0]) @ np.sign(U[:, 0])) or 1.0
    A = sign * values[0] * U[:, 0].reshape(T, N) / np.sqrt(mu)
    return mu[:, None] + sign * W[0].reshape(N, N) / np.sqrt(mu), A


def half_time(shares: np.ndarray) -> float:
    """The step at which a share first comes to a half, between two looks; infinite if it never does."""
    there = np.flatnonzero(shares >= 0.5)
    if not there.size or there[0] == 0:
        return float(LOOKS[0]) if there.size else np.inf
    at = slice(there[0] - 1, there[0] + 1)
    return float(np.interp(0.5, shares[at], LOOKS[at]))


def studied(task: scb.Task, design: str, number: int, device: str) -> dict[str, Any]:
    """Train, and look at function and heads."""
    torch.manual_seed(number)
    begin = time.perf_counter()
    model = Transformer(N, T, width=64, heads=H, **DESIGNS[design]).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    sampler = Sampler(task, device)
    held_out = sampler.tokens(CONTEXTS)
    mu, sigma = task.mu, task.singular_values
    U, _, W = np.linalg.svd(left_factor(task.Q, mu) @ right_factor(task.P, mu).T, full_matrices=False)
    course = []
    for step in range(1, STEPS + 1):
        tokens, labels = sampler(BATCH)
        loss = torch.nn.functional.cross_entropy(model(tokens), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step in LOOKS:
            rows = function_rows(model, held_out, mu)
            course.append([float(U[:, i] @ rows @ W[i] / sigma[i]) for i in range(H)])
    shares = np.array(course)
    halves = [half_time(shares[:, i]) for i in range(H)]
    pairs = [rank_one(function_rows(model, held_out, mu, head), mu) for head in range(H)]
    V, A = (np.stack(parts) for parts in zip(*pairs, strict=True))
    before = scb.metrics.match_heads(V, A, task).overlap.min()
    after = scb.metrics.match_heads(*scb.rotate_heads(V, A, mu), task).overlap.min()
    return {
        "design": design,
        "number": number,
        "sigma": sigma.tolist(),
        "halves": halves,
        "in_order": halves[0] < halves[1],
        "learned": shares[-1].tolist(),
        "before": float(before),
        "after": float(after),
        "course": np.round(shares, 4).tolist(),
        "seconds": time.perf_counter() - begin,
    }


def main() -> None:
    """Make the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--tasks", type=int, default=10)
    args = parser.parse_args()
    end = time.time() + args.seconds
    path = args.folder / "transformers.jsonl"
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(row["design"], row["number"]) for row in done}
    for number, task in enumerate(chosen_tasks(args.tasks)):
        for design in DESIGNS:
            if (design, number) not in known and time.time() < end:
                row = studied(task, design, number, args.device)
                print({name: value for name, value in row.items() if name != "course"}, flush=True)
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
