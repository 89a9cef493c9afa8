"""``SparseContextualBigram``: which lags matter in sequences of symbols, and when. A scikit-learn face of ``LagModel``."""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from scb.inputs import InputError, one_of
from scb.mixture.data import Data, is_dask
from scb.sequences.coding import windows_of_symbols
from scb.sequences.kept import MEMORY, KeptSymbols
from scb.sequences.lag_fit import MAX_LAG, LagSettings, fit_lags
from scb.sequences.lag_model import SHARED, FitFacts, LagModel
from scb.sequences.model_file import load_model, save_model
from scb.sequences.predictor import LagPredictor
from scb.sequences.stability import found_again
from scb.sequences.summary import problems
from scb.sequences.symbols import as_sequences


class SparseContextualBigram(LagPredictor):
    """A model of sequences in which the current symbol chooses the lags that the next symbol depends on.

    The next symbol has the law a[k, 0]·G + Σ_ℓ a[k, ℓ]·P_ℓ[:, x_ℓ], where x_ℓ is the symbol ℓ steps before it, k = x_1 the current
    symbol, the context, and G the background. Few of the weights a[k, ℓ] are positive; finding which is what the estimator is for.
    Lags count back from the symbol to be predicted: lag 1 is the current symbol. Every symbol that follows one is predicted; a lag
    that reaches beyond the start of a sequence or into a gap contributes the background.

    Parameters
    ----------
    max_lag : the longest lag that may matter
    transition : "shared", one matrix P for all lags; "per_lag", a matrix for each; or "auto", both are fitted, and the one with the
        lower BIC is kept (``criterion_``)
    context : whether the current symbol chooses the weights; without, this is the Mixture Transition Distribution of Raftery
    lags : "auto", those that the extended BIC asks for in each context; a number, so many in each context; or the lags themselves,
        the same in each context
    background : what a lag must say more than: "labels", the law of all labels; "ngram", what the recent symbols say, by an n-gram
        or a context tree that is cross-fitted; or a fitted model with predict_proba, which must not have seen the data
    smoothing : labels added to each column of a matrix, spread as the law of all labels is (after ``init``, as its column is), and
        to that law, spread evenly over all symbols; 0 is plain maximum likelihood, under which a symbol can be impossible
    handle_unknown : after the fit, a symbol that did not occur in it is an "error"; or it counts as "missing"
    verbose : whether to say on stderr how far the search is

    Attributes
    ----------
    classes_ : (N,), the symbols, sorted
    transition_ : P (N, N), ``P[i, j]`` is the probability of classes_[i] where the source is classes_[j]; with "per_lag", a dict
        from lag to such a matrix
    attention_ : sparse (contexts, max_lag), the weight of lag ℓ in column ℓ − 1; one row for all without context. A row without
        entries: no lag was found, the law of the next symbol is the background
    rest_ : (contexts,), the weight a[k, 0] of the background. Where that is the law of all labels, it is positive only if no lag
        was found, or if it is needed beside the lags
    incomplete_ : (contexts,), where it is needed beside them: something is left that no lag explains
    influence_ : sparse, as attention_: by how much the symbol at a lag moves the law of the next symbol, in total variation, on
        average over the symbols that occur. Other than a weight, it does not depend on where the common part of the matrices
        stands. 0 for lag 1 where that is the context: there it cannot vary
    lags_ : table (a dict of columns) of context, lag, weight, stderr; the lags in the support, and only these
    prior_, frequencies_ : (N,), the law of the labels, and of all symbols
    loglik_ : log-likelihood of the labels in the data, in nats, at these parameters
    n_windows_, n_labels_ : symbols that were predicted in the fit, and all that there are
    n_parameters_, n_iter_ : parameters that they can tell apart, steps of the last fit
    converged_, gap_ : whether the search came to its end and the last fit reached its certificate, and what the log-likelihood
        could still gain at most
    criterion_ : the BIC of each kind of transition that was fitted; the lower one was chosen
    """

    def __init__(
        self,
        max_lag: int = MAX_LAG,
        *,
        transition: Literal["auto", "shared", "per_lag"] = "auto",
        context: bool = True,
        lags: str | int | Sequence[int] = "auto",
        background: Any = "labels",
        smoothing: float = 1.0,
        handle_unknown: Literal["error", "missing"] = "error",
        verbose: bool = False,
    ) -> None:
        self.max_lag = max_lag
        self.transition = transition
        self.context = context
        self.lags = lags
        self.background = background
        self.smoothing = smoothing
        self.handle_unknown = handle_unknown
        self.verbose = verbose

    _kept: KeptSymbols | None = None  # of a stream, see ``partial_fit``

    # ------------------------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, *, lengths: Any = None, init: "SparseContextualBigram | None" = None) -> Self:
        """Find the lags and estimate the model.

        Parameters
        ----------
        X : one sequence of symbols, or many: see ``scb.sequences.symbols``. Or a
            Dask array, bag or list of delayed sequences, which stay where they are: see ``scb.mixture.dask``
        y : ignored
        lengths : where X is many sequences one after the other, their lengths
        init : a fitted model whose matrices are known to begin with; what is left is a concave problem, which takes fewer data
        """
        settings = self._settings()
        one_of("handle_unknown", self.handle_unknown, ("error", "missing"))
        if y is not None and not is_dask(X) and len(y) not in (len(X), len(as_sequences(X, lengths).lengths)):
            raise InputError("y is ignored, and this one is not as long as X; are these lengths? Then say lengths=")
        windows = windows_of_symbols(X, lengths, settings.max_lag, bool(settings.context))
        self._kept = None
        self._fit_windows(windows.data, windows.classes, settings, windows.width, None if init is None else init._model())
        return self

    def partial_fit(self, X: Any = None, y: Any = None, *, lengths: Any = None, memory: int = MEMORY, fit: bool = True) -> Self:
        """Take in the next piece of a stream, and fit the model to all of it that is kept.

        One sequence goes on where the one before it ended; many sequences begin anew, and so does one in a list, ``[x]``. As long
        as the stream has at most ``memory`` symbols, all of them are kept, and the model is that of ``fit`` on the whole. Beyond
        that, a random sample of it is kept, in blocks of neighbours that all have the same chance to be in it, however old they
        are: the model is then that of a part of the stream, with the standard errors of that part. Which blocks are kept does not
        depend on how the stream was cut into pieces. ``save`` writes them with the model, and after ``load`` the stream goes on.

        Parameters
        ----------
        X, lengths : the next piece, as in ``fit``; no collection of Dask. Without it, what was taken in before is fitted
        y : ignored
        memory : symbols that are kept; the same in all calls. A fit takes about 30 bytes for each
        fit : whether to fit the model now. Each fit is one of all that is kept, so with many small pieces ask for it now and then
        """
        settings = self._settings()
        if is_dask(X):
            raise InputError("X is a collection of Dask: fit takes all of it at once")
        if self._kept is None:
            self._kept = KeptSymbols(settings.max_lag, memory)
        if X is not None:
            self._kept.take(as_sequences(X, lengths), settings.max_lag, memory)
        if fit:
            self._fit_windows(self._kept.windows(bool(settings.context)), self._kept.classes, settings, None, None)
        return self

    def _fit_windows(
        self, data: Data, classes: NDArray[Any], settings: LagSettings, width: int | None, known: LagModel | None
    ) -> None:
        """Fit the model to windows, take it, and warn of what is wrong with it."""
        progress = _say if self.verbose else None
        model, facts = fit_lags(data, classes, settings, init=known, progress=progress)
        self._take(model, facts, width)
        for problem in problems(facts):
            warnings.warn(problem, ConvergenceWarning if "converge" in problem else UserWarning, stacklevel=3)

    def _settings(self) -> LagSettings:
        """The parameters of the fit."""
        return LagSettings(**{name: getattr(self, name) for name in LagSettings.__dataclass_fields__})

    def _take(self, model: LagModel, facts: FitFacts, width: int | None) -> None:
        """Keep a model by its public names."""
        self.classes_ = model.classes
        self.attention_: csr_array = model.attention
        self._errors = model.errors
        self._rest_ratio = model.rest_ratio
        self._background = model.background
        self._evidence = model.evidence
        self.rest_ = model.rest
        self.incomplete_ = model.incomplete
        self.transition_: Any = model.matrices.get(SHARED, model.matrices)
        self.prior_ = model.prior
        self.frequencies_ = model.frequencies
        self.loglik_ = facts.loglik
        self.n_windows_ = facts.n_windows
        self.n_labels_ = facts.n_labels
        self.n_parameters_ = facts.n_parameters
        self.n_iter_ = facts.n_iter
        self.gap_ = facts.gap
        self.converged_ = facts.converged
        self.criterion_ = facts.criterion
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
            rest=self.rest_,
            rest_ratio=self._rest_ratio,
            matrices=self.transition_ if isinstance(self.transition_, dict) else {SHARED: self.transition_},
            prior=self.prior_,
            frequencies=self.frequencies_,
            background=self._background,
            evidence=self._evidence,
        )

    def _facts(self) -> FitFacts:
        """How the fit went."""
        return FitFacts(**{name: getattr(self, f"{name}_") for name in FitFacts.__dataclass_fields__})

    @property
    def n_seen_(self) -> int:
        """How many symbols ``partial_fit`` has taken in; 0 without it."""
        return 0 if self._kept is None else self._kept.seen

    def stability(self, X: Any, *, lengths: Any = None, n_halves: int = 20, random_state: int = 0) -> NDArray[Any]:
        """(rows of ``lags_``,): in which part of random halves of X each lag is found again; ``summary`` shows it from then on.

        Halves are made of blocks of neighbouring symbols, and come in pairs that have nothing in common.
        """
        model = self._model()
        data = windows_of_symbols(X, lengths, model.max_lag, model.context)
        if not np.array_equal(data.classes, self.classes_):
            raise InputError("X holds other symbols than in fit: give the data of the fit")
        progress = _say_half if self.verbose else None
        found = found_again(model, data.data, self._settings(), n_halves, random_state, progress)
        self._evidence = {**self._evidence, "found": found}
        return found

    # ------------------------------------------------------------------------------------------------- keeping it

    def save(self, path: str | Path) -> None:
        """Write the model to one file that ``load`` reads; nothing in it is executed."""
        model = self._model()
        save_model(path, model, self._facts(), self.get_params(), getattr(self, "n_features_in_", None), self._kept)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote."""
        model, facts, parameters, width, kept = load_model(path)
        try:
            estimator = cls(**parameters)
        except TypeError as error:
            raise InputError(f"{path} is damaged: {error!r}") from None
        estimator._take(model, facts, width)
        estimator._kept = kept
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


def _say(turn: int, lags: int, loglik: float) -> None:
    print(f"round {turn}: {lags} lags, log-likelihood {loglik:,.1f}", file=sys.stderr, flush=True)


def _say_half(turn: int, halves: int) -> None:
    print(f"half {turn} of {halves}", file=sys.stderr, flush=True)
