"""How many lags are worth having: models with one lag in each context, with two, and so on, on symbols that they have not seen."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from scb.inputs import InputError, integer, number
from scb.sequences.coding import Codes, windows_of_codes
from scb.sequences.comparison import ModelTable
from scb.sequences.estimator import SparseContextualBigram
from scb.sequences.lag_fit import fit_lags
from scb.sequences.report import paired_error
from scb.sequences.symbols import as_sequences, encode

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SparsityPath(ModelTable):
    """Models from few lags to many; the last one has the lags that the data ask for. A text when printed.

    Attributes
    ----------
    columns : dict of (models,) arrays
        lags (a number, or "auto"), total (over all contexts), parameters, bic, bits (a held-out symbol), difference (from the
        best), error (of the difference).

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
        """Held-out bits a symbol, or the BIC, against the number of lags.

        Bars are the standard error of the distance from the best. The model with the lags that the data ask for stands apart.

        Parameters
        ----------
        criterion : {"bits", "bic"}, default "bits"
            What is drawn.
        ax : matplotlib.axes.Axes, optional
            Where; a new figure unless given.

        Returns
        -------
        matplotlib.axes.Axes
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
        ax.errorbar(total[given], value[given], error[given], marker="o", capsize=3, label="so many in each context")
        ax.errorbar(total[~given], value[~given], error[~given], marker="s", capsize=3, ls="none", label="as the data ask for")
        for x, y, name in zip(total[given], value[given], self.columns["lags"][given].tolist(), strict=True):
            ax.annotate(name, (x, y), textcoords="offset points", xytext=(5, 5), fontsize=8)
        ax.set(xlabel="lags, over all contexts", ylabel={"bits": "held-out bits a symbol", "bic": "BIC"}[criterion])
        ax.legend(fontsize=8)
        return ax


def sparsity_path(
    model: SparseContextualBigram, X: Any, numbers: Sequence[int] = (1, 2, 3, 4), *, lengths: Any = None, held_out: float = 0.2
) -> SparsityPath:
    """How many lags are worth having: models with one in each context, two, and so on, and with those that the data ask for.

    Parameters
    ----------
    model : SparseContextualBigram
        An estimator with the parameters that are to be used; it need not be fitted, is not changed, and says how far it is
        where it is ``verbose``.
    X : sequences
        One sequence of symbols or many, as for ``fit``.
    numbers : sequence of int, default (1, 2, 3, 4)
        How many lags each context has.
    lengths : list of int, optional
        Where X is many sequences one after the other, their lengths.
    held_out : float, default 0.2
        The last part of one sequence, or of many sequences the last ones, which are predicted and not fitted.

    Returns
    -------
    SparsityPath
        A table: lags (a number, or "auto"), total (over all contexts), parameters, the BIC on what is fitted, bits a held-out
        symbol, by how much more than the best (difference), and its standard error over blocks of neighbours (error).
        ``to_pandas()``, ``plot()``.

    Examples
    --------
    One lag is enough, and a second one in each context only costs parameters:

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
    train, test, skipped = _parted(codes, held_out, settings.max_lag)
    contexts = bool(settings.context)
    data = windows_of_codes(train, len(classes), settings.max_lag, contexts)
    unseen = windows_of_codes(test, len(classes), settings.max_lag, contexts, skipped)
    rows = []
    bits = []
    for lags in [*asked, "auto"]:
        if model.verbose:
            print(f"path: {lags} lags in each context", file=sys.stderr, flush=True)
        fitted, facts = fit_lags(data, classes, replace(settings, lags=lags))
        bits.append(-fitted.log_likelihoods(unseen) / np.log(2))
        bic = np.log(facts.n_windows) * facts.n_parameters - 2 * facts.loglik
        rows.append({"lags": str(lags), "total": fitted.attention.nnz, "parameters": facts.n_parameters, "bic": float(bic)})
    best = min(bits, key=lambda one: float(one.mean()))
    for row, one in zip(rows, bits, strict=True):
        row |= {"bits": float(one.mean()), "difference": float((one - best).mean()), "error": paired_error(one - best)}
    return SparsityPath({name: np.array([row[name] for row in rows]) for name in rows[0]})


def _parted(codes: list[Codes], part: float, max_lag: int) -> tuple[list[Codes], list[Codes], int]:
    """What is fitted, what is predicted, and how many symbols at the start of that are only there to be looked back at."""
    if len(codes) > 1:
        cut = min(max(1, round(len(codes) * (1 - part))), len(codes) - 1)
        return codes[:cut], codes[cut:], 0
    cut = round(len(codes[0]) * (1 - part))
    if not 1 < cut < len(codes[0]):
        raise InputError(f"{len(codes[0])} symbols are too few for held_out = {part}")
    first = max(0, cut - max_lag)
    return [codes[0][:cut]], [codes[0][first:]], cut - first
