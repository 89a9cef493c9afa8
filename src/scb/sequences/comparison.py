"""A comparison of models on the same held-out symbols: which model predicts them best, by how many
bits, and how certain that is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError
from scb.sequences.baselines.scoring import baseline_scorers
from scb.sequences.estimator import SparseContextualBigram
from scb.sequences.paired import paired_error
from scb.sequences.summary import text_table
from scb.sequences.symbols import as_sequences
from scb.sequences.tables import Arrays

OWN = "this model"
PLAIN = "plain MTD"


class Score(NamedTuple):
    """A score that says how well a model predicts held-out symbols.

    Attributes
    ----------
    name : str
        The name of the model; "this model" is the fitted model itself.
    bits : float
        The mean number of bits per symbol.
    difference : float
        How many more bits per symbol this model needs than the fitted model.
    error : float
        The standard error of the difference.
    own : bool
        Whether this is the fitted model itself.
    best : bool
        Whether no other model needs fewer bits.

    Examples
    --------
    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 1000, seed=0)
    >>> first, *_ = scb.analyse(scb.SparseContextualBigram(max_lag=6), x, n_halves=0).scores
    >>> first.name, round(first.bits, 2), first.best
    ('this model', 0.39, True)
    """

    name: str
    bits: float
    difference: float
    error: float
    own: bool
    best: bool


def scores_of(likelihoods: Mapping[str, Array]) -> list[Score]:
    """The scores of models, best first, from the log-likelihood (n,) of each held-out symbol in
    nats. ``OWN`` is the name of the model that the others are compared with.
    """
    own = likelihoods[OWN]
    bits = {name: float(-values.mean() / np.log(2)) for name, values in likelihoods.items()}
    best = min(bits.values())
    return [
        Score(
            name=name,
            bits=bits[name],
            difference=bits[name] - bits[OWN],
            error=paired_error((own - likelihoods[name]) / np.log(2)),
            own=name == OWN,
            best=bits[name] == best,
        )
        for name in sorted(bits, key=lambda name: bits[name])
    ]


def own_bits(scores: Sequence[Score]) -> float | None:
    """The bits per held-out symbol of the fitted model itself; None if nothing was held out."""
    return next((score.bits for score in scores if score.own), None)


def beside_best(bits: Sequence[Array]) -> list[dict[str, float]]:
    """For each model, the mean of its bits (n,) for the same symbols, how much larger this mean is
    than for the best model, and the standard error of this difference.
    """
    best = min(bits, key=lambda own: float(own.mean()))
    return [
        {
            "bits": float(own.mean()),
            "difference": float((own - best).mean()),
            "error": paired_error(own - best),
        }
        for own in bits
    ]


@dataclass(frozen=True, repr=False)
class ModelTable:
    """A table with one row for each of several models that were evaluated on the same symbols.

    Attributes
    ----------
    columns : dict of (models,) arrays
        The columns of the table, by name.
    """

    columns: Arrays

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
        forms |= {"weight": "{:.2f}", "alone": "{:.4f}", "adds": "{:+.4f}"}
        cells = {
            name: [forms.get(name, "{}").format(x) for x in column.tolist()]
            for name, column in self.columns.items()
        }
        return "\n".join(text_table(cells))

    __repr__ = __str__


def as_columns(rows: list[dict[str, Any]]) -> Arrays:
    """Rows of a table as its columns."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


class Comparison(ModelTable):
    """The table that ``scb.compare`` returns, with a row for each model and the best model first.

    Printing the object shows the table.

    Attributes
    ----------
    columns : dict of (models,) arrays
        The columns of the table: ``model``, the name of the model; ``bits``, the mean number of
        bits per symbol; ``difference``, how much larger this number is than that of the best
        model; ``error``, the standard error of the difference; ``bic``, the BIC; ``lags``, the
        total number of lags over all symbols; and ``parameters``, the number of parameters.

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
    models: Mapping[str, SparseContextualBigram],
    X: Any,
    *,
    lengths: Any = None,
    train: Any = None,
) -> Comparison:
    """Compare how well fitted models predict the same symbols.

    The symbols should not have been used to fit the models.

    Parameters
    ----------
    models : dict of SparseContextualBigram
        The fitted models, by name. All must have been fitted to the same set of symbols.
    X : sequences
        One sequence of symbols or several, in any form that ``fit`` accepts.
    lengths : list of int, optional
        The lengths of the sequences, if X holds several sequences one after another.
    train : sequences, optional
        The data that the models were fitted to. If these data are given, n-grams, a context tree
        and prediction by partial matching (PPM) are fitted to them and compared as well. The BIC
        and the number of parameters of these baselines are NaN.

    Returns
    -------
    Comparison
        A table with the best model first. Its columns are the bits per symbol, the difference from
        the best model, the standard error of that difference (computed from paired differences in
        blocks of neighbouring symbols), the BIC on X, and the numbers of lags and of parameters.
        ``to_pandas()`` converts the table to a data frame.

    Examples
    --------
    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
    >>> train, test = x[:2000], x[2000:]
    >>> MTD = scb.SparseContextualBigram(max_lag=6, context=False, background="labels")
    >>> models = {
    ...     "this one": scb.SparseContextualBigram(max_lag=6).fit(train),
    ...     "no context": MTD.fit(train),
    ... }
    >>> print(scb.compare(models, test))
         model    bits  difference   error      bic  lags  parameters
      this one  0.4807     +0.0000  0.0000    707.2     3           6
    no context  0.7589     +0.2782  0.0233  1,099.4     2           7
    >>> scb.compare(models, test, train=train).columns["model"][:3].tolist()
    ['this one', '7-gram, kneser-ney', 'context tree, depth 12']
    """
    if not isinstance(models, Mapping) or not models:
        raise InputError(
            f"models = {models!r}: it must be a dict from names to fitted models, with at least "
            "1 model"
        )
    for name, model in models.items():
        if not isinstance(model, SparseContextualBigram):
            raise InputError(
                f"models[{name!r}] is of type {type(model).__name__}: it must be a"
                " SparseContextualBigram"
            )
    X = as_sequences(X, lengths)
    bits = {name: -model.log_likelihoods(X) / np.log(2) for name, model in models.items()}
    predicted = [~np.isnan(one) for one in bits.values()]
    if not all(np.array_equal(predicted[0], other) for other in predicted):
        raise InputError(
            "the models do not predict the same symbols: they must have the same classes and "
            "handle_unknown"
        )
    bits = {name: one[predicted[0]] for name, one in bits.items()}
    facts: dict[str, dict[str, Any]] = {
        name: {
            "bic": model.bic(X),
            "lags": int(model.attention_.nnz),
            "parameters": model.n_parameters_,
        }
        for name, model in models.items()
    }
    if train is not None:
        (model, *_) = models.values()
        for name, nats in _baselines(model, train, X).items():
            bits[name] = -nats / np.log(2)
            facts[name] = {"bic": np.nan, "lags": 0, "parameters": np.nan}
    order = sorted(bits, key=lambda name: float(bits[name].mean()))
    scores = beside_best([bits[name] for name in order])
    rows = [
        {"model": name, **score, **facts[name]} for name, score in zip(order, scores, strict=True)
    ]
    return Comparison(as_columns(rows))


def _baselines(model: SparseContextualBigram, train: Any, test: Any) -> dict[str, Array]:
    """By name, the log-likelihood of each predicted symbol of ``test``, in nats, under n-grams, a
    context tree and PPM that were fitted to the symbols of ``train``.
    """
    fitted, _ = model._codes(train, None)
    unseen, _ = model._codes(test, None)
    scorers = baseline_scorers(fitted, unseen, len(model.classes_))
    return {name: nats for scorer in scorers.values() for name, nats in scorer().items()}
