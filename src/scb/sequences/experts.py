"""A predictor built around a model of lags: several experts predict the next symbol, and their
predictions are multiplied.

The lags show what matters, but they are not always the best predictor. Here each expert j has a
distribution p_j of the next symbol and a weight w_j, and the prediction is p ∝ Π_j p_j^w_j. An
expert that knows nothing new has a weight near 0, and an overconfident expert has a weight below 1.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from scb.arrays import AnyArray, Array
from scb.inputs import InputError, number
from scb.sequences.analysis import split
from scb.sequences.coding import windows_of_codes
from scb.sequences.comparison import ModelTable
from scb.sequences.estimator import SparseContextualBigram
from scb.sequences.lag_fit import fit_lags
from scb.sequences.product import (
    HeldOut,
    bits_of,
    fit_experts,
    logs_of,
    predicted,
    useful_weights,
    what_each_adds,
)
from scb.sequences.symbols import as_sequences, encode
from scb.sequences.tables import Codes


class ExpertTable(ModelTable):
    """The table that ``Experts.summary`` returns, which shows what each expert adds.

    Printing the object shows the table.

    Attributes
    ----------
    columns : dict of (experts,) arrays
        The columns of the table: ``expert``, the name of the expert; ``weight``, its weight;
        ``alone``, the bits per held-out symbol that it needs alone; and ``adds``, how many more
        bits the other experts need without it.

    Examples
    --------
    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 2000, seed=0)
    >>> table = scb.Experts(scb.SparseContextualBigram(max_lag=6)).fit(x).summary()
    >>> table.columns["expert"].tolist()
    ['lags', 'n-gram', 'recent symbols', 'recent pairs', 'longest match']
    >>> list(table.to_pandas().columns)
    ['expert', 'weight', 'alone', 'adds']
    """


class Experts(BaseEstimator):
    """A predictor that multiplies the predictions of several experts, including a model of lags.

    The other experts are an n-gram and three adaptive experts. The adaptive experts predict,
    respectively, from the symbols that were frequent recently, from the symbols that recently
    followed the current one, and from what followed the last occurrence of the same recent symbols.
    All three learn from the sequence as they predict it. The prediction is p ∝ Π_j p_j^w_j. The
    weights w are fitted to a held-out part of the data, and then all experts are fitted to all the
    data.

    Parameters
    ----------
    model : SparseContextualBigram, optional
        The estimator of the lags, by default one with default parameters. This estimator need not
        be fitted and is not changed.
    held_out : float, default 0.2
        The fraction of the data that the weights are fitted to. Whole sequences are drawn at
        random. If a sequence contains more than a tenth of all symbols, only its end is held out.
    random_state : int, default 0
        The seed with which held-out sequences are drawn.

    Attributes
    ----------
    model_ : SparseContextualBigram
        The model of lags, fitted to all the data. Its table of lags is the same as if the estimator
        had been fitted on its own.
    classes_ : (N,) array
        The symbols, sorted.
    weights_ : dict of float
        The weight of each expert, which is 0 if the other experts predict equally well without it.
    bits_ : float
        The bits per held-out symbol that the experts need together.

    Examples
    --------
    In this sequence, pieces of 40 symbols recur at no fixed distance, with new symbols between
    them:

    >>> import numpy as np, scb
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(4, size=100).tolist()
    >>> while len(x) < 2000:
    ...     start = rng.integers(len(x) - 40)
    ...     x += x[start : start + 40] + rng.integers(4, size=10).tolist()
    >>> experts = scb.Experts(scb.SparseContextualBigram(max_lag=6)).fit(x)
    >>> table = experts.summary().columns
    >>> table["expert"][table["adds"].argmax()]
    np.str_('longest match')
    >>> experts.predict_proba(x[:20]).shape, experts.predict(x[:3]).shape
    ((20, 4), (3,))
    >>> experts.log_likelihoods(x).size, experts.score(x) > experts.model_.score(x)
    (1999, True)
    """

    def __init__(
        self,
        model: SparseContextualBigram | None = None,
        *,
        held_out: float = 0.2,
        random_state: int = 0,
    ) -> None:
        self.model = model
        self.held_out = held_out
        self.random_state = random_state

    # -------------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, *, lengths: Any = None) -> Self:
        """Fit the experts and their weights.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that the estimator accepts except Dask
            collections.
        y : ignored
            Present for compatibility with scikit-learn.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.

        Returns
        -------
        Experts
            The predictor itself.
        """
        if not 0 < number("held_out", self.held_out) < 1:
            raise InputError(f"held_out = {self.held_out}: it must lie between 0 and 1")
        model = SparseContextualBigram() if self.model is None else self.model
        estimator: Any = clone(model)
        self.model_: SparseContextualBigram = estimator.fit(X, lengths=lengths)
        self.classes_ = self.model_.classes_
        fitted = self.model_._model()
        codes, classes = encode(as_sequences(X, lengths))
        parts = split(codes, self.held_out, self.random_state)
        windows = windows_of_codes(parts.train, len(classes), fitted.max_lag, fitted.context)
        settings = replace(
            self.model_._settings(),
            context=fitted.context,
            transition=fitted.transition,
            background=fitted.background.option if fitted.background else "labels",
        )
        held_out = HeldOut(parts.test, parts.skipped)
        trial = held_out.tuned(fit_experts(fit_lags(windows, classes, settings), parts.train))
        logs = held_out.logs(trial)
        weights = useful_weights(logs, held_out.labels)
        self.weights_ = dict(zip(trial, weights.tolist(), strict=True))
        self._columns = what_each_adds(list(trial), logs, held_out.labels, weights)
        self.bits_ = bits_of(logs, held_out.labels, weights)
        self._experts = fit_experts(fitted, codes, trial)
        return self

    def summary(self) -> ExpertTable:
        """Show what each expert adds to the prediction of held-out symbols.

        Returns
        -------
        ExpertTable
            A table that can be printed; ``to_pandas()`` converts it to a data frame, and
            ``columns`` holds it as a dictionary.
        """
        check_is_fitted(self)
        return ExpertTable(self._columns)

    # ----------------------------------------------------------------------------------- predicting

    def _distributions(self, codes: Codes) -> Array:
        """(n, N): the distribution of the next symbol after each symbol of a sequence."""
        used = {name: weight for name, weight in self.weights_.items() if weight}
        logits = sum(w * logs_of(self._experts[name], codes)[1:] for name, w in used.items())
        return np.asarray(softmax(logits, axis=1))

    def _codes(self, X: Any, lengths: Any) -> tuple[list[Codes], bool]:
        check_is_fitted(self)
        return self.model_._codes(X, lengths)

    def predict_proba(self, X: Any, *, lengths: Any = None) -> Array:
        """Predict the distribution of the next symbol.

        The prediction is made after each symbol of a single sequence, or after the end of each of
        several sequences.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.

        Returns
        -------
        (symbols of X, N) or (sequences of X, N) array
            The probabilities, with columns in the order of ``classes_``.
        """
        codes, many = self._codes(X, lengths)
        last = slice(-1, None) if many else slice(None)
        return np.concatenate([self._distributions(x)[last] for x in codes])

    def predict(self, X: Any, *, lengths: Any = None) -> AnyArray:
        """Predict the most likely next symbol for each row of ``predict_proba``.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.

        Returns
        -------
        (symbols of X,) or (sequences of X,) array
            The symbols.
        """
        return self.classes_[self.predict_proba(X, lengths=lengths).argmax(axis=1)]

    def log_likelihoods(self, X: Any, *, lengths: Any = None) -> Array:
        """Compute the log-likelihood of each predicted symbol in X.

        Every symbol that follows another in its sequence is predicted.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.

        Returns
        -------
        (n,) array
            The log-likelihoods in nats, in the order of X.
        """
        codes, _ = self._codes(X, lengths)
        found = [np.zeros(0)]
        for x in codes:
            places = predicted(x)
            if places.size:
                found.append(np.log(self._distributions(x)[places - 1, x[places]]))
        return np.concatenate(found)

    def score(self, X: Any, y: Any = None, *, lengths: Any = None) -> float:
        """Compute the mean log-likelihood of the predicted symbols, in nats; higher is better.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts.
        y : ignored
            Present for compatibility with scikit-learn.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.

        Returns
        -------
        float
            The mean log-likelihood per symbol.
        """
        return float(self.log_likelihoods(X, lengths=lengths).mean())
