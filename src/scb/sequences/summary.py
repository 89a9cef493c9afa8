"""What a model found, for people: a table with the evidence, in words where something is wrong, and
as a picture.
"""

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.sequences.lag_model import FitFacts, LagModel
from scb.sequences.symbols import shown

_SHOWN = 60  # rows of the table when printed
_DEAR = 0.5  # bits a symbol
_KINDS = {"shared": "one matrix for all lags", "per_lag": "a matrix for each lag"}
_CONTEXTS = 8  # contexts in the answer in words
_COVER = 1.96  # standard errors on either side of an influence


@dataclass(frozen=True)
class LagSummary:
    """The lags of a fitted model, with the evidence for each of them.

    ``SparseContextualBigram.summary`` returns it. Printing it shows a table; ``columns`` and
    ``to_pandas()`` give the numbers.

    Attributes
    ----------
    model : LagModel
        The fitted model.
    facts : FitFacts
        Facts about the fit, such as the log-likelihood and the number of parameters.

    Examples
    --------
    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
    >>> summary = scb.SparseContextualBigram(max_lag=6).fit(x).summary()
    >>> summary.columns["lag"], summary.columns["influence"].round(2)
    (array([6, 4, 6]), array([0.56, 0.56, 0.56]))
    >>> summary.to_pandas().shape
    (3, 8)
    >>> print(summary.answer)
    After ‘0’ or ‘2’, the next symbol depends on lag 6; after ‘1’, on lag 4.
    """

    model: LagModel
    facts: FitFacts

    @property
    def answer(self) -> str:
        """Which lags the next symbol depends on, and after which symbols, in a sentence."""
        return answer(self.model)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns of the table: (lags,) arrays by name, a row per symbol and lag.

        They are ``context``, ``lag``, ``weight``, ``influence`` with the ends ``low`` and ``high``
        of its 95 % interval, the gain in log-likelihood ``nats``, the gain ``delta_bic``, and
        ``found``, once ``stability`` has been called.
        """
        table = self.model.whole_table()
        del table["stderr"]
        influence = table.pop("influence")
        error = table.pop("influence_stderr", np.full(influence.size, np.nan))
        low = np.maximum(influence - _COVER * error, 0.0)
        bounds = {
            "influence": influence,
            "low": low,
            "high": np.minimum(influence + _COVER * error, 1.0),
        }
        names = {name: table.pop(name) for name in ("context", "lag", "weight")}
        return names | bounds | table

    def to_pandas(self) -> Any:
        """Convert the columns to a data frame.

        Returns
        -------
        pandas.DataFrame
            A data frame with one row for each lag in each context.
        """
        import pandas as pd

        return pd.DataFrame(self.columns)

    def __str__(self) -> str:
        model, facts = self.model, self.facts
        kind = _KINDS[model.transition]
        lines = [
            *wrap(self.answer, 80),
            "",
            f"Fitted to {facts.n_windows:,} symbols ({len(model.classes)} distinct), with lags up to {model.max_lag}",
            f"{kind}{_chosen(facts)}",
            f"{-facts.loglik / facts.n_windows / np.log(2):.4f} bits per symbol (log-likelihood {facts.loglik:,.1f} nats),"
            f" {facts.n_parameters:,} parameters",
        ]
        if model.background is not None:
            lines.append(f"background: {model.background.name}; its weight {_spread(model.rest)}")
        lines += (
            ["", *_written(self.columns)]
            if model.attention.nnz
            else ["", *_nothing_found(model, facts)]
        )
        lines += ["", *problems(facts), *missing_parts(model), *_stand_ins(self.columns)]
        return "\n".join(lines).rstrip()

    __repr__ = __str__


def answer(model: LagModel) -> str:
    """Which lags the next symbol depends on, and after which symbols, in a sentence."""
    lags = np.split(model.attention.indices + 1, model.attention.indptr[1:-1])
    by: dict[str, list[str]] = {}
    for k, one in enumerate(lags):
        if len(one):
            by.setdefault(_listed(one), []).append(f"‘{shown(model.classes[k].item())}’")
    if not by:
        return "No earlier symbol decides the next one, as far as these data can tell."
    which, names = next(iter(by.items()))
    if not model.context:
        return f"The next symbol depends on {which}."
    if len(by) == 1 and len(names) == len(model.classes):
        return f"Whatever the current symbol, the next one depends on {which}."
    groups = sorted(by.items(), key=lambda item: -len(item[1]))
    (which, names), *others = groups[:_CONTEXTS]
    parts = [f"After {_joined(names)}, the next symbol depends on {which}"]
    parts += [f"after {_joined(names)}, on {which}" for which, names in others]
    if len(groups) > _CONTEXTS:
        parts.append(
            f"and after others, on other lags ({len(groups) - _CONTEXTS} more kinds of contexts)"
        )
    return "; ".join(parts) + "."


def _listed(lags: NDArray[Any]) -> str:
    numbers = [str(lag) for lag in sorted(lags.tolist())]
    return (
        f"lag {numbers[0]}"
        if len(numbers) == 1
        else f"lags {', '.join(numbers[:-1])} and {numbers[-1]}"
    )


def _joined(names: list[str]) -> str:
    """Names with commas and a last "or"; where there are many, the first of them and a number."""
    left = len(names) - _CONTEXTS
    listed = names if left <= 0 else [*names[:_CONTEXTS], f"{left} others"]
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def _chosen(facts: FitFacts) -> str:
    if len(facts.criterion) < 2:
        return ""
    best, other = sorted(facts.criterion, key=lambda kind: facts.criterion[kind])
    lower = facts.criterion[other] - facts.criterion[best]
    return (
        f" (its BIC is lower by {lower:,.1f} than with {_KINDS[other]})"
        if 0.1 <= lower < np.inf
        else ""
    )


def _spread(values: Array) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:.3f}" if high - low < 5e-4 else f"{low:.3f} to {high:.3f}"


def _written(columns: dict[str, NDArray[Any]]) -> list[str]:
    """The columns as text under each other; the most valuable lags, if there are many."""
    order = (
        np.sort(np.argsort(-columns["nats"], kind="stable")[:_SHOWN])
        if "nats" in columns
        else np.arange(columns["lag"].size)
    )
    cells: dict[str, list[str]] = {
        "now": ["any" if x is None else repr(x) for x in columns["context"][order].tolist()]
    }
    cells["lag"] = [str(x) for x in columns["lag"][order]]
    cells["weight"] = [f"{x:.3f}" for x in columns["weight"][order]]
    cells["influence"] = [f"{x:.3f}" if x > 0 else "" for x in columns["influence"][order]]
    cells["95 %"] = [
        f"{a:.3f} - {b:.3f}" if np.isfinite(a) else ""
        for a, b in zip(columns["low"][order], columns["high"][order], strict=True)
    ]
    for name, heading, form in (
        ("nats", "nats", "{:,.1f}"),
        ("delta_bic", "dBIC", "{:,.1f}"),
        ("found", "found", "{:.0%}"),
    ):
        if name in columns:
            cells[heading] = [form.format(x) for x in columns[name][order]]
    widths = {name: max(len(name), *map(len, column)) for name, column in cells.items()}
    lines = ["  ".join(name.rjust(widths[name]) for name in cells)]
    lines += [
        "  ".join(x.rjust(widths[name]) for name, x in zip(cells, row, strict=True))
        for row in zip(*cells.values(), strict=True)
    ]
    left = columns["lag"].size - order.size
    return lines + ([f"{left} more, worth less"] if left else [])


def _nothing_found(model: LagModel, facts: FitFacts) -> list[str]:
    """That there is no lag, and what one would have to be worth to be found: a matrix has (N − 1)²
    parameters.
    """
    N = len(model.classes)
    price = (N - 1) ** 2 * np.log(1 + facts.n_windows / N) / 2 / facts.n_windows / np.log(2)
    lines = [
        f"no lag is found: to pay for its parameters, one would have to save about {price:.2g} bits per symbol"
    ]
    if price > _DEAR:
        lines.append(
            "that is much: with fewer kinds of symbols, or more data, less would be enough"
        )
    return lines


def _stand_ins(columns: dict[str, NDArray[Any]]) -> list[str]:
    """Lags that the others could do without, in words."""
    if "delta_bic" not in columns or not (columns["delta_bic"] < 0).any():
        return []
    return [
        "Treat lags with dBIC < 0 as doubtful: either another lag after the same symbol carries nearly the same information,"
        " or the symbol is too rare to support its own parameters."
    ]


def problems(facts: FitFacts) -> list[str]:
    """What is wrong with a fit, in words."""
    impossible = [
        name for kind, name in _KINDS.items() if not np.isfinite(facts.criterion.get(kind, 0.0))
    ]
    found = [
        f"{name} has no BIC: a symbol of the data has probability 0 under it" for name in impossible
    ]
    if not facts.converged:
        found.append(
            f"the fit did not converge: the search did not end, or its log-likelihood could gain up to {facts.gap:.2g}"
        )
    if facts.n_windows < facts.n_labels / 2:
        found.append(
            f"only {facts.n_windows:,} of {facts.n_labels:,} symbols have a symbol right before them and can be used"
        )
    return found


def missing_parts(model: LagModel) -> list[str]:
    """Where something is left that no lag explains, in words."""
    names = (
        [
            repr(x)
            for x, lacks in zip(model.classes.tolist(), model.incomplete, strict=False)
            if lacks
        ]
        if model.context
        else []
    )
    if not model.incomplete.any():
        return []
    parts = ", ".join(
        f"{name} ({rest:.2f})"
        for name, rest in zip(names, model.rest[model.incomplete], strict=False)
    )
    where = f"after {parts}" if model.context else f"({model.rest[0]:.2f})"
    return [f"not all lags are found {where}: that part of the distribution is explained by no lag"]
