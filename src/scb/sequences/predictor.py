"""What can be asked of a fitted model of lags: scores, laws of the next symbol, sequences drawn from it, forecasts."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from scb.geometry import Array
from scb.inputs import InputError, integer
from scb.mixture.data import Data
from scb.sequences.coding import windows_of_codes
from scb.sequences.lag_model import FitFacts, LagModel
from scb.sequences.pictures import plot_attention, plot_influence
from scb.sequences.summary import LagSummary
from scb.sequences.symbols import as_sequences, encode
from scb.task.task import generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LagPredictor(BaseEstimator):
    """Everything that a fitted estimator does with sequences; how it came to be fitted is the business of who inherits."""

    max_lag: int
    handle_unknown: str
    classes_: NDArray[Any]
    prior_: Array
    n_parameters_: int

    @abstractmethod
    def _model(self) -> LagModel:
        """The fitted model; an error if there is none yet."""

    @abstractmethod
    def _facts(self) -> FitFacts:
        """How the fit went."""

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
        """(n,): the log-likelihood of each symbol of X that follows one, in nats; in the order of X."""
        return self._model().log_likelihoods(self._windows(X, lengths))

    def score(self, X: Any, y: Any = None, *, lengths: Any = None) -> float:
        """Mean log-likelihood of a symbol that follows one, in nats; higher is better.

        The same symbols are scored whatever ``max_lag`` is, so that scores can be compared.
        """
        loglik, n = self._loglik(X, lengths)
        return loglik / n

    def perplexity(self, X: Any, *, lengths: Any = None) -> float:
        """exp(−score): among how many equally likely symbols the model hesitates."""
        return float(np.exp(-self.score(X, lengths=lengths)))

    def bic(self, X: Any, *, lengths: Any = None) -> float:
        """Bayesian information criterion on X; lower is better."""
        loglik, n = self._loglik(X, lengths)
        return float(np.log(n)) * self.n_parameters_ - 2 * loglik

    def aic(self, X: Any, *, lengths: Any = None) -> float:
        """Akaike's information criterion on X; lower is better."""
        loglik, _ = self._loglik(X, lengths)
        return 2 * self.n_parameters_ - 2 * loglik

    def predict_proba(self, X: Any, *, lengths: Any = None) -> Array:
        """The law of the symbol that comes next: after each symbol of one sequence, or after the end of each of many.

        A lag that reaches back beyond the start, or to a missing symbol, contributes the background; so does everything where the
        current symbol is missing and chooses the lags.
        """
        model = self._model()
        codes, many = self._codes(X, lengths)
        if many:
            return np.concatenate([model.laws(x[-self.max_lag :])[-1:] for x in codes])
        return np.concatenate([model.laws(x)[: x.size] for x in codes])

    def predict_log_proba(self, X: Any, *, lengths: Any = None) -> Array:
        """The logarithm of ``predict_proba``; −∞ where a symbol is impossible."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, lengths=lengths))

    def predict(self, X: Any, *, lengths: Any = None) -> NDArray[Any]:
        """The most likely next symbol, for each row of ``predict_proba``."""
        best = self.predict_proba(X, lengths=lengths).argmax(axis=1)
        return self.classes_[best]

    def sample(self, length: int, *, start: Any = None, random_state: int | np.random.Generator = 0) -> NDArray[Any]:
        """Draw a sequence from the model.

        Parameters
        ----------
        length : how many symbols
        start : symbols to go on from, which are not part of the answer; without, independent draws from ``prior_``, and the first
            10·max_lag symbols that follow are thrown away
        random_state : a seed or a generator
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
        """(steps, N): the law of the symbol 1, 2, … steps after the end of one sequence X, from continuations drawn at random.

        The first is exact, as ``predict_proba`` has it; the others have a standard error of at most 0.5/√n_samples.
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

    # ------------------------------------------------------------------------------------------------- what was found

    @property
    def lags_(self) -> dict[str, NDArray[Any]]:
        """The table of lags in the support; the context is None in a model without context."""
        return self._model().table()

    @property
    def influence_(self) -> csr_array:
        """How far each lag in the support moves the law of the next symbol."""
        return self._model().influence()

    def summary(self) -> LagSummary:
        """What was found and how sure it is: a table for people when printed, ``to_pandas()``, and as a dict ``columns``."""
        return LagSummary(self._model(), self._facts())

    def plot_attention(self, ax: "Axes | None" = None) -> "Axes":
        """A heat map of ``attention_``: contexts down, lags across; white where a lag has no weight."""
        return plot_attention(self._model(), ax)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """A heat map of ``influence_`` with the evidence: in each cell how far the lag moves the law, and its worth in nats."""
        return plot_influence(self._model(), ax)
