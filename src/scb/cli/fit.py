"""``scb fit``: which lags matter in a file of sequences, and when."""

import csv
import io
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from scb.cli.terminal import terminal
from scb.extras import MissingExtraError, wanted_for
from scb.files import read_json, write_atomically, write_json
from scb.folders import Folder, opened
from scb.inputs import DamagedFileError, InputError, coerced

if TYPE_CHECKING:
    from scb.geometry import Array
    from scb.sequences.lag_fit import LagSettings
    from scb.sequences.lag_model import FitFacts, LagModel
    from scb.sequences.symbols import Sequences

MODEL = "model.safetensors"
SUMMARY = "summary.json"
REPORT = "report.html"
LAGS = "lags.csv"
PICTURES = ("attention.png", "influence.png")
_WORTH_SAYING = 0.01  # bits a symbol by which another model must be better


def fit(
    file: tyro.conf.Positional[Path],
    column: str | None = None,
    group: str | None = None,
    order: str | None = None,
    by: Literal["char", "word", "line"] = "char",
    sep: str | None = None,
    top: int | None = None,
    max_lag: int = 20,
    transition: Literal["auto", "shared", "per_lag"] = "auto",
    context: bool = True,
    lags: Annotated[str, tyro.conf.arg(metavar="auto|NUMBER|LAG,LAG,…")] = "auto",
    background: Literal["labels", "ngram"] = "labels",
    halves: int = 10,
    split: float = 0.2,
    out: Path = Path("runs/fit"),
    overwrite: bool = False,
    lock: bool = True,
) -> None:
    """Find the lags that matter in sequences of symbols, for each current symbol.

    Lag 1 is the current symbol, lag 2 the one before it, and so on. The current symbol decides
    which lags matter. The model is

      P(next symbol) = sum over lags of weight[current symbol, lag] * matrix[lag][next symbol,
      symbol at that lag]

    plus a background: the distribution of all symbols, or a prediction from the most recent ones.
    The report says of each lag how much it changes the distribution of the next symbol (its
    influence, with a 95 % interval), how much log-likelihood (in nats) and BIC would be lost
    without it, and in how many random halves of the data it is found again.

    - A column of a table, one sequence: scb fit weather.csv --column weather --max-lag 30

    - Several sequences in one table: scb fit visits.csv --column page --group user --order time

    - One sequence per line: scb fit walks.txt --sep ','; scb fit walks.jsonl (a line is an array,
      or an object with columns)

    - Text by character, or by word: scb fit poem.txt --max-lag 40; scb fit poem.txt --by word --top
      200

    Afterwards: runs/fit/report.html in a browser; scb show runs/fit; scb sample runs/fit

    Args:
        file: CSV, TSV, Parquet or JSON lines file with a column of symbols; any other file is read
            as text. Empty cells are gaps.
        column: Column of the symbols, needed if there is more than one candidate. If its cells are
            lists, each is a sequence.
        group: Column that tells which sequence a row belongs to.
        order: Column by which the rows of each sequence are sorted, such as a time. By default they
            keep the order of the file.
        by: What counts as a symbol in a text.
        sep: Separator of the columns of a .csv file, or of the symbols of a text; each line of the
            text is then a sequence.
        top: Number of most common symbols to keep; all others are replaced by '<other>'.
        max_lag: Longest lag that may matter.
        transition: 'shared' is one matrix for all lags, 'per_lag' one for each; 'auto' fits both
            and keeps that with the lower BIC.
        context: Whether the current symbol decides which lags matter. Without, this is the Mixture
            Transition Distribution model.
        lags: 'auto' selects the lags from the data; a number asks for that many in each context; a
            list gives the lags themselves.
        background: What a lag must improve on: the distribution of all symbols ('labels'), or an
            n-gram or context tree ('ngram').
        halves: Number of random halves of the data in which the lags are searched again; 0 skips
            this.
        split: Fraction of the symbols or, if there are several, of the sequences, that is held out
            at the end for prediction.
        out: Directory for the report, the model, its table and the pictures.
        overwrite: Replace files in OUT that scb did not write.
        lock: Keep other processes out of OUT. Some file systems cannot do so.
    """
    from scb.sequences.input_formats import TABLES, read_with_options
    from scb.sequences.lag_fit import LagSettings
    from scb.sequences.model_file import save_model
    from scb.sequences.report import compared, write_report
    from scb.sequences.summary import missing_parts, problems
    from scb.sequences.symbols import encode
    from scb.sequences.tables import Columns

    command = _command(locals())
    if not 0 <= split < 1:
        raise InputError(f"--split {split}: it must lie between 0 and 1")
    console = terminal()
    if halves < 0 or halves % 2:
        raise InputError(f"--halves {halves}: it must be an even number, or 0")
    settings = LagSettings(
        max_lag, transition=transition, context=context, lags=_lags(lags), background=background
    )
    source = read_with_options(file, Columns(column, group, order), by, sep, top, option="--{}")
    codes, classes = encode(source)
    train, test = _split(codes, split, max_lag)
    about = [
        *_about(file, source, codes, classes),
        _held_out(train, test),
        *_only_held_out(train, test, classes),
    ]
    characters = file.suffix.lower() not in TABLES and by == "char" and sep is None
    with opened(out, "writing a fit", lock=lock, overwrite=overwrite, inputs=(file,)) as folder:
        folder.claim(MODEL, SUMMARY, LAGS, *PICTURES, REPORT)
        model, facts, likelihoods, failed = _fit(train, test, classes, settings, halves)
        scores = [one._asdict() for one in compared(likelihoods)] if likelihoods else []
        # First: after a kill it does not stand beside another model
        folder.file(SUMMARY).unlink(missing_ok=True)
        parameters = asdict(settings) | {"verbose": False, "handle_unknown": "error"}
        save_model(folder.file(MODEL), model, facts, parameters, None, overwrite=True)
        summary = {"file": file.name, "separator": "" if characters else " ", "held_out": scores}
        write_json(folder.file(SUMMARY), summary | {"model": _digest(out / MODEL)})
        report(console, model, facts, scores, [*failed, *about])
        write_tables(console, model, folder, MODEL)
        if not all(map(find_spec, ("matplotlib", "jinja2"))):  # it has been said what is missing
            return
        write_report(
            folder.file(REPORT),
            model,
            title=file.name,
            data=about,
            likelihoods=likelihoods,
            command=command,
            settings=asdict(settings),
            warnings=[*problems(facts), *missing_parts(model), *failed],
        )
        console.print(f"wrote {out / REPORT}, one page that can be sent to somebody")


def _fit(
    train: list[Any], test: list[Any], classes: Any, settings: "LagSettings", halves: int
) -> "tuple[LagModel, FitFacts, dict[str, Array], list[str]]":
    """The model, how its fit went, what it and its baselines say of each held-out symbol, and which
    of these failed.
    """
    from scb.sequences.coding import windows_of_codes
    from scb.sequences.lag_fit import fit_lags
    from scb.sequences.stability import found_again

    with terminal(stderr=True).status("looking for lags …") as status:

        def searching(turn: int, found: int, loglik: float) -> None:
            status.update(f"looking for lags: round {turn}, {found} found so far")

        def searching_again(turn: int, of: int) -> None:
            status.update(f"looking for the same lags in half {turn} of {of} …")

        data = windows_of_codes(train, len(classes), settings.max_lag, settings.context)
        model, facts = fit_lags(data, classes, settings, progress=searching)
        if halves and settings.lags == "auto" and model.attention.nnz:
            found = found_again(model, data, settings, halves, seed=0, progress=searching_again)
            model = replace(model, evidence={**model.evidence, "found": found})
        status.update("what each lag is worth …")
        model = replace(model, evidence=dict(model.evidence))
        if not test:
            return model, facts, {}, []
        return (
            model,
            facts,
            *_compare(model, train, test, lambda name: status.update(f"comparing: {name} …")),
        )


def _command(options: dict[str, Any]) -> str:
    """What to type to get the same: every option that is not what it would be anyway; of paths the
    names, since it is sent.
    """
    words = ["scb", "fit"]
    for name, parameter in signature(fit).parameters.items():
        value, flag = options[name], name.replace("_", "-")
        if isinstance(value, Path) and value != parameter.default:
            words += [value.name] if name == "file" else [f"--{flag}", value.name or "."]
        elif isinstance(value, bool) and value != parameter.default:
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif value != parameter.default:
            words += [f"--{flag}", str(value)]
    return shlex.join(words)


def _held_out(train: list[Any], test: list[Any]) -> str:
    """What was fitted and what was kept apart, in words."""
    if not test:
        return "All of it is fitted, nothing held out"
    if len(train) == 1:
        return f"The first {len(train[0]):,} symbols are fitted, those after them held out to be predicted"
    return f"The first {len(train):,} sequences are fitted, the {len(test):,} after them held out to be predicted"


def _only_held_out(train: list[Any], test: list[Any], classes: Any) -> list[str]:
    """Which symbols the fit has never seen, and what is made of them."""
    fitted = np.unique(np.concatenate(train))
    strange = [
        x
        for x in np.unique(np.concatenate([*test, np.zeros(0, np.int64)])).tolist()
        if x >= 0 and x not in fitted
    ]
    if not strange:
        return []
    names = ", ".join(repr(x) for x in classes[strange[:5]].tolist()) + (
        ", …" if len(strange) > 5 else ""
    )
    return [
        f"{_counted(len(strange), 'kind')} of symbols occurring only in what is held out ({names}): unlikely, but not impossible"
    ]


def _counted(number: int, noun: str) -> str:
    """A number and what it is of."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _about(file: Path, source: "Sequences", codes: list[Any], classes: Any) -> list[str]:
    """What was read, how, and what is odd about it."""
    lengths = np.array([len(x) for x in codes])
    missing = sum(int((x < 0).sum()) for x in codes)
    many = _counted(len(codes), "sequence")
    if len(codes) > 1:
        many += f" of {lengths.min():,} to {lengths.max():,} symbols, {int(np.median(lengths)):,} in the middle"
    lines = [
        f"{file.name}: {lengths.sum():,} symbols of {len(classes)} kinds in {many}",
        f"Read as: {source.said}",
    ]
    if missing:
        lines.append(f"{missing:,} symbols ({missing / lengths.sum():.1%}) are missing")
    if short := int((lengths < 2).sum()):
        lines.append(
            f"{_counted(short, 'sequence')} of fewer than 2 symbols: these say nothing about what comes next"
        )
    return lines


def _lags(text: str) -> str | int | list[int]:
    if text == "auto":
        return text
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--lags {text}: it must be 'auto', a number of lags, or lags with commas between them"
        ) from None
    return numbers if "," in text else numbers[0]


def _split(codes: list[Any], part: float, max_lag: int) -> tuple[list[Any], list[Any]]:
    """What is fitted, and what is predicted: the end of one sequence, with the symbols before it;
    or the last of many.
    """
    if part == 0:
        return codes, []
    if len(codes) == 1:
        cut = round(len(codes[0]) * (1 - part))
        if cut <= max_lag or cut >= len(codes[0]):
            raise InputError(
                f"{len(codes[0])} symbols are too few for --max-lag {max_lag} and --split {part}"
            )
        return [codes[0][:cut]], [codes[0][cut - max_lag :]]
    cut = min(max(1, round(len(codes) * (1 - part))), len(codes) - 1)
    return codes[:cut], codes[cut:]


def _compare(
    model: "LagModel", train: list[Any], test: list[Any], say: Callable[[str], None]
) -> "tuple[dict[str, Array], list[str]]":
    """By model, the log-likelihood of each held-out symbol in nats; empty if nothing can be
    predicted.

    And a line for each baseline that could not be computed.
    """
    from scb.sequences.baselines.comparison import log_likelihoods, makers, scored, title
    from scb.sequences.coding import windows_of_codes
    from scb.sequences.lag_fit import LagSettings, fit_lags
    from scb.sequences.report import OWN

    # Of one sequence, the end of what was fitted is there to look back at
    skipped = model.max_lag if len(train) == 1 else 0
    windows = partial(windows_of_codes, N=len(model.classes), max_lag=model.max_lag)
    try:
        held_out = {
            contexts: windows(test, contexts=contexts, skipped=skipped)
            for contexts in (True, False)
        }
    except ValueError:  # no symbol follows another one
        return {}, []

    def of_model(name: str, make: Callable[[], Any]) -> "dict[str, Array]":
        baseline = make()
        return log_likelihoods({title(name, baseline): baseline}, test, skipped)

    def of_plain_mtd() -> "dict[str, Array]":
        settings = LagSettings(model.max_lag, transition="shared", context=False)
        plain, _ = fit_lags(windows(train, contexts=False), model.classes, settings)
        return {"plain MTD": plain.log_likelihoods(held_out[False])}

    baselines = {
        name: partial(of_model, name, make)
        for name, make in makers(train, len(model.classes)).items()
    }
    found, failed = scored(baselines | {"plain MTD": of_plain_mtd}, say)
    return found | {OWN: model.log_likelihoods(held_out[model.context])}, failed


def report(
    console: Console,
    model: "LagModel",
    facts: "FitFacts",
    scores: list[dict[str, Any]],
    about: Sequence[str] = (),
) -> None:
    """Print the answer, the lags with their evidence, how well held-out symbols are predicted, and
    lines ``about`` the data.
    """
    from scb.sequences.summary import LagSummary

    console.print(Text(str(LagSummary(model, facts))))
    if scores:
        right = [
            Column(name, justify="right") for name in ("held-out bits", "more than ours", "± s.e.")
        ]
        bits = Table("model", *right)
        for one in scores:
            more = [""] * 2 if one["own"] else [f"{one['difference']:+.4f}", f"{one['error']:.4f}"]
            bits.add_row(
                one["name"], f"{one['bits']:.4f}", *more, style="bold" if one["best"] else None
            )
        console.print(bits)
        best = scores[0]
        if model.background is None and best["difference"] < -max(2 * best["error"], _WORTH_SAYING):
            console.print(
                Text(
                    f"{best['name']} predicts better: with --background ngram, a lag must say more than the recent symbols do"
                )
            )
    for line in about:
        console.print(line)


def write_tables(console: Console, model: "LagModel", folder: Folder, *before: str) -> None:
    """Write the table of the lags, and heat maps of their weights and influence; say so, with what
    was written before.
    """
    from scb.sequences.symbols import inert

    folder.claim(LAGS, *PICTURES)
    rows = model.whole_table()
    text = io.StringIO(newline="")
    csv.writer(text).writerows(
        [list(rows), *zip(*(map(inert, column.tolist()) for column in rows.values()), strict=True)]
    )
    write_atomically(folder.file(LAGS), text.getvalue().encode(errors="surrogatepass"))
    try:
        _draw(model, folder)
    except MissingExtraError as error:
        console.print(f"wrote {folder.path}: {', '.join((*before, LAGS))}; {error}")
        return
    console.print(f"wrote {folder.path}: {', '.join((*before, LAGS, *PICTURES))}")


def _draw(model: "LagModel", folder: Folder) -> None:
    """Heat maps of the weights and of the influence."""
    from scb.sequences.pictures import plot_attention, plot_influence

    with wanted_for("a picture"):
        from scb.drawing import quiet, save

    for name, picture in zip(PICTURES, (plot_attention, plot_influence), strict=True):
        figure: Any = quiet(picture)(model).figure
        save(figure, folder.file(name).with_suffix(""), ("png",))


def _check_score(score: dict[str, Any]) -> None:
    """InputError unless it says how well a model predicts; bits may be infinite."""
    for name, kind in (
        ("name", str),
        ("own", bool),
        ("best", bool),
        ("bits", float),
        ("difference", float),
        ("error", float),
    ):
        if not isinstance(score.get(name), (int, float) if kind is float else kind):
            raise InputError(f"a score in held_out has {name} = {score.get(name)!r}")


def load(path: Path) -> "tuple[LagModel, FitFacts, dict[str, Any]]":
    """The model in a directory of ``scb fit``, or in a file; how its fit went; and what is known of
    its data.
    """
    from scb.sequences.model_file import load_model

    file = path / MODEL if path.is_dir() else path
    model, facts, *_ = load_model(file)
    path = file.parent / SUMMARY
    summary = read_json(path) if file.name == MODEL and path.exists() else {}
    try:
        coerced("separator", summary.get("separator", " "), str)
        for score in coerced("held_out", summary.get("held_out", []), tuple[dict, ...]):
            _check_score(score)
    except InputError as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from None
    if summary and summary.pop("model", None) != _digest(file):
        raise InputError(
            f"{path} is not of the model in {file}: put back the one that belongs there, or remove it"
        )
    return model, facts, summary


def _digest(file: Path) -> str:
    """The digest of a model's file, by which what is known of its data is tied to it."""
    return sha256(file.read_bytes()).hexdigest()
