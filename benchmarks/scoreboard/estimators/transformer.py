"""A small transformer of letters, trained with PyTorch: minutes on a GPU, too long on a processor.

    SCOREBOARD_GPU=1 python benchmarks/scoreboard texts --estimators "transformer, seed 0"

It is listed only with SCOREBOARD_GPU, so that `make scoreboard` needs no GPU.
"""

import math
import os
from typing import Any

import numpy as np

from frame import Data

CONTEXT = 256
WIDTH = 256
LAYERS = 4
STEPS = int(os.environ.get("SCOREBOARD_STEPS", "3000"))
BATCH = 64


class Transformer:
    """Four layers of width 256 that see 256 letters.

    3,000 steps of AdamW at most, the best on a tenth of the letters is kept.
    """

    version, told = "PyTorch", False
    answers = frozenset({"bits"})
    seed = 0

    def fit(self, data: Data) -> None:
        """Train on the first nine tenths, and keep the weights that predict the last tenth best."""
        import torch

        torch.manual_seed(self.seed)
        torch.set_float32_matmul_precision("high")
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        (x,) = data.train
        cut = len(x) * 9 // 10
        letters = torch.as_tensor(x[:cut], device=self.device)
        self.model = network(data.symbols).to(self.device)
        optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.1)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, 1e-3, total_steps=STEPS, pct_start=0.05
        )
        span = torch.arange(CONTEXT + 1, device=self.device)
        best, weights = math.inf, self.model.state_dict()
        for step in range(1, STEPS + 1):
            starts = torch.randint(len(letters) - CONTEXT - 1, (BATCH, 1), device=self.device)
            rows = letters[starts + span]
            logits = self.model(rows[:, :-1])
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            if step % 250 == 0 or step == STEPS:
                held = -float(self.score([x[cut:]]).mean())
                if held < best:
                    best, weights = (
                        held,
                        {name: value.clone() for name, value in self.model.state_dict().items()},
                    )
        self.model.load_state_dict(weights)

    def score(self, test: Any) -> np.ndarray:
        """Log-probabilities.

        Each symbol is predicted from at least 128 before it, where there are so many.
        """
        import torch

        self.model.eval()
        half = CONTEXT // 2
        scores = []
        with torch.no_grad():
            for x in test:
                letters = torch.as_tensor(np.asarray(x), device=self.device)
                for start in range(0, max(len(x) - 1, 1), half):
                    first = max(0, start - half)
                    window = letters[first : start + half + 1]
                    logs = self.model(window[None, :-1])[0].log_softmax(-1)
                    picked = logs.gather(1, window[1:, None])[:, 0]
                    scores.append(picked[start - first :].double().cpu().numpy())
        self.model.train()
        return np.concatenate(scores)


def network(symbols: int) -> Any:
    """A transformer with learned positions, whose attention looks back only."""
    from torch import arange, nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.letters = nn.Embedding(symbols, WIDTH)
            self.places = nn.Embedding(CONTEXT, WIDTH)
            layer = nn.TransformerEncoderLayer(
                WIDTH,
                4,
                4 * WIDTH,
                dropout=0.2,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            self.layers = nn.TransformerEncoder(
                layer, LAYERS, norm=nn.LayerNorm(WIDTH), enable_nested_tensor=False
            )
            self.out = nn.Linear(WIDTH, symbols)

        def forward(self, rows: Any) -> Any:
            length = rows.shape[1]
            mask = nn.Transformer.generate_square_subsequent_mask(length, device=rows.device)
            h = self.letters(rows) + self.places(arange(length, device=rows.device))
            return self.out(self.layers(h, mask=mask, is_causal=True))

    return Network()


SEEDS = [
    type(f"Seed{seed}", (Transformer,), {"name": f"transformer, seed {seed}", "seed": seed})
    for seed in range(3)
]
ESTIMATORS = tuple(SEEDS) if os.environ.get("SCOREBOARD_GPU") else ()
