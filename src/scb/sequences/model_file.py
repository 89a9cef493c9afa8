"""A fitted model on disk: one safetensors file of arrays, with everything else as JSON in its
header. Reading the file executes no code.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from scb.arrays import AnyArray
from scb.inputs import DamagedFileError, InputError, coerced, file_path, integer
from scb.provenance import versions
from scb.sequences.baselines.background import RecentBackground
from scb.sequences.baselines.counts import deepest
from scb.sequences.baselines.per_sequence import SequenceBackground
from scb.sequences.covariates import Covariate
from scb.sequences.fit_facts import FitFacts
from scb.sequences.kept import KeptSymbols
from scb.sequences.lag_model import SHARED, LagModel
from scb.sequences.tables import Arrays
from scb.tensors import read_arrays, write_arrays

FORMAT = "scb.SparseContextualBigram"
_ARRAYS = ("prior", "frequencies", "unseen", "background_weight", "background_ratio")


@dataclass(frozen=True)
class SavedModel:
    """The contents of the file of a model."""

    model: LagModel
    parameters: dict[str, Any]  # of the estimator
    width: int | None = None  # the common length of its sequences
    kept: KeptSymbols | None = None  # of a stream

    def write(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the file; ``load_model`` reads it."""
        model = self.model
        a = model.attention
        arrays = {name: getattr(model, name) for name in _ARRAYS}
        arrays |= {"attention": a.data, "stderr": model.errors.data}
        arrays |= {"columns": a.indices.astype(np.int64), "bounds": a.indptr.astype(np.int64)}
        covariates = dict(enumerate(model.covariates))
        kinds = {
            "transition": model.matrices,
            "evidence": model.evidence,
            "background": self._background(),
            "stream": self._stream(),
            "covariate": {i: one.frequencies for i, one in covariates.items()},
            "edges": {i: one.edges for i, one in covariates.items() if one.edges is not None},
        }
        for kind, named in kinds.items():
            arrays |= {f"{kind}.{name}": array for name, array in named.items()}
        lags = self.parameters["lags"]
        lags = lags if isinstance(lags, str) else np.asarray(lags).tolist()
        content = {
            "versions": versions(),
            "parameters": self.parameters | {"lags": lags, "max_lag": model.max_lag},
            "classes": model.classes.tolist(),
            "kind": model.classes.dtype.str,
            "context": model.context,
            "covariates": [
                {"name": one.name, "values": one.values.tolist(), "kind": one.values.dtype.str}
                for one in model.covariates
            ],
            "chooser": model.chooser,
            "fit": {f"{name}_": value for name, value in asdict(model.facts).items()},
            "n_features_in": self.width,
        }
        write_arrays(file_path("path", path), FORMAT, arrays, content, overwrite)

    def _background(self) -> Arrays:
        background = self.model.background
        if background is None:
            return {}
        if not isinstance(background, RecentBackground | SequenceBackground):
            raise InputError(
                f"the background is a {background.name}: only a background of scb can be saved"
            )
        return background.arrays()

    def _stream(self) -> Arrays:
        if self.kept is None:
            return {}
        if not np.array_equal(self.kept.classes, self.model.classes):
            raise InputError(
                "new symbols were added after the last fit: call partial_fit with fit=True, "
                "then save"
            )
        return self.kept.arrays()


def load_model(path: str | Path) -> SavedModel:
    """Read a file that ``SavedModel.write`` wrote; a DamagedFileError says what is wrong."""
    arrays, content = read_arrays(file_path("path", path), FORMAT)
    try:
        parameters = coerced("parameters", content["parameters"], dict)
        model = _checked_model(arrays, content, parameters)
        width = coerced("n_features_in", content["n_features_in"], int | None)
        stream = _named(arrays, "stream")
        kept = KeptSymbols.from_arrays(stream, model.max_lag, model.classes) if stream else None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from None
    return SavedModel(model, parameters, width, kept)


def _checked_model(arrays: Arrays, content: dict[str, Any], parameters: dict[str, Any]) -> LagModel:
    """The model of a file, with everything checked, since kernels trust its indices."""
    context = coerced("context", content["context"], bool)
    max_lag = integer("max_lag", parameters["max_lag"], low=1)
    size = sum(array.nbytes for array in arrays.values())
    classes = _checked_classes(content, size, max_lag, context)
    N = len(classes)
    covariates, chooser = _checked_covariates(arrays, content)
    K = N if context else 1
    widths = {max_lag + 1 + i: len(one.values) for i, one in enumerate(covariates)}
    if chooser is not None:
        K = widths[1] = N * (1 + len(covariates[chooser].values))
    sources = max_lag + len(covariates)
    columns = _array(arrays, "columns", None, "iu")
    bounds = _array(arrays, "bounds", (K + 1,), "iu")
    if bounds[0] != 0 or bounds[-1] != len(columns) or (np.diff(bounds) < 0).any():
        raise InputError("bounds do not divide its lags among the current symbols")
    if ((columns < 0) | (columns >= sources)).any():
        raise InputError(f"it has a lag outside of 1 … max_lag = {max_lag}")
    weights = _array(arrays, "attention", columns.shape)
    errors = _array(arrays, "stderr", columns.shape, finite=False)
    background = _named(arrays, "background")
    model = LagModel(
        classes=classes,
        context=context,
        attention=csr_array((weights, columns, bounds), shape=(K, sources)),
        errors=csr_array((errors, columns, bounds), shape=(K, sources)),
        background_weight=_array(arrays, "background_weight", (K,)),
        background_ratio=_array(arrays, "background_ratio", (K,), finite=False),
        matrices=_checked_matrices(arrays, N, widths, sources, set((columns + 1).tolist())),
        prior=_array(arrays, "prior", (N,)),
        frequencies=_array(arrays, "frequencies", (N,)),
        unseen=_array(arrays, "unseen", (N,)),
        background=_checked_background(background, N) if background else None,
        covariates=covariates,
        chooser=chooser,
        evidence={
            name: _array(arrays, f"evidence.{name}", columns.shape, finite=False)
            for name in _named(arrays, "evidence")
        },
        facts=_checked_facts(content["fit"]),
    )
    _require_distribution("attention", model.attention.sum(axis=1) + model.background_weight)
    _require_distribution("prior", model.prior.sum())
    _require_distribution("frequencies", model.frequencies.sum())
    return model


def _checked_classes(content: dict[str, Any], size: int, max_lag: int, context: bool) -> AnyArray:
    """The symbols, if what the header asks for does not take far more memory than the ``size`` of
    the arrays in bytes.
    """
    symbols = coerced("classes", content["classes"], list)
    kind = np.dtype(coerced("kind", content["kind"], str))
    N = len(symbols)
    wanted = max(N * kind.itemsize, 8 * (N if context else 1) * max_lag)
    if wanted > max(1 << 28, 64 * size):
        raise InputError(
            f"{N} symbols of type {content['kind']!r} and max_lag = {max_lag} would take far more"
            " memory than what it holds"
        )
    return _distinct(symbols, kind, "its classes must be different symbols of one type")


def _distinct(values: list[Any], kind: np.dtype[Any], message: str) -> AnyArray:
    """Values as an array of this type; an InputError if they are none, or not all different."""
    array = np.array(values, dtype=kind)
    if array.ndim != 1 or kind.kind not in "biufU" or not len(array) == len(np.unique(array)) > 0:
        raise InputError(message)
    return array


def _checked_matrices(
    arrays: Arrays, N: int, widths: dict[int, int], sources: int, lags: set[int]
) -> dict[int, AnyArray]:
    """Lag → matrix, with a matrix for each of the lags; ``widths`` are those that are not N."""
    names = {int(lag): f"transition.{lag}" for lag in _named(arrays, "transition")}
    matrices = {
        lag: _array(arrays, name, (N, widths.get(lag, N))) for lag, name in sorted(names.items())
    }
    needed = {SHARED} if SHARED in matrices else lags
    if not needed <= matrices.keys() or not all(0 <= lag <= sources for lag in matrices):
        raise InputError("its matrices are not those of its lags")
    for lag, P in matrices.items():
        _require_distribution(f"transition.{lag}", P.sum(axis=0))
    return matrices


def _checked_covariates(
    arrays: Arrays, content: dict[str, Any]
) -> tuple[tuple[Covariate, ...], int | None]:
    """The covariates, and the number of the one that chooses."""
    covariates = []
    for i, one in enumerate(coerced("covariates", content["covariates"], list)):
        kind = np.dtype(coerced("kind", one["kind"], str))
        listed = coerced("values", one["values"], list)
        message = "the values of a covariate must be different, and of one type"
        values = _distinct(listed, kind, message)
        V = len(values)
        frequencies = _array(arrays, f"covariate.{i}", (V,))
        _require_distribution(f"covariate.{i}", frequencies.sum())
        edges = None
        if f"edges.{i}" in arrays:
            edges = _array(arrays, f"edges.{i}", (V - 1,), finite=False)
        covariates.append(Covariate(coerced("name", one["name"], str), values, frequencies, edges))
    chooser = coerced("chooser", content["chooser"], int | None)
    if chooser is not None and not 0 <= chooser < len(covariates):
        raise InputError(f"chooser = {chooser}: there is no such covariate")
    return tuple(covariates), chooser


def _checked_background(arrays: Arrays, N: int) -> RecentBackground | SequenceBackground:
    """The background in these arrays, if its distribution is one, or if its counts are of histories
    and labels that can exist.
    """
    if "concentration" in arrays:
        _require_distribution("background.prior", _array(arrays, "prior", (N,)).sum())
        if not (_array(arrays, "concentration", (1,)) > 0).all():
            raise InputError("the concentration of its background is not positive")
        return SequenceBackground.from_arrays(arrays)
    symbols, depth, _ = (int(x) for x in _array(arrays, "about", (3,), "iu"))
    codes = _array(arrays, "codes", None, "iu")
    counts = _array(arrays, "counts", codes.shape, "iuf")
    _array(arrays, "alpha", (1,))
    if (
        symbols != N
        or not 0 <= depth <= deepest(N, min(depth, 64))
        or (codes >= N * (N + 1) ** depth).any()
    ):
        raise InputError(
            f"its background counts histories of {depth} among {symbols} symbols, which cannot be"
        )
    if (codes[1:] <= codes[:-1]).any() or (counts <= 0).any() or not _are_histories(codes // N, N):
        raise InputError("its background does not count histories of its symbols")
    return RecentBackground.from_arrays(arrays)


def _are_histories(codes: AnyArray, N: int) -> bool:
    """Whether no digit is 0 unless all older ones are: nothing precedes the start of a history."""
    while codes.any():
        longer, digit = np.divmod(codes, N + 1)
        if ((digit == 0) & (longer > 0)).any():
            return False
        codes = longer
    return True


def _checked_facts(fit: dict[str, Any]) -> FitFacts:
    """How a fit went, each fact of its type; numbers may be infinite."""
    facts = FitFacts(**{name: fit[f"{name}_"] for name in FitFacts.__dataclass_fields__})
    for name, used in coerced("covariates", facts.covariates, dict).items():
        coerced(name, used, bool)
    for name in ("n_windows", "n_symbols", "n_parameters", "n_iter"):
        coerced(name, getattr(facts, name), int)
    coerced("converged", facts.converged, bool)
    numbers = {name: getattr(facts, name) for name in ("loglik", "gap", "sequence_bits")}
    for name in ("criterion", "choices"):
        numbers |= coerced(name, getattr(facts, name), dict)
    for name, value in numbers.items():
        if not isinstance(value, int | float):
            raise InputError(f"{name} = {value!r}: it must be a number")
    return facts


def _array(
    arrays: Arrays, name: str, shape: Any, kinds: str = "f", finite: bool = True
) -> AnyArray:
    """An array of this shape (None is any 1-D shape) and kind, finite and nowhere negative unless
    ``finite`` is False.
    """
    array = arrays[name]
    if (
        array.dtype.kind not in kinds
        or array.ndim < 1
        or array.shape != (array.shape[:1] if shape is None else shape)
    ):
        raise InputError(
            f"{name} has dtype {array.dtype} and shape {array.shape}, not those of a model"
        )
    if finite and not (np.isfinite(array) & (array >= 0)).all():
        raise InputError(f"{name} holds values that are negative or not finite")
    return array


def _require_distribution(name: str, sums: Any) -> None:
    if not np.allclose(sums, 1, atol=1e-6):
        raise InputError(f"{name} holds distributions that do not sum to 1")


def _named(arrays: Arrays, kind: str) -> Arrays:
    """The arrays of a kind, by the part of their names after the dot."""
    return {
        name.partition(".")[2]: array
        for name, array in arrays.items()
        if name.startswith(f"{kind}.")
    }
