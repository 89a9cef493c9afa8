"""A training run: where it stands, its history, and its file (arrays, with the facts as JSON in the
header).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from scb import metrics, notebook
from scb.arrays import Array
from scb.files import make_directory, read_arrays, warn_unless, write_arrays
from scb.inputs import DamagedFileError, InputError, coerced, file_path, integer, one_of
from scb.model import LinearTransformer, SoftmaxTransformer, Transformer
from scb.provenance import versions
from scb.training.run_summary import RunSummary, curves, frame, typed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE = "run.safetensors"
COLUMNS = ("step", "stage", "samples", "batch_loss", *metrics.COLUMNS)


@dataclass(frozen=True, repr=False)
class Run:
    """A training run: its parameters, its history, and all that is needed to continue it.

    ``scb.train`` returns it and passes it to callbacks.

    Attributes
    ----------
    V : (N, N) array
        The value matrix.
    parameters : (T, N) array
        The parameters of the attention: the attention A itself, or its logits for a softmax
        transformer.
    recipe : str
        The name of the recipe.
    transformer : type
        The class of the transformer that is trained.
    seed : int
        The seed of the run.
    history : dict of (evaluations,) arrays
        The evaluations, by column: ``step``, ``stage``, ``samples``, ``batch_loss`` (the loss of
        the last mini-batch), and the quantities of ``scb.measure``: the expected ``loss``, the
        signals ``alpha_V`` and ``alpha_A``, the errors ``delta_V`` and ``delta_A``, the distances
        ``dist_V`` = ‖V − P‖_μ and ``dist_A`` = ‖A − Q‖_μ, the cosines ``sim_V`` and ``sim_A``, and
        the last four after rounding, as in ``dist_A_star``.
    step, stage, stage_step : int
        The number of steps so far, the index of the current stage, and the number of steps taken in
        it.
    samples : int
        The number of fresh samples so far.
    diverged : int or None
        The step at which an entry of V or A reached 1e6 or became NaN, or None. V and A are then
        those before that step.
    mirrored : int or None
        The last step after which (V, A) was replaced by its mirror image to fix the sign
        (``resolve_sign``), or None.
    finished : bool
        Whether all stages are completed or the run has diverged.
    verdict : str or None
        The result of the test on held-out samples at the end: "learned", or what is wrong. None if
        there was no test.
    state : dict of arrays
        The state of the current stage's update rule, such as a momentum of V, (N, N); empty for
        rules without state.
    made_by : dict of str
        Digests of everything that determines the run, such as task, recipe and seed. Resuming
        compares them.

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
    history: dict[str, Array] = field(
        default_factory=lambda: {name: np.empty(0) for name in COLUMNS}
    )
    step: int = 0
    stage: int = 0
    stage_step: int = 0
    samples: int = 0
    diverged: int | None = None
    mirrored: int | None = None
    finished: bool = False
    verdict: str | None = None
    state: dict[str, Array] = field(default_factory=dict)
    made_by: dict[str, str] = field(default_factory=dict)

    @property
    def A(self) -> Array:
        """The attention as a (T, N) array."""
        return self.model.attention

    @property
    def model(self) -> Transformer:
        """The transformer with the current parameters."""
        return self.transformer(self.V, self.parameters)

    def summary(self) -> RunSummary:
        """Summarise the run: the last evaluation of each stage, and the verdict.

        Returns
        -------
        RunSummary
            A table that can be printed or shown in a notebook; its ``columns`` and ``to_pandas()``
            give the numbers.
        """
        return RunSummary(self)

    def to_pandas(self) -> Any:
        """Convert the history to a data frame.

        Returns
        -------
        pandas.DataFrame
            A data frame with one row for each evaluation.

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

    def plot(self) -> "Figure":
        """Plot the distances to the truth, the signals and the errors against the steps.

        Returns
        -------
        matplotlib.figure.Figure
            The figure. A notebook shows it, and its method ``savefig(path)`` writes it to a file.

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

    def save(self, directory: str | Path, *, overwrite: bool = False) -> None:
        """Save the run as ``run.safetensors`` in a directory.

        An existing file is replaced atomically: if the process is killed, the old file or the new
        one is there, whole.

        Parameters
        ----------
        directory : str or path
            The directory, which is created if it does not exist.
        overwrite : bool, default False
            Whether to replace a ``run.safetensors`` that holds no run. One that does is always
            replaced.
        """
        facts: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)} | {
            "versions": versions()
        }
        facts["softmax"] = facts.pop("transformer") is SoftmaxTransformer
        arrays: dict[str, Array] = {name: facts.pop(name) for name in ("V", "parameters")}
        state, facts["state"] = _flat(facts.pop("state"))
        arrays |= state
        arrays |= {f"history.{name}": column for name, column in facts.pop("history").items()}
        path = file_path("directory", directory) / FILE
        make_directory(path.parent)
        # Transposed, so that column-contiguous arrays are written as they lie in memory.
        transposed = {name: array.T for name, array in arrays.items()}
        write_arrays(path, "run", transposed, facts, overwrite)

    @staticmethod
    def load(directory: str | Path) -> "Run":
        """Read a run that ``save`` wrote, finished or not.

        Parameters
        ----------
        directory : str or path
            The directory that contains ``run.safetensors``.

        Returns
        -------
        Run
            The run that was saved.

        Raises
        ------
        DamagedFileError
            If the file is not as it was written.
        """
        path = file_path("directory", directory) / FILE
        if not path.parent.exists():
            raise FileNotFoundError(f"{directory} is not there")
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
    """What a rule remembers as flat arrays, and the shape and the order of each: sums over it give
    the same bits afterwards.
    """
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
        name: arrays[f"state.{name}"].reshape(
            layout["shape"], order=one_of("order", layout["order"], ("C", "F"))
        )
        for name, layout in layouts.items()
    }


_TYPES = {
    "recipe": str,
    "diverged": int | None,
    "mirrored": int | None,
    "finished": bool,
    "verdict": str | None,
    "made_by": dict,
}
_TYPES |= dict.fromkeys(("seed", "step", "stage", "stage_step", "samples"), int)


def _checked(arrays: dict[str, Array], facts: dict[str, Any]) -> Run:
    """The run that a file holds, whatever wrote it; an error says what cannot be."""
    later = ("verdict", "made_by")  # what older versions did not write
    known = {
        name: coerced(name, facts[name], hint)
        for name, hint in _TYPES.items()
        if name in facts or name not in later
    }
    for name in ("step", "stage", "stage_step", "samples"):
        integer(name, known[name], low=0)
    if any(array.dtype != np.float64 for array in arrays.values()):
        raise InputError("an array is not of float64")
    # Stored transposed; (N, N) row by row and (T, N) column by column, as the kernels want them.
    V = np.array(arrays.pop("V").T, order="C")
    parameters = np.array(arrays.pop("parameters").T, order="F")
    transformer = (
        SoftmaxTransformer if coerced("softmax", facts["softmax"], bool) else LinearTransformer
    )
    transformer(V, parameters)  # refuses shapes that do not go together
    history = {name: arrays[f"history.{name}"] for name in COLUMNS}
    if any(column.shape != (len(history["step"]),) for column in history.values()):
        raise InputError("its history has columns of different lengths")
    state = _unflat(arrays, coerced("state", facts.get("state", {}), dict))
    return Run(
        V=V, parameters=parameters, transformer=transformer, history=history, state=state, **known
    )
