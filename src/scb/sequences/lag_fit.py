"""From windows of symbols to a ``LagModel``: settings, the fit, smoothing, and matrices that are
known from another model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from scb.arrays import Array
from scb.inputs import InputError, one_of
from scb.mixture.data import Data
from scb.mixture.fit import Estimate, fit_mixture
from scb.mixture.model import Initial
from scb.mixture.select import Progress
from scb.sequences.baselines.background import ModelBackground, RecentBackground, WindowBackground
from scb.sequences.lag_evidence import lag_evidence
from scb.sequences.lag_model import SHARED, FitFacts, LagModel

MAX_LAG = 20  # unless given
TRANSITIONS = ("shared", "per_lag")
LONGEST = 1_000_000  # a longer max_lag is a mistake, and takes all memory


@dataclass(frozen=True)
class LagSettings:
    """What is asked for: see the parameters of ``SparseContextualBigram``. A ValueError names what
    cannot be.
    """

    max_lag: int = MAX_LAG
    transition: Literal["auto", "shared", "per_lag"] = "auto"
    context: bool = True
    lags: str | int | Sequence[int] = "auto"
    background: Any = "labels"
    smoothing: float = 1.0

    def __post_init__(self) -> None:
        max_lag = self.max_lag
        if (
            not isinstance(max_lag, int | np.integer)
            or isinstance(max_lag, bool)
            or not 1 <= max_lag <= LONGEST
        ):
            raise InputError(
                f"max_lag = {max_lag!r}: it must be an integer of at least 1, and at most {LONGEST:,}"
            )
        one_of("transition", self.transition, ("auto", *TRANSITIONS))
        known = isinstance(self.background, str) and self.background in ("labels", "ngram")
        if not known and not hasattr(self.background, "predict_proba"):
            raise InputError(
                f"background = {self.background!r}: it must be 'labels', 'ngram' or a fitted model with predict_proba"
            )
        if not isinstance(self.context, bool | np.bool_):
            raise InputError(f"context = {self.context!r}: it must be True or False")
        if (
            not isinstance(self.smoothing, int | float | np.number)
            or not 0 <= self.smoothing < np.inf
        ):
            raise InputError(f"smoothing = {self.smoothing!r}: it must be a number of at least 0")
        if isinstance(self.lags, str) and self.lags == "auto":
            return
        if isinstance(self.lags, int | np.integer):
            if not 1 <= self.lags <= self.max_lag:
                raise InputError(
                    f"lags = {self.lags}: there must be between 1 and max_lag = {self.max_lag} of them"
                )
            return
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
    classes: NDArray[Any],
    settings: LagSettings,
    *,
    init: LagModel | None = None,
    progress: Progress | None = None,
) -> tuple[LagModel, FitFacts]:
    """Find the lags in windows of symbols, and estimate the model; with "auto" both kinds of it, of
    which the BIC takes one.
    """
    distribution = chosen_background(settings.background, data, classes)
    windows = data if distribution is None else distribution.cross_fitted(data)
    kinds = TRANSITIONS if settings.transition == "auto" else (settings.transition,)
    if init is not None and settings.transition == "auto":
        kinds = (init.transition,)
    known = {} if init is None else _known(init, classes, data, kinds[0])
    start = None if init is None else _initial(known, data)
    found = {kind: _fit(windows, settings, kind, start, progress) for kind in kinds}
    criterion = {
        kind: float(np.log(data.n) * one.parameters - 2 * one.loglik) for kind, one in found.items()
    }
    best = found[min(criterion, key=lambda kind: criterion[kind])]
    model = replace(
        _model(best, data, classes, settings, known),
        background=distribution,
        evidence=lag_evidence(best.evidence, data.n),
    )
    facts = FitFacts(
        loglik=model.loglik(data),
        n_windows=data.n,
        n_labels=round(data.tokens),
        n_parameters=best.parameters,
        n_iter=len(best.path),
        gap=best.gap,
        converged=bool(best.settled and best.gap <= 1e-3),  # nats
        criterion=criterion,
    )
    return model, facts


def chosen_background(
    background: Any, data: Data, classes: NDArray[Any]
) -> WindowBackground | None:
    """What gives each window its own distribution; None where the background is the distribution of
    all labels.
    """
    if isinstance(background, str):
        return RecentBackground.fit(data) if background == "ngram" else None
    return ModelBackground(background, classes)


def _fit(
    data: Data, settings: LagSettings, kind: Any, start: Initial | None, progress: Progress | None
) -> Estimate:
    """Find the positions of one kind of model."""
    number = None
    positions = None
    if isinstance(settings.lags, int | np.integer):
        number = int(settings.lags)
    elif not isinstance(settings.lags, str):
        positions = data.T - np.unique(np.asarray(settings.lags, dtype=np.intp))[::-1]
    return fit_mixture(
        data, matrices=kind, number=number, positions=positions, known=start, progress=progress
    )


def _model(
    found: Estimate,
    data: Data,
    classes: NDArray[Any],
    settings: LagSettings,
    known: dict[int, Array],
) -> LagModel:
    """An estimate as a model of lags, its matrices smoothed towards the distribution of the labels,
    or towards what was known.

    The distribution of the labels is smoothed towards the uniform distribution, so that a symbol
    that never was a label is not impossible.
    """
    s = float(settings.smoothing)
    distribution = (data.label_distribution * data.n + s / data.N) / (data.n + s)
    owners = [SHARED] if found.owners is None else [data.T - t for t in found.owners]
    columns = {lag: slice(i * data.N, (i + 1) * data.N) for i, lag in enumerate(owners)}
    base = np.repeat(distribution[:, None], found.P.shape[1], axis=1)
    for lag in columns.keys() & known.keys():
        base[:, columns[lag]] = known[lag]
    counts = found.counts + s
    smooth = (found.P * found.counts + s * base) / np.where(counts > 0, counts, 1.0)
    P = np.where(counts > 0, smooth, base)
    lags = [data.T - positions for positions in found.support]
    return LagModel(
        classes=classes,
        context=bool(settings.context),
        attention=_sparse(lags, found.weights, data.T),
        errors=_sparse(lags, found.weight_errors, data.T),
        rest=found.background,
        rest_ratio=found.background_ratios,
        matrices={lag: np.ascontiguousarray(P[:, columns[lag]]) for lag in sorted(columns)},
        prior=distribution,
        frequencies=data.mu,
    )


def _sparse(lags: list[NDArray[np.intp]], values: list[Array], max_lag: int) -> csr_array:
    """(contexts, max_lag): the value of lag ℓ in column ℓ − 1."""
    bounds = np.cumsum([0] + [len(one) for one in lags])
    columns = np.concatenate(lags).astype(np.int64) - 1
    table = csr_array((np.concatenate(values), columns, bounds), shape=(len(lags), max_lag))
    table.sort_indices()
    return table


# ------------------------------------------------------------------------------------ what is known


def _known(init: LagModel, classes: NDArray[Any], data: Data, kind: str) -> dict[int, Array]:
    """The matrices (N, N) of another model by lag, for our classes; a symbol that it does not know
    has the distribution of the labels.
    """
    if init.transition != kind:
        raise InputError(
            f"init has transition={init.transition!r}, this model {kind!r}: they must agree"
        )
    theirs = init.classes.tolist()
    ours = [i for i, symbol in enumerate(classes.tolist()) if symbol in set(theirs)]
    if not ours:
        raise InputError("init has no symbol in common with X: its matrices say nothing here")
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
    """Known matrices as the start of a search, which has no positions yet."""
    if SHARED in known:
        return Initial.without_positions(known[SHARED], data.K)
    lags = sorted(known, reverse=True)
    P = np.column_stack([np.zeros((data.N, 0)), *(known[lag] for lag in lags)])
    return Initial.without_positions(P, data.K, tuple(data.T - lag for lag in lags))
