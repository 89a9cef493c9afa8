"""A summary of what a fit found: a sentence, a table with the evidence, and warnings."""

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from scb.arrays import AnyArray
from scb.sequences.answer import answer_of
from scb.sequences.fit_facts import FitFacts
from scb.sequences.lag_model import LagModel, said_of_matrices
from scb.sequences.tables import Arrays


@dataclass(frozen=True, repr=False)
class LagSummary:
    """The lags of a fitted model, with the evidence for each of them.

    This is the result of ``SparseContextualBigram.summary``. Printing the summary shows a table,
    ``columns`` holds the numbers, and ``to_pandas()`` returns them as a data frame.

    Attributes
    ----------
    answer : str
        A sentence that says which lags the next symbol depends on, and after which symbols.
    about : list of str
        Lines of text that say what was fitted and how well.
    columns : dict of (lags,) arrays
        The columns of the table, with a row for each current symbol and lag: ``context`` (the
        current symbol), ``lag`` (0 for covariates, which ``source`` names), ``weight``,
        ``influence`` with the ends ``low`` and ``high`` of its 95 % interval, ``nats`` (the gain in
        log-likelihood), ``nats_bound`` (1 where ``nats`` is only an upper bound), ``delta_bic``
        (the gain in BIC) and, once ``stability`` has been called, ``found`` (the fraction of halves
        in which the lag was found).
    warnings : list of str
        Lines of text with warnings that a reader should not miss.

    Examples
    --------
    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
    >>> summary = scb.SparseContextualBigram(max_lag=6).fit(x).summary()
    >>> summary.columns["lag"], summary.columns["influence"].round(2)
    (array([6, 4, 6]), array([0.56, 0.56, 0.56]))
    >>> summary.to_pandas().shape
    (3, 9)
    >>> print(summary.answer)
    After ‘0’ or ‘2’, the next symbol depends on lag 6; after ‘1’, on lag 4.
    """

    answer: str
    about: list[str]
    columns: Arrays
    warnings: list[str]

    def to_pandas(self) -> Any:
        """Convert the columns to a data frame.

        Returns
        -------
        pandas.DataFrame
            A data frame with one row for each lag after each current symbol.
        """
        import pandas as pd

        return pd.DataFrame(self.columns)

    def __str__(self) -> str:
        table = ["", *_written(self.columns)] if self.columns["lag"].size else []
        about = [part for line in self.about for part in wrap(line, 80) or [""]]
        lines = [*wrap(self.answer, 80), "", *about, *table, "", *self.warnings]
        return "\n".join(lines).rstrip()

    __repr__ = __str__


def summarise(model: LagModel, held_out: float | None = None) -> LagSummary:
    """The summary of a fitted model; its evidence is computed now unless it was computed before.

    ``held_out`` is the number of bits that the model needs per held-out symbol, if it is known.
    """
    facts = model.facts
    columns = _summary_columns(model)
    about = [
        f"Fitted to {facts.n_windows:,} symbols ({len(model.classes)} distinct), with lags up to"
        f" {model.max_lag}",
        f"{said_of_matrices(model.transition)}{_margin(facts)}",
        f"{_bits(model, held_out)}, {facts.n_parameters:,} parameters",
    ]
    if facts.choices:
        about.append(said_of_choices(facts.choices))
    if facts.covariates:
        about.append(_said_of_covariates(model))
    if model.background is not None:
        weight = range_of(model.background_weight, 3)
        about.append(f"background: {model.background.name}; its weight {weight}")
    if not model.attention.nnz:
        about += ["", *_price_of_a_lag(model, facts)]
    warnings = [
        *fit_problems(facts),
        *_incomplete_lags(model),
        *_notes_on_nats(model, columns),
        *_doubtful_lags(columns),
    ]
    return LagSummary(answer_of(model), about, columns, warnings)


def _said_of_covariates(model: LagModel) -> str:
    """Which of the covariates that were offered matter, and how."""
    used = [name for name, is_used in model.facts.covariates.items() if is_used]
    unused = [name for name, is_used in model.facts.covariates.items() if not is_used]
    said = [f"matter: {', '.join(used)}"] if used else []
    if model.chooser is not None:
        name = model.covariates[model.chooser].name
        said.append(f"the current symbol and {name} together choose the lags")
    if unused:
        said.append(f"do not matter, as far as these data can tell: {', '.join(unused)}")
    return f"covariates that {'; '.join(said)}"


def _bits(model: LagModel, held_out: float | None) -> str:
    """How many bits a symbol needs: of the data of the fit or, where the background is a model that
    has learned these, of what was held out.
    """
    facts = model.facts
    fitted = (
        f"{-facts.loglik / facts.n_windows / np.log(2):.4f} bits per symbol (log-likelihood"
        f" {facts.loglik:,.1f} nats)"
    )
    if model.background is None:
        return fitted
    if held_out is None:
        return (
            f"{fitted} of the data of the fit, which the background has learned: others need more"
        )
    return f"{held_out:.4f} bits per held-out symbol"


def _summary_columns(model: LagModel) -> Arrays:
    table = model.table()
    del table["stderr"]
    influence = table.pop("influence")
    error = table.pop("influence_stderr", np.full(influence.size, np.nan))
    interval = {
        "influence": influence,
        "low": np.maximum(influence - 1.96 * error, 0.0),
        "high": np.minimum(influence + 1.96 * error, 1.0),
    }
    first = [name for name in ("context", "source", "lag", "weight") if name in table]
    names = {name: table.pop(name) for name in first}
    return names | interval | table


def _margin(facts: FitFacts) -> str:
    """How much lower the BIC of the chosen kind of matrix is, if both were fitted."""
    if len(facts.criterion) < 2:
        return ""
    best, other = sorted(facts.criterion, key=lambda kind: facts.criterion[kind])
    lower = facts.criterion[other] - facts.criterion[best]
    if not 0.1 <= lower < np.inf:
        return ""
    return f" (its BIC is lower by {lower:,.1f} than with {said_of_matrices(other)})"


def said_of_choices(choices: dict[str, float]) -> str:
    """What was tried on held-out blocks, with the bits of each."""
    tried = (f"{name} {bits:.4f}" for name, bits in choices.items())
    return f"chosen on held-out blocks, in bits per symbol: {'; '.join(tried)}"


def range_of(values: AnyArray, digits: int) -> str:
    """The smallest and the largest value, or one number if they agree to these digits."""
    low, high = float(values.min()), float(values.max())
    if high - low < 0.5 * 10.0**-digits:
        return f"{low:.{digits}f}"
    return f"{low:.{digits}f} to {high:.{digits}f}"


def _written(columns: Arrays, most: int = 60) -> list[str]:
    """The table as text; if it has many rows, those of the most valuable lags."""
    size = columns["lag"].size
    order = np.arange(size)
    if "nats" in columns:
        order = np.sort(np.argsort(-columns["nats"], kind="stable")[:most])
    chosen = {name: column[order] for name, column in columns.items()}
    cells = {
        "now": ["any" if x is None else repr(x) for x in chosen["context"].tolist()],
        **(
            {"source": chosen["source"].tolist()}
            if "source" in chosen
            else {"lag": [str(x) for x in chosen["lag"]]}
        ),
        "weight": [f"{x:.3f}" for x in chosen["weight"]],
        "influence": [f"{x:.3f}" if x > 0 else "" for x in chosen["influence"]],
        "95 %": [
            f"{low:.3f} - {high:.3f}" if np.isfinite(low) else ""
            for low, high in zip(chosen["low"], chosen["high"], strict=True)
        ],
    }
    bounds = chosen.get("nats_bound", np.zeros(order.size))
    for name, heading, form in (
        ("nats", "nats", "{}{:,.1f}"),
        ("delta_bic", "dBIC", "{}{:,.1f}"),
        ("found", "found", "{1:.0%}"),
    ):
        if name in chosen:
            marks = ["≤ " if bound else "" for bound in bounds]
            cells[heading] = list(map(form.format, marks, chosen[name]))
    left = size - order.size
    return text_table(cells) + ([f"{left} more, worth less"] if left else [])


def text_table(cells: dict[str, list[str]]) -> list[str]:
    """The lines of a table from columns of text, aligned to the right."""
    widths = [max(len(name), *map(len, column)) for name, column in cells.items()]
    rows = [tuple(cells), *zip(*cells.values(), strict=True)]
    return ["  ".join(map(str.rjust, row, widths)) for row in rows]


def _price_of_a_lag(model: LagModel, facts: FitFacts) -> list[str]:
    """That there is no lag, and what one must be worth to be found: the weights and the choice of
    it. What its matrix costs depends on the matrix, and is about what it learns by heart.
    """
    K = len(model.background_weight)
    weights = K * np.log(max(facts.n_windows / K, 2))
    price = (weights / 2 + np.log(K * model.max_lag)) / facts.n_windows / np.log(2)
    return [
        f"no lag is found: a lag would have to save about {price:.2g} bits per symbol, beyond "
        "what its matrix could save by memorising labels"
    ]


def _notes_on_nats(model: LagModel, columns: Arrays) -> list[str]:
    """Notes, where they apply, that nats add up to more than the model gains, and which of them are
    bounds.
    """
    if "nats_bound" not in columns:
        return []
    lines = []
    there = model.prior[model.prior > 0]
    gain = model.facts.loglik - model.facts.n_windows * float(there @ np.log(there))
    if model.background is None and columns["nats"].sum() > 1.01 * gain:
        lines.append(
            f"all lags together gain {gain:,.1f} nats, less than the sum of their nats: some lags"
            " need each other"
        )
    bounds = int(columns["nats_bound"].sum())
    if bounds:
        all_bounds = bounds == columns["lag"].size
        which = "the nats of each lag are" if all_bounds else "nats after a ≤ are"
        lines.append(
            f"{which} at most as shown: fitting everything again without the lag would take too "
            "long here"
        )
    return lines


def _doubtful_lags(columns: Arrays) -> list[str]:
    """A warning about lags that the model could do without."""
    if "delta_bic" not in columns or not (columns["delta_bic"] < 0).any():
        return []
    return [
        "Treat lags with dBIC < 0 as doubtful: either another lag after the same symbol carries"
        " nearly the same information, or the symbol is too rare to support its own parameters."
    ]


def fit_problems(facts: FitFacts) -> list[str]:
    """What went wrong with a fit, one line each."""
    lines = [
        f"{said_of_matrices(kind)} has no BIC: a symbol of the data has probability 0 under it"
        for kind, bic in facts.criterion.items()
        if not np.isfinite(bic)
    ]
    if not facts.converged:
        lines.append(
            "the fit did not converge: the search did not end, or the log-likelihood could "
            f"still gain up to {facts.gap:.2g} nats"
        )
    bits = -facts.loglik / max(facts.n_windows, 1) / np.log(2)
    # Worth saying from 5 nats on
    if (bits - facts.sequence_bits) * facts.n_windows * np.log(2) > 5:
        lines.append(
            "the sequences differ: the frequencies of each sequence need "
            f"{facts.sequence_bits:.4f} bits per symbol, whereas these lags need {bits:.4f}; "
            "with background='per_sequence', a lag must improve on these frequencies"
        )
    if facts.n_windows < facts.n_symbols / 2:
        lines.append(
            f"only {facts.n_windows:,} of {facts.n_symbols:,} symbols have a symbol right before"
            " them and can be used"
        )
    return lines


def _incomplete_lags(model: LagModel) -> list[str]:
    """A warning where the background is needed beside the lags."""
    lacking = np.flatnonzero(model.incomplete)
    if not lacking.size:
        return []
    weights = [f"({weight:.2f})" for weight in model.background_weight[lacking]]
    where = weights[0]
    if model.context:
        symbols = map(repr, model.contexts[lacking].tolist())
        where = "after " + ", ".join(map(" ".join, zip(symbols, weights, strict=True)))
    return [f"not all lags are found {where}: that part of the distribution is explained by no lag"]
