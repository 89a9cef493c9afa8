"""The scikit-learn estimator: which lags matter in sequences of symbols, and when."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from scb.arrays import Ints
from scb.inputs import InputError, one_of
from scb.mixture.data import is_dask
from scb.mixture.merging import Matrices
from scb.sequences.coding import windows_of_symbols
from scb.sequences.covariates import Covariate, beside_symbols, fitted_covariates
from scb.sequences.lag_fit import MAX_LAG, LagSettings
from scb.sequences.lag_model import LagModel
from scb.sequences.streams import StreamedLags
from scb.sequences.symbols import as_sequences
from scb.sequences.tables import Sequences
from scb.sequences.weighting import explained_share, windows_with_weights


class SparseContextualBigram(StreamedLags):
    """A model of sequences that finds which earlier symbols (lags) decide the next one.

    The next symbol has the distribution b[k]·G + Σ_ℓ a[k, ℓ]·P_ℓ[:, x_ℓ]. Here, x_ℓ is the symbol
    at lag ℓ, that is, ℓ steps before the next symbol, so k = x_1 is the current symbol. P_ℓ is a
    transition matrix, and G is the background, such as the distribution of all labels. Only a few
    weights a[k, ℓ] are positive, and the estimator finds them. The labels are the symbols to be
    predicted: all except the first symbol in each sequence. A lag that reaches beyond the start of
    a sequence or to a missing symbol contributes the background.

    Parameters
    ----------
    max_lag : int, default 20
        The longest lag to consider.
    transition : {"auto", "shared", "per_lag"} or int, default "auto"
        "shared" fits one transition matrix for all lags, and "per_lag" fits one for each lag. An
        integer is the number of matrices to fit, which the lags share. With "auto", the choice is
        made on held-out blocks of the data or, if ``context`` and ``background`` are given, by the
        BIC.
    context : bool or "auto", default "auto"
        Whether the weights depend on the current symbol. If they do not, the model is Raftery's
        Mixture Transition Distribution model. "auto" means True, unless a model with such weights
        predicts held-out blocks of the data clearly worse (by at least 0.01 bits per symbol and two
        standard errors).
    lags : "auto", int or sequence of int, default "auto"
        "auto" selects the lags after each symbol by the extended BIC. An integer requests that many
        lags after each symbol (fewer if more do not improve the fit). A sequence lists the lags to
        use, which are the same after every symbol.
    background : {"auto", "labels", "ngram", "per_sequence"} or a fitted model, default "auto"
        The prediction that a lag must improve on: "labels", the distribution of all labels;
        "ngram", a cross-fitted n-gram or context tree of the recent symbols; "per_sequence", the
        frequencies of each sequence, learned symbol by symbol; or a fitted model with
        ``predict_proba``, which must not have been fitted to these data. "auto" means "labels",
        unless held-out blocks of the data are predicted clearly better with an n-gram, or the
        sequences differ so much that separate frequencies for each of them make lags unnecessary.
        If ``lags`` are given, "auto" means "labels".
    smoothing : "auto" or float, default "auto"
        The pseudo-count added to each column of a transition matrix, in proportion to the
        distribution of all labels or, with ``init``, to the same column of the given model. The
        same pseudo-count is added to the distribution of all labels, in equal parts for all
        symbols. The value 0 means maximum likelihood, under which symbols can have probability 0.
        "auto" means 1 or, where there are few labels for each entry of a matrix, the value under
        which the labels are most likely (empirical Bayes).
    handle_unknown : {"error", "missing"}, default "error"
        Whether to raise an error for symbols that did not occur in the data of the fit, or to treat
        them as missing.
    verbose : bool, default False
        Whether to print the progress of the search to stderr.

    Attributes
    ----------
    classes_ : (N,) array
        The symbols, sorted.
    transition_ : (N, N) array or dict
        The transition matrix: entry (i, j) is the probability of ``classes_[i]`` if the symbol at
        the lag is ``classes_[j]``. If there is more than one matrix, ``transition_`` is a
        dictionary from each lag to its matrix.
    attention_ : sparse (N, max_lag) array
        The weights a[k, ℓ]: row k is for the current symbol ``classes_[k]``, and column ℓ − 1 is
        for lag ℓ; the columns of covariates follow. Without context there is a single row. If no
        lag was found after a symbol, its row is empty, and the background alone predicts the next
        symbol.
    background_weight_, incomplete_ : (N,) arrays
        The weight b[k] of the background, and whether this weight is significant. A significant
        weight means that some lag was not found. With background "labels", the weight is positive
        only if it is significant or if no lag was found.
    influence_ : sparse (N, max_lag) array
        How much the symbol at each lag changes the distribution of the next symbol, on average, in
        total variation distance.
    lags_ : dict of (lags,) arrays
        A table of the lags found, with the columns context (the current symbol, after which the lag
        matters), lag, weight and stderr. With covariates, the additional column source holds the
        name of a covariate or of a lag, such as "lag 2".
    prior_, frequencies_ : (N,) arrays
        The distribution of the labels, and that of all symbols.
    loglik_ : float
        The log-likelihood of the labels in the data of the fit, in nats.
    n_windows_, n_symbols_ : int
        The number of symbols that were predicted in the fit, and the number of all symbols.
    n_parameters_, n_iter_ : int
        The number of parameters that the data can distinguish, and the number of steps of the last
        fit.
    converged_, gap_ : bool and float
        Whether the search and the last fit converged, and an upper bound on how much the
        log-likelihood could still gain, in nats.
    criterion_ : dict of float
        The BIC of each kind of transition that was fitted to all the data. With few labels for each
        entry, matrices are charged their price instead of log n for each entry, if that is less, so
        the value differs from ``bic(X)``.
    choices_ : dict of float
        The bits per symbol that each choice tried for the "auto" options needs on held-out blocks,
        with the usual choice first. The dictionary is empty if there was nothing to choose.
    sequence_bits_ : float
        The bits per symbol of a model that uses the frequencies of each sequence instead of lags.
        They are computed if lags were found in several sequences with the background "labels";
        otherwise the value is NaN.
    covariates_ : dict of bool
        For each covariate that was passed to ``fit``, whether the model uses it.
    groups_ : GroupTest
        The test of whether the groups share lags, weights and matrices, if groups were passed to
        ``fit``.
    explained_share_ : float
        The share of the information in ``probabilities``, in nats, that the model explains, if they
        were passed to ``fit``.

    Examples
    --------
    On this planet, the next day's weather depends on the weather of one earlier day, which the
    current weather selects:

    >>> import numpy as np, scb
    >>> days = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
    >>> x = np.array(["dry", "rain", "snow"])[days]
    >>> model = scb.SparseContextualBigram(max_lag=6).fit(x)
    >>> print(model.summary())
    After ‘dry’ or ‘snow’, the next symbol depends on lag 6; after ‘rain’, on lag 4.
    <BLANKLINE>
    Fitted to 2,999 symbols (3 distinct), with lags up to 6
    one matrix for all lags
    0.4377 bits per symbol (log-likelihood -909.8 nats), 6 parameters
    chosen on held-out blocks, in bits per symbol: one matrix for all lags 0.3946; a
    matrix for each lag 0.3953; one matrix, no context 0.7144; beside an n-gram
    0.3946
    <BLANKLINE>
       now  lag  weight  influence           95 %   nats     dBIC
     'dry'    6   1.000      0.562  0.553 - 0.572  907.1  1,814.3
    'rain'    4   1.000      0.562  0.553 - 0.572  764.4  1,528.9
    'snow'    6   1.000      0.562  0.553 - 0.572  673.2  1,346.3
    >>> model.lags_["weight"].round(2), model.influence_.nnz, model.n_seen_
    (array([1., 1., 1.]), 3, 0)

    Predict the next symbol after each symbol of one sequence, or after the end of each of several
    sequences:

    >>> model.predict_proba(x[:8])[-1].round(2), model.predict([x[:8], x[:20]])
    (array([0.02, 0.01, 0.97]), array(['snow', 'snow'], dtype='<U4'))
    >>> model.predict_log_proba([x[:8]]).shape
    (1, 3)
    >>> model.forecast(x[:8], steps=2).round(1)
    array([[0. , 0. , 1. ],
           [0.2, 0.8, 0. ]])
    >>> model.sample(6, random_state=0)
    array(['snow', 'snow', 'snow', 'snow', 'snow', 'dry'], dtype='<U4')

    Measure how well symbols are predicted, by the log-likelihood in nats, the perplexity and
    information criteria:

    >>> round(model.score(x), 3), round(model.perplexity(x), 2), model.log_likelihoods(x).shape
    (-0.303, 1.35, (3000,))
    >>> round(model.bic(x)), round(model.aic(x))
    (1868, 1832)

    Plot the lags found, and save the model:

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
        transition: Matrices = "auto",
        context: bool | Literal["auto"] = "auto",
        lags: str | int | Sequence[int] = "auto",
        background: Any = "auto",
        smoothing: float | Literal["auto"] = "auto",
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

    # -------------------------------------------------------------------------------------- fitting

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: Any = None,
        init: "SparseContextualBigram | None" = None,
        sample_weight: Any = None,
        covariates: Any = None,
        probabilities: Any = None,
        groups: Any = None,
    ) -> Self:
        """Find the lags and estimate the model.

        Parameters
        ----------
        X : sequences
            One sequence of symbols (a list, a 1-D array or a column of a table) or several (a list
            of sequences, a 2-D array with one sequence in each row, or the result of
            ``scb.read_sequences``). Symbols are integers, strings, booleans or floats; None and NaN
            are missing. Dask arrays, bags and lists of delayed sequences are processed where they
            are stored.
        y : ignored
            Present for compatibility with scikit-learn.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        init : SparseContextualBigram, optional
            A fitted model whose transition matrices the search starts from. Given these matrices,
            the weights are the solution of a concave problem, so fewer data suffice.
        sample_weight : (sequences,) or (symbols,) array, optional
            How often each sequence, or each symbol as a label, counts. If no option is "auto",
            whole numbers have the same effect as repeated data. An n-gram ignores these weights and
            counts every symbol once.
        covariates : table, dict or (rows, columns) array, optional
            Columns with a value for each symbol of X, or for each sequence, that is known when the
            symbol is predicted, such as the hour or the season. Where the data support it,
            covariates become sources in addition to the lags, or one covariate chooses the lags
            together with the current symbol. Values are categories; numbers with more than 31
            distinct values are cut into 8 bins at their quantiles.
        probabilities : (symbols, N) array, optional
            Soft labels: the distributions that another model predicts. Row i is the distribution of
            the symbol after symbol i, as ``predict_proba`` returns it, with columns for the sorted
            symbols. ``explained_share_`` says how much of the information in these distributions
            the lags explain.
        groups : (sequences,) sequence, optional
            The group of each sequence. If groups are given, ``groups_`` holds the result of
            ``compare_groups``.

        Returns
        -------
        SparseContextualBigram
            The estimator itself.
        """
        settings = self._settings()
        one_of("handle_unknown", self.handle_unknown, ("error", "missing"))
        if y is not None and not is_dask(X):
            own = as_sequences(X, lengths).lengths
            if len(np.asarray(y)) not in (len(own), sum(own)):
                raise InputError(
                    "y is ignored, but it is not as long as X: pass the lengths of sequences as "
                    "lengths="
                )
        self._kept = None
        for name in ("groups_", "explained_share_"):
            vars(self).pop(name, None)
        known = None if init is None else init._model()
        if covariates is None and isinstance(X, Sequences):
            covariates = X.covariates
        if sample_weight is None and probabilities is None and covariates is None:
            data, classes, width = windows_of_symbols(
                X, lengths, settings.max_lag, settings.has_states
            )
        else:
            X = as_sequences(X, lengths)
            lengths = None
            beside = None
            if covariates is not None:
                known_values, beside = _checked_covariates(covariates, X, settings, known)
                settings = replace(settings, covariates=known_values)
            data, classes, width = windows_with_weights(
                X, settings.max_lag, settings.has_states, sample_weight, probabilities, beside
            )
        self._fit_windows(data, classes, settings, width, known)
        if probabilities is not None:
            self.explained_share_ = explained_share(self._fitted, data)
        if groups is not None:
            self.groups_ = self.compare_groups(X, groups, lengths=lengths, covariates=covariates)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


def _checked_covariates(
    covariates: Any, X: Sequences, settings: LagSettings, known: LagModel | None
) -> tuple[tuple[Covariate, ...], Ints]:
    """Covariates of symbols and their codes (symbols, covariates), if the model can have any."""
    if settings.transition not in ("auto", "per_lag") or known is not None:
        raise InputError(
            "covariates: each has its own matrix, so transition must be 'auto' or 'per_lag', "
            "and init cannot be given"
        )
    return fitted_covariates(beside_symbols(covariates, X))
