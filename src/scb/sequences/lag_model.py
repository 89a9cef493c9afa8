"""A fitted model of lags: the next symbol has the law Σ_ℓ a[k, ℓ]·P_ℓ[:, x_ℓ], where k is the current symbol.

Weights and matrices, and what follows from them: the law of the next symbol, the likelihood of data, how far each lag moves the
law, sequences drawn from it, and a picture. How the lags are found is told in ``lag_fit``. On disk it is one file of arrays, and
everything else as JSON in its header (safetensors; nothing is executed).
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from scb.files import read_arrays, write_arrays
from scb.geometry import Array
from scb.inputs import DamagedFileError, fitted, integer
from scb.kernels.random import continue_lags
from scb.mixture.data import Data
from scb.mixture.law import Mixture
from scb.mixture.rows import RowTable, Slots
from scb.provenance import versions
from scb.sequences.symbols import MISSING
from scb.task.sampling import closed_cumulative, token_dtype

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARED = 0  # stands for the lag of a matrix that all lags share
FORMAT = "scb.SparseContextualBigram"
_BURN_IN = 10  # times max_lag: symbols that a sequence drawn from nothing loses at its start


@dataclass(frozen=True)
class FitFacts:
    """How a fit went: see the attributes of ``SparseContextualBigram`` with the same names."""

    loglik: float
    n_windows: int
    n_parameters: int
    n_iter: int
    gap: float
    converged: bool


@dataclass(frozen=True)
class LagModel:
    """Lags, weights and matrices."""

    classes: NDArray[Any]  # (N,), the symbols, sorted
    context: bool  # whether the current symbol chooses the weights
    # attention, errors: sparse (contexts, max_lag), the weight of lag ℓ in column ℓ − 1 and its standard error
    attention: csr_array
    errors: csr_array
    matrices: dict[int, Array]  # lag → (N, N); one matrix under ``SHARED`` where all lags share it
    # prior, frequencies: (N,), the law of the labels, and of all symbols
    prior: Array
    frequencies: Array

    @property
    def max_lag(self) -> int:
        """The longest lag that may matter."""
        return int(self.attention.shape[1])  # pyright: ignore[reportOptionalSubscript]

    @property
    def transition(self) -> Literal["shared", "per_lag"]:
        """Whether all lags share a matrix."""
        return "shared" if SHARED in self.matrices else "per_lag"

    def table(self) -> dict[str, NDArray[Any]]:
        """The lags in the support as columns context, lag, weight, stderr; the context is None in a model without."""
        a = self.attention
        rows = np.repeat(np.arange(len(a.indptr) - 1), np.diff(a.indptr))
        contexts = self.classes[rows] if self.context else np.full(rows.size, None, dtype=object)
        weights = {"weight": a.data.copy(), "stderr": self.errors.data.copy()}
        return {"context": contexts, "lag": a.indices.astype(np.int64) + 1} | weights

    def influence(self) -> csr_array:
        """How far each lag in the support moves the law of the next symbol, in total variation, on average over symbols."""
        influence = self.attention.copy()
        for i, lag in enumerate((influence.indices + 1).tolist()):
            if self.context and lag == 1:
                influence.data[i] = 0.0  # the current symbol cannot vary where it is the context
                continue
            P = self.matrices[SHARED if SHARED in self.matrices else lag]
            distance = np.abs(P - (P @ self.frequencies)[:, None]).sum(axis=0) / 2
            influence.data[i] *= float(distance @ self.frequencies)
        return influence

    # --------------------------------------------------------------------------------------------- as a mixture

    @cached_property
    def slots(self) -> Slots:
        """Where the slots of a window of max_lag symbols look; slot 0 is the background, the law of all labels."""
        positions = self.max_lag - 1 - self.attention.indices.astype(np.intp)
        owners = None if SHARED in self.matrices else [self.max_lag - lag for lag in self.matrices]
        return Slots.of(np.split(positions, self.attention.indptr[1:-1]), owners)

    @cached_property
    def mixture(self) -> Mixture:
        """The parameters; the background has weight only in a context without lags."""
        q = np.zeros(self.slots.positions.shape)
        for k, weights in enumerate(np.split(self.attention.data, self.attention.indptr[1:-1])):
            q[k, 1 : 1 + weights.size] = weights
            if not weights.size:
                q[k, 0] = 1.0
        nobody = np.repeat(self.prior[:, None], len(self.classes), axis=1)  # a matrix to point to where there is none
        matrices = list(self.matrices.values()) or [nobody]
        return Mixture.of(np.column_stack(matrices), self.prior, q)

    def loglik(self, data: Data) -> float:
        """Log-likelihood of the labels of windows, in nats; −∞ if one of them is impossible."""
        with np.errstate(divide="ignore"):
            return data.rows(self.slots).total(RowTable.evaluate, self.mixture).loglik

    def laws(self, codes: NDArray[np.int64]) -> Array:
        """(n, N): the law of what comes after each symbol of a sequence; that of all labels stands for what is not there."""
        N = len(self.classes)
        n = max(codes.size, 1)
        codes = codes if codes.size else np.array([MISSING])
        context = codes if self.context else np.zeros(n, np.int64)
        laws = np.zeros((n, N))
        for j in range(self.slots.positions.shape[1]):
            position = self.slots.positions[context, j]
            at = np.arange(1 - self.max_lag, n + 1 - self.max_lag) + position
            source = np.where((position >= 0) & (at >= 0), codes[np.clip(at, 0, n - 1)], MISSING)
            column = np.where(source >= 0, N * self.slots.matrix[context, j] + source, self.mixture.columns.shape[1] - 1)
            laws += self.mixture.q[context, j][:, None] * self.mixture.columns.T[column]
        laws[context < 0] = self.prior
        return laws

    def draw(self, length: int, before: NDArray[np.int64] | None, rng: np.random.Generator) -> NDArray[Any]:
        """(length,) codes that go on from those ``before``; from nothing unless given, with the first ones thrown away."""
        N = len(self.classes)
        skipped = 0
        if before is None:
            before = rng.choice(N, size=self.max_lag, p=self.prior / self.prior.sum())
            skipped = _BURN_IN * self.max_lag
        tokens = np.empty(before.size + skipped + length, dtype=token_dtype(N))
        tokens[: before.size] = before
        lags = np.where(self.slots.positions >= 0, self.max_lag - self.slots.positions, 0)
        first = np.where(lags > 0, N * self.slots.matrix, self.mixture.columns.shape[1] - 1)
        u = rng.random((skipped + length, 2))
        weights = closed_cumulative(self.mixture.q.T)
        columns = closed_cumulative(self.mixture.columns)
        continue_lags(tokens, before.size, weights, lags.T, columns, first.T, u)
        return tokens[before.size + skipped :]

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """A heat map of the weights: contexts down, lags across; white where a lag has no weight."""
        from matplotlib import colormaps
        from matplotlib.colors import ListedColormap
        from matplotlib.figure import Figure

        attention = self.attention.toarray()
        contexts, lags = attention.shape
        if ax is None:
            size = min(12.0, 1.8 + 0.32 * max(lags, 6)), min(10.0, 1.3 + 0.3 * contexts)
            ax = Figure(figsize=size, layout="constrained").subplots()
        blues = ListedColormap(colormaps["Blues"](np.linspace(0.15, 1, 256)))
        shown = np.where(attention > 0, attention, np.nan)
        extent = (0.5, lags + 0.5, contexts - 0.5, -0.5)
        image = ax.imshow(shown, cmap=blues, vmin=0, vmax=1, aspect="auto", extent=extent)
        ax.set(xlabel="lag: symbols before the one that is predicted", ylabel="current symbol" if self.context else "")
        names = [str(x) for x in self.classes.tolist()] if self.context else ["all"]
        every = -(-contexts // 40)  # so many labels along the side, at most
        ax.set_yticks(range(0, contexts, every), names[::every], parse_math=False)  # a symbol may hold a $
        step = next(step for step in (1, 2, 5, 10, 20, 50, 100, lags) if step >= min(lags, lags / 15))
        ax.set_xticks(sorted({1, *range(step, lags + 1, step)}))
        if contexts * lags <= 400:  # few enough to write weights into the cells
            for k, j in np.argwhere(attention > 0):
                text = f"{attention[k, j]:.2f}".lstrip("0")
                colour = "white" if attention[k, j] > 0.55 else "black"
                ax.text(j + 1, k, text, color=colour, fontsize=6.5, ha="center", va="center")
        ax.figure.colorbar(image, ax=ax, label="weight", shrink=0.9)
        return ax


# ------------------------------------------------------------------------------------------------- on disk


def save_model(path: str | Path, model: LagModel, facts: FitFacts, parameters: dict[str, Any], width: int | None) -> None:
    """Write a model, how its fit went, the parameters of its estimator and the common length of its sequences."""
    a = model.attention
    arrays = {"attention": a.data, "stderr": model.errors.data, "prior": model.prior, "frequencies": model.frequencies}
    arrays |= {"columns": a.indices.astype(np.int64), "bounds": a.indptr.astype(np.int64)}
    arrays |= {f"transition.{lag}": np.ascontiguousarray(P) for lag, P in model.matrices.items()}
    lags = parameters["lags"] if isinstance(parameters["lags"], str) else np.asarray(parameters["lags"]).tolist()
    facts_of_file = {
        "format": FORMAT,
        "versions": versions(),
        "parameters": parameters | {"lags": lags, "max_lag": model.max_lag},
        "classes": model.classes.tolist(),
        "kind": model.classes.dtype.str,
        "fit": {f"{name}_": value for name, value in asdict(facts).items()},
        "n_features_in": width,
    }
    write_arrays(Path(path), FORMAT, arrays, facts_of_file)


def load_model(path: str | Path) -> tuple[LagModel, FitFacts, dict[str, Any], int | None]:
    """Read what ``save_model`` wrote; a ValueError says what is wrong with the file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not there, or not a file")
    arrays, content = read_arrays(Path(path), FORMAT)
    if content.get("format") != FORMAT:
        raise DamagedFileError(f"{path} holds no {FORMAT.partition('.')[2]}: it was written by something else")
    try:
        return _checked(arrays, content)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from None


def _checked(arrays: dict[str, NDArray[Any]], content: dict[str, Any]) -> tuple[LagModel, FitFacts, dict[str, Any], int | None]:
    """What a file holds, whatever wrote it, checked as arguments are, since kernels trust its indices. An error says what is wrong."""
    parameters = fitted("parameters", content["parameters"], dict)
    context = fitted("context", parameters["context"], bool)
    classes = np.array(content["classes"], dtype=content["kind"])
    N = len(classes)
    K = N if context else 1
    if classes.ndim != 1 or classes.dtype.kind not in "biufU" or N < 1 or len(np.unique(classes)) < N:
        raise ValueError("its classes must be different symbols of one type")
    max_lag = integer("max_lag", parameters["max_lag"], low=1)
    columns = _array(arrays, "columns", None, "iu")
    bounds = _array(arrays, "bounds", (K + 1,), "iu")
    if bounds[0] != 0 or bounds[-1] != len(columns) or (np.diff(bounds) < 0).any():
        raise ValueError("bounds do not cut its lags into contexts")
    if ((columns < 0) | (columns >= max_lag)).any():
        raise ValueError(f"it has a lag outside of 1 … max_lag = {max_lag}")
    where = columns, bounds
    weights = _array(arrays, "attention", columns.shape)
    errors = _array(arrays, "stderr", columns.shape, finite=False)
    attention = csr_array((weights, *where), shape=(K, max_lag))
    _require_law("attention", attention.sum(axis=1)[np.diff(bounds) > 0], weights)
    matrices = {int(name.removeprefix("transition.")): name for name in arrays if name.startswith("transition.")}
    known = {lag: _array(arrays, name, (N, N)) for lag, name in sorted(matrices.items())}
    needed = {SHARED} if SHARED in known else set((columns + 1).tolist())
    if not needed <= known.keys() or any(lag < 0 or lag > max_lag for lag in known) or (SHARED in known and len(known) > 1):
        raise ValueError("its matrices are not those of its lags")
    for lag, P in known.items():
        _require_law(f"transition.{lag}", P.sum(axis=0), P)
    prior = _array(arrays, "prior", (N,))
    frequencies = _array(arrays, "frequencies", (N,))
    _require_law("prior", prior.sum(), prior)
    _require_law("frequencies", frequencies.sum(), frequencies)
    model = LagModel(
        classes=classes,
        context=context,
        attention=attention,
        errors=csr_array((errors, *where), shape=(K, max_lag)),
        matrices=known,
        prior=prior,
        frequencies=frequencies,
    )
    types = {name: field.type for name, field in FitFacts.__dataclass_fields__.items()}
    fit = {name: content["fit"][f"{name}_"] for name in types}
    for name, value in fit.items():
        if not isinstance(value, int | float):
            raise ValueError(f"{name} = {value!r}: it must be a number")
    return model, FitFacts(**fit), parameters, fitted("n_features_in", content["n_features_in"], int | None)


def _array(arrays: dict[str, NDArray[Any]], name: str, shape: Any, kinds: str = "f", finite: bool = True) -> NDArray[Any]:
    """An array of this shape (any 1-D one unless given) and kind; finite and nowhere negative, where that is asked."""
    array = arrays[name]
    if array.dtype.kind not in kinds or array.shape != (array.shape[:1] if shape is None else shape):
        raise ValueError(f"{name} has dtype {array.dtype} and shape {array.shape}, not those of a model")
    if finite and not (np.isfinite(array) & (array >= 0)).all():
        raise ValueError(f"{name} holds what is negative or not finite")
    return array


def _require_law(name: str, sums: Any, values: NDArray[Any]) -> None:
    if values.size and not np.allclose(sums, 1, atol=1e-6):
        raise ValueError(f"{name} holds laws that do not sum to 1")
