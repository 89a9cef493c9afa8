"""``scb fit``: which lags matter in a file of sequences, and when."""

import shlex
from importlib.util import find_spec
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from scb.cli.terminal import terminal
from scb.folders import Folder, opened
from scb.inputs import InputError

if TYPE_CHECKING:
    from scb.sequences.analysis import Analysis
    from scb.sequences.estimator import SparseContextualBigram
    from scb.sequences.fit_folder import SavedFit
    from scb.sequences.tables import Sequences


def fit(
    file: tyro.conf.Positional[Path],
    column: str | None = None,
    group: str | None = None,
    order: str | None = None,
    by: Literal["char", "word", "line"] = "char",
    sep: str | None = None,
    top: int | None = None,
    kind: Literal["csv", "tsv", "parquet", "jsonl", "json", "fasta", "text"] | None = None,
    header: bool | None = None,
    gap: str | None = None,
    bins: int | None = None,
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

    - FASTA, compressed or not; characters of each line; from another command: scb fit reads.fa.gz;
      scb fit reads.txt --sep ""; zcat log.gz | scb fit - --by line

    Afterwards: runs/fit/report.html in a browser; scb show runs/fit; scb sample runs/fit

    Args:
        file: CSV, TSV, Parquet or JSON lines file with a column of symbols, or FASTA; any other
            file is read as text, and '-' is standard input. Empty cells are gaps.
        column: Column of the symbols, needed if there is more than one candidate. If its cells are
            lists, each is a sequence.
        group: Column that tells which sequence a row belongs to.
        order: Column by which the rows of each sequence are sorted, such as a time. By default they
            keep the order of the file.
        by: What counts as a symbol in a text.
        sep: Separator of the columns of a .csv file, or of the symbols of a text; each line of the
            text is then a sequence. With an empty one its symbols are characters.
        top: Number of most common symbols to keep; all others are replaced by '<other>'.
        kind: What the file is. By default its ending tells; .gz may follow it.
        header: Whether the first row of a .csv file has the names of the columns. By default it
            does unless it looks like the rows below it.
        gap: Longest pause in the column ORDER within a sequence, a number or a time such as 30min;
            after a longer one a new sequence begins.
        bins: Number of bins for symbols that are numbers, cut at quantiles.
        max_lag: Longest lag that may matter.
        transition: 'shared' is one matrix for all lags, 'per_lag' one for each; 'auto' fits both
            and keeps that with the lower BIC.
        context: Whether the current symbol decides which lags matter. Without, this is the Mixture
            Transition Distribution model.
        lags: 'auto' selects the lags from the data; a number asks for that many after each symbol;
            a list gives the lags themselves.
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
    from scb.sequences.analysis import analyse
    from scb.sequences.estimator import SparseContextualBigram
    from scb.sequences.fit_folder import LAGS, MODEL, PICTURES, REPORT, SUMMARY, write_fit
    from scb.sequences.input_formats import read_sequences

    given = locals()
    if not 0 <= split < 1:
        raise InputError(f"--split {split}: it must lie between 0 and 1")
    model = SparseContextualBigram(
        max_lag, transition=transition, context=context, lags=_lags(lags), background=background
    )
    _, *reading = signature(read_sequences).parameters
    source = read_sequences(file, **{name: given[name] for name in reading})
    _print_reading(terminal(stderr=True), source)
    with opened(out, "writing a fit", lock=lock, overwrite=overwrite, inputs=(file,)) as folder:
        folder.claim(MODEL, SUMMARY, LAGS, *PICTURES, REPORT)
        with terminal(stderr=True).status("looking for lags …") as status:
            options = {"name": file.name, "held_out": split, "n_halves": halves}
            analysis = analyse(model, source, progress=status.update, **options)
        write_fit(folder, analysis, source.separator)
        _print_results(terminal(), folder, analysis, _command(given))


def _print_results(console: Console, folder: Folder, analysis: "Analysis", command: str) -> None:
    """Print what was found, and write tables, pictures and the report."""
    from scb.sequences.fit_folder import MODEL, REPORT

    print_fit(console, analysis)
    for line in (*analysis.failures, *analysis.about):
        console.print(line)
    print_tables(console, analysis.model, folder, MODEL)
    # What is missing has been printed
    if all(map(find_spec, ("matplotlib", "jinja2"))):
        analysis.write_report(folder.file(REPORT), command)
        console.print(f"wrote {folder.path / REPORT}, one page that can be sent to somebody")


def _print_reading(console: Console, source: "Sequences") -> None:
    """Say how the data were read, with the first symbols, before anything is computed."""
    first = ", ".join(map(repr, islice((x for sequence in source for x in sequence), 10)))
    console.print(f"read {source.said}")
    console.print(f"it begins with {first}")


def _command(options: dict[str, Any]) -> str:
    """What to type to get the same: all options that are not the default, with the names of paths
    only, since the report may be sent.
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


def _lags(text: str) -> str | int | list[int]:
    """The value of --lags for the estimator."""
    if text == "auto":
        return text
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--lags {text}: it must be 'auto', a number of lags, or lags with commas between them"
        ) from None
    return numbers if "," in text else numbers[0]


def print_fit(console: Console, fit: "Analysis | SavedFit") -> None:
    """Print the summary of a fit; then, if symbols were held out, how well this model and its
    baselines predict them, and advice where a baseline is clearly better.
    """
    console.print(Text(str(fit.summary)))
    if not fit.scores:
        return
    headings = ("held-out bits", "more than ours", "± s.e.")
    table = Table("model", *(Column(heading, justify="right") for heading in headings))
    for score in fit.scores:
        difference = [f"{score.difference:+.4f}", f"{score.error:.4f}"]
        cells = [f"{score.bits:.4f}", *(["", ""] if score.own else difference)]
        table.add_row(score.name, *cells, style="bold" if score.best else None)
    console.print(table)
    # Scores come best first
    best = fit.scores[0]
    # Worth saying from 0.01 bits per symbol on
    if fit.model.background == "labels" and best.difference < -max(2 * best.error, 0.01):
        advice = "with --background ngram, a lag must say more than the recent symbols do"
        console.print(Text(f"{best.name} predicts better: {advice}"))


def print_tables(
    console: Console, model: "SparseContextualBigram", folder: Folder, *before: str
) -> None:
    """Write the table of the lags and the pictures, and say so, with what was written before."""
    from scb.sequences.fit_folder import write_tables

    names, missing = write_tables(folder, model)
    end = f"; {missing}" if missing else ""
    console.print(f"wrote {folder.path}: {', '.join((*before, *names))}{end}")
