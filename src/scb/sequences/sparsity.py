"""How many lags are worth having: models with one lag after each symbol, with two lags, and so on,
are compared on held-out symbols.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from scb.inputs import InputError, integer, number
from scb.sequences.analysis import split
from scb.sequences.choice import chosen_settings
from scb.sequences.coding import windows_of_codes
from scb.sequences.comparison import ModelTable, as_columns, beside_best
from scb.sequences.estimator import SparseContextualBigram
from scb.sequences.lag_fit import fit_lags
from scb.sequences.symbols import as_sequences, encode

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SparsityPath(ModelTable):
    """The table that ``scb.sparsity_path`` returns, with a row for each number of lags.

    The last row is the model whose lags were selected automatically. Printing the object shows the
    table.

    Attributes
    ----------
    columns : dict of (models,) arrays
        The columns of the table: ``lags``, the number of lags after each symbol or "auto";
        ``total``, the total number of lags over all symbols; ``parameters``, the number of
        parameters; ``bic``, the BIC; ``bits``, the mean number of bits per held-out symbol;
        ``difference``, how much larger this mean is than that of the best model; and ``error``, the
        standard error of the difference.

    Examples
    --------
    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
    >>> path = scb.sparsity_path(scb.SparseContextualBigram(max_lag=6), x, numbers=[1, 2])
    >>> path.columns["lags"], path.to_pandas().shape
    (array(['1', '2', 'auto'], dtype='<U4'), (3, 7))
    >>> axes = path.plot("bic")
    >>> axes.get_ylabel()
    'BIC'
    """

    def plot(self, criterion: Literal["bits", "bic"] = "bits", ax: "Axes | None" = None) -> "Axes":
        """Plot the bits per held-out symbol, or the BIC, against the total number of lags.

        Error bars show the standard error of the difference from the best model. The model whose
        lags were selected automatically is drawn as a separate point.

        Parameters
        ----------
        criterion : {"bits", "bic"}, default "bits"
            The quantity on the vertical axis.
        ax : matplotlib.axes.Axes, optional
            The axes to draw in. By default a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the plot.
        """
        from matplotlib.figure import Figure

        if criterion not in ("bits", "bic"):
            raise InputError(f"criterion = {criterion!r}: it must be 'bits' or 'bic'")
        if ax is None:
            ax = Figure(figsize=(4.5, 3.2), layout="constrained").subplots()
        given = self.columns["lags"] != "auto"
        total = self.columns["total"]
        value = self.columns[criterion]
        error = self.columns["error"] if criterion == "bits" else np.zeros(len(value))
        for rows, style, label in (
            (given, "o-", "same number after each symbol"),
            (~given, "s", "selected automatically"),
        ):
            ax.errorbar(total[rows], value[rows], error[rows], fmt=style, capsize=3, label=label)
        for x, y, name in zip(
            total[given], value[given], self.columns["lags"][given].tolist(), strict=True
        ):
            ax.annotate(name, (x, y), textcoords="offset points", xytext=(5, 5), fontsize=8)
        ax.set(
            xlabel="lags, over all symbols",
            ylabel={"bits": "bits per held-out symbol", "bic": "BIC"}[criterion],
        )
        ax.legend(fontsize=8)
        return ax


def sparsity_path(
    model: SparseContextualBigram,
    X: Any,
    numbers: Sequence[int] = (1, 2, 3, 4),
    *,
    lengths: Any = None,
    held_out: float = 0.2,
) -> SparsityPath:
    """Fit models with 1, 2, … lags per symbol, and compare them on held-out symbols.

    A model whose lags are selected automatically, as with ``lags="auto"``, is fitted too.

    Parameters
    ----------
    model : SparseContextualBigram
        An estimator with the parameters to use. The estimator need not be fitted and is not
        changed. If the estimator is ``verbose``, progress is printed.
    X : sequences
        One sequence of symbols or several, in any form that ``fit`` accepts.
    numbers : sequence of int, default (1, 2, 3, 4)
        The numbers of lags after each symbol to try.
    lengths : list of int, optional
        The lengths of the sequences, if X holds several sequences one after another.
    held_out : float, default 0.2
        The fraction of X that is predicted and not used to fit. Whole sequences are drawn at
        random. If a sequence contains more than a tenth of all symbols, only its end is held out.

    Returns
    -------
    SparsityPath
        A table with the number of lags after each symbol and in total, the number of parameters,
        the BIC on the data of the fit, the bits per held-out symbol, the difference from the best
        model, and the standard error of that difference over blocks of neighbouring symbols. The
        table has the methods ``to_pandas`` and ``plot``.

    Examples
    --------
    Here one lag after each symbol is enough. A second lag hardly improves the prediction and costs
    additional parameters:

    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
    >>> print(scb.sparsity_path(scb.SparseContextualBigram(max_lag=6), x, numbers=[1, 2]))
    lags  total  parameters      bic    bits  difference   error
       1      3           6  1,523.3  0.4143     +0.0008  0.0011
       2      5           8  1,537.3  0.4136     +0.0000  0.0000
    auto      3           6  1,523.3  0.4143     +0.0008  0.0011
    """
    if not 0 < number("held_out", held_out) < 1:
        raise InputError(f"held_out = {held_out}: it must lie between 0 and 1")
    settings = model._settings()
    if not isinstance(numbers, Iterable):
        raise InputError(f"numbers = {numbers!r}: it must be a list of integers, each at least 1")
    asked: list[Any] = [integer("numbers", one, low=1) for one in numbers]
    codes, classes = encode(as_sequences(X, lengths))
    train, test, skipped, *_ = split(codes, held_out)
    windows = partial(windows_of_codes, N=len(classes), max_lag=settings.max_lag)
    data = windows(train, context=settings.has_states)
    settings, _ = chosen_settings(data, classes, settings)
    data = windows(train, context=settings.has_states)
    unseen = windows(test, context=settings.has_states, skipped=skipped)
    rows = []
    bits = []
    for lags in [*asked, "auto"]:
        if model.verbose:
            print(f"path: {lags} lags after each symbol", file=sys.stderr, flush=True)
        fitted = fit_lags(data, classes, replace(settings, lags=lags))
        facts = fitted.facts
        bits.append(-fitted.log_likelihoods(unseen) / np.log(2))
        rows.append(
            {
                "lags": str(lags),
                "total": fitted.attention.nnz,
                "parameters": facts.n_parameters,
                "bic": float(np.log(facts.n_windows) * facts.n_parameters - 2 * facts.loglik),
            }
        )
    return SparsityPath(
        as_columns([row | score for row, score in zip(rows, beside_best(bits), strict=True)])
    )
