"""From what people have to codes: symbols of any kind, in one sequence or many, with gaps.

Accepted: a 1-D array or list of symbols; a list of such sequences, of any lengths; a 2-D array,
whose rows are sequences (one of a single column is one sequence); a column of pandas, polars or
Arrow; a frame, as ``scb.sequences.tables`` reads it; and what ``scb.read_sequences`` gives. Symbols
are integers, strings, booleans or floats. None, NaN, NaT, the null of pandas and of Arrow are
missing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.extras import wanted_for
from scb.inputs import InputError, InputTypeError, integer
from scb.mixture.data import is_dask
from scb.sequences.tables import Columns, as_arrow, is_table, lay_out

MISSING = -1
_MOST = 4096
# Types of what is missing, in Python, pandas and NumPy
_NOTHING = ("NoneType", "NAType", "NaTType", "MaskedConstant")


@dataclass(frozen=True, repr=False)
class Sequences:
    r"""One or more sequences of symbols, as ``scb.read_sequences`` returns them.

    Iterating gives each sequence as a list, with None for missing symbols.

    Attributes
    ----------
    flat : (n,) array, list or column of Arrow
        The symbols of all sequences, one sequence after the other.
    lengths : list of int
        The number of symbols in each sequence.
    many : bool
        Whether the source was a collection of sequences, rather than a single one (possibly split
        by lengths).
    said : str, default ""
        A description of how a table or file was read.
    names : list, optional
        The names of the sequences, if the table has a column that tells them apart.

    Examples
    --------
    >>> from pathlib import Path
    >>> import scb
    >>> _ = Path("visits.csv").write_text("user,page\nann,home\nann,shop\nbob,home\n")
    >>> visits = scb.read_sequences("visits.csv", column="page", group="user")
    >>> visits
    Sequences(2 of them, 3 symbols: column 'page' in 2 sequences, one for each 'user', in the order of the rows)
    >>> visits.names, list(visits)
    (['ann', 'bob'], [['home', 'shop'], ['home']])
    """

    flat: Any
    lengths: list[int]
    many: bool
    said: str = ""
    names: list[Any] | None = None

    def __len__(self) -> int:
        """How many sequences."""
        return len(self.lengths)

    def __iter__(self) -> Iterator[list[Any]]:
        """The sequences, each a list of symbols, None where one is missing."""
        flat = self.flat.to_pylist() if hasattr(self.flat, "to_pylist") else list(self.flat)
        bounds = np.cumsum([0, *self.lengths]).tolist()
        return (flat[a:b] for a, b in pairwise(bounds))

    def __repr__(self) -> str:
        return f"Sequences({len(self.lengths):,} of them, {sum(self.lengths):,} symbols: {self.said or 'as given'})"


def shown(symbol: Any) -> str:
    """A symbol as a reader sees it: what cannot be printed, and space at its ends, is written out."""
    text = str(symbol)
    return (
        text
        if isinstance(symbol, str) and text.isprintable() and text.strip() == text and text
        else repr(symbol)
    )


def inert(cell: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula: text that begins as one gets an
    apostrophe; numbers stay.
    """
    return (
        f"'{cell}"
        if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))
        else cell
    )


def as_sequences(X: Any, lengths: Any = None) -> Sequences:
    """Tell one sequence from many, and check lengths."""
    if is_dask(X):
        raise InputTypeError(
            "X is a collection of Dask: only fit takes one; here give X.compute(), or a part of it"
        )
    if hasattr(X, "todense") or hasattr(X, "toarray"):
        raise InputTypeError(
            "X is a sparse matrix: sequences of symbols are wanted, as a dense array or a list"
        )
    if isinstance(X, str | bytes):
        raise InputTypeError(
            "X is a string: for its characters give list(X), for its words X.split()"
        )
    X = _with_gaps(X)
    if isinstance(X, Sequences):
        if lengths is not None:
            raise InputError("lengths are for one long X; these sequences are told apart already")
        return X
    if is_table(X):
        laid = lay_out(as_arrow(X), Columns(), option="scb.read_sequences(X, {}=…)")
        if laid.many and lengths is not None:
            raise InputError("lengths are for one long X; here X holds sequences already")
        if laid.many:
            return Sequences(laid.flat, laid.lengths, many=True, said=laid.said, names=laid.names)
        X = laid.flat
    if lengths is not None or (isinstance(X, np.ndarray) and X.ndim == 2):
        X = _without_unit_columns(X)
    if (isinstance(X, np.ndarray) and X.ndim == 0) or not hasattr(X, "__len__"):
        raise InputTypeError(
            f"X is of type {type(X).__name__}: it must be a sequence of symbols, or sequences"
        )
    if len(X) == 0:
        raise InputError(
            "X holds 0 sample(s) (shape=(0,)) while a minimum of 1 is required: it must not be empty"
        )
    rows = isinstance(X, np.ndarray) and X.ndim == 2
    if rows and X.shape[1] == 0:
        raise InputError(
            f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required: the rows of X are empty"
        )
    if isinstance(X, np.ndarray) and X.ndim > 2:
        raise InputError(f"X has {X.ndim} dimensions: one sequence has 1, rows of sequences have 2")
    if rows or (isinstance(X, list | tuple) and any(_is_sequence(x) for x in X)):
        if lengths is not None:
            raise InputError("lengths are for one long X; here X holds sequences already")
        if isinstance(X, np.ndarray):
            return Sequences(X.reshape(-1), [X.shape[1]] * len(X), many=True)
        for i, x in enumerate(X):
            if not _is_sequence(x):
                raise InputError(
                    f"X[{i}] is {x!r}, but other items are sequences: all of them must be, or none"
                )
        flat = [symbol for x in X for symbol in (x.tolist() if hasattr(x, "tolist") else x)]
        return Sequences(flat, [len(x) for x in X], many=True)
    if lengths is None:
        return Sequences(X, [len(X)], many=False)
    if not np.iterable(lengths) or isinstance(lengths, str | bytes):
        raise InputTypeError(
            f"lengths = {lengths!r}: it must be a list of integers, one for each sequence in X"
        )
    lengths = [integer("a length", length, low=0) for length in lengths]
    if sum(lengths) != len(X):
        raise InputError(
            f"lengths sum to {sum(lengths)}, and X has {len(X)} symbols: they must agree"
        )
    return Sequences(X, lengths, many=False)


def _with_gaps(X: Any) -> Any:
    """The same, with masked entries as symbols that are missing."""
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
    """One sequence that stands in a single column, (n, 1), as hmmlearn wants it, without that
    column; anything else as it is.
    """
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
    sequences: Sequences, classes: NDArray[Any] | None = None, unknown: str = "error"
) -> tuple[list[NDArray[np.int64]], NDArray[Any]]:
    """Codes of each sequence, −1 where a symbol is missing, and the sorted classes; others than
    given ``classes`` are an error, or "missing".
    """
    codes, found = factorise(sequences)
    if classes is None:
        return codes, checked_classes(found)
    if np.array_equal(found, classes):
        return codes, classes
    comparable = (found.dtype.kind in "US") == (classes.dtype.kind in "US")
    place = np.searchsorted(classes, found) if comparable else np.zeros(len(found), np.int64)
    place = np.minimum(place, len(classes) - 1)
    strange = np.array([classes[i] != x for x, i in zip(found.tolist(), place, strict=True)], bool)
    if strange.any() and unknown == "error":
        known = ", ".join(map(repr, classes[:8].tolist())) + (", …" if len(classes) > 8 else "")
        raise InputError(
            f"X holds {found[strange].tolist()[0]!r}, which did not occur in fit: known are {known}."
            " With handle_unknown='missing' it counts as a gap"
        )
    place = np.where(strange, MISSING, place)
    place = np.append(place, MISSING)  # the last place is that of a gap
    return [place[x] for x in codes], classes


def checked_classes(classes: NDArray[Any]) -> NDArray[Any]:
    """The classes, if there are any, and not too many."""
    if len(classes) == 0:
        raise InputError("X holds no symbol: all are missing")
    if len(classes) > _MOST:
        raise InputError(
            f"X holds {len(classes)} different symbols: at most {_MOST} can be handled. Are they numbers?"
        )
    return classes


def factorise(sequences: Sequences) -> tuple[list[NDArray[np.int64]], NDArray[Any]]:
    """Codes of each sequence, −1 where a symbol is missing, and the sorted classes, however many."""
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


def _factorise_values(flat: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Codes and sorted classes of a list or an array of Python's or NumPy's values; None and NaN
    are gaps, and pandas' null.
    """
    values = [
        x.item() if isinstance(x, np.generic) else x
        for x in (flat.tolist() if hasattr(flat, "tolist") else flat)
    ]
    kinds = set(map(type, values))
    if kinds - {int, str, float, bool}:
        values = [None if type(x).__name__ in _NOTHING else x for x in values]
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
    return InputTypeError(
        f"X holds symbols of type {names}: they must be integers, strings, booleans or floats, of one type"
    )


def _sorted_classes(
    codes: NDArray[np.int64], values: list[Any]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Codes of sorted classes, from those of values in any order; −1 stays a gap."""
    if any(isinstance(value, str) and value.endswith("\0") for value in values):
        raise InputError(
            "X holds a symbol that ends in a NUL character: NumPy would take it for the symbol without"
        )
    found = np.array(values)
    if set(map(type, values)) == {int} and found.dtype.kind not in "iu":
        raise InputTypeError("X holds integers that do not fit into 64 bits")
    classes, place = np.unique(found, return_inverse=True)
    return np.append(place, MISSING)[codes], classes  # the last place is that of a gap


def _factorise_column(flat: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Codes and sorted classes of a column of Arrow, or of what can be handed over as one: a series
    of pandas or Polars.
    """
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
        raise InputTypeError(
            f"X cannot be read ({error}): symbols must be integers, strings, booleans or floats, of one type"
        ) from None
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
