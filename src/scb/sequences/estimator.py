"""``SparseContextualBigram``: which lags matter in sequences of symbols, and when. A scikit-learn face of ``LagModel``."""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from scb.inputs import InputError, one_of
from scb.mixture.data import Data, is_dask
from scb.sequences.coding import windows_of_symbols
from scb.sequences.kept import MEMORY, KeptSymbols
from scb.sequences.lag_fit import MAX_LAG, LagSettings, fit_lags
from scb.sequences.lag_model import LagModel
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
    max_lag : int, default 20
        The longest lag that may matter.
    transition : {"auto", "shared", "per_lag"}, default "auto"
        "shared", one matrix P for all lags; "per_lag", a matrix for each; or "auto", both are fitted, and the one with the
        lower BIC is kept (``criterion_``).
    context : bool, default True
        Whether the current symbol chooses the weights; without, this is the Mixture Transition Distribution of Raftery.
    lags : "auto", int or sequence of int, default "auto"
        "auto", those that the extended BIC asks for in each context; a number, so many in each context; or the lags themselves,
        the same in each context.
    background : {"labels", "ngram"} or a fitted model, default "labels"
        What a lag must say more than: "labels", the law of all labels; "ngram", what the recent symbols say, by an n-gram
        or a context tree that is cross-fitted; or a fitted model with predict_proba, which must not have seen the data.
    smoothing : float, default 1
        Labels added to each column of a matrix, spread as the law of all labels is (after ``init``, as its column is), and
        to that law, spread evenly over all symbols; 0 is plain maximum likelihood, under which a symbol can be impossible.
    handle_unknown : {"error", "missing"}, default "error"
        After the fit, a symbol that did not occur in it is an "error"; or it counts as "missing".
    verbose : bool, default False
        Whether to say on stderr how far the search is.

    Attributes
    ----------
    classes_ : (N,) array
        The symbols, sorted.
    transition_ : (N, N) array or dict
        P: ``P[i, j]`` is the probability of classes_[i] where the source is classes_[j]; with "per_lag", a dict from lag to such a
        matrix.
    attention_ : sparse (contexts, max_lag) array
        The weight of lag ℓ in column ℓ − 1; one row for all without context. A row without entries: no lag was found, the law of
        the next symbol is the background.
    rest_, incomplete_ : (contexts,) arrays
        The weight a[k, 0] of the background, and whether it is needed beside the lags: then something is left that no lag explains.
        Where the background is the law of all labels, its weight is positive only there, or if no lag was found.
    influence_ : sparse (contexts, max_lag) array
        By how much the symbol at each lag moves the law of the next symbol, in total variation, on average.
    lags_ : dict of (lags,) arrays
        Table of context, lag, weight, stderr; the lags in the support, and only these.
    prior_, frequencies_ : (N,) arrays
        The law of the labels, and of all symbols.
    loglik_ : float
        Log-likelihood of the labels in the data, in nats, at these parameters.
    n_windows_, n_labels_ : int
        Symbols that were predicted in the fit, and all that there are.
    n_parameters_, n_iter_ : int
        Parameters that they can tell apart, steps of the last fit.
    converged_, gap_ : bool and float
        Whether the search came to its end and the last fit reached its certificate, and what the log-likelihood could still gain.
    criterion_ : dict of float
        The BIC of each kind of transition that was fitted; the lower one was chosen.

    Examples
    --------
    The weather of a planet where each kind of day looks back at another day:

    >>> import numpy as np, scb
    >>> days = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
    >>> x = np.array(["dry", "rain", "snow"])[days]
    >>> model = scb.SparseContextualBigram(max_lag=6).fit(x)
    >>> print(model.summary())
    2,999 of 3,000 symbols are predicted, of 3 kinds; lags up to 6
    one matrix for all lags (its BIC is lower by 40.4 than with a matrix for each)
    0.4377 bits a symbol (log-likelihood -909.8 nats), 6 parameters
    <BLANKLINE>
       now  lag  weight  influence           95 %   nats     dBIC
     'dry'    6   1.000      0.562  0.553 - 0.572  907.1  1,814.3
    'rain'    4   1.000      0.562  0.553 - 0.572  764.4  1,528.9
    'snow'    6   1.000      0.562  0.553 - 0.572  673.2  1,346.3
    >>> model.lags_["weight"].round(2), model.influence_.nnz, model.n_seen_
    (array([1., 1., 1.]), 3, 0)

    What comes next, after one sequence or after the end of each of many:

    >>> model.predict_proba(x[:8])[-1].round(2), model.predict([x[:8], x[:20]])
    (array([0.02, 0.01, 0.97]), array(['snow', 'snow'], dtype='<U4'))
    >>> model.predict_log_proba([x[:8]]).shape
    (1, 3)
    >>> model.forecast(x[:8], steps=2).round(1)
    array([[0. , 0. , 1. ],
           [0.2, 0.8, 0. ]])
    >>> model.sample(6, random_state=0)
    array(['snow', 'snow', 'snow', 'snow', 'snow', 'dry'], dtype='<U4')

    How well symbols are predicted, in nats, by perplexity and by criteria:

    >>> round(model.score(x), 3), round(model.perplexity(x), 2), model.log_likelihoods(x).shape
    (-0.303, 1.35, (2999,))
    >>> round(model.bic(x)), round(model.aic(x))
    (1868, 1832)

    Pictures, and a file:

    >>> model.plot().get_ylabel(), model.plot_attention().get_xlabel()
    ('current symbol', 'lag: symbols before the one that is predicted')
    >>> model.save("weather.safetensors")
    >>> scb.SparseContextualBigram.load("weather.safetensors").predict(x[:3])
    array(['dry', 'dry', 'dry'], dtype='<U4')
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
        X : sequences
            One sequence of symbols, or many: see ``scb.sequences.symbols``. Or a Dask array, bag or list of delayed sequences,
            which stay where they are: see ``scb.mixture.dask``.
        y : ignored
            There for scikit-learn.
        lengths : list of int, optional
            Where X is many sequences one after the other, their lengths.
        init : SparseContextualBigram, optional
            A fitted model whose matrices are known to begin with; what is left is a concave problem, which takes fewer data.

        Returns
        -------
        SparseContextualBigram
            The estimator itself.
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
        X : sequences, optional
            The next piece, as in ``fit``; no collection of Dask. Without it, what was taken in before is fitted.
        y : ignored
            There for scikit-learn.
        lengths : list of int, optional
            Where X is many sequences one after the other, their lengths.
        memory : int, default 5,000,000
            Symbols that are kept; the same in all calls. A fit takes about 30 bytes for each.
        fit : bool, default True
            Whether to fit the model now. Each fit is one of all that is kept, so with many small pieces ask for it now and then.

        Returns
        -------
        SparseContextualBigram
            The estimator itself.

        Examples
        --------
        >>> import scb
        >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
        >>> model = scb.SparseContextualBigram(max_lag=6)
        >>> for piece in (x[:1000], x[1000:2000], x[2000:]):
        ...     model = model.partial_fit(piece, fit=False)
        >>> model.partial_fit().loglik_ == scb.SparseContextualBigram(max_lag=6).fit(x).loglik_, model.n_seen_
        (True, 3000)
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

    @property
    def n_seen_(self) -> int:
        """How many symbols ``partial_fit`` has taken in; 0 without it."""
        return 0 if self._kept is None else self._kept.seen

    def stability(self, X: Any, *, lengths: Any = None, n_halves: int = 20, random_state: int = 0) -> NDArray[Any]:
        """In which part of random halves of X each lag is found again; ``summary`` shows it from then on.

        Halves are made of blocks of neighbouring symbols, and come in pairs that have nothing in common.

        Parameters
        ----------
        X : sequences
            The data of the fit.
        lengths : list of int, optional
            Where X is many sequences one after the other, their lengths.
        n_halves : int, default 20
            How many halves are fitted.
        random_state : int, default 0
            Seed of the halves.

        Returns
        -------
        (rows of ``lags_``,) array

        Examples
        --------
        >>> import scb
        >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
        >>> scb.SparseContextualBigram(max_lag=6).fit(x).stability(x, n_halves=4)
        array([1., 1., 1.])
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
        """Write the model to one file that ``load`` reads; nothing in it is executed.

        Parameters
        ----------
        path : str or path
            The file.
        """
        model = self._model()
        save_model(path, model, self._facts(), self.get_params(), getattr(self, "n_features_in_", None), self._kept)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that ``save`` wrote; a DamagedFileError if the file is not as it was written.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        SparseContextualBigram
        """
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
