"""``SparseContextualBigram``: which lags matter in sequences of symbols, and when. A scikit-learn face of ``LagModel``."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from scb.geometry import Array
from scb.mixture.data import is_dask
from scb.sequences.coding import windows_of_codes, windows_of_symbols
from scb.sequences.lag_fit import LagSettings, fit_lags
from scb.sequences.lag_model import SHARED, FitFacts, LagModel, load_model, save_model
from scb.sequences.symbols import as_sequences, encode

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SparseContextualBigram(BaseEstimator):
    """A model of sequences in which the current symbol chooses the lags that the next symbol depends on.

    The next symbol has the law Σ_ℓ a[k, ℓ]·P_ℓ[:, x_ℓ], where x_ℓ is the symbol ℓ steps before it and k = x_1 the current symbol,
    the context. Few of the weights a[k, ℓ] are positive; finding which is what the estimator is for. Lags count back from the
    symbol to be predicted: lag 1 is the current symbol.

    Parameters
    ----------
    max_lag : the longest lag that may matter
    transition : "shared", one matrix P for all lags, or "per_lag", a matrix for each
    context : whether the current symbol chooses the weights; without, this is the Mixture Transition Distribution of Raftery
    lags : "auto", those that the extended BIC asks for in each context; a number, so many in each context; or the lags themselves,
        the same in each context
    smoothing : labels added to each column of a matrix, spread as the law of all labels is (after ``init``, as its column is); 0 is
        plain maximum likelihood, under which a symbol can be impossible
    verbose : whether to say on stderr how far the search is

    Attributes
    ----------
    classes_ : (N,), the symbols, sorted
    transition_ : P (N, N), ``P[i, j]`` is the probability of classes_[i] where the source is classes_[j]; with "per_lag", a dict
        from lag to such a matrix
    attention_ : sparse (contexts, max_lag), the weight of lag ℓ in column ℓ − 1; one row for all without context. A row without
        entries: no lag was found, the law of the next symbol is ``prior_``
    influence_ : sparse, as attention_: by how much the symbol at a lag moves the law of the next symbol, in total variation, on
        average over the symbols that occur. Other than a weight, it does not depend on where the common part of the matrices
        stands. 0 for lag 1 where that is the context: there it cannot vary
    lags_ : table (a dict of columns) of context, lag, weight, stderr; the lags in the support, and only these
    prior_, frequencies_ : (N,), the law of the labels, and of all symbols
    loglik_ : log-likelihood of the labels in the data, in nats, at these parameters
    n_windows_, n_parameters_, n_iter_ : labels in the fit, parameters that they can tell apart, steps of the last fit
    converged_, gap_ : whether the last fit reached its certificate, and what the log-likelihood could still gain at most
    """

    def __init__(
        self,
        max_lag: int = 10,
        *,
        transition: Literal["shared", "per_lag"] = "shared",
        context: bool = True,
        lags: str | int | Sequence[int] = "auto",
        smoothing: float = 1.0,
        verbose: bool = False,
    ) -> None:
        self.max_lag = max_lag
        self.transition = transition
        self.context = context
        self.lags = lags
        self.smoothing = smoothing
        self.verbose = verbose

    # ------------------------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, *, lengths: Any = None, init: "SparseContextualBigram | None" = None) -> Self:
        """Find the lags and estimate the model.

        Parameters
        ----------
        X : one sequence of symbols, or many: see ``scb.sequences.symbols``. A window that a missing symbol cuts is left out. Or a
            Dask array, bag or list of delayed sequences, which stay where they are: see ``scb.mixture.dask``
        y : ignored
        lengths : where X is many sequences one after the other, their lengths
        init : a fitted model whose matrices are known to begin with; what is left is a concave problem, which takes fewer data
        """
        settings = LagSettings(**{name: value for name, value in self.get_params().items() if name != "verbose"})
        if y is not None and not is_dask(X) and len(y) not in (len(X), len(as_sequences(X, lengths).lengths)):
            raise ValueError("y is ignored, and this one is not as long as X; are these lengths? Then say lengths=")
        windows = windows_of_symbols(X, lengths, settings.max_lag, bool(settings.context))
        known = None if init is None else init._model()
        progress = _say if self.verbose else None
        model, facts = fit_lags(windows.data, windows.classes, settings, init=known, progress=progress)
        self._take(model, facts, windows.width)
        return self

    def _take(self, model: LagModel, facts: FitFacts, width: int | None) -> None:
        """Keep a model by its public names."""
        self.classes_ = model.classes
        self.attention_: csr_array = model.attention
        self._errors = model.errors
        self.transition_: Any = model.matrices.get(SHARED, model.matrices)
        self.prior_ = model.prior
        self.frequencies_ = model.frequencies
        self.loglik_ = facts.loglik
        self.n_windows_ = facts.n_windows
        self.n_parameters_ = facts.n_parameters
        self.n_iter_ = facts.n_iter
        self.gap_ = facts.gap
        self.converged_ = facts.converged
        if width is not None:
            self.n_features_in_ = width

    def _model(self) -> LagModel:
        """The model behind the public names; an error if there is none yet."""
        check_is_fitted(self)
        return LagModel(
            classes=self.classes_,
            context=bool(self.context),
            attention=self.attention_,
            errors=self._errors,
            matrices=self.transition_ if isinstance(self.transition_, dict) else {SHARED: self.transition_},
            prior=self.prior_,
            frequencies=self.frequencies_,
        )

    @property
    def lags_(self) -> dict[str, NDArray[Any]]:
        """The table of lags in the support; the context is None in a model without context."""
        return self._model().table()

    @property
    def influence_(self) -> csr_array:
        """How far each lag in the support moves the law of the next symbol."""
        return self._model().influence()

    # ------------------------------------------------------------------------------------------------- using it

    def _loglik(self, X: Any, lengths: Any) -> tuple[float, int]:
        """Log-likelihood of the labels in X, and how many they are."""
        model = self._model()
        codes, classes = encode(as_sequences(X, lengths), self.classes_)
        data = windows_of_codes(codes, len(classes), self.max_lag, model.context)
        return model.loglik(data), data.n

    def score(self, X: Any, y: Any = None, *, lengths: Any = None) -> float:
        """Mean log-likelihood of a symbol given the max_lag before it, in nats; higher is better."""
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

        A lag that reaches back beyond the start, or to a missing symbol, contributes the law of all labels; so does everything
        where the current symbol is missing and chooses the lags.
        """
        model = self._model()
        sequences = as_sequences(X, lengths)
        codes, _ = encode(sequences, self.classes_)
        if sequences.many:
            return np.concatenate([model.laws(x[-self.max_lag :])[-1:] for x in codes])
        return np.concatenate([model.laws(x)[: x.size] for x in codes])

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
        if not isinstance(length, int | np.integer) or length < 0:
            raise ValueError(f"length = {length!r}: it must be an integer of at least 0")
        before = None
        if start is not None:
            (before,), _ = encode(as_sequences(start), self.classes_)
            if before.size < self.max_lag or (before < 0).any():
                raise ValueError(f"start must hold at least max_lag = {self.max_lag} symbols, none of them missing")
        return self.classes_[model.draw(int(length), before, np.random.default_rng(random_state))]

    def plot_attention(self, ax: "Axes | None" = None) -> "Axes":
        """A heat map of ``attention_``: contexts down, lags across; white where a lag has no weight."""
        return self._model().plot(ax)

    # ------------------------------------------------------------------------------------------------- keeping it

    def save(self, path: str | Path) -> None:
        """Write the model to one file that ``load`` reads; nothing in it is executed."""
        model = self._model()
        facts = FitFacts(**{name: getattr(self, f"{name}_") for name in FitFacts.__dataclass_fields__})
        save_model(path, model, facts, self.get_params(), getattr(self, "n_features_in_", None))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote."""
        model, facts, parameters, width = load_model(path)
        try:
            estimator = cls(**parameters)
        except TypeError as error:
            raise ValueError(f"{path} is damaged: {error!r}") from None
        estimator._take(model, facts, width)
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


def _say(turn: int, lags: int, loglik: float) -> None:
    print(f"round {turn}: {lags} lags, log-likelihood {loglik:,.1f}", file=sys.stderr, flush=True)
