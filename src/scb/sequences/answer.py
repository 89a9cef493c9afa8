"""A sentence on what a fit found: on which lags the next symbol depends, after which symbols."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scb.sequences.baselines.background import RecentBackground
from scb.sequences.baselines.ctw import ContextTree
from scb.sequences.baselines.per_sequence import SequenceBackground
from scb.sequences.lag_model import LagModel
from scb.sequences.symbols import readable

# How many current symbols of a group, and how many groups of them, the answer names
_NAMED = 8


def answer_of(model: LagModel) -> str:
    """A sentence that says which lags the next symbol depends on, and after which symbols."""
    # The largest groups of current symbols first
    groups = sorted(_symbols_by_lags(model).items(), key=lambda group: -len(group[1]))
    lags = "No earlier symbol decides the next one, as far as these data can tell."
    if groups:
        lags = _said_by_lags(model, groups)
    if before := _said_by_background(model):
        return f"{before} {lags[0].lower()}{lags[1:]}"
    return lags


def _said_by_background(model: LagModel) -> str:
    """What matters besides the lags; empty if nothing does."""
    background = model.background
    if isinstance(background, SequenceBackground):
        return "Each sequence has frequencies of its own; beyond them,"
    if not isinstance(background, RecentBackground):
        return ""
    depth = background.model.counts.depth
    if depth == 0:
        return ""
    kind = "a context tree" if isinstance(background.model, ContextTree) else "an n-gram"
    if depth == 1:
        return f"The last symbol matters, as {kind}; beyond it,"
    return f"The last {depth} symbols matter together, as {kind}; beyond them,"


def _said_by_lags(model: LagModel, groups: list[tuple[str, list[str]]]) -> str:
    """Which lags the next symbol depends on, for groups of current symbols that have the same."""
    (lags, symbols), *others = groups[:_NAMED]
    if not model.context:
        return f"The next symbol depends on {lags}."
    # The last states are those of a missing value
    if model.chooser is not None and len(symbols) == len(model.contexts) - len(model.classes):
        name = model.covariates[model.chooser].name
        return f"Whatever the current symbol and the {name}, the next symbol depends on {lags}."
    if len(symbols) == len(model.contexts):
        return f"Whatever the current symbol, the next one depends on {lags}."
    parts = [f"After {_some(symbols)}, the next symbol depends on {lags}"]
    parts += [f"after {_some(symbols)}, on {lags}" for lags, symbols in others]
    if len(groups) > _NAMED:
        left = len(groups) - _NAMED
        groups_left = "1 more group" if left == 1 else f"{left} more groups"
        parts.append(f"and after others, on other lags ({groups_left} of symbols)")
    return "; ".join(parts) + "."


def _symbols_by_lags(model: LagModel) -> dict[str, list[str]]:
    """Which current symbols, in quotation marks, have the same lags; keys are "lag 4" or "lags 1
    and 3", with the covariates first: "season and lag 1".

    A symbol without a lag is in no group. A model without context has one group, of one symbol.
    """
    groups: dict[str, list[str]] = {}
    lags_of = np.split(model.attention.indices + 1, model.attention.indptr[1:-1])
    for k, lags in enumerate(lags_of):
        if len(lags):
            names = [model.source_name(x) for x in sorted(lags.tolist())]
            own = [name.removeprefix("lag ") for name in names if name.startswith("lag ")]
            noun = "lag " if len(own) == 1 else "lags "
            parts = [name for name in names if not name.startswith("lag ")]
            parts += [noun + _joined(own, "and")] if own else []
            symbol = f"‘{readable(model.contexts.tolist()[k])}’"
            groups.setdefault(_joined(parts, "and"), []).append(symbol)
    return groups


def _joined(values: Sequence[Any], last: str) -> str:
    """Values with commas, and a word before the last."""
    *first, end = map(str, values)
    return f"{', '.join(first)} {last} {end}" if first else end


def _some(names: list[str]) -> str:
    """Names with commas and a last "or"; of many, the first ones and how many others."""
    left = len(names) - _NAMED
    return _joined(names if left <= 1 else [*names[:_NAMED], f"{left} others"], "or")
