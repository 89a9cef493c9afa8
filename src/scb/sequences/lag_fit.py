"""The steps from windows of symbols to a ``LagModel``: the settings, the fit, smoothing, matrices
known from another model, and how often a lag is found again in halves of the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from scb.arrays import Array
from scb.inputs import InputError, boolean, integer, number, one_of
from scb.mixture.beside import with_sources
from scb.mixture.data import Data
from scb.mixture.em import last_gap
from scb.mixture.errors import standard_errors, unknown_errors
from scb.mixture.fit import Estimate
from scb.mixture.merging import Matrices, fit_matrices, matrices_of
from scb.mixture.model import Initial
from scb.mixture.select import Progress
from scb.sequences.baselines.background import ModelBackground, RecentBackground, WindowBackground
from scb.sequences.baselines.per_sequence import SequenceBackground
from scb.sequences.covariates import Covariate
from scb.sequences.fit_facts import FitFacts
from scb.sequences.lag_evidence import lag_evidence
from scb.sequences.lag_model import SHARED, LagModel, with_unseen
from scb.sequences.patience import warn_if_long
from scb.sequences.tables import Classes

BACKGROUNDS = ("auto", "labels", "ngram", "per_sequence")
MAX_LAG = 20  # the default


def is_auto(option: Any) -> bool:
    """Whether an option is chosen from the data."""
    return isinstance(option, str) and option == "auto"


@dataclass(frozen=True)
class LagSettings:
    """The checked parameters of a fit; see ``SparseContextualBigram``."""

    max_lag: int = MAX_LAG
    transition: Matrices = "auto"
    context: bool | Literal["auto"] = "auto"
    lags: str | int | Sequence[int] = "auto"
    background: Any = "auto"
    smoothing: float | str = "auto"
    covariates: tuple[Covariate, ...] = ()
    chooser: int | None = None  # the covariate that chooses with the current symbol

    def __post_init__(self) -> None:
        # A longer one is a mistake, and would take all memory
        integer("max_lag", self.max_lag, low=1, high=1_000_000)
        if isinstance(self.transition, str):
            one_of("transition", self.transition, ("auto", "shared", "per_lag"))
        else:
            integer("transition", self.transition, low=1)
        if not is_auto(self.context):
            boolean("context", self.context)
        if not is_auto(self.smoothing):
            number("smoothing", self.smoothing, low=0)
        known = isinstance(self.background, str) and self.background in BACKGROUNDS
        if not known and not hasattr(self.background, "predict_proba"):
            names = ", ".join(map(repr, BACKGROUNDS))
            raise InputError(
                f"background = {self.background!r}: it must be {names} or a fitted model with"
                " predict_proba"
            )
        if isinstance(self.lags, int | np.integer):
            if not 1 <= self.lags <= self.max_lag:
                raise InputError(
                    f"lags = {self.lags}: it must lie between 1 and max_lag = {self.max_lag}"
                )
        elif not self.selects_lags:
            self._check_given_lags()

    @property
    def sources(self) -> tuple[Covariate, ...]:
        """The covariates that are sources; there are none if all lags share one matrix."""
        return () if self.transition == "shared" else self.covariates

    @property
    def kinds(self) -> tuple[Matrices, ...]:
        """The kinds of matrices to choose from; covariates do not share matrices."""
        if not is_auto(self.transition):
            return (self.transition,)
        return "shared", "per_lag" if self.covariates else "auto"

    def sourced(self, data: Data) -> Data:
        """Windows with their covariates as positions."""
        return with_sources(data, [len(one.values) for one in self.sources], self.chooser)

    @property
    def selects_lags(self) -> bool:
        """Whether the data decide how many lags there are, and which."""
        return is_auto(self.lags)

    @property
    def has_states(self) -> bool:
        """Whether the weights depend on the current symbol, or may do so."""
        return bool(self.context)

    @property
    def shrink(self) -> float | None:
        """The threshold from which matrices are shrunk, as an argument of ``fit_mixture``."""
        return 1.0 if is_auto(self.smoothing) else None

    def asked_lags(self) -> dict[str, Any]:
        """The requested lags together with all covariates, as arguments of ``fit_mixture``; there
        are none if the data decide.
        """
        if self.selects_lags:
            return {}
        if isinstance(self.lags, int | np.integer):
            return {"number": int(self.lags)}
        lags = np.unique(np.asarray(self.lags, dtype=np.intp))
        m = len(self.sources)
        return {"positions": np.append(np.arange(m), m + self.max_lag - lags[::-1])}

    def _check_given_lags(self) -> None:
        try:
            values = np.asarray(self.lags)
        except ValueError:
            values = np.zeros(0)
        if values.ndim != 1 or values.size == 0 or values.dtype.kind not in "iu":
            raise InputError(
                f"lags = {self.lags!r}: it must be 'auto', a number of lags, or the lags themselves"
            )
        if values.min() < 1 or values.max() > self.max_lag:
            raise InputError(
                f"lags = {self.lags!r}: each must lie between 1 and max_lag = {self.max_lag}"
            )


def fit_lags(
    data: Data,
    classes: Classes,
    settings: LagSettings,
    *,
    init: LagModel | None = None,
    progress: Progress | None = None,
) -> LagModel:
    """Find the lags in windows of symbols and estimate the model. With transition "auto", the
    number of matrices is the one with the lowest BIC. Context and background must already have been
    chosen.
    """
    background = chosen_background(settings.background, data, classes)
    windows = data if background is None else background.cross_fitted(data)
    kinds = settings.kinds
    if init is not None and is_auto(settings.transition):
        kinds = (init.transition,)
    known = {} if init is None else _known(init, classes, data, kinds[0])
    options: dict[str, Any] = {
        "known": None if init is None else _initial(known, data),
        "shrink": settings.shrink if init is None else None,
        "progress": progress,
        "errors": partial(standard_errors, of_P=False),
    }
    tried = [replace(settings, transition=kind) for kind in kinds]
    fits = [partial(_fit_sources, settings=one, **options) for one in tried]
    trials = [partial(fit, progress=None, errors=unknown_errors) for fit in fits]
    long = warn_if_long(windows, trials)
    estimates = [fit(windows, stoppable=long) for fit in fits]
    criterion = {str(matrices_of(one)): one.bic for one in estimates}
    best = min(estimates, key=attrgetter("bic"))
    chosen = replace(settings, transition=matrices_of(best))
    model = replace(
        as_lags(best, chosen.sourced(data), classes, chosen, known),
        background=background,
        evidence=lag_evidence(best.evidence),
    )
    facts = FitFacts(
        loglik=model.loglik(data),
        n_windows=round(data.n),
        n_symbols=round(data.tokens),
        n_parameters=best.parameters,
        n_iter=len(best.path),
        gap=best.gap,
        converged=bool(best.settled and best.gap <= last_gap(best.P)),
        criterion=criterion,
        covariates={one.name: one.name in model.used_covariates for one in settings.covariates},
    )
    return replace(model, facts=facts)


def _fit_sources(data: Data, settings: LagSettings, **options: Any) -> Estimate:
    """The estimate of one kind of transition from windows of symbols."""
    options |= settings.asked_lags()
    return fit_matrices(settings.sourced(data), settings.transition, **options)


def chosen_background(background: Any, data: Data, classes: Classes) -> WindowBackground | None:
    """The background that gives each window its own distribution; None for "labels"."""
    if isinstance(background, str):
        if background == "labels":
            return None
        kind = RecentBackground if background == "ngram" else SequenceBackground
        return kind.fit(data)
    return ModelBackground(background, classes)


def as_lags(
    estimate: Estimate,
    data: Data,
    classes: Classes,
    settings: LagSettings,
    known: dict[int, Array],
) -> LagModel:
    """An estimate as a model of lags, with its matrices smoothed towards the distribution of the
    labels or towards the known matrices.

    The distribution of the labels is smoothed towards the uniform distribution, so a symbol that
    was never a label is not impossible. Such a symbol is never less probable than under the
    distribution of all labels alone, as estimated by the method of Witten and Bell.
    """
    s = 1.0 if is_auto(settings.smoothing) else float(settings.smoothing)
    # Of the tokens of the windows, only symbols are labels
    N = len(classes)
    labels = data.label_distribution[:N]
    prior = (labels * data.n + s / N) / (data.n + s)
    owners = [SHARED] if estimate.owners is None else [data.T - t for t in estimate.owners]
    columns = {
        lag: slice(i * data.N, i * data.N + _width(lag, N, settings))
        for i, lag in enumerate(owners)
    }
    base = np.repeat(prior[:, None], estimate.P.shape[1], axis=1)
    for lag in columns.keys() & known.keys():
        base[:, columns[lag]] = known[lag]
    counts = estimate.counts + s
    smooth = (estimate.P[:N] * estimate.counts + s * base) / np.where(counts > 0, counts, 1.0)
    P = np.where(counts > 0, smooth, base)
    K = _states(N, settings)
    lags = [data.T - positions for positions in estimate.support[:K]]
    unseen = _unseen(labels, data.n) * (s > 0)
    P = with_unseen(P.T, unseen).T
    return LagModel(
        classes=classes,
        context=settings.has_states,
        attention=_sparse(lags, estimate.weights[:K], data.T),
        errors=_sparse(lags, estimate.weight_errors[:K], data.T),
        background_weight=estimate.background[:K],
        background_ratio=estimate.background_ratios[:K],
        matrices={lag: np.ascontiguousarray(P[:, columns[lag]]) for lag in sorted(columns)},
        prior=with_unseen(prior, unseen),
        frequencies=data.mu[:N],
        unseen=unseen,
        covariates=settings.sources,
        chooser=settings.chooser,
    )


def _states(N: int, settings: LagSettings) -> int:
    """The number of states that choose the weights; a missing covariate has a state of its own."""
    if not settings.has_states or settings.chooser is None:
        return N if settings.has_states else 1
    return N * (len(settings.covariates[settings.chooser].values) + 1)


def _width(lag: int, N: int, settings: LagSettings) -> int:
    """The number of columns of the matrix of a lag or covariate."""
    if lag > settings.max_lag:
        return len(settings.sources[lag - settings.max_lag - 1].values)
    return _states(N, settings) if lag == 1 and settings.chooser is not None else N


def _unseen(distribution: Array, n: float) -> Array:
    """(N,): the probability of each symbol that never was one of n labels, as Witten and Bell
    estimate it; 0 for the others.
    """
    kinds = np.count_nonzero(distribution)
    return np.where(distribution > 0, 0.0, kinds / (n + kinds) / distribution.size)


def _sparse(lags: list[NDArray[np.intp]], values: list[Array], max_lag: int) -> csr_array:
    """(K, max_lag): the value of lag ℓ in column ℓ − 1."""
    bounds = np.cumsum([0] + [len(one) for one in lags])
    columns = np.concatenate(lags).astype(np.int64) - 1
    table = csr_array((np.concatenate(values), columns, bounds), shape=(len(lags), max_lag))
    table.sort_indices()
    return table


# --------------------------------------------------------------------- matrices of another model


def _known(init: LagModel, classes: Classes, data: Data, kind: Matrices) -> dict[int, Array]:
    """Lag → (N, N): the matrices of another model, for our symbols. The column of a symbol that it
    does not know is the distribution of the labels.
    """
    if init.transition != kind:
        raise InputError(
            f"init has transition={init.transition!r}, but this model has {kind!r}: they must agree"
        )
    theirs = init.classes.tolist()
    ours = [i for i, symbol in enumerate(classes.tolist()) if symbol in set(theirs)]
    if not ours:
        raise InputError("init has no symbol in common with X, so its matrices cannot be used")
    there = [theirs.index(classes[i]) for i in ours]
    distribution = data.label_distribution
    known = {}
    for lag in [lag for lag in init.matrices if lag <= data.T]:
        part = init.matrices[lag][np.ix_(there, there)]
        inside = np.zeros((data.N, len(ours)))
        inside[ours] = part
        whole = np.repeat(distribution[:, None], data.N, axis=1)
        whole[:, ours] = inside + (1 - part.sum(axis=0)) * distribution[:, None]
        known[lag] = whole / whole.sum(axis=0)
    return known


def _initial(known: dict[int, Array], data: Data) -> Initial:
    """Known matrices as the start of a search that has no positions yet."""
    if SHARED in known:
        return Initial.without_positions(known[SHARED], data.K)
    lags = sorted(known, reverse=True)
    P = np.column_stack([np.zeros((data.N, 0)), *(known[lag] for lag in lags)])
    return Initial.without_positions(P, data.K, tuple(data.T - lag for lag in lags))
