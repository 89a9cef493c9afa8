"""Several fitted models on the same symbols: who predicts them best, and by how much."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.inputs import InputError
from scb.sequences.estimator import SparseContextualBigram
from scb.sequences.report import paired_error


@dataclass(frozen=True, repr=False)
class ModelTable:
    """A table with one row for each of several models that were evaluated on the same symbols.

    Attributes
    ----------
    columns : dict of (models,) arrays
        The columns of the table, by name.
    """

    columns: dict[str, NDArray[Any]]

    def to_pandas(self) -> Any:
        """Convert the table to a data frame.

        Returns
        -------
        pandas.DataFrame
            A data frame with one row for each model.
        """
        import pandas as pd

        return pd.DataFrame(self.columns)

    def __str__(self) -> str:
        forms = {"bits": "{:.4f}", "difference": "{:+.4f}", "error": "{:.4f}", "bic": "{:,.1f}"}
        cells = {
            name: [forms.get(name, "{}").format(x) for x in column.tolist()]
            for name, column in self.columns.items()
        }
        widths = {name: max(len(name), *map(len, column)) for name, column in cells.items()}
        lines = [[name.rjust(widths[name]) for name in cells]]
        lines += [
            [x.rjust(widths[name]) for name, x in zip(cells, row, strict=True)]
            for row in zip(*cells.values(), strict=True)
        ]
        return "\n".join("  ".join(line) for line in lines)

    __repr__ = __str__


class Comparison(ModelTable):
    """The table that ``scb.compare`` returns: models on the same symbols, best first.

    Printing the object shows the table.

    Attributes
    ----------
    columns : dict of (models,) arrays
        The columns of the table: ``model``, its name; ``bits``, the mean number of bits per symbol;
        ``difference``, how much larger that is than for the best model; ``error``, the standard
        error of the difference; ``bic``; ``lags``, the number of lags over all contexts; and
        ``parameters``, the number of parameters.

    Examples
    --------
    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
    >>> models = {str(lag): scb.SparseContextualBigram(max_lag=lag).fit(x[:2000]) for lag in (1, 6)}
    >>> table = scb.compare(models, x[2000:])
    >>> table.columns["model"], table.to_pandas().shape
    (array(['6', '1'], dtype='<U1'), (2, 7))
    """


def compare(
    models: Mapping[str, SparseContextualBigram], X: Any, *, lengths: Any = None
) -> Comparison:
    """Compare how well fitted models predict the same symbols.

    These should not have been used to fit them.

    Parameters
    ----------
    models : dict of SparseContextualBigram
        The fitted models, by name. All must have been fitted to the same set of symbols.
    X : sequences
        One sequence of symbols or several, in any form that ``fit`` accepts.
    lengths : list of int, optional
        The lengths of the sequences, if X is several sequences one after the other.

    Returns
    -------
    Comparison
        A table with the best model first. Its columns are the bits per symbol, the difference from
        the best model, the standard error of that difference (computed from blocks of neighbouring
        symbols, since all models predict the same symbols), the BIC on X, and the numbers of lags
        and of parameters. ``to_pandas()`` converts it to a data frame.

    Examples
    --------
    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
    >>> train, test = x[:2000], x[2000:]
    >>> models = {
    ...     "this one": scb.SparseContextualBigram(max_lag=6).fit(train),
    ...     "no context": scb.SparseContextualBigram(max_lag=6, context=False).fit(train),
    ... }
    >>> print(scb.compare(models, test))
         model    bits  difference   error      bic  lags  parameters
      this one  0.4807     +0.0000  0.0000    707.2     3           6
    no context  0.7589     +0.2782  0.0233  1,099.4     2           7
    """
    if not isinstance(models, Mapping) or not models:
        raise InputError(
            f"models = {models!r}: it must be a dict of names and fitted models, at least 1"
        )
    for name, model in models.items():
        if not isinstance(model, SparseContextualBigram):
            raise InputError(
                f"models[{name!r}] is of type {type(model).__name__}: it must be a SparseContextualBigram"
            )
    each = {
        name: -model.log_likelihoods(X, lengths=lengths) / np.log(2)
        for name, model in models.items()
    }
    if len({bits.size for bits in each.values()}) > 1:
        raise InputError(
            "the models do not predict the same symbols: have they the same classes and handle_unknown?"
        )
    order = sorted(each, key=lambda name: float(each[name].mean()))
    best = each[order[0]]
    rows = [
        {
            "model": name,
            "bits": float(each[name].mean()),
            "difference": float((each[name] - best).mean()),
            "error": paired_error(each[name] - best),
            "bic": models[name].bic(X, lengths=lengths),
            "lags": int(models[name].attention_.nnz),
            "parameters": models[name].n_parameters_,
        }
        for name in order
    ]
    return Comparison({name: np.array([row[name] for row in rows]) for name in rows[0]})
