"""A training run: where it stands, its history, and its file (arrays, with the facts as JSON in the header)."""

import json
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from scb import metrics
from scb.files import write_atomically
from scb.geometry import Array
from scb.model import LinearTransformer, SoftmaxTransformer, Transformer
from scb.provenance import versions

FILE = "run.safetensors"
COLUMNS = ("step", "stage", "samples", "batch_loss", *metrics.COLUMNS)


@dataclass(frozen=True)
class Run:
    """Where training stands: parameters, history, and how to go on.

    Attributes
    ----------
    V, parameters : (N, N) and (T, N): what is trained; ``parameters`` are the attention A, or its logits for softmax
    recipe : its name
    transformer : the kind of transformer whose parameters these are
    history : column name → array, one entry an evaluation
    stage : index of the current one
    verdict : what held-out samples say of it at the end ("learned", or what is wrong), if the recipe asks for that
    diverged : the step at which V or A reached 1e6 or became NaN (V and A are then those before it), or None
    """

    V: Array
    parameters: Array
    recipe: str
    transformer: type[Transformer]
    seed: int
    history: dict[str, Array] = field(default_factory=lambda: {name: np.empty(0) for name in COLUMNS})
    step: int = 0
    stage: int = 0
    stage_step: int = 0
    samples: int = 0
    diverged: int | None = None
    finished: bool = False
    verdict: str | None = None

    @property
    def A(self) -> Array:
        """The attention, (T, N)."""
        return self.model.attention

    @property
    def model(self) -> Transformer:
        """The transformer that has been learned."""
        return self.transformer(self.V, self.parameters)

    def save(self, directory: str | Path) -> None:
        """Write the run to ``directory`` (safetensors); a kill leaves the old file or the new one, never half of one."""
        from safetensors.numpy import save

        facts = {f.name: getattr(self, f.name) for f in fields(self)}
        facts["softmax"] = facts.pop("transformer") is SoftmaxTransformer
        arrays = {name: facts.pop(name) for name in ("V", "parameters")}
        arrays |= {f"history.{name}": column for name, column in facts.pop("history").items()}
        # Transposed, so that column-contiguous arrays are written as they lie in memory.
        data = {name: np.ascontiguousarray(array.T) for name, array in arrays.items()}
        header = {"run": json.dumps(facts), "versions": json.dumps(versions())}
        Path(directory).mkdir(parents=True, exist_ok=True)
        write_atomically(Path(directory) / FILE, save(data, header))

    @staticmethod
    def load(directory: str | Path) -> "Run":
        """Read a run that ``save`` wrote, finished or not."""
        from safetensors import safe_open

        path = Path(directory) / FILE
        if not path.exists():
            raise FileNotFoundError(f"{directory} holds no run: there is no {FILE} in it")
        with safe_open(path, framework="numpy") as file:
            facts = json.loads(file.metadata()["run"])
            arrays = {name: file.get_tensor(name).T for name in file.keys()}  # noqa: SIM118
        softmax = facts.pop("softmax")
        return Run(
            V=np.ascontiguousarray(arrays.pop("V")),
            parameters=np.asfortranarray(arrays.pop("parameters")),
            transformer=SoftmaxTransformer if softmax else LinearTransformer,
            history={name.removeprefix("history."): column for name, column in arrays.items()},
            **facts,
        )
