"""A training run: its state, its history, and its file."""

from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from scb import metrics, notebook
from scb.arrays import Array
from scb.files import make_directory
from scb.geometry.heads import stacked_columns
from scb.inputs import DamagedFileError, InputError, coerced, file_path, integer, one_of
from scb.model import LinearTransformer, OneLayerTransformer, SoftmaxTransformer
from scb.provenance import versions
from scb.tensors import read_arrays, write_arrays
from scb.training.run_summary import RunSummary, curves, frame, with_counts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE = "run.safetensors"
COLUMNS = ("step", "stage", "samples", "batch_loss", *metrics.COLUMNS)


@dataclass(frozen=True, repr=False)
class Run:
    """A training run: its parameters, its history, and everything that is needed to continue it.

    ``scb.train`` returns the run and also passes it to callbacks.

    Attributes
    ----------
    V : (N, N) array, or (H, N, N) with several heads
        The value matrix.
    parameters : (T, N) array, or (H, T, N) with several heads
        The parameters of the attention: the attention A itself, or its logits for a softmax
        transformer. In a callback of a run on a GPU, the parameters are on the GPU, and
        ``numpy.asarray`` copies them.
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
        the last four quantities after rounding, such as ``dist_A_star``.
    step, stage, stage_step : int
        The number of steps so far, the index of the current stage, and the number of steps taken in
        that stage.
    samples : int
        The number of fresh samples so far.
    diverged : int or None
        The step at which an entry of V or A reached 1e6 or became NaN, or None if there was no such
        step. V and A have their values before that step.
    mirrored : int or None
        The last step after which the sign was resolved by taking the mirror image of (V, A), or
        None.
    finished : bool
        Whether all stages are completed or the run has diverged.
    verdict : str or None
        The result of the test on held-out samples at the end: "learned", or what is wrong; None if
        there was no test.
    state : dict of arrays
        The state of the current stage's update rule, such as a momentum of V, (N, N); empty for
        rules without state.
    made_by : dict of str
        Digests of everything that determines the run, such as task, recipe and seed. When a run is
        resumed, these digests are compared.

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
    transformer: type[OneLayerTransformer]
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
    def model(self) -> OneLayerTransformer:
        """The transformer with the current parameters."""
        return self.transformer(self.V, np.asarray(self.parameters))

    def summary(self) -> RunSummary:
        """Summarise the run by the last evaluation of each stage and by the verdict.

        Returns
        -------
        RunSummary
            A table that can be printed or shown in a notebook; its ``columns`` and ``to_pandas()``
            give the numbers.
        """
        title = (
            f"{self.recipe}: {self._sizes()}, seed {self.seed}; "
            f"{self.step:,} steps, {self.samples:,} samples"
        )
        outcome = [f"verdict: {self.verdict}"] if self.verdict else []
        stage = self.history["stage"]
        ends = [np.flatnonzero(stage == number)[-1] for number in np.unique(stage)]
        return RunSummary(
            title, outcome if self.finished else ["not finished"], with_counts(self.history, ends)
        )

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
        return frame(with_counts(self.history))

    def plot(self) -> "Figure":
        """Plot the distances to the truth, the signals and the errors against the steps.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which a notebook shows; its method ``savefig(path)`` writes it to a file.

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
        return f"<Run of {self.recipe!r}: {self._sizes()}, seed {self.seed}, step {self.step:,}>"

    def _sizes(self) -> str:
        *heads, T, N = self.parameters.shape
        return f"N = {N}, T = {T:,}" + "".join(f", {H} heads" for H in heads)

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        shown = self.summary()._repr_html_()
        if not find_spec("matplotlib"):
            return shown
        return shown + notebook.picture(self.plot(), alt=f"curves of {self!r}")

    def save(self, directory: str | Path, *, overwrite: bool = False) -> None:
        """Save the run as ``run.safetensors`` in a directory.

        An existing file is replaced atomically: if the process is killed, either the whole old file
        or the whole new file remains.

        Parameters
        ----------
        directory : str or path
            The directory, which is created if it does not exist.
        overwrite : bool, default False
            Whether to replace a ``run.safetensors`` that holds no run. A file that holds a run is
            always replaced.
        """
        facts: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        facts["versions"] = versions()
        facts["softmax"] = facts.pop("transformer") is SoftmaxTransformer
        arrays = {name: np.asarray(facts.pop(name)) for name in ("V", "parameters")}
        for part in ("history", "state"):
            arrays |= {f"{part}.{n}": np.asarray(x, float) for n, x in facts.pop(part).items()}
        # A state is laid out again as it was, so that sums over it give the same bits.
        layouts = {}
        for name, value in self.state.items():
            order = "C" if np.asarray(value).flags.c_contiguous else "F"
            layouts[name] = {"shape": np.shape(value), "order": order}
        facts["state"] = layouts
        path = file_path("directory", directory) / FILE
        make_directory(path.parent)
        # Transposed, so that column-contiguous arrays are written as they lie in memory.
        transposed = {name: array.T for name, array in arrays.items()}
        write_arrays(path, "run", transposed, facts, overwrite)

    @staticmethod
    def load(directory: str | Path) -> "Run":
        """Read a run that ``save`` wrote, whether or not the run has finished.

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
            If the file has changed since it was written.
        """
        path = file_path("directory", directory) / FILE
        if not path.parent.exists():
            raise FileNotFoundError(f"{directory} is not there")
        if not path.exists():
            raise FileNotFoundError(f"{directory} holds no run: there is no {FILE} in it")
        arrays, facts = read_arrays(path, "run")
        try:
            return _checked(arrays, facts)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFileError(f"{path} is damaged: {error}") from None


def _checked(arrays: dict[str, Array], facts: dict[str, Any]) -> Run:
    """The run that a file holds. Raises an error if it cannot be one."""
    plain = (bool, int, str, int | None, str | None)
    hints = {name: hint for name, hint in get_type_hints(Run).items() if hint in plain}
    known = {name: coerced(name, facts[name], hint) for name, hint in hints.items()}
    known["made_by"] = coerced("made_by", facts["made_by"], dict)
    for name in ("step", "stage", "stage_step", "samples"):
        integer(name, known[name], low=0)
    if any(array.dtype != np.float64 for array in arrays.values()):
        raise InputError("an array is not of float64")
    # Stored transposed; (N, N) row by row and (T, N) column by column, as the kernels take them.
    V = np.array(arrays["V"].T, order="C")
    parameters = np.array(arrays["parameters"].T, order="F")
    if V.ndim == 3:  # with heads, each column lies together
        parameters = stacked_columns(parameters)
    softmax = coerced("softmax", facts["softmax"], bool)
    transformer = SoftmaxTransformer if softmax else LinearTransformer
    transformer(V, parameters)  # refuses shapes that do not go together
    names = COLUMNS
    if V.ndim == 3:
        names = [name.removeprefix("history.") for name in arrays if name.startswith("history.")]
    history = {name: arrays[f"history.{name}"] for name in names}
    if any(column.shape != (len(history["step"]),) for column in history.values()):
        raise InputError("its history has columns of different lengths")
    state = {}
    for name, layout in coerced("state", facts["state"], dict).items():
        order = one_of("order", layout["order"], ("C", "F"))
        array = np.array(arrays[f"state.{name}"].T, order=order)
        state[name] = array.reshape(layout["shape"], order=order)
    return Run(
        V=V, parameters=parameters, transformer=transformer, history=history, state=state, **known
    )
