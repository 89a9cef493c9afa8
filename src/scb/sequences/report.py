"""What a fit found, as one HTML page that needs nothing else and can be sent: symbols are escaped,
pictures are inside.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.files import write_atomically
from scb.provenance import versions
from scb.sequences.lag_model import SHARED, LagModel
from scb.sequences.pictures import plot_attention, plot_influence
from scb.sequences.summary import answer
from scb.sequences.symbols import shown

OWN = "this model"
_ROWS = 60  # of the table of lags
_EFFECTS = 24  # rows of what lags do
_SOURCES = 2  # symbols at a lag that are told of
_BAR = 8.0  # length of the longest bar, in letters
_BLOCKS = 100  # of held-out symbols, over which errors are taken


class Bits(NamedTuple):
    """How well a model predicts held-out symbols."""

    name: str
    bits: float  # for a symbol, on average
    difference: float  # to this model, in bits
    error: float  # of the difference
    own: bool  # whether it is this model
    best: bool
    width: float  # of its bar


class Effect(NamedTuple):
    """What a symbol at a lag does to the distribution of the next one, in percentage points."""

    context: str
    lag: int
    source: str
    up: str
    rise: float
    down: str
    fall: float


@dataclass(frozen=True)
class LagTable:
    """The lags that were found, for the page."""

    columns: list[str]
    rows: list[list[str]]
    meanings: dict[str, str]
    left_out: int


# column of the model's table → its heading, how a number is written, and what it means
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
        "how far the symbol at this lag moves the distribution of the next one (mean total variation); none for the context",
    ),
    "influence_stderr": ("± s.e.", "{:.3f}", "standard error of the influence"),
    "nats": (
        "nats",
        "{:,.1f}",
        "what the log-likelihood of the data loses without this lag, everything else fitted again",
    ),
    "delta_bic": (
        "ΔBIC",
        "{:,.1f}",
        "by how much the BIC is worse without it; beyond 10 the evidence is very strong",
    ),
    "found": ("found", "{:.0%}", "part of random halves of the data in which it is found again"),
}


def compared(likelihoods: Mapping[str, Array]) -> list[Bits]:
    """Models by the bits that they need for held-out symbols, best first, from the log-likelihood
    (n,) of each symbol in nats.
    """
    own = likelihoods[OWN]
    bits = {name: float(-values.mean() / np.log(2)) for name, values in likelihoods.items()}
    best = min(bits.values())
    longest = max(max(bits.values()), 1e-9)
    return [
        Bits(
            name=name,
            bits=bits[name],
            difference=bits[name] - bits[OWN],
            error=paired_error((own - likelihoods[name]) / np.log(2)),
            own=name == OWN,
            best=bits[name] == best,
            width=_BAR * max(bits[name], 0) / longest,
        )
        for name in sorted(bits, key=lambda name: bits[name])
    ]


def paired_error(differences: Array) -> float:
    """Standard error of the mean of differences (n,) that neighbours may share: from the means of
    blocks of neighbours.
    """
    blocks = np.array_split(differences, min(_BLOCKS, max(2, differences.size // 10)))
    sizes = np.array([block.size for block in blocks])
    means = np.array([block.mean() if block.size else 0.0 for block in blocks])
    mean = differences.mean()
    return float(np.sqrt((sizes**2 * (means - mean) ** 2).sum()) / differences.size)


def effects(model: LagModel) -> list[Effect]:
    """What the lags that move the distribution of the next symbol most do to it, strongest first."""
    influence = model.influence()
    rows = np.repeat(np.arange(len(influence.indptr) - 1), np.diff(influence.indptr))
    names = [shown(x) for x in model.classes.tolist()]
    found: list[Effect] = []
    for i in np.argsort(-np.asarray(influence.data, float), kind="stable"):
        if influence.data[i] <= 0 or len(found) >= _EFFECTS:
            break
        lag = int(influence.indices[i]) + 1
        P = model.matrices[SHARED if SHARED in model.matrices else lag]
        shift = 100 * model.attention.data[i] * (P - (P @ model.frequencies)[:, None])
        strength = np.abs(shift).sum(axis=0) * model.frequencies
        context = names[rows[i]] if model.context else ""
        for x in np.argsort(-strength, kind="stable")[:_SOURCES]:
            up, down = int(shift[:, x].argmax()), int(shift[:, x].argmin())
            found.append(
                Effect(
                    context=context,
                    lag=lag,
                    source=names[x],
                    up=names[up],
                    rise=float(shift[up, x]),
                    down=names[down],
                    fall=float(-shift[down, x]),
                )
            )
    return found


def lag_table(table: Mapping[str, NDArray[Any]], context: bool) -> LagTable:
    """The columns of a model's table that have something to say, as text."""
    names = [name for name in HEADINGS if name in table and (context or name != "context")]
    size = len(next(iter(table.values()), ()))
    rows = []
    for i in range(min(size, _ROWS)):
        rows.append([_cell(name, table[name][i]) for name in names])
    meanings = {HEADINGS[name][0]: HEADINGS[name][2] for name in names}
    return LagTable([HEADINGS[name][0] for name in names], rows, meanings, max(size - _ROWS, 0))


def _cell(name: str, value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    if name == "context":
        return shown(value)
    if isinstance(value, float) and (
        not np.isfinite(value) or (name == "influence" and value == 0)
    ):
        return "–"
    return HEADINGS[name][1].format(value)


def _rest(model: LagModel) -> str:
    """How much of the distribution is left to the background, in words."""
    if model.background is None:
        return ""
    low, high = float(model.rest.min()), float(model.rest.max())
    much = (
        f"{low:.2f}"
        if high - low < 0.005
        else f"{low:.2f} to {high:.2f}, depending on the current symbol"
    )
    return f"The background, {model.background.name}, has weight {much}; the lags share the rest."


def write_report(
    path: Path,
    model: LagModel,
    *,
    title: str,
    data: Sequence[str],
    likelihoods: Mapping[str, Array],
    command: str,
    settings: Mapping[str, Any],
    warnings: Sequence[str] = (),
) -> None:
    """Write the page.

    Parameters
    ----------
    path : where it goes
    title : what the data are called
    data : what was done with them, a sentence each
    likelihoods : by name, the log-likelihood (n,) of each held-out symbol in nats, that of the
    model as ``OWN``; may be empty
    command : what to type to get the same
    settings : of the fit, by name
    warnings : what the reader should not miss
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("scb.sequences", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    image = BytesIO()
    figure: Any = (
        plot_influence(model) if model.influence().max() > 0 else plot_attention(model)
    ).figure
    figure.savefig(image, format="png", dpi=150)
    page = environment.get_template("report.html.j2").render(
        title=title,
        model=model,
        answer=answer(model),
        warnings=list(warnings),
        data=list(data),
        beyond="" if model.background is None else f"the recent past ({model.background.name})",
        rest=_rest(model),
        lags=lag_table(model.whole_table(), model.context),
        picture=base64.b64encode(image.getvalue()).decode(),
        effects=effects(model),
        bits=compared(likelihoods) if likelihoods else [],
        held_out=len(next(iter(likelihoods.values()), ())),
        command=command,
        settings=settings,
        versions=versions(),
        date=date.today().isoformat(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    # a file name may hold bytes that are no text
    write_atomically(path, page.encode(errors="replace"))
