"""What can be asked of a fitted model of lags: scores, laws of the next symbol, sequences drawn from it, forecasts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.inputs import InputError, integer
from scb.mixture.data import Data
from scb.sequences.coding import windows_of_codes
from scb.sequences.fitted import FittedLags
from scb.sequences.symbols import as_sequences, encode
from scb.task.task import generator


class LagPredictor(FittedLags):
    """Everything that a fitted estimator does with sequences; how it came to be fitted is the business of who inherits."""

    def _codes(self, X: Any, lengths: Any) -> tuple[list[NDArray[np.int64]], bool]:
        """Sequences in codes of the symbols of the fit, and whether they are many."""
        sequences = as_sequences(X, lengths)
        codes, _ = encode(sequences, self.classes_, unknown=self.handle_unknown)
        return codes, sequences.many

    def _windows(self, X: Any, lengths: Any) -> Data:
        """The symbols of X to be predicted."""
        model = self._model()
        codes, _ = self._codes(X, lengths)
        return windows_of_codes(codes, len(model.classes), model.max_lag, model.context)

    def _loglik(self, X: Any, lengths: Any) -> tuple[float, int]:
        """Log-likelihood of the labels in X, and how many they are."""
        data = self._windows(X, lengths)
        return self._model().loglik(data), data.n

    def log_likelihoods(self, X: Any, *, lengths: Any = None) -> Array:
        """The log-likelihood of each symbol of X that follows one, in nats; in the order of X.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or many, as for ``fit``.
        lengths : list of int, optional
            Where X is many sequences one after the other, their lengths.

        Returns
        -------
        (n,) array
        """
        return self._model().log_likelihoods(self._windows(X, lengths))

    def score(self, X: Any, y: Any = None, *, lengths: Any = None) -> float:
        """Mean log-likelihood of a symbol that follows one, in nats; higher is better.

        The same symbols are scored whatever ``max_lag`` is, so that scores can be compared.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or many, as for ``fit``.
        y : ignored
            There for scikit-learn.
        lengths : list of int, optional
            Where X is many sequences one after the other, their lengths.

        Returns
        -------
        float
        """
        loglik, n = self._loglik(X, lengths)
        return loglik / n

    def perplexity(self, X: Any, *, lengths: Any = None) -> float:
        """exp(−score): among how many equally likely symbols the model hesitates.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or many, as for ``fit``.
        lengths : list of int, optional
            Where X is many sequences one after the other, their lengths.

        Returns
        -------
        float
        """
        return float(np.exp(-self.score(X, lengths=lengths)))

    def bic(self, X: Any, *, lengths: Any = None) -> float:
        """Bayesian information criterion on X; lower is better.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or many, as for ``fit``.
        lengths : list of int, optional
            Where X is many sequences one after the other, their lengths.

        Returns
        -------
        float
        """
        loglik, n = self._loglik(X, lengths)
        return float(np.log(n)) * self.n_parameters_ - 2 * loglik

    def aic(self, X: Any, *, lengths: Any = None) -> float:
        """Akaike's information criterion on X; lower is better.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or many, as for ``fit``.
        lengths : list of int, optional
            Where X is many sequences one after the other, their lengths.

        Returns
        -------
        float
        """
        loglik, _ = self._loglik(X, lengths)
        return 2 * self.n_parameters_ - 2 * loglik

    def predict_proba(self, X: Any, *, lengths: Any = None) -> Array:
        """The law of the symbol that comes next: after each symbol of one sequence, or after the end of each of many.

        A lag that reaches back beyond the start, or to a missing symbol, contributes the background; so does everything where the
        current symbol is missing and chooses the lags.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or many, as for ``fit``.
        lengths : list of int, optional
            Where X is many sequences one after the other, their lengths.

        Returns
        -------
        (symbols of X, N) or (sequences of X, N) array
            Columns are in the order of ``classes_``.
        """
        model = self._model()
        codes, many = self._codes(X, lengths)
        if many:
            return np.concatenate([model.laws(x[-self.max_lag :])[-1:] for x in codes])
        return np.concatenate([model.laws(x)[: x.size] for x in codes])

    def predict_log_proba(self, X: Any, *, lengths: Any = None) -> Array:
        """The logarithm of ``predict_proba``; −∞ where a symbol is impossible.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or many, as for ``fit``.
        lengths : list of int, optional
            Where X is many sequences one after the other, their lengths.

        Returns
        -------
        (symbols of X, N) or (sequences of X, N) array
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, lengths=lengths))

    def predict(self, X: Any, *, lengths: Any = None) -> NDArray[Any]:
        """The most likely next symbol, for each row of ``predict_proba``.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or many, as for ``fit``.
        lengths : list of int, optional
            Where X is many sequences one after the other, their lengths.

        Returns
        -------
        (symbols of X,) or (sequences of X,) array
        """
        best = self.predict_proba(X, lengths=lengths).argmax(axis=1)
        return self.classes_[best]

    def sample(self, length: int, *, start: Any = None, random_state: int | np.random.Generator = 0) -> NDArray[Any]:
        """Draw a sequence from the model.

        Parameters
        ----------
        length : int
            How many symbols.
        start : sequence of symbols, optional
            Symbols to go on from, which are not part of the answer; without, independent draws from ``prior_``, and the first
            10·max_lag symbols that follow are thrown away.
        random_state : int or numpy.random.Generator, default 0
            A seed or a generator.

        Returns
        -------
        (length,) array
        """
        model = self._model()
        length = integer("length", length, low=0)
        before = None
        if start is not None:
            ((before,), _) = self._codes([start], None) if isinstance(start, list | tuple) else self._codes(start, None)
            if before.size < self.max_lag or (before < 0).any():
                raise InputError(f"start must hold at least max_lag = {self.max_lag} symbols, none of them missing")
        return self.classes_[model.draw(length, before, generator(random_state))]

    def forecast(self, X: Any, steps: int, *, n_samples: int = 1000, random_state: int | np.random.Generator = 0) -> Array:
        """The law of the symbol 1, 2, … steps after the end of a sequence, from continuations drawn at random.

        The first is exact, as ``predict_proba`` has it; the others have a standard error of at most 0.5/√n_samples.

        Parameters
        ----------
        X : sequence of symbols
            One sequence.
        steps : int
            How far to look ahead.
        n_samples : int, default 1000
            Continuations that are drawn.
        random_state : int or numpy.random.Generator, default 0
            A seed or a generator.

        Returns
        -------
        (steps, N) array
        """
        steps = integer("steps", steps, low=1)
        n_samples = integer("n_samples", n_samples, low=1)
        model = self._model()
        codes, _ = self._codes(X, None)
        if len(codes) != 1:
            raise InputError(f"X holds {len(codes)} sequences: forecast goes on from one")
        before = codes[0][-self.max_lag :]
        rng = generator(random_state)
        paths = np.array([model.draw(steps, before, rng) for _ in range(n_samples)])
        laws = np.array([np.bincount(step, minlength=len(self.classes_)) for step in paths.T]) / n_samples
        laws[0] = model.laws(before)[-1]
        return laws
