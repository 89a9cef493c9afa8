"""A training run: where it stands, its history, and its file (arrays, with the facts as JSON in the header)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from scb import metrics
from scb.files import write_atomically
from scb.geometry import Array
from scb.model import LinearTransformer, SoftmaxTransformer
from scb.provenance import versions

FILE = "run.safetensors"
COLUMNS = ("step", "stage", "samples", "batch_loss", *metrics.COLUMNS)


@dataclass(frozen=True)
class Run:
    """Where training stands: parameters, history, and how to go on.

    Attributes
    ----------
    V, parameters : (N, N) and (T, N): what is trained; ``parameters`` are the attention A, or its logits for softmax
    history : column name → array, one entry an evaluation
    stage : index of the current one
    diverged : the step at which V or A reached 1e6 or became NaN (V and A are then those before it), or None
    """

    V: Array
    parameters: Array
    recipe: str
    softmax: bool
    seed: int
    history: dict[str, Array] = field(default_factory=lambda: {name: np.empty(0) for name in COLUMNS})
    step: int = 0
    stage: int = 0
    stage_step: int = 0
    samples: int = 0
    diverged: int | None = None
    finished: bool = False

    @property
    def A(self) -> Array:
        """The attention, (T, N)."""
        return self.model.attention

    @property
    def model(self) -> LinearTransformer | SoftmaxTransformer:
        """The transformer that has been learned."""
        return (SoftmaxTransformer if self.softmax else LinearTransformer)(self.V, self.parameters)

    def save(self, directory: str | Path) -> None:
        """Write the run to ``directory`` in one atomic step (safetensors)."""
        save_run(self, directory)

    @staticmethod
    def load(directory: str | Path) -> Run:
        """Read a run that ``save`` wrote, finished or not."""
        return Run(**load_run(directory))


def save_run(run: Any, directory: str | Path) -> None:
    """Write the fields of a ``Run``. A kill at any moment leaves the old file or the new one, never half of one."""
    from safetensors.numpy import save

    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    facts = {f.name: getattr(run, f.name) for f in fields(run)}
    arrays = {name: facts.pop(name) for name in ("V", "parameters")}
    arrays |= {f"history.{name}": column for name, column in facts.pop("history").items()}
    # Transposed, so that column-contiguous arrays are written as they lie in memory.
    data = {name: np.ascontiguousarray(array.T) for name, array in arrays.items()}
    write_atomically(directory / FILE, save(data, {"run": json.dumps(facts), "versions": json.dumps(versions())}))


def load_run(directory: str | Path) -> dict[str, Any]:
    """The fields of a ``Run`` that ``save_run`` wrote."""
    from safetensors import safe_open

    path = Path(directory) / FILE
    if not path.exists():
        raise FileNotFoundError(f"{directory} holds no run: there is no {FILE} in it")
    with safe_open(path, framework="numpy") as file:
        facts = json.loads(file.metadata()["run"])
        arrays = {name: file.get_tensor(name).T for name in file.keys()}  # noqa: SIM118
    history = {name.removeprefix("history."): array for name, array in arrays.items() if "history." in name}
    parameters = np.asfortranarray(arrays["parameters"])
    return facts | {"V": np.ascontiguousarray(arrays["V"]), "parameters": parameters, "history": history}
