"""The coding of users' data: symbols of any kind, in one sequence or many, with gaps.

Accepted: a 1-D array or list of symbols; a list of such sequences, of any lengths; a 2-D array
whose rows are sequences (a single column is one sequence); a column of pandas, polars or Arrow, of
symbols or of lists of them; a data frame, as ``scb.sequences.tables`` reads it; and the result of
``scb.read_sequences``. Symbols are integers, strings, booleans or floats. None, NaN, NaT, and the
nulls of pandas and Arrow are missing.
"""

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from scb.arrays import AnyArray
from scb.extras import wanted_for
from scb.inputs import InputError, InputTypeError, integer
from scb.mixture.data import is_dask
from scb.sequences.doubts import warn_of_symbols
from scb.sequences.tables import (
    NOT_SYMBOLS,
    Classes,
    Codes,
    ColumnRoles,
    Sequences,
    as_arrow,
    chained,
    is_table,
    one_sequence,
    sequences_in,
)

# The code of a missing symbol
MISSING = -1
# Types of missing values in Python, pandas and NumPy
_NULLS = ("NoneType", "NAType", "NaTType", "MaskedConstant")


def readable(symbol: Any) -> str:
    """A readable form of a symbol, with unprintable characters and outer spaces written out."""
    if isinstance(symbol, str) and symbol.isprintable() and symbol.strip() == symbol != "":
        return symbol
    return repr(symbol)


def inert(cell: Any) -> Any:
    """A cell of a CSV file that no spreadsheet mistakes for a formula: text that looks like a
    formula gets an apostrophe.
    """
    if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{cell}"
    return cell


def as_sequences(X: Any, lengths: Any = None) -> Sequences:
    """Distinguish one sequence from many, and check lengths."""
    _refuse_other_types(X)
    if not hasattr(X, "__len__") and hasattr(X, "__array__") and not np.isscalar(X):
        X = np.asarray(X)
    X = _with_gaps(X)
    if isinstance(X, Sequences):
        if lengths is not None:
            raise InputError(
                "lengths can be given only for one long X: these sequences are already separate"
            )
        return X
    if is_table(X):
        sequences = sequences_in(as_arrow(X), ColumnRoles())
        if sequences.many:
            return _without_lengths(sequences, lengths)
        X = sequences.flat
    X = _lists_in_cells(X)
    if lengths is not None or (isinstance(X, np.ndarray) and X.ndim == 2):
        X = _without_unit_columns(X)
    _require_symbols_or_rows(X)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        rows = Sequences(X.reshape(-1), [X.shape[1]] * len(X), many=True)
        return _without_lengths(rows, lengths)
    if isinstance(X, list | tuple) and any(_is_sequence(x) for x in X):
        return _without_lengths(_list_of_sequences(X), lengths)
    if lengths is None:
        return one_sequence(X)
    return Sequences(X, _checked_lengths(lengths, len(X)), many=False)


def _refuse_other_types(X: Any) -> None:
    """InputTypeError for collections of Dask, sparse matrices and strings."""
    if is_dask(X):
        raise InputTypeError(
            "X is a collection of Dask, which only fit accepts: pass X.compute(), or a part of it"
        )
    if hasattr(X, "todense") or hasattr(X, "toarray"):
        raise InputTypeError(
            "X is a sparse matrix: pass sequences of symbols as a dense array or a list"
        )
    if isinstance(X, str | bytes):
        raise InputTypeError(
            "X is a string: pass list(X) for its characters, X.split() for its words, or "
            "scb.read_sequences(X) for a file"
        )
    if isinstance(X, dict):
        raise InputTypeError(
            "X is a dict: pass list(X.values()) if its values are sequences, or "
            "pandas.DataFrame(X) if they are columns of a table"
        )
    if isinstance(X, set | frozenset):
        raise InputTypeError("X is a set, which has no order: pass a list")
    if isinstance(X, PurePath):
        raise InputTypeError("X is a path: pass scb.read_sequences(X) to read the file")


def _lists_in_cells(X: Any) -> Any:
    """A column or array whose cells are sequences, as a list of these; anything else as it is."""
    kind = str(getattr(X, "dtype", getattr(X, "type", "")))
    if not re.match(r"object|(large_|fixed_size_)?list|array", kind, re.IGNORECASE):
        return X
    listed = next(name for name in ("to_pylist", "to_list", "tolist") if hasattr(X, name))
    cells = getattr(X, listed)()
    if not isinstance(cells, list) or not any(_is_sequence(x) for x in cells):
        return X
    # An empty cell is an empty sequence
    return [[] if type(x).__name__ in _NULLS or x is np.nan else x for x in cells]


def _require_symbols_or_rows(X: Any) -> None:
    """InputError unless X is a sequence that is not empty, or rows of symbols."""
    dimensions = X.ndim if isinstance(X, np.ndarray) else 1
    if dimensions == 0 or not hasattr(X, "__len__"):
        raise InputTypeError(
            f"X is of type {type(X).__name__}: it must be a sequence of symbols, or several of them"
        )
    # scikit-learn looks for the words "0 sample(s)" and "0 feature(s)"
    if len(X) == 0:
        raise InputError(
            "X holds 0 sample(s) (shape=(0,)) while a minimum of 1 is required: it must not be"
            " empty"
        )
    if dimensions == 2 and X.shape[1] == 0:
        raise InputError(
            f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required: the rows of X are"
            " empty"
        )
    if dimensions > 2:
        raise InputError(
            f"X has {dimensions} dimensions: a sequence has 1, and rows of sequences have 2"
        )


def _without_lengths(sequences: Sequences, lengths: Any) -> Sequences:
    """Several sequences; an InputError if lengths are given as well."""
    if lengths is not None:
        raise InputError("lengths can be given only for one long X: this X already holds sequences")
    return sequences


def _list_of_sequences(X: Any) -> Sequences:
    """A list of sequences."""
    for i, x in enumerate(X):
        if not _is_sequence(x):
            raise InputError(
                f"X[{i}] is {x!r}, but other items are sequences: all items must be sequences, "
                "or none"
            )
    return chained([x.tolist() if hasattr(x, "tolist") else x for x in X])


def _checked_lengths(lengths: Any, total: int) -> list[int]:
    """Lengths as integers, if they sum to the total."""
    if not np.iterable(lengths) or isinstance(lengths, str | bytes):
        raise InputTypeError(
            f"lengths = {lengths!r}: it must be a list of integers, one for each sequence in X"
        )
    checked = [integer("a length", length, low=0) for length in lengths]
    if sum(checked) != total:
        raise InputError(
            f"lengths sum to {sum(checked)}, but X has {total} symbols: they must agree"
        )
    return checked


def _with_gaps(X: Any) -> Any:
    """X, with masked entries replaced by None."""
    if isinstance(X, list | tuple) and any(isinstance(x, np.ma.MaskedArray) for x in X):
        return [_with_gaps(x) for x in X]
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.getmaskarray(X).any() or X.dtype.kind == "c":  # complex symbols are refused later
        return X.data
    gaps = X.data.astype(object)
    gaps[np.ma.getmaskarray(X)] = None
    return gaps


def _without_unit_columns(X: Any) -> Any:
    """X as one sequence if it is a single column (n, 1), the format of hmmlearn; otherwise X."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1:
        return X[:, 0]
    if isinstance(X, list | tuple) and X and all(_is_sequence(x) and len(x) == 1 for x in X):
        return [x[0] for x in X]
    return X


def _is_sequence(x: Any) -> bool:
    return (
        not isinstance(x, str | bytes)
        and hasattr(x, "__len__")
        and np.ndim(np.asarray(x, dtype=object)) > 0
    )


def encode(
    sequences: Sequences, classes: Classes | None = None, unknown: str = "error"
) -> tuple[list[Codes], Classes]:
    """Codes of each sequence, −1 where a symbol is missing, and the sorted classes.

    If ``classes`` are given, other symbols raise an error or, with unknown="missing", are missing.
    """
    codes, own = factorise(sequences)
    if classes is None:
        warn_of_symbols(own, sum(sequences.lengths))
        return codes, checked_classes(own)
    if np.array_equal(own, classes):
        return codes, classes
    comparable = (own.dtype.kind in "US") == (classes.dtype.kind in "US")
    place = np.searchsorted(classes, own) if comparable else np.zeros(len(own), np.int64)
    place = np.minimum(place, len(classes) - 1)
    strange = np.array([classes[i] != x for x, i in zip(own.tolist(), place, strict=True)], bool)
    if strange.any() and unknown == "error":
        known = ", ".join(map(repr, classes[:8].tolist())) + (", …" if len(classes) > 8 else "")
        raise InputError(
            f"X holds {own[strange].tolist()[0]!r}, which did not occur in fit: the known "
            f"symbols are {known}. With handle_unknown='missing', it would count as a gap"
        )
    return recoded(codes, np.where(strange, MISSING, place)), classes


def recoded(codes: Sequence[AnyArray], place: AnyArray) -> list[AnyArray]:
    """Sequences with code i replaced by place[i]; missing symbols stay missing."""
    # The code −1 picks the last entry
    place = np.append(place, MISSING).astype(place.dtype)
    return [place[x] for x in codes]


def checked_classes(classes: Classes) -> Classes:
    """The classes, if there are between 1 and 4096 of them."""
    if len(classes) == 0:
        raise InputError("X holds no symbol: all are missing")
    if len(classes) > 4096:
        raise InputError(
            f"X holds {len(classes)} different symbols: at most 4096 can be handled. Are they"
            " numbers?"
        )
    return classes


def factorise(sequences: Sequences) -> tuple[list[Codes], Classes]:
    """Codes of each sequence, −1 where a symbol is missing, and the sorted classes."""
    flat = sequences.flat
    if isinstance(flat, np.ndarray) and flat.dtype.kind == "c":
        raise InputError(
            "Complex data not supported: symbols are integers, strings, booleans or floats"
        )
    if isinstance(flat, np.ndarray) and flat.dtype.kind in "iub":
        classes, codes = np.unique(flat, return_inverse=True)
    elif hasattr(flat, "__arrow_c_stream__") or hasattr(flat, "__arrow_c_array__"):
        codes, classes = _factorise_column(flat)
    else:
        codes, classes = _factorise_values(flat)
    return np.split(codes.astype(np.int64), np.cumsum(sequences.lengths)[:-1]), classes


def _factorise_values(flat: Any) -> tuple[Codes, Classes]:
    """Codes and sorted classes of a list or array of values; None, NaN and nulls of pandas are
    missing.
    """
    values = [
        x.item() if isinstance(x, np.generic) else x
        for x in (flat.tolist() if hasattr(flat, "tolist") else flat)
    ]
    kinds = set(map(type, values))
    if kinds - {int, str, float, bool}:
        values = [None if type(x).__name__ in _NULLS else x for x in values]
        kinds = set(map(type, values)) - {type(None)}
    if float in kinds:
        values = [None if x != x else x for x in values]
        kinds = set(map(type, values)) - {type(None)}
    if kinds == {int, float}:
        values = [None if x is None else float(x) for x in values]
    elif len(kinds) > 1 or not kinds <= {int, str, float, bool}:
        raise _wrong_types(kinds)
    number: dict[Any, int] = {None: MISSING}
    codes = np.array([number.setdefault(x, len(number) - 1) for x in values], np.int64)
    del number[None]
    return _sorted_classes(codes, list(number))


def _wrong_types(kinds: set[type]) -> InputTypeError:
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    return InputTypeError(f"X holds symbols of type {names}: {NOT_SYMBOLS}")


def _sorted_classes(codes: Codes, values: list[Any]) -> tuple[Codes, Classes]:
    """Codes of sorted classes, from those of values in any order."""
    if any(isinstance(value, str) and value.endswith("\0") for value in values):
        raise InputError("X holds a symbol that ends in a NUL character, which NumPy would ignore")
    array = np.array(values)
    if set(map(type, values)) == {int} and array.dtype.kind not in "iu":
        raise InputTypeError("X holds integers that do not fit into 64 bits")
    classes, place = np.unique(array, return_inverse=True)
    (codes,) = recoded([codes], place)
    return codes, classes


def _factorise_column(flat: Any) -> tuple[Codes, Classes]:
    """Codes and sorted classes of a column of Arrow, or of a series of pandas or polars."""
    with wanted_for("a column of a table"):
        import pyarrow as pa
        import pyarrow.compute as pc

    try:
        if isinstance(flat, pa.Array | pa.ChunkedArray):
            arrow = flat
        else:
            arrow = (
                pa.chunked_array(flat) if hasattr(flat, "__arrow_c_stream__") else pa.array(flat)
            )
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputTypeError(f"the symbols of X cannot be read ({error}): {NOT_SYMBOLS}") from None
    if pa.types.is_dictionary(arrow.type):
        arrow = pa.array(arrow.to_pylist())
    if pa.types.is_floating(arrow.type):
        arrow = pc.if_else(pc.is_nan(arrow), pa.scalar(None, arrow.type), arrow)  # pyright: ignore
    if pa.types.is_null(arrow.type):
        return np.full(len(arrow), MISSING), np.zeros(0)
    encoded = arrow.dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    values = encoded.dictionary.to_pylist()
    kinds = {type(value) for value in values}
    if (not kinds <= {int, bool} and len(kinds) > 1) or not kinds <= {int, str, float, bool}:
        raise _wrong_types(kinds)
    return _sorted_classes(
        encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False), values
    )
