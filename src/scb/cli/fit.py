"""``scb fit`` finds which lags matter in a file of sequences, and when they matter."""

import shlex
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from scb.cli.json_output import print_fit_json
from scb.cli.progress import steps
from scb.cli.terminal import terminal
from scb.extras import MissingExtraError
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
    covariates: Annotated[str, tyro.conf.arg(metavar="COLUMN,COLUMN,…")] = "",
    max_lag: int = 20,
    transition: Literal["auto", "shared", "per_lag"] | int = "auto",
    context: bool = True,
    lags: Annotated[str, tyro.conf.arg(metavar="auto|NUMBER|LAG,LAG,…")] = "auto",
    background: Literal["auto", "labels", "ngram", "per_sequence"] = "auto",
    halves: int = 10,
    split: float = 0.2,
    seed: int = 0,
    out: Path = Path("runs/fit"),
    overwrite: bool = False,
    lock: bool = True,
    json: bool = False,
) -> None:
    """Find the lags that matter in sequences of symbols, for each current symbol.

    Lag 1 is the current symbol, lag 2 is the symbol before it, and so on. The current symbol
    decides which lags matter. The model is

      P(next symbol) = sum over lags of weight[current symbol, lag] * matrix[lag][next symbol,
      symbol at that lag]

    plus a background: the distribution of all symbols, a prediction from the most recent symbols,
    or the frequencies of the sequence so far. For each lag, the report says how much it changes the
    distribution of the next symbol (its influence, with a 95 % interval), how much log-likelihood
    (in nats) and BIC would be lost without it, and in how many random halves of the data it is
    found again.

    - A column of a table, one sequence: scb fit weather.csv --column weather --max-lag 30

    - Several sequences in one table: scb fit visits.csv --column page --group user --order time

    - One sequence per line: scb fit walks.txt --sep ','; scb fit walks.jsonl (a line is an array,
      or an object with columns)

    - Text by character, or by word: scb fit poem.txt --max-lag 40; scb fit poem.txt --by word --top
      200

    - FASTA, compressed or not; characters of each line; from another command: scb fit reads.fa.gz;
      scb fit reads.txt --sep ""; zcat log.gz | scb fit - --by line

    Afterwards, open runs/fit/report.html, or try: scb show runs/fit; scb sample runs/fit

    Args:
        file: CSV, TSV, Parquet or JSON lines file with a column of symbols, or FASTA; any other
            file is read as text, and '-' is standard input. Empty cells are gaps.
        column: Column that holds the symbols, needed if there is more than one candidate. If its
            cells are lists, each list is a sequence.
        group: Column that tells which sequence a row belongs to.
        order: Column by which the rows of each sequence are sorted, such as a time. By default,
            rows keep the order of the file.
        by: What counts as a symbol in a text.
        sep: Separator of the columns of a .csv file, or of the symbols of a text; each line of the
            text is then a sequence. With an empty separator, the symbols are characters.
        top: Number of most common symbols to keep; all others are replaced by '<other>'.
        kind: Kind of the file. By default, the ending of its name decides; .gz may follow this
            ending.
        header: Whether the first row of a .csv file holds the names of the columns. By default, it
            is taken to do so unless it looks like the rows below it.
        gap: Longest pause in the column ORDER within a sequence, as a number or a time such as
            30min; after a longer pause, a new sequence begins.
        bins: Number of bins, cut at quantiles, for symbols that are numbers.
        covariates: Columns of a table that are known when a symbol is predicted, such as an hour or
            a season; those that matter become sources in addition to the lags.
        max_lag: Longest lag that may matter.
        transition: 'shared' fits one matrix for all lags, 'per_lag' fits one for each lag, and a
            number fits that many matrices, which the lags share; with 'auto', held-out blocks of
            the data decide.
        context: Whether the current symbol may decide which lags matter; held-out blocks of the
            data tell whether it does. With --no-context, the model is the Mixture Transition
            Distribution model.
        lags: 'auto' selects the lags from the data; a number requests that many lags after each
            symbol; a list gives the lags themselves.
        background: What a lag must improve on: the distribution of all symbols ('labels'), an
            n-gram or context tree ('ngram'), or the frequencies of each sequence, learned as the
            sequence proceeds ('per_sequence'); with 'auto', held-out blocks of the data decide.
        halves: Number of random halves of the data in which the lags are searched for again; 0
            skips this search.
        split: Fraction of the symbols to hold out for prediction. Whole sequences are drawn at
            random, but if a sequence has more than a tenth of all symbols, only its end is held
            out.
        seed: Seed with which held-out sequences are drawn.
        out: Directory for the report, the model, its table and the pictures.
        overwrite: Replace files in OUT that scb did not write.
        lock: Keep other processes out of OUT. Some file systems do not support this.
        json: Print the results as one JSON object on stdout, and the human-readable text on stderr.
    """
    from scb.sequences.estimator import SparseContextualBigram
    from scb.sequences.fit_folder import LAGS, MODEL, PICTURES, REPORT, SUMMARY, write_fit
    from scb.sequences.input_formats import read_sequences

    given = locals()
    if not 0 <= split < 1:
        raise InputError(f"--split {split}: it must lie between 0 and 1")
    model = SparseContextualBigram(
        max_lag,
        transition=transition,
        context="auto" if context else False,
        lags=_lags(lags),
        background=background,
    )
    _, *reading = signature(read_sequences).parameters
    source = read_sequences(file, **{name: given[name] for name in reading})
    with opened(out, "writing a fit", lock=lock, overwrite=overwrite, inputs=(file,)) as folder:
        folder.claim(MODEL, SUMMARY, LAGS, *PICTURES, REPORT)
        _print_reading(terminal(stderr=True), source)
        analysis = _analysis(model, source, given)
        write_fit(folder, analysis, source.separator)
        _print_results(terminal(stderr=json), folder, analysis, _command(given))
    if json:
        print_fit_json(analysis, out, *analysis.failures)


def _analysis(
    model: "SparseContextualBigram", source: "Sequences", options: dict[str, Any]
) -> "Analysis":
    """Fit the model, and report each step."""
    from scb.sequences.analysis import analyse

    with steps("looking for lags …") as say:
        return analyse(
            model,
            source,
            held_out=options["split"],
            n_halves=options["halves"],
            random_state=options["seed"],
            name=options["file"].name,
            progress=say,
        )


def _print_results(console: Console, folder: Folder, analysis: "Analysis", command: str) -> None:
    """Print what was found, and write tables, pictures and the report."""
    from scb.sequences.fit_folder import MODEL

    print_fit(console, analysis)
    for line in (*analysis.failures, *analysis.about):
        console.print(line)
    print_tables(console, analysis.model, folder, MODEL)
    _write_report(console, analysis, folder, command)


def _print_reading(console: Console, source: "Sequences") -> None:
    """Say how the data were read, with the first symbols, before anything is computed."""
    first = ", ".join(map(repr, islice((x for sequence in source for x in sequence), 10)))
    console.print(f"read {source.said}")
    console.print(f"it begins with {first}")


def _command(options: dict[str, Any]) -> str:
    """The command that gives the same result: all options that differ from the default, with only
    the names of paths, since the report may be sent to others.
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
    from scb.sequences.comparison import PLAIN

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
    if best.difference < -max(2 * best.error, 0.01):
        if best.name == PLAIN and fit.model.context:
            advice = "with --no-context, the lags are the same after every symbol"
        elif fit.model.background == "labels":
            advice = "with --background ngram, a lag must say more than the recent symbols do"
        else:
            return
        console.print(Text(f"{best.name} predicts better: {advice}"))


def print_tables(
    console: Console, model: "SparseContextualBigram", folder: Folder, *before: str
) -> None:
    """Write the table of the lags and the pictures, and print the names of all files that were
    written.
    """
    from scb.sequences.fit_folder import write_tables

    names, missing = write_tables(folder, model)
    end = f"; {missing}" if missing else ""
    console.print(f"wrote {folder.path}: {', '.join((*before, *names))}{end}")


def _write_report(console: Console, analysis: "Analysis", folder: Folder, command: str) -> None:
    """Write the report, or say what is missing for it."""
    from scb.sequences.fit_folder import REPORT

    try:
        analysis.write_report(folder.file(REPORT), command)
    except MissingExtraError as error:
        console.print(f"no {REPORT}: {error}")
    else:
        console.print(f"wrote {folder.path / REPORT}, one page that can be sent to others")
