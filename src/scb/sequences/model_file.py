"""A fitted model on disk: one file of arrays, everything else as JSON in its header (safetensors;
nothing is executed).
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from scb.files import read_arrays, write_arrays
from scb.inputs import DamagedFileError, InputError, file_path, fitted, integer
from scb.provenance import versions
from scb.sequences.baselines.background import RecentBackground
from scb.sequences.baselines.counts import deepest
from scb.sequences.kept import KeptSymbols
from scb.sequences.lag_model import SHARED, FitFacts, LagModel

FORMAT = "scb.SparseContextualBigram"
# What the header of a file asks for may take this much memory, or so many bytes for each byte that
# its arrays have.
_SMALL = 1 << 28
_PER_BYTE = 64
_FACTS = dict.fromkeys(("n_windows", "n_labels", "n_parameters", "n_iter"), int) | {
    "converged": bool,
    "criterion": dict,
}


def save_model(
    path: str | Path,
    model: LagModel,
    facts: FitFacts,
    parameters: dict[str, Any],
    width: int | None,
    kept: KeptSymbols | None = None,
    overwrite: bool = False,
) -> None:
    """Write a model, how its fit went, the parameters of its estimator, the common length of its
    sequences, and what is kept of a stream.
    """
    a = model.attention
    arrays = {
        "attention": a.data,
        "stderr": model.errors.data,
        "prior": model.prior,
        "frequencies": model.frequencies,
    }
    arrays |= {"columns": a.indices.astype(np.int64), "bounds": a.indptr.astype(np.int64)}
    arrays |= {"rest": model.rest, "rest_ratio": model.rest_ratio}
    arrays |= {f"transition.{lag}": P for lag, P in model.matrices.items()}
    arrays |= {f"evidence.{name}": column for name, column in model.evidence.items()}
    if model.background is not None:
        if not isinstance(model.background, RecentBackground):
            raise InputError(
                f"the background is a {model.background.name}: a model of somebody else cannot be kept in our file"
            )
        arrays |= {f"background.{name}": array for name, array in model.background.arrays().items()}
    if kept is not None:
        if not np.array_equal(kept.classes, model.classes):
            raise InputError(
                "symbols came after the last fit that it does not know: partial_fit with fit=True, then save"
            )
        arrays |= {f"stream.{name}": array for name, array in kept.arrays().items()}
    lags = (
        parameters["lags"]
        if isinstance(parameters["lags"], str)
        else np.asarray(parameters["lags"]).tolist()
    )
    content = {
        "format": FORMAT,
        "versions": versions(),
        "parameters": parameters | {"lags": lags, "max_lag": model.max_lag},
        "classes": model.classes.tolist(),
        "kind": model.classes.dtype.str,
        "fit": {f"{name}_": value for name, value in asdict(facts).items()},
        "n_features_in": width,
    }
    write_arrays(file_path("path", path), FORMAT, arrays, content, overwrite)


def load_model(
    path: str | Path,
) -> tuple[LagModel, FitFacts, dict[str, Any], int | None, KeptSymbols | None]:
    """Read what ``save_model`` wrote; a DamagedFileError says what is wrong with the file."""
    arrays, content = read_arrays(file_path("path", path), FORMAT)
    if content.get("format") != FORMAT:
        raise DamagedFileError(
            f"{path} holds no {FORMAT.partition('.')[2]}: it was written by something else"
        )
    try:
        parameters = fitted("parameters", content["parameters"], dict)
        model = _checked(arrays, content, parameters)
        facts = _checked_facts(content["fit"])
        width = fitted("n_features_in", content["n_features_in"], int | None)
        stream = _named(arrays, "stream")
        kept = KeptSymbols.from_arrays(stream, model.max_lag, model.classes) if stream else None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from None
    return model, facts, parameters, width, kept


def _checked(
    arrays: dict[str, NDArray[Any]], content: dict[str, Any], parameters: dict[str, Any]
) -> LagModel:
    """The model of a file, whatever wrote it, checked as arguments are, since kernels trust its
    indices.
    """
    context = fitted("context", parameters["context"], bool)
    symbols = fitted("classes", content["classes"], list)
    kind = np.dtype(fitted("kind", content["kind"], str))
    N = len(symbols)
    K = N if context else 1
    max_lag = integer("max_lag", parameters["max_lag"], low=1)
    held = sum(array.nbytes for array in arrays.values())
    if max(N * kind.itemsize, 8 * K * max_lag) > max(_SMALL, _PER_BYTE * held):
        wanted = f"{N} symbols of type {content['kind']!r} and max_lag = {max_lag}"
        raise InputError(f"{wanted} would take far more memory than what it holds")
    classes = np.array(symbols, dtype=kind)
    if (
        classes.ndim != 1
        or classes.dtype.kind not in "biufU"
        or N < 1
        or len(np.unique(classes)) < N
    ):
        raise InputError("its classes must be different symbols of one type")
    columns = _array(arrays, "columns", None, "iu")
    bounds = _array(arrays, "bounds", (K + 1,), "iu")
    if bounds[0] != 0 or bounds[-1] != len(columns) or (np.diff(bounds) < 0).any():
        raise InputError("bounds do not cut its lags into contexts")
    if ((columns < 0) | (columns >= max_lag)).any():
        raise InputError(f"it has a lag outside of 1 … max_lag = {max_lag}")
    attention = csr_array(
        (_array(arrays, "attention", columns.shape), columns, bounds), shape=(K, max_lag)
    )
    errors = csr_array(
        (_array(arrays, "stderr", columns.shape, finite=False), columns, bounds), shape=(K, max_lag)
    )
    rest = _array(arrays, "rest", (K,))
    _require_distribution("attention", attention.sum(axis=1) + rest)
    names = {int(lag): f"transition.{lag}" for lag in _named(arrays, "transition")}
    matrices = {lag: _array(arrays, name, (N, N)) for lag, name in sorted(names.items())}
    needed = {SHARED} if SHARED in matrices else set((columns + 1).tolist())
    if (
        not needed <= matrices.keys()
        or not 0 <= min(matrices, default=0) <= max(matrices, default=0) <= max_lag
    ):
        raise InputError("its matrices are not those of its lags")
    for lag, P in matrices.items():
        _require_distribution(f"transition.{lag}", P.sum(axis=0))
    prior = _array(arrays, "prior", (N,))
    frequencies = _array(arrays, "frequencies", (N,))
    _require_distribution("prior", prior.sum())
    _require_distribution("frequencies", frequencies.sum())
    background = _named(arrays, "background")
    return LagModel(
        classes=classes,
        context=context,
        attention=attention,
        errors=errors,
        rest=rest,
        rest_ratio=_array(arrays, "rest_ratio", (K,), finite=False),
        matrices=matrices,
        prior=prior,
        frequencies=frequencies,
        background=_checked_background(background, N) if background else None,
        evidence={
            name: _array(arrays, f"evidence.{name}", columns.shape, finite=False)
            for name in _named(arrays, "evidence")
        },
    )


def _checked_background(arrays: dict[str, NDArray[Any]], N: int) -> RecentBackground:
    """The distribution after recent symbols that these arrays hold; its counts are of contexts and
    labels that there can be.
    """
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
            f"its background counts contexts of {depth} among {symbols} symbols, which is more than there can be"
        )
    if (codes[1:] <= codes[:-1]).any() or (counts <= 0).any() or not _are_contexts(codes // N, N):
        raise InputError("its background does not count contexts of its symbols")
    return RecentBackground.from_arrays(arrays)


def _are_contexts(codes: NDArray[Any], N: int) -> bool:
    """Whether nothing comes before the start of a context: no digit is 0 unless all before it are."""
    while codes.any():
        longer, digit = np.divmod(codes, N + 1)
        if ((digit == 0) & (longer > 0)).any():
            return False
        codes = longer
    return True


def _checked_facts(fit: dict[str, Any]) -> FitFacts:
    """How a fit went, each number of its type; those that may be infinite are floats of any kind."""
    values = {name: fit[f"{name}_"] for name in FitFacts.__dataclass_fields__}
    for name, value in values.items():
        if name in _FACTS:
            fitted(name, value, _FACTS[name])
        elif not isinstance(value, int | float):
            raise InputError(f"{name} = {value!r}: it must be a number")
    if not all(isinstance(value, int | float) for value in values["criterion"].values()):
        raise InputError(f"criterion = {values['criterion']!r}: it must hold numbers")
    return FitFacts(**values)


def _array(
    arrays: dict[str, NDArray[Any]], name: str, shape: Any, kinds: str = "f", finite: bool = True
) -> NDArray[Any]:
    """An array of this shape (any 1-D one unless given) and kind; finite and nowhere negative,
    where that is asked.
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
        raise InputError(f"{name} holds what is negative or not finite")
    return array


def _require_distribution(name: str, sums: Any) -> None:
    if not np.allclose(sums, 1, atol=1e-6):
        raise InputError(f"{name} holds distributions that do not sum to 1")


def _named(arrays: dict[str, NDArray[Any]], kind: str) -> dict[str, NDArray[Any]]:
    """The arrays of a kind, by the rest of their names."""
    return {
        name.partition(".")[2]: array
        for name, array in arrays.items()
        if name.startswith(f"{kind}.")
    }
