"""A report on what a fit found: one self-contained HTML page that can be sent to others, with
symbols escaped and pictures embedded.
"""

import base64
from collections.abc import Sequence
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scb.extras import require
from scb.files import write_atomically
from scb.provenance import versions
from scb.sequences.answer import answer_of
from scb.sequences.baselines.per_sequence import SequenceBackground
from scb.sequences.comparison import Score
from scb.sequences.lag_model import LagModel
from scb.sequences.matrix_pictures import plot_matrices, value_names
from scb.sequences.pictures import plot_attention, plot_influence
from scb.sequences.summary import range_of, said_of_choices
from scb.sequences.symbols import readable


class Effect(NamedTuple):
    """How a symbol at a lag changes the distribution of the next symbol, in percentage points."""

    current: str
    # The name of a covariate in place of a lag
    lag: int | str
    source: str
    up: str
    rise: float
    down: str
    fall: float


# Column of ``LagModel.table`` → its heading, the format of a number, and what it means
HEADINGS = {
    "context": ("now", "{}", "the current symbol"),
    "lag": ("lag", "{}", "how many symbols before the one that is predicted"),
    "weight": (
        "weight",
        "{:.3f}",
        "the part of the distribution of the next symbol that comes from this lag",
    ),
    "influence": (
        "influence",
        "{:.3f}",
        "how far the symbol at this lag moves the distribution of the next one (mean total"
        " variation); none for the current symbol",
    ),
    "influence_stderr": ("± s.e.", "{:.3f}", "standard error of the influence"),
    "nats": (
        "nats",
        "{:,.1f}",
        "what the log-likelihood of the data loses without this lag, everything else fitted again;"
        " after a ≤ it is at most that, since a whole new fit would have taken too long",
    ),
    "delta_bic": (
        "ΔBIC",
        "{:,.1f}",
        "by how much the BIC is worse without it; beyond 10 the evidence is very strong",
    ),
    "found": ("found", "{:.0%}", "part of random halves of the data in which it is found again"),
}


def effects(model: LagModel, most: int = 24) -> list[Effect]:
    """How the most influential lags change the distribution of the next symbol, strongest first;
    for each lag, the two symbols that change it most are listed.
    """
    influence = model.influence().data
    names = [readable(x) for x in model.classes.tolist()]
    now = [readable(x) for x in model.contexts.tolist()]
    rows: list[Effect] = []
    for i in np.argsort(-np.asarray(influence, float), kind="stable"):
        if influence[i] <= 0 or len(rows) >= most:
            break
        lag = int(model.attention.indices[i]) + 1
        P = model.matrix(lag)
        occurs = model.frequencies_at(lag)
        shift = 100 * model.attention.data[i] * (P - (P @ occurs)[:, None])
        strength = np.abs(shift).sum(axis=0) * occurs
        for x in np.argsort(-strength, kind="stable")[:2]:
            up, down = int(shift[:, x].argmax()), int(shift[:, x].argmin())
            rows.append(
                Effect(
                    current=now[model.rows[i]] if model.context else "",
                    lag=lag if lag <= model.max_lag else model.source_name(lag),
                    source=value_names(model, lag)[x],
                    up=names[up],
                    rise=float(shift[up, x]),
                    down=names[down],
                    fall=float(-shift[down, x]),
                )
            )
    return rows


def lag_table(model: LagModel) -> tuple[dict[str, str], list[list[str]]]:
    """The table of lags: the meaning of each column, by heading, and rows of text."""
    table = model.table()
    names = [name for name in HEADINGS if name in table and (model.context or name != "context")]
    rows = zip(*(table[name].tolist() for name in names), strict=True)
    meanings = {HEADINGS[name][0]: HEADINGS[name][2] for name in names}
    bounds = table.get("nats_bound", np.zeros(table["lag"].size)) > 0
    return meanings, [
        [_cell(name, value, bound) for name, value in zip(names, row, strict=True)]
        for row, bound in zip(rows, bounds.tolist(), strict=True)
    ]


def _cell(name: str, value: Any, is_bound: bool) -> str:
    if name == "context":
        return readable(value)
    if isinstance(value, float) and (
        not np.isfinite(value) or (name == "influence" and value == 0)
    ):
        return "–"
    mark = "≤ " if is_bound and name in ("nats", "delta_bic") else ""
    return mark + HEADINGS[name][1].format(value)


def _background_line(model: LagModel) -> str:
    """The weight of the background in words, if it is a model."""
    if model.background is None:
        return ""
    weight = range_of(model.background_weight, 2)
    if " to " in weight:
        weight += ", depending on the current symbol"
    return f"The background, {model.background.name}, has weight {weight}; the lags share the rest."


def _beyond(model: LagModel) -> str:
    """What a lag must say more than, in words; empty for the distribution of all labels."""
    if model.background is None:
        return ""
    if isinstance(model.background, SequenceBackground):
        return f"its sequence ({model.background.name})"
    return f"the recent past ({model.background.name})"


def _png(figure: Any) -> str:
    """A figure as text that a page can contain."""
    image = BytesIO()
    figure.savefig(image, format="png", dpi=150)
    return base64.b64encode(image.getvalue()).decode()


def write_page(path: Path, model: LagModel, scores: Sequence[Score], **about: Any) -> None:
    """Write the page.

    ``about`` holds what the page shows unchanged: ``title``, the name of the data; lines of text
    on the ``data`` and ``warnings``; ``held_out``, the number of symbols that the scores are for;
    ``reasons``, an ``Explanation`` of some symbols; the ``command`` that makes the same page; and
    the ``settings`` of the fit, by name.
    """
    require("the report", "matplotlib", "jinja2")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("scb.sequences", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    plot = plot_influence if model.influence().max() > 0 else plot_attention
    meanings, rows = lag_table(model)
    longest = max((score.bits for score in scores), default=0.0)
    page = environment.get_template("report.html.j2").render(
        model=model,
        answer=answer_of(model),
        beyond=_beyond(model),
        chosen=said_of_choices(model.facts.choices) if model.facts.choices else "",
        background=_background_line(model),
        meanings=meanings,
        rows=rows[:60],
        left_out=len(rows[60:]),
        picture=_png(plot(model).figure),
        matrices=_png(plot_matrices(model)) if rows else "",
        timeline=_png(about["reasons"].plot().figure) if rows else "",
        effects=effects(model),
        scores=scores,
        longest=max(longest, 1e-9),
        versions=versions(),
        date=date.today().isoformat(),
        **about,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    # A file name may contain bytes that are not text
    write_atomically(path, page.encode(errors="replace"))
