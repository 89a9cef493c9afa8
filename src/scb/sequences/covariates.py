"""Covariates: columns of values that are known when a symbol is predicted, such as the hour, the
season or the kind of user.

Values are categories. Numbers with many distinct values are first cut at their quantiles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from scb.arrays import Array, Ints
from scb.inputs import InputError
from scb.sequences.binning import quantile_edges
from scb.sequences.symbols import as_sequences, encode, factorise, readable
from scb.sequences.tables import Classes, Codes, Sequences, as_arrow, is_table, one_sequence

# Numbers with more different values than this are cut into so many bins
DISTINCT, BINS = 31, 8
# A covariate may have at most so many values: its matrix has a column for each
MOST_VALUES = 512


@dataclass(frozen=True)
class Covariate:
    """The values of one covariate in a fit."""

    name: str
    # (V,), sorted; the numbers of bins, where there are edges
    values: Classes
    # (V,), how often each value occurs
    frequencies: Array
    # (V − 1,), where numbers were cut: a bin has its upper edge
    edges: Array | None = None

    @property
    def names(self) -> list[str]:
        """(V,): the values for a reader."""
        if self.edges is None:
            return [readable(x) for x in self.values.tolist()]
        ends = [f"{x:.4g}" for x in self.edges]
        between = [f"{low} to {high}" for low, high in pairwise(ends)]
        return [f"up to {ends[0]}", *between, f"over {ends[-1]}"]

    @classmethod
    def fit(cls, name: str, column: Any) -> tuple["Covariate", Codes]:
        """The values of a column, and their codes (n,)."""
        sequence = one_sequence(column)
        (codes,), values = _named(name, factorise, sequence)
        edges = None
        if len(values) > DISTINCT and values.dtype.kind in "iuf":
            edges = quantile_edges(values[codes[codes >= 0]], BINS)
            codes = _binned(codes, values, edges)
            values = np.arange(len(edges) + 1)
        if not 1 <= len(values) <= MOST_VALUES:
            raise InputError(
                f"covariates: {name!r} has {len(values):,} different values, but there must be "
                f"between 1 and {MOST_VALUES}; give rare values a common name"
            )
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        return cls(name, values, counts / counts.sum(), edges), codes

    def codes(self, column: Any, unknown: str) -> Codes:
        """(n,): codes of the values of another column; see ``handle_unknown`` of the estimator."""
        sequence = one_sequence(column)
        if self.edges is not None:
            (codes,), values = _named(self.name, factorise, sequence)
            return _binned(codes, values, self.edges)
        (codes,), _ = _named(self.name, encode, sequence, self.values, unknown)
        return codes


def _binned(codes: Codes, values: Classes, edges: Array) -> Codes:
    """Codes of bins from codes of numbers."""
    return np.where(codes < 0, codes, np.append(np.searchsorted(edges, values), 0)[codes])


def _named(name: str, function: Any, *arguments: Any) -> Any:
    """What a function of a column returns; its errors name the covariate."""
    try:
        return function(*arguments)
    except InputError as error:
        message = str(error).removeprefix("X holds")
        raise type(error)(f"covariates: {name!r} holds{message}") from None


# ------------------------------------------------------------------------------------- reading


def columns_of(covariates: Any) -> dict[str, Any]:
    """The columns of a table, of a mapping from names to columns, of a 2-D array, or of a single
    column.
    """
    if isinstance(covariates, Mapping):
        return {str(name): column for name, column in covariates.items()}
    if is_table(covariates):
        table = as_arrow(covariates)
        return {str(name): table[name] for name in table.column_names}
    if isinstance(covariates, np.ndarray) and covariates.ndim == 2:
        return {f"covariate {i + 1}": column for i, column in enumerate(covariates.T)}
    return {str(getattr(covariates, "name", None) or "covariate"): covariates}


def flat_columns(covariates: Any, rows: Mapping[str, int], take: Any = None) -> dict[str, Any]:
    """Columns whose number of values is one of the numbers in ``rows``; the keys of ``rows`` say
    what has a row, and ``take`` maps a number of rows to the rows that are wanted.
    """
    flat = {}
    for name, column in columns_of(covariates).items():
        values = as_sequences(column).flat
        n = len(values)
        if n not in rows.values():
            wanted = " or ".join(f"each of the {k:,} {what}" for what, k in rows.items())
            raise InputError(
                f"covariates: {name!r} has {n:,} values, but there must be one for {wanted}"
            )
        listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
        flat[name] = listed if take is None else [listed[i] for i in take(n).tolist()]
    if not flat:
        raise InputError("covariates: there is no column")
    return flat


def beside_symbols(covariates: Any, sequences: Sequences) -> dict[str, Any]:
    """Columns with a value for each symbol of sequences, from values for symbols or for sequences.
    In a table, each row is a symbol.
    """
    lengths = np.array(sequences.lengths)
    symbols = int(lengths.sum())
    n_rows = symbols if sequences.rows is None else sequences.n_rows
    rows = {"symbols": n_rows}
    if sequences.many or len(lengths) > 1:
        rows["sequences"] = len(lengths)

    def take(n: int) -> Ints:
        if n == n_rows:
            return np.arange(n) if sequences.rows is None else sequences.rows
        return np.repeat(np.arange(n), lengths)

    return flat_columns(covariates, rows, take)


def fitted_covariates(columns: Mapping[str, Any]) -> tuple[tuple[Covariate, ...], Ints]:
    """Covariates, and their codes (rows, covariates)."""
    fitted = [Covariate.fit(name, column) for name, column in columns.items()]
    return tuple(one for one, _ in fitted), np.column_stack([codes for _, codes in fitted])


def coded_covariates(
    known: Sequence[Covariate], used: set[str], columns: Mapping[str, Any], n: int, unknown: str
) -> Ints:
    """(n, covariates): codes of the values of columns, −1 for a covariate that is neither used nor
    given.
    """
    if lacking := sorted(used - columns.keys()):
        raise InputError(
            f"covariates: this model needs {', '.join(map(repr, lacking))} to predict a symbol"
        )
    codes = np.full((n, len(known)), -1)
    for i, one in enumerate(known):
        if one.name in columns:
            codes[:, i] = one.codes(columns[one.name], unknown)
    return codes
