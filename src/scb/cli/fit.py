"""``scb fit``: which lags matter in a file of sequences, and when."""

import csv
import io
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.table import Column, Table

from scb.cli.terminal import terminal
from scb.files import alone, read_json, write_atomically, write_json
from scb.inputs import DamagedFileError, InputError, fitted

if TYPE_CHECKING:
    from scb.sequences.lag_model import FitFacts, LagModel
    from scb.sequences.symbols import Sequences

MODEL = "model.safetensors"
SUMMARY = "summary.json"
_SHOWN = 30  # contexts in the table


def fit(
    file: tyro.conf.Positional[Path],
    column: str | None = None,
    group: str | None = None,
    order: str | None = None,
    by: Literal["char", "word", "line"] = "char",
    sep: str | None = None,
    top: int | None = None,
    max_lag: int = 20,
    transition: Literal["per_lag", "shared"] = "per_lag",
    context: bool = True,
    lags: Annotated[str, tyro.conf.arg(metavar="auto|NUMBER|LAG,LAG,…")] = "auto",
    split: float = 0.2,
    out: Path = Path("runs/fit"),
) -> None:
    """Find the lags that matter in sequences of symbols, for each current symbol.

    Lag 1 is the current symbol, which also chooses the lags; lag 2 the one before it, and so on. The model is

      P(next symbol) = sum over lags of weight[current symbol, lag] * matrix[lag][next symbol, symbol at that lag].

    - A column of a table, one sequence: scb fit weather.csv --column weather --max-lag 30

    - Many sequences in one table: scb fit visits.csv --column page --group user --order time

    - A sequence a line: scb fit walks.txt --sep ','; scb fit walks.jsonl (a line is an array, or an object with columns)

    - Text by character, or by word: scb fit poem.txt --max-lag 40; scb fit poem.txt --by word --top 200

    Afterwards: scb show runs/fit; scb sample runs/fit

    Args:
        file: CSV, TSV, Parquet or JSON lines with a column of symbols; anything else is read as text. Empty cells are gaps.
        column: Column of the symbols; may be left out where no other can be meant. If its cells are lists, each is a sequence.
        group: Column that says to which sequence a row belongs.
        order: Column that sorts the rows of each sequence, a time or a number; without, they stay as they are.
        by: Symbols of a text.
        sep: What stands between the columns of a .csv; or between the symbols of a text, whose lines are sequences then.
        top: Keep so many of the most common symbols; the others become one, '<other>'.
        max_lag: Longest lag that may matter.
        transition: A matrix for each lag, or one for all.
        context: Whether the current symbol chooses the lags; without, this is the Mixture Transition Distribution.
        lags: Those that the data ask for; or so many; or these.
        split: Part of the symbols (the last ones) or sequences (the last ones) that is held out to be predicted.
        out: Directory for model, table and heat map.
    """
    from scb.sequences.coding import windows_of_codes
    from scb.sequences.lag_fit import LagSettings, fit_lags
    from scb.sequences.lag_model import save_model
    from scb.sequences.reading import TABLES, read_with_options
    from scb.sequences.symbols import encode
    from scb.sequences.tables import Columns

    if not 0 <= split < 1:
        raise InputError(f"--split {split}: it must lie between 0 and 1")
    console = terminal()
    settings = LagSettings(max_lag, transition=transition, context=context, lags=_lags(lags))
    source = read_with_options(file, Columns(column, group, order), by, sep, top, option="--{}")
    codes, classes = encode(source)
    train, test = _split(codes, split, max_lag)
    for line in _about(file, source, codes, classes):
        console.print(line)
    with terminal(stderr=True).status("looking for lags …") as status:
        say = lambda turn, found, loglik: status.update(f"looking for lags: round {turn}, {found} found so far")  # noqa: E731
        data = windows_of_codes(train, len(classes), max_lag, context)
        model, facts = fit_lags(data, classes, settings, progress=say)
        scores = {}
        if test:
            status.update("comparing with other models …")
            scores = _compare(model, train, test)
    characters = file.suffix.lower() not in TABLES and by == "char" and sep is None
    summary = {"file": file.name, "separator": "" if characters else " ", "held_out_nats": scores}
    with alone(out, "writing a fit"):
        (out / SUMMARY).unlink(missing_ok=True)  # first: after a kill it does not stand beside another model
        save_model(out / MODEL, model, facts, asdict(settings) | {"verbose": False}, None)
        write_json(out / SUMMARY, summary)
        report(console, model, facts, out, scores)


def _about(file: Path, source: "Sequences", codes: list[Any], classes: Any) -> list[str]:
    """What was read, how, and what is odd about it."""
    lengths = np.array([len(x) for x in codes])
    missing = sum(int((x < 0).sum()) for x in codes)
    many = f"{len(codes):,} sequence(s)"
    if len(codes) > 1:
        many += f" of {lengths.min():,} to {lengths.max():,} symbols, {int(np.median(lengths)):,} in the middle"
    lines = [f"{file.name}: {lengths.sum():,} symbols of {len(classes)} kinds in {many}", f"Read as: {source.said}"]
    if missing:
        lines.append(f"{missing:,} symbols ({missing / lengths.sum():.1%}) are missing")
    if short := int((lengths < 2).sum()):
        lines.append(f"{short:,} sequence(s) of fewer than 2 symbols say nothing about what comes next")
    return lines


def _lags(text: str) -> str | int | list[int]:
    if text == "auto":
        return text
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--lags {text}: it must be 'auto', a number of lags, or lags with commas between them") from None
    return numbers if "," in text else numbers[0]


def _split(codes: list[Any], part: float, max_lag: int) -> tuple[list[Any], list[Any]]:
    """What is fitted, and what is predicted: the end of one sequence, with the symbols before it; or the last of many."""
    if part == 0:
        return codes, []
    if len(codes) == 1:
        cut = round(len(codes[0]) * (1 - part))
        if cut <= max_lag or cut >= len(codes[0]):
            raise InputError(f"{len(codes[0])} symbols are too few for --max-lag {max_lag} and --split {part}")
        return [codes[0][:cut]], [codes[0][cut - max_lag :]]
    cut = min(max(1, round(len(codes) * (1 - part))), len(codes) - 1)
    return codes[:cut], codes[cut:]


def _compare(model: "LagModel", train: list[Any], test: list[Any]) -> dict[str, float]:
    """Mean held-out log-likelihood by model, in nats; empty if nothing can be predicted."""
    from scb.sequences.coding import windows_of_codes
    from scb.sequences.lag_fit import LagSettings, fit_lags
    from scb.sequences.ngrams import baselines

    windows = partial(windows_of_codes, N=len(model.classes), max_lag=model.max_lag)

    def score(of: "LagModel") -> float:
        data = windows(test, contexts=of.context)
        return of.loglik(data) / data.n

    try:
        scores = baselines(windows(train, contexts=True), windows(test, contexts=True))
    except ValueError:  # no window in one of them
        return {}
    plain, _ = fit_lags(windows(train, contexts=False), model.classes, LagSettings(model.max_lag, context=False))
    return scores | {"plain MTD": score(plain), "this model": score(model)}


def report(console: Console, model: "LagModel", facts: "FitFacts", out: Path, scores: dict[str, float]) -> None:
    """Print the lags, and how well held-out symbols are predicted; write the table and the heat map."""
    from scb.paper.figures.style import quiet, save

    kind = "a matrix for each lag" if model.transition == "per_lag" else "one matrix for all lags"
    console.print(f"Lags that matter, of 1 … {model.max_lag}; {kind}", style="italic")
    heading = "lag: weight ± standard error (by how much it moves the next symbol's law)"
    table = Table(Column("current symbol" if model.context else "", max_width=20), heading)
    contexts = model.classes.tolist() if model.context else ["all"]
    rows = model.table()
    errors = [f"{error:.2f}" if np.isfinite(error) else "?" for error in rows["stderr"]]
    moves = [f" ({move:.2f})" if move > 0 else "" for move in model.influence().data]
    cells = zip(rows["lag"], rows["weight"], errors, moves, strict=True)
    texts = [f"{lag}: {weight:.2f} ± {error}{move}" for lag, weight, error, move in cells]
    bounds = model.attention.indptr
    most = np.argsort(-np.diff(bounds), kind="stable")[:_SHOWN]
    for k in np.sort(most):
        name = contexts[k] if isinstance(contexts[k], str) and contexts[k].isprintable() else repr(contexts[k])
        table.add_row(repr(name) if name.strip() != name else name, "   ".join(texts[bounds[k] : bounds[k + 1]]) or "none")
    console.print(table)
    if len(contexts) > _SHOWN:
        console.print(f"{len(contexts) - _SHOWN} more current symbols are in {out / 'lags.csv'}")
    if not facts.converged:
        gain = f"its log-likelihood could gain up to {facts.gap:.2g}"
        console.print(f"the fit did not converge: {gain}", style="bold red", highlight=True)
    if scores:
        bits = Table("model", Column("bits a held-out symbol", justify="right"))
        best = max(scores.values())
        for name, score in sorted(scores.items(), key=lambda item: item[1]):
            bits.add_row(name, f"{-score / np.log(2):.4f}", style="bold" if score == best else None)
        console.print(bits)
    out.mkdir(parents=True, exist_ok=True)
    text = io.StringIO(newline="")
    csv.writer(text).writerows([list(rows), *zip(*(column.tolist() for column in rows.values()), strict=True)])
    write_atomically(out / "lags.csv", text.getvalue().encode(errors="surrogatepass"))
    figure: Any = quiet(model.plot)().figure
    for path in save(figure, out / "attention", ("png",)):
        console.print(f"wrote {path}, and beside it {MODEL}, lags.csv")


def load(path: Path) -> "tuple[LagModel, FitFacts, dict[str, Any]]":
    """The model in a directory of ``scb fit``, or in a file; how its fit went; and what is known of its data."""
    from scb.sequences.lag_model import load_model

    model, facts, *_ = load_model(path / MODEL if path.is_dir() else path)
    path = (path if path.is_dir() else path.parent) / SUMMARY
    summary = read_json(path) if path.exists() else {}
    try:
        fitted("separator", summary.get("separator", " "), str)
        scores = fitted("held_out_nats", summary.get("held_out_nats", {}), dict)
        if not all(isinstance(score, int | float) for score in scores.values()):  # −∞ where a symbol was impossible
            raise InputError("held_out_nats must be numbers")
    except InputError as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from None
    return model, facts, summary
