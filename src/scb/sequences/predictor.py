"""What a fitted model of lags predicts: scores, distributions of the next symbol, random sequences
and forecasts.
"""

from functools import partial
from typing import Any

import numpy as np

from scb.arrays import AnyArray, Array
from scb.inputs import InputError, integer
from scb.sequences.coding import labels_among
from scb.sequences.covariates import flat_columns
from scb.sequences.fitted import FittedLags
from scb.sequences.forecasting import draw, forecast
from scb.task.task import generator


class LagPredictor(FittedLags):
    """Everything that a fitted estimator does with sequences."""

    def _loglik(self, X: Any, lengths: Any, covariates: Any) -> tuple[float, float]:
        """Log-likelihood of the labels in X, and how many they are."""
        model = self._model()
        _, codes, beside = self._coded(X, lengths, covariates)
        data = model.windows(codes, beside)
        return model.loglik(data), data.n

    def log_likelihoods(self, X: Any, *, lengths: Any = None, covariates: Any = None) -> Array:
        """Compute the log-likelihood of each symbol in X.

        Every symbol that follows another in its sequence is predicted.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts except Dask
            collections.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols or sequences of X, as in ``fit``; required if the model uses
            covariates.

        Returns
        -------
        (symbols of X,) array
            The log-likelihoods in nats, in the order of X; if X is a table, there is one for each
            row. The value is NaN for symbols that are not predicted: the first symbol of each
            sequence, missing symbols, and symbols directly after a missing one.
        """
        model = self._model()
        sequences, codes, beside = self._coded(X, lengths, covariates)
        data = model.windows(codes, beside)
        each = np.full(sum(sequences.lengths), np.nan)
        each[labels_among(codes)] = model.log_likelihoods(data)
        return sequences._beside_input(each)

    def score(self, X: Any, y: Any = None, *, lengths: Any = None, covariates: Any = None) -> float:
        """Compute the mean log-likelihood of the predicted symbols, in nats; higher is better.

        Every symbol that follows another in its sequence is predicted, whatever ``max_lag`` is, so
        scores of models with different ``max_lag`` can be compared.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts except Dask
            collections.
        y : ignored
            Present for compatibility with scikit-learn.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols or sequences of X, as in ``fit``; required if the model uses
            covariates.

        Returns
        -------
        float
            The mean log-likelihood per symbol.
        """
        loglik, n = self._loglik(X, lengths, covariates)
        return loglik / n

    def perplexity(self, X: Any, *, lengths: Any = None, covariates: Any = None) -> float:
        """Compute the perplexity exp(−score).

        The perplexity is the effective number of equally likely symbols at each prediction.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts except Dask
            collections.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols or sequences of X, as in ``fit``; required if the model uses
            covariates.

        Returns
        -------
        float
            The perplexity; lower is better.
        """
        return float(np.exp(-self.score(X, lengths=lengths, covariates=covariates)))

    def bic(self, X: Any, *, lengths: Any = None, covariates: Any = None) -> float:
        """Compute the Bayesian information criterion on X; lower is better.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts except Dask
            collections.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols or sequences of X, as in ``fit``; required if the model uses
            covariates.

        Returns
        -------
        float
            The BIC: log n times the number of parameters, minus twice the log-likelihood.
        """
        loglik, n = self._loglik(X, lengths, covariates)
        return float(np.log(n)) * self.n_parameters_ - 2 * loglik

    def aic(self, X: Any, *, lengths: Any = None, covariates: Any = None) -> float:
        """Compute Akaike's information criterion on X; lower is better.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts except Dask
            collections.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols or sequences of X, as in ``fit``; required if the model uses
            covariates.

        Returns
        -------
        float
            The AIC: twice the number of parameters, minus twice the log-likelihood.
        """
        loglik, _ = self._loglik(X, lengths, covariates)
        return 2 * self.n_parameters_ - 2 * loglik

    def predict_proba(self, X: Any, *, lengths: Any = None, covariates: Any = None) -> Array:
        """Predict the distribution of the next symbol.

        The prediction is made after each symbol of a single sequence, or after the end of each of
        several sequences.

        A lag that reaches beyond the start of a sequence or to a missing symbol contributes the
        background. If the current symbol is missing in a model with context, the prediction is the
        background.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts except Dask
            collections.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols to be predicted; required if the model uses covariates. For
            several sequences, there is one row for each sequence; for a single sequence, there is
            one row for each symbol and another for the symbol after the last.

        Returns
        -------
        (symbols of X, N) or (sequences of X, N) array
            The probabilities, with columns in the order of ``classes_``.
        """
        model = self._model()
        codes, many = self._codes(X, lengths)
        if many:
            beside = self._beside_next(covariates, len(codes), 1)
            return np.array(
                [model.next_distribution(*one) for one in zip(codes, beside, strict=True)]
            )
        if len(codes) > 1 and model.used_covariates:
            raise InputError(
                "lengths: with covariates, pass a list of sequences or a single sequence"
            )
        n = len(codes[0])
        what = {"symbols, and the symbol after them": n + 1}
        beside = self._beside(covariates, partial(flat_columns, rows=what), n + 1)
        own = beside[1:] if model.used_covariates else None
        return np.concatenate([model.distributions(x, own)[: x.size] for x in codes])

    def predict_log_proba(self, X: Any, *, lengths: Any = None, covariates: Any = None) -> Array:
        """Compute the logarithm of ``predict_proba``.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts except Dask
            collections.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols to be predicted; required if the model uses covariates. For
            several sequences, there is one row for each sequence; for a single sequence, there is
            one row for each symbol and another for the symbol after the last.

        Returns
        -------
        (symbols of X, N) or (sequences of X, N) array
            The log-probabilities; −∞ for symbols with probability 0.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, lengths=lengths, covariates=covariates))

    def predict(self, X: Any, *, lengths: Any = None, covariates: Any = None) -> AnyArray:
        """Predict the most likely next symbol for each row of ``predict_proba``.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts except Dask
            collections.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols to be predicted; required if the model uses covariates. For
            several sequences, there is one row for each sequence; for a single sequence, there is
            one row for each symbol and another for the symbol after the last.

        Returns
        -------
        (symbols of X,) or (sequences of X,) array
            The predicted symbols.
        """
        best = self.predict_proba(X, lengths=lengths, covariates=covariates).argmax(axis=1)
        return self.classes_[best]

    def sample(
        self,
        length: int,
        *,
        start: Any = None,
        covariates: Any = None,
        random_state: int | np.random.Generator = 0,
    ) -> AnyArray:
        """Draw a sequence from the model.

        Parameters
        ----------
        length : int
            The number of symbols to draw.
        start : sequence of symbols, optional
            At least ``max_lag`` symbols to continue from, which are not part of the result. By
            default, the symbols of the start are drawn independently from ``prior_``, and the first
            10·max_lag symbols after the start are discarded.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols to be drawn, with one row for each symbol; required if the
            model uses covariates.
        random_state : int or numpy.random.Generator, default 0
            The source of randomness.

        Returns
        -------
        (length,) array
            The symbols drawn.
        """
        model = self._model()
        length = integer("length", length, low=0)
        before = None
        if start is not None:
            one = [start] if isinstance(start, list | tuple) else start
            ((before,), _) = self._codes(one, None)
            if before.size < model.max_lag or (before < 0).any():
                raise InputError(
                    f"start must hold at least max_lag = {model.max_lag} symbols, none of them"
                    " missing"
                )
        (beside,) = self._beside_next(covariates, 1, length)
        return self.classes_[draw(model, length, before, generator(random_state), beside)]

    def forecast(
        self,
        X: Any,
        steps: int,
        *,
        covariates: Any = None,
        n_samples: int = 1000,
        random_state: int | np.random.Generator = 0,
    ) -> Array:
        """Predict the distribution of the symbol 1, 2, … steps after the end of each sequence.

        The model predicts a distribution after each of many random continuations of the sequence,
        and the result is the mean of these distributions.

        The first distribution is exact and equals that of ``predict_proba``. The probabilities at
        later steps have a standard error of at most 0.5/√n_samples.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts except Dask
            collections.
        steps : int
            The number of steps to look ahead.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols that follow; required if the model uses covariates. The
            covariates consist of one row for each step, which all sequences share, or of the rows
            for the first sequence, followed by the rows for the second, and so on.
        n_samples : int, default 1000
            The number of random continuations to draw for each sequence.
        random_state : int or numpy.random.Generator, default 0
            The source of randomness.

        Returns
        -------
        (steps, N) or (sequences of X, steps, N) array
            The probabilities, with a row for each step and columns in the order of ``classes_``.
        """
        steps = integer("steps", steps, low=1)
        n_samples = integer("n_samples", n_samples, low=1)
        codes, many = self._codes(X, None)
        rng = generator(random_state)
        model = self._model()
        beside = self._beside_next(covariates, len(codes), steps)
        pairs = zip(codes, beside, strict=True)
        distributions = np.array([forecast(model, *one, steps, n_samples, rng) for one in pairs])
        return distributions if many else distributions[0]
