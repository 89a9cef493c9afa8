"""``scb fit``: which lags matter in a file of sequences, and when."""

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro

if TYPE_CHECKING:
    from rich.console import Console

    from scb.mixture.data import Data
    from scb.sequences.lag_model import FitFacts, LagModel

MODEL = "model.safetensors"
_SHOWN = 30  # contexts in the table


def fit(
    file: tyro.conf.Positional[Path],
    column: str | None = None,
    group: str | None = None,
    by: Literal["char", "word"] = "char",
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

    - Many sequences in one table: scb fit careers.parquet --column state --group person

    - Text by character, or by word: scb fit poem.txt --max-lag 40; scb fit poem.txt --by word --top 200

    Afterwards: scb show runs/fit; scb sample runs/fit

    Args:
        file: CSV, TSV or Parquet with a column of symbols; anything else is read as text. Empty cells are gaps.
        column: Column of the symbols; may be left out if there is only one.
        group: Column that says to which sequence a row belongs.
        by: Symbols of a text.
        top: Keep so many of the most common symbols; the others become one, '<other>'.
        max_lag: Longest lag that may matter.
        transition: A matrix for each lag, or one for all.
        context: Whether the current symbol chooses the lags; without, this is the Mixture Transition Distribution.
        lags: Those that the data ask for; or so many; or these.
        split: Part of the symbols (the last ones) or sequences (the last ones) that is held out to be predicted.
        out: Directory for model, table and heat map.
    """
    from rich.console import Console

    from scb.cli.files import read
    from scb.sequences.coding import windows_of_codes
    from scb.sequences.lag_fit import LagSettings, fit_lags
    from scb.sequences.lag_model import save_model
    from scb.sequences.symbols import Sequences, as_sequences, encode

    if not 0 <= split < 1:
        raise ValueError(f"--split {split}: it must lie between 0 and 1")
    console, errors = Console(), Console(stderr=True)
    settings = LagSettings(max_lag, transition=transition, context=context, lags=_lags(lags))
    source = read(file, column, group, by, top)
    parts = [as_sequences(s) for s in source.sequences]
    flat = parts[0].flat if len(parts) == 1 else [symbol for part in parts for symbol in _listed(part.flat)]
    codes, classes = encode(Sequences(flat, [n for part in parts for n in part.lengths], many=True))
    train, test = _split(codes, split, max_lag)
    title = f"{file.name}: {sum(map(len, codes)):,} symbols of {len(classes)} kinds in {len(codes):,} sequence(s)"
    console.print(title, highlight=False)
    with errors.status("looking for lags …") as status:
        say = lambda turn, found, loglik: status.update(f"looking for lags: round {turn}, {found} found so far")  # noqa: E731
        data = windows_of_codes(train, len(classes), max_lag, context)
        model, facts = fit_lags(data, classes, settings, progress=say)
        scores = {}
        if test:
            status.update("comparing with other models …")
            scores = _compare(model, train, test)
    out.mkdir(parents=True, exist_ok=True)
    save_model(out / MODEL, model, facts, asdict(settings) | {"verbose": False}, None)
    summary = {"file": file.name, "separator": source.separator, "held_out_nats": scores}
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    report(console, model, facts, out, scores)


def _listed(flat: Any) -> list[Any]:
    return flat.to_pylist() if hasattr(flat, "to_pylist") else list(flat)


def _lags(text: str) -> str | int | list[int]:
    if text == "auto":
        return text
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--lags {text}: it must be 'auto', a number of lags, or lags with commas between them") from None
    return numbers if "," in text else numbers[0]


def _split(codes: list[Any], part: float, max_lag: int) -> tuple[list[Any], list[Any]]:
    """What is fitted, and what is predicted: the end of one sequence, with the symbols before it; or the last of many."""
    if part == 0:
        return codes, []
    if len(codes) == 1:
        cut = round(len(codes[0]) * (1 - part))
        if cut <= max_lag or cut >= len(codes[0]):
            raise ValueError(f"{len(codes[0])} symbols are too few for --max-lag {max_lag} and --split {part}")
        return [codes[0][:cut]], [codes[0][cut - max_lag :]]
    cut = min(max(1, round(len(codes) * (1 - part))), len(codes) - 1)
    return codes[:cut], codes[cut:]


def _compare(model: "LagModel", train: list[Any], test: list[Any]) -> dict[str, float]:
    """Mean held-out log-likelihood by model, in nats; empty if nothing can be predicted."""
    from scb.sequences.coding import windows_of_codes
    from scb.sequences.lag_fit import LagSettings, fit_lags
    from scb.sequences.ngrams import baselines

    def windows(codes: list[Any], contexts: bool) -> "Data":
        return windows_of_codes(codes, len(model.classes), model.max_lag, contexts)

    def score(of: "LagModel") -> float:
        data = windows(test, of.context)
        return of.loglik(data) / data.n

    try:
        scores = baselines(windows(train, contexts=True), windows(test, contexts=True))
    except ValueError:  # no window in one of them
        return {}
    plain, _ = fit_lags(windows(train, contexts=False), model.classes, LagSettings(model.max_lag, context=False))
    return scores | {"plain MTD": score(plain), "this model": score(model)}


def report(console: "Console", model: "LagModel", facts: "FitFacts", out: Path, scores: dict[str, float]) -> None:
    """Print the lags, and how well held-out symbols are predicted; write the table and the heat map."""
    from rich.table import Table

    from scb.paper.figures.style import quiet, save

    kind = "a matrix for each lag" if model.transition == "per_lag" else "one matrix for all lags"
    console.print(f"Lags that matter, of 1 … {model.max_lag}; {kind}", style="italic", highlight=False)
    table = Table()
    table.add_column("current symbol" if model.context else "", max_width=20)
    table.add_column("lag: weight ± standard error (by how much it moves the next symbol's law)")
    contexts = model.classes.tolist() if model.context else ["all"]
    rows = model.table()
    found = np.diff(model.attention.indptr)
    moves = model.influence().data
    ends = np.cumsum(found)
    shown = np.argsort(-found, kind="stable")[:_SHOWN] if len(contexts) > _SHOWN else np.arange(len(contexts))
    for k in np.sort(shown):
        mine = range(ends[k] - found[k], ends[k])
        parts = [
            f"{rows['lag'][i]}: {rows['weight'][i]:.2f} ± {_error(rows['stderr'][i])}"
            + (f" ({moves[i]:.2f})" if moves[i] > 0 else "")
            for i in mine
        ]
        name = contexts[k] if isinstance(contexts[k], str) and contexts[k].isprintable() else repr(contexts[k])
        table.add_row(repr(name) if name.strip() != name else name, "   ".join(parts) or "none")
    console.print(table, highlight=False)
    if len(contexts) > _SHOWN:
        console.print(f"{len(contexts) - _SHOWN} more current symbols are in {out / 'lags.csv'}", highlight=False)
    if not facts.converged:
        console.print(f"the fit did not converge: its log-likelihood could gain up to {facts.gap:.2g}", style="bold red")
    if scores:
        bits = Table()
        bits.add_column("model")
        bits.add_column("bits a held-out symbol", justify="right")
        best = max(scores.values())
        for name, score in sorted(scores.items(), key=lambda item: item[1]):
            bits.add_row(name, f"{-score / np.log(2):.4f}", style="bold" if score == best else None)
        console.print(bits, highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(rows)
    writer.writerows(zip(*(column.tolist() for column in rows.values()), strict=True))
    (out / "lags.csv").write_text(text.getvalue())
    figure: Any = quiet(model.plot)().figure
    for path in save(figure, out / "attention", ("png",)):
        console.print(f"wrote {path}, and beside it {MODEL}, lags.csv", highlight=False)


def _error(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "?"


def load(path: Path) -> "tuple[LagModel, FitFacts, dict[str, Any]]":
    """The model in a directory of ``scb fit``, or in a file; how its fit went; and what is known of its data."""
    from scb.sequences.lag_model import load_model

    model, facts, *_ = load_model(path / MODEL if path.is_dir() else path)
    summary = (path if path.is_dir() else path.parent) / "summary.json"
    return model, facts, json.loads(summary.read_text()) if summary.exists() else {}
