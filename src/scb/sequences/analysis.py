"""A fit with everything that is reported about it: the lags and their evidence, how often they are
found again, and how well the model and its baselines predict held-out symbols. ``scb fit`` prints
this analysis.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scb.inputs import InputError, integer, number
from scb.sequences.baselines.scoring import Likelihoods, baseline_scorers, scored
from scb.sequences.choice import fit_chosen, in_states
from scb.sequences.coding import labels_among, windows_of_codes
from scb.sequences.comparison import OWN, PLAIN, Score, own_bits, scores_of
from scb.sequences.covariates import beside_symbols, fitted_covariates
from scb.sequences.estimator import SparseContextualBigram
from scb.sequences.explaining import Explanation, explain
from scb.sequences.lag_fit import LagSettings, fit_lags
from scb.sequences.lag_model import LagModel
from scb.sequences.report import write_page
from scb.sequences.splitting import Split, about_split, counted, split
from scb.sequences.stability import found_again
from scb.sequences.summary import LagSummary, summarise
from scb.sequences.symbols import as_sequences, encode
from scb.sequences.tables import Classes, Codes, Sequences

Announce = Callable[[str], None]


@dataclass(frozen=True)
class Analysis:
    """A fitted model and everything reported about it, as returned by ``scb.analyse``.

    Attributes
    ----------
    model : SparseContextualBigram
        The fitted model.
    summary : LagSummary
        The lags found, with the evidence for each.
    scores : list of Score
        How well the model and its baselines predict the held-out symbols, best first; empty if
        nothing was held out.
    about : list of str
        Lines of text that say what the data are, how they were read and which part was held out.
    failures : list of str
        The baselines that could not be computed, with the reasons, one line each.
    name : str
        The name of the data.
    n_held_out : int
        The number of held-out symbols that were predicted.
    reasons : Explanation
        An explanation of the first held-out symbols or, if nothing was held out, of the first
        symbols of X.

    Examples
    --------
    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 1000, seed=0)
    >>> analysis = scb.analyse(scb.SparseContextualBigram(max_lag=6), x, name="x", n_halves=2)
    >>> analysis.about[0], analysis.n_held_out, analysis.summary.columns["found"]
    ('x: 1,000 symbols of 3 kinds in 1 sequence', 200, array([1., 1., 1.]))
    >>> analysis.write_report("x.html")
    """

    model: SparseContextualBigram
    summary: LagSummary
    scores: list[Score]
    about: list[str]
    failures: list[str]
    name: str
    n_held_out: int
    reasons: Explanation

    def write_report(self, path: str | Path, command: str = "") -> None:
        """Write one self-contained HTML page that can be sent to others.

        Parameters
        ----------
        path : str or path
            The file to write.
        command : str, default ""
            The command that produces the same page.
        """
        write_page(
            Path(path),
            self.model._model(),
            self.scores,
            title=self.name,
            data=self.about,
            held_out=self.n_held_out,
            reasons=self.reasons,
            command=command,
            settings=vars(self.model._settings()),
            warnings=[*self.summary.warnings, *self.failures],
        )


def analyse(
    model: SparseContextualBigram,
    X: Any,
    *,
    lengths: Any = None,
    held_out: float = 0.2,
    n_halves: int = 10,
    random_state: int = 0,
    name: str = "",
    progress: Announce | None = None,
) -> Analysis:
    """Fit a model to part of X, and compare it with baselines on the rest.

    The baselines are n-grams, a context tree, prediction by partial matching (PPM) and the Mixture
    Transition Distribution model. Each baseline is fitted to the same symbols as the model.

    Parameters
    ----------
    model : SparseContextualBigram
        The estimator to fit.
    X : sequences
        One sequence of symbols or several, in any form that ``fit`` accepts except Dask
        collections.
    lengths : list of int, optional
        The lengths of the sequences, if X holds several sequences one after another.
    held_out : float, default 0.2
        The fraction of X that is predicted and not used to fit. Whole sequences are drawn at
        random. If a sequence contains more than a tenth of all symbols, only its end is held out.
        With 0, nothing is held out or compared.
    n_halves : int, default 10
        The number of random halves of the data in which the lags are searched for again. This
        number must be even; 0 skips the search.
    random_state : int, default 0
        The seed with which held-out sequences are drawn.
    name : str, default ""
        The name of the data.
    progress : callable, optional
        A function that is called with a line of text at each step.

    Returns
    -------
    Analysis
        The fitted model, its summary, the bits per held-out symbol of the model and of its
        baselines, and a method that writes a report.

    Examples
    --------
    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 1000, seed=0)
    >>> analysis = scb.analyse(scb.SparseContextualBigram(max_lag=6), x, n_halves=0)
    >>> print(analysis.summary.answer)
    After ‘0’ or ‘2’, the next symbol depends on lag 6; after ‘1’, on lag 4.
    >>> [(score.name, round(score.bits, 2)) for score in analysis.scores][:2]
    [('this model', 0.39), ('plain MTD', 0.67)]
    """
    if not 0 <= number("held_out", held_out) < 1:
        raise InputError(f"held_out = {held_out}: it must be at least 0 and less than 1")
    if integer("n_halves", n_halves, low=0) % 2:
        raise InputError(f"n_halves = {n_halves}: it must be an even number, or 0")
    settings = model._settings()
    say = progress or _silent
    sequences = as_sequences(X, lengths)
    codes, classes = encode(sequences)
    parts = split(codes, held_out, random_state)
    values = np.zeros((sum(sequences.lengths), 0), np.int64)
    if sequences.covariates is not None:
        known, values = fitted_covariates(beside_symbols(sequences.covariates, sequences))
        settings = replace(settings, covariates=known)
    ends = np.cumsum(sequences.lengths)[:-1]
    beside = split(np.split(values, ends), held_out, random_state)
    if parts.test and len(codes) == 1 and len(parts.train[0]) <= settings.max_lag:
        raise InputError(
            f"{len(codes[0])} symbols are too few for max_lag = {settings.max_lag} if {held_out}"
            " of them are held out"
        )
    fitted = _fit(parts.train, classes, settings, n_halves, say, beside.train)
    likelihoods, failures = _held_out_likelihoods(fitted, parts, say, beside.test)
    scores = scores_of(likelihoods) if likelihoods else []
    model._kept = None
    return Analysis(
        model=model._keep(fitted, None),
        summary=summarise(fitted, own_bits(scores)),
        scores=scores,
        about=_about(name, sequences, codes, classes) + about_split(parts, classes),
        failures=failures,
        name=name,
        n_held_out=likelihoods[OWN].size if likelihoods else 0,
        reasons=_first_reasons(fitted, parts, beside, sequences.separator),
    )


def _silent(line: str) -> None:
    """Ignore a line of progress."""


def _first_reasons(
    model: LagModel, parts: Split, beside: Split, separator: str, most: int = 1000
) -> Explanation:
    """Where the first held-out symbols come from; the first of all if none of these is
    predicted.
    """
    held_out = bool(parts.test) and labels_among(parts.test).any()
    codes, values = (one.test if held_out else one.train for one in (parts, beside))
    ends = np.cumsum([len(x) for x in codes])
    enough = int(np.searchsorted(ends, most)) + 1
    first = [x[:most] for x in codes[:enough]]
    if labels_among(first).any():
        codes = first
        values = [x[:most] for x in values[:enough]]
    return explain(model, codes, separator, beside=np.concatenate(values))


def _fit(
    train: list[Codes],
    classes: Classes,
    settings: LagSettings,
    n_halves: int,
    say: Announce,
    beside: list[Codes],
) -> LagModel:
    """The model, with all of its evidence; ``beside`` are the codes (symbols, covariates) of the
    covariates of each sequence.
    """

    def searching(turn: int, lags: int, loglik: float) -> None:
        say(f"looking for lags: round {turn}, {lags} found so far")

    def searching_again(turn: int, halves: int) -> None:
        say(f"looking for the same lags in half {turn} of {halves} …")

    say("looking for lags …")
    data = windows_of_codes(
        train,
        len(classes),
        settings.max_lag,
        settings.has_states,
        beside=np.concatenate(beside),
    )
    model = fit_chosen(data, classes, settings, progress=searching)
    again = {}
    if n_halves and settings.selects_lags and model.attention.nnz:
        data = in_states(data, model.context)
        again = {"found": found_again(model, data, settings, n_halves, 0, searching_again)}
    say("what each lag is worth …")
    return replace(model, evidence={**model.evidence, **again})


def _held_out_likelihoods(
    model: LagModel, parts: Split, say: Announce, beside: list[Codes]
) -> tuple[Likelihoods, list[str]]:
    """By name, the log-likelihood (n,) of each held-out symbol in nats, empty if there is none; and
    a line for each baseline that could not be computed.
    """
    if not parts.test:
        return {}, []
    N = len(model.classes)
    windows = partial(windows_of_codes, N=N, max_lag=model.max_lag)
    try:
        own = model.windows(parts.test, np.concatenate(beside), parts.skipped)
    except InputError:  # no symbol follows another
        return {}, []

    def plain_mtd() -> Likelihoods:
        settings = LagSettings(model.max_lag, "shared", context=False, background="labels")
        plain = fit_lags(windows(parts.train, context=False), model.classes, settings)
        test = windows(parts.test, context=False, skipped=parts.skipped)
        return {PLAIN: plain.log_likelihoods(test)}

    scorers = baseline_scorers(parts.train, parts.test, N, parts.skipped)
    likelihoods, failures = scored(
        scorers | {PLAIN: plain_mtd}, lambda name: say(f"comparing: {name} …")
    )
    return likelihoods | {OWN: model.log_likelihoods(own)}, failures


def _about(name: str, sequences: Sequences, codes: list[Codes], classes: Classes) -> list[str]:
    """What was read, how, and what is odd about it."""
    lengths = np.array([len(x) for x in codes])
    missing = sum(int((x < 0).sum()) for x in codes)
    number_of = counted(len(codes), "sequence")
    if len(codes) > 1:
        number_of += (
            f" of {lengths.min():,} to {lengths.max():,} symbols, {int(np.median(lengths)):,} in"
            " the middle"
        )
    title = f"{name}: " if name else ""
    lines = [f"{title}{lengths.sum():,} symbols of {len(classes)} kinds in {number_of}"]
    if sequences.said:
        lines.append(f"Read as: {sequences.said}")
    if missing:
        lines.append(f"{missing:,} symbols ({missing / lengths.sum():.1%}) are missing")
    if short := int((lengths < 2).sum()):
        lines.append(
            f"{counted(short, 'sequence')} of fewer than 2 symbols: these say nothing about what"
            " comes next"
        )
    return lines
