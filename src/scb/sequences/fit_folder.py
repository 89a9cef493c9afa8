"""The files that ``scb fit`` writes into a folder, and reading them back."""

import csv
import io
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from scb.extras import MissingExtraError, wanted_for
from scb.files import read_json, write_atomically, write_json
from scb.folders import Folder
from scb.inputs import DamagedFileError, InputError, coerced
from scb.sequences.analysis import Analysis
from scb.sequences.comparison import Score, own_bits
from scb.sequences.estimator import SparseContextualBigram
from scb.sequences.summary import LagSummary, summarise
from scb.sequences.symbols import inert

MODEL = "model.safetensors"
SUMMARY = "summary.json"
LAGS = "lags.csv"
PICTURES = ("attention.png", "influence.png")
REPORT = "report.html"


@dataclass(frozen=True)
class SavedFit:
    """A fit that ``scb fit`` wrote, as ``scb.sequences.fit_folder.read_fit`` returns it.

    Attributes
    ----------
    model : SparseContextualBigram
        The fitted model.
    summary : LagSummary
        The lags found, with the evidence for each.
    scores : list of Score
        How well the model and its baselines predict held-out symbols, best first.
    separator : str
        The text to print between two symbols.

    Examples
    --------
    >>> import scb
    >>> from scb.sequences.fit_folder import read_fit
    >>> scb.SparseContextualBigram(max_lag=2).fit(list("abab" * 30)).save("model.safetensors")
    >>> read_fit("model.safetensors").scores
    []
    """

    model: SparseContextualBigram
    summary: LagSummary
    scores: list[Score]
    separator: str


def write_fit(folder: Folder, analysis: Analysis, separator: str = " ") -> None:
    """Write the model of an analysis and the scores of its baselines to a folder.

    Parameters
    ----------
    folder : Folder
        A folder that ``scb.folders.opened`` has opened.
    analysis : Analysis
        The fitted model and its scores.
    separator : str, default " "
        The text to print between two symbols.

    Examples
    --------
    >>> from pathlib import Path
    >>> import scb
    >>> from scb.folders import opened
    >>> from scb.sequences.fit_folder import read_fit, write_fit
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 1000, seed=0)
    >>> analysis = scb.analyse(scb.SparseContextualBigram(max_lag=6), x, n_halves=0)
    >>> with opened(Path("fit"), "writing a fit") as folder:
    ...     write_fit(folder, analysis)
    >>> read_fit("fit").scores == analysis.scores
    True
    """
    # Remove it first: if this is interrupted, it must not be left beside another model
    folder.file(SUMMARY).unlink(missing_ok=True)
    analysis.model.save(folder.file(MODEL), overwrite=True)
    scores = [score._asdict() for score in analysis.scores]
    summary = {"file": analysis.name, "separator": separator, "held_out": scores}
    write_json(folder.file(SUMMARY), summary | {"model": _digest(folder.path / MODEL)})


def write_tables(folder: Folder, model: SparseContextualBigram) -> tuple[list[str], str]:
    """Write the table of lags as CSV, and heat maps of their weights and influence.

    Parameters
    ----------
    folder : Folder
        A folder that ``scb.folders.opened`` has opened.
    model : SparseContextualBigram
        The fitted model.

    Returns
    -------
    names : list of str
        The files written.
    missing : str
        A message that names the missing package if no pictures could be drawn; otherwise "".

    Examples
    --------
    >>> from pathlib import Path
    >>> import scb
    >>> from scb.folders import opened
    >>> from scb.sequences.fit_folder import write_tables
    >>> model = scb.SparseContextualBigram(max_lag=2).fit(list("abab" * 30))
    >>> with opened(Path("fit"), "drawing") as folder:
    ...     write_tables(folder, model)
    (['lags.csv', 'attention.png', 'influence.png'], '')
    """
    folder.claim(LAGS, *PICTURES)
    columns = model._model().table()
    cells = [map(inert, column.tolist()) for column in columns.values()]
    text = io.StringIO(newline="")
    csv.writer(text).writerows([list(columns), *zip(*cells, strict=True)])
    write_atomically(folder.file(LAGS), text.getvalue().encode(errors="surrogatepass"))
    try:
        with wanted_for("a picture"):
            from scb.drawing import quiet, save
    except MissingExtraError as error:
        return [LAGS], str(error)
    for name, plot in zip(PICTURES, (model.plot_attention, model.plot), strict=True):
        figure: Any = quiet(plot)().figure
        save(figure, folder.file(name).with_suffix(""), ("png",))
    return [LAGS, *PICTURES], ""


def read_fit(path: str | Path) -> SavedFit:
    """Read a fit from its folder, or a model from its file.

    Parameters
    ----------
    path : str or path
        A folder that ``scb fit`` wrote, or a saved model.

    Returns
    -------
    SavedFit
        The fit; a model read from its file alone has no scores.

    Examples
    --------
    >>> import scb
    >>> from scb.sequences.fit_folder import read_fit
    >>> scb.SparseContextualBigram(max_lag=2).fit(list("abab" * 30)).save("model.safetensors")
    >>> print(read_fit("model.safetensors").summary.answer)
    Whatever the current symbol, the next one depends on lag 1.
    """
    path = Path(path)
    file = path / MODEL if path.is_dir() else path
    model = SparseContextualBigram.load(file)
    path = file.parent / SUMMARY
    summary = read_json(path) if file.name == MODEL and path.exists() else {}
    try:
        separator = coerced("separator", summary.get("separator", " "), str)
        rows = coerced("held_out", summary.get("held_out", []), tuple[dict, ...])
        scores = [_checked_score(row) for row in rows]
    except InputError as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from None
    if summary and summary.pop("model", None) != _digest(file):
        raise InputError(
            f"{path} does not belong to the model in {file}: restore the file that does, or "
            "remove this one"
        )
    return SavedFit(model, summarise(model._model(), own_bits(scores)), scores, separator)


def _checked_score(row: dict[str, Any]) -> Score:
    """A score, each field of its type; bits may be infinite."""
    for name, kind in Score.__annotations__.items():
        if not isinstance(row.get(name), (int, float) if kind is float else kind):
            raise InputError(f"a score in held_out has {name} = {row.get(name)!r}")
    return Score(*(row[name] for name in Score._fields))


def _digest(file: Path) -> str:
    """The digest of a model's file, which ties the summary to it."""
    return sha256(file.read_bytes()).hexdigest()
