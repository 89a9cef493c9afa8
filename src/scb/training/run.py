"""A training run: where it stands, its history, and its file (arrays, with the facts as JSON in the header)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from scb import metrics, notebook
from scb.files import make_directory, read_arrays, warn_unless, write_arrays
from scb.geometry import Array
from scb.inputs import DamagedFileError, InputError, file_path, fitted, integer, one_of
from scb.model import LinearTransformer, SoftmaxTransformer, Transformer
from scb.provenance import versions
from scb.training.reading import RunSummary, curves, frame, typed

if TYPE_CHECKING:
    from scb.drawing import Drawn

FILE = "run.safetensors"
COLUMNS = ("step", "stage", "samples", "batch_loss", *metrics.COLUMNS)


@dataclass(frozen=True, repr=False)
class Run:
    """A training run: where it stands, its parameters, its history, and how to go on.

    Attributes
    ----------
    V : (N, N) array
        The value matrix.
    parameters : (T, N) array
        What else is trained: the attention A, or its logits for softmax.
    recipe : str
        Its name.
    transformer : type
        The kind of transformer whose parameters these are.
    seed : int
        Of the run.
    history : dict of (evaluations,) arrays
        step, stage, samples, batch_loss, loss (of the population); the signals alpha_V, alpha_A and errors delta_V, delta_A; the
        distances dist_V = ‖V − P‖_μ, dist_A = ‖A − Q‖_μ and cosines sim_V, sim_A; of the last four also those after normalisation,
        as dist_A_star.
    step, stage, stage_step : int
        Steps so far, index of the current stage, and steps in it.
    samples : int
        Fresh samples so far.
    diverged : int or None
        The step at which V or A reached 1e6 or became NaN (V and A are then those before it).
    finished : bool
        Whether nothing is left to do.
    verdict : str or None
        What held-out samples say of it at the end: "learned", or what is wrong.
    remedy : dict
        Settings that would do, where the task has not been learned and the recipe knows some.
    state : dict of arrays
        What the rule of the current stage remembers, if it is one that does (momentum, for instance).
    made_by : dict of str
        Digests of what determines the run (task, recipe, seed, …), by which a resume knows whether it fits.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
    >>> run = scb.train(task, scb.recipes.tuned(task), seed=0, every=100)
    >>> run
    <Run of 'tuned': N = 3, T = 40, seed 0, step 510>
    >>> print(run.summary())
    tuned: N = 3, T = 40, seed 0; 510 steps, 42,450 samples
    stage  step  samples    α_V    α_A  ‖V−P‖  ‖A−Q‖  ‖A*−Q‖    loss
        1   120   14,400  0.276  0.233  0.503  0.532   0.019  0.3103
        2   260   31,200  0.990  0.961  0.008  0.052   0.008  0.2064
        3   510   42,450  1.008  0.999  0.012  0.008   0.008  0.2057
    verdict: learned
    >>> run.A.shape, round(run.model.loss(scb.sample(task, 10_000, seed=1)), 2)
    ((40, 3), 0.21)
    >>> run.save("my-run")
    >>> again = scb.Run.load("my-run")
    >>> again.verdict, bool((again.A == run.A).all())
    ('learned', True)
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
    remedy: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Array] = field(default_factory=dict)
    made_by: dict[str, str] = field(default_factory=dict)

    @property
    def A(self) -> Array:
        """The attention, (T, N)."""
        return self.model.attention

    @property
    def model(self) -> Transformer:
        """The transformer that has been learned."""
        return self.transformer(self.V, self.parameters)

    def summary(self) -> RunSummary:
        """What became of it: a table when printed, with the last row of each stage and the verdict.

        Returns
        -------
        RunSummary
            A text, HTML in a notebook, and ``columns`` and ``to_pandas()`` for programs.
        """
        return RunSummary(self)

    def to_pandas(self) -> Any:
        """The history as a data frame, one row an evaluation.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> import scb
        >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
        >>> run = scb.train(task, scb.recipes.paper(task, steps=(20, 20, 0)), seed=0)
        >>> run.to_pandas()[["step", "stage", "samples"]]
           step  stage  samples
        0     0      1        0
        1    10      1      640
        2    20      1     1280
        3    30      2     1920
        4    40      2     2560
        """
        return frame(typed(self.history))

    def plot(self) -> "Drawn":
        """Distances to the truth, signals and errors against steps; a notebook shows it, and ``savefig(path)`` writes it.

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> import scb
        >>> task = scb.Task.random(N=3, T=40, sparsity=2, seed=0)
        >>> figure = scb.train(task, scb.recipes.paper(task, steps=(20, 20, 0)), seed=0).plot()
        >>> [panel.get_title() for panel in figure.axes]
        ['distance to the truth', 'signals', "distance to the population's line"]
        """
        return curves(self.history, self.summary().title)

    def __repr__(self) -> str:
        T, N = self.parameters.shape
        return f"<Run of {self.recipe!r}: N = {N}, T = {T:,}, seed {self.seed}, step {self.step:,}>"

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        shown = self.summary()._repr_html_()
        if not find_spec("matplotlib"):
            return shown
        return shown + notebook.picture(self.plot(), alt=f"curves of {self!r}")

    def save(self, directory: str | Path) -> None:
        """Write the run to a directory, as ``run.safetensors``; a kill leaves the old file or the new one, never half of one.

        Parameters
        ----------
        directory : str or path
            It is made if it is not there.
        """
        facts: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)} | {"versions": versions()}
        facts["softmax"] = facts.pop("transformer") is SoftmaxTransformer
        arrays: dict[str, Array] = {name: facts.pop(name) for name in ("V", "parameters")}
        state, facts["state"] = _flat(facts.pop("state"))
        arrays |= state
        arrays |= {f"history.{name}": column for name, column in facts.pop("history").items()}
        make_directory(Path(directory))
        # Transposed, so that column-contiguous arrays are written as they lie in memory.
        write_arrays(Path(directory) / FILE, "run", {name: array.T for name, array in arrays.items()}, facts)

    @staticmethod
    def load(directory: str | Path) -> "Run":
        """Read a run that ``save`` wrote, finished or not.

        Parameters
        ----------
        directory : str or path
            Where ``run.safetensors`` is.

        Returns
        -------
        Run

        Raises
        ------
        DamagedFileError
            If the file is not as it was written.
        """
        path = file_path("directory", directory) / FILE
        if not path.exists():
            raise FileNotFoundError(f"{directory} holds no run: there is no {FILE} in it")
        arrays, facts, sealed = read_arrays(path, "run")
        try:
            if "run" in facts:  # of a version that had no digests
                facts = json.loads(facts["run"])
            run = _checked(arrays, facts)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFileError(f"{path} is damaged: {error}") from None
        warn_unless(sealed, path)
        return run


def _flat(state: Mapping[str, Any]) -> tuple[dict[str, Array], dict[str, Any]]:
    """What a rule remembers as flat arrays, and the shape and the order of each: sums over it give the same bits afterwards."""
    flat = {}
    layouts = {}
    for name, value in state.items():
        array = np.asarray(value, np.float64)
        order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
        flat[f"state.{name}"] = array.ravel(order)
        layouts[name] = {"shape": array.shape, "order": order}
    return flat, layouts


def _unflat(arrays: dict[str, Array], layouts: dict[str, Any]) -> dict[str, Array]:
    """What ``_flat`` has laid flat."""
    return {
        name: arrays[f"state.{name}"].reshape(layout["shape"], order=one_of("order", layout["order"], ("C", "F")))
        for name, layout in layouts.items()
    }


_TYPES = {"recipe": str, "diverged": int | None, "finished": bool, "verdict": str | None, "remedy": dict, "made_by": dict}
_TYPES |= dict.fromkeys(("seed", "step", "stage", "stage_step", "samples"), int)


def _checked(arrays: dict[str, Array], facts: dict[str, Any]) -> Run:
    """The run that a file holds, whatever wrote it; an error says what cannot be."""
    later = ("verdict", "remedy", "made_by")  # what older versions did not write
    known = {name: fitted(name, facts[name], hint) for name, hint in _TYPES.items() if name in facts or name not in later}
    for name in ("step", "stage", "stage_step", "samples"):
        integer(name, known[name], low=0)
    if any(array.dtype != np.float64 for array in arrays.values()):
        raise InputError("an array is not of float64")
    # Stored transposed; (N, N) row by row and (T, N) column by column, as the kernels want them.
    V = np.array(arrays.pop("V").T, order="C")
    parameters = np.array(arrays.pop("parameters").T, order="F")
    transformer = SoftmaxTransformer if fitted("softmax", facts["softmax"], bool) else LinearTransformer
    transformer(V, parameters)  # refuses shapes that do not go together
    history = {name: arrays[f"history.{name}"] for name in COLUMNS}
    if any(column.shape != (len(history["step"]),) for column in history.values()):
        raise InputError("its history has columns of different lengths")
    state = _unflat(arrays, fitted("state", facts.get("state", {}), dict))
    return Run(V=V, parameters=parameters, transformer=transformer, history=history, state=state, **known)
