"""The option ``--json``, which prints what a command found as one JSON object for other programs.

docs/reference/json.md lists the fields; a test compares the page with what the commands print.
"""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scb.provenance import versions

if TYPE_CHECKING:
    from scb.sequences.analysis import Analysis
    from scb.sequences.fit_folder import SavedFit
    from scb.training.run import Run
    from scb.training.settings import TrainingSettings


def print_json(kind: str, facts: dict[str, Any]) -> None:
    """Print one object on one line of stdout; text for people goes to stderr."""
    found = {"kind": kind, "scb": versions()["scb"], **facts}
    print(json.dumps(_plain(found), allow_nan=False))


def _plain(value: Any) -> Any:
    """The value in the types of JSON: a number that is not finite becomes null."""
    if hasattr(value, "tolist"):  # scalars and arrays of NumPy
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)


def print_fit_json(fit: "Analysis | SavedFit", directory: Path, *failures: str) -> None:
    """Print a fit, with a line for each baseline that could not be computed."""
    model = fit.model
    facts = {
        "directory": directory,
        "answer": fit.summary.answer,
        "lags": _rows(fit.summary.columns),
        "symbols": model.classes_,
        "max_lag": model.max_lag,
        "transition": "per_lag" if isinstance(model.transition_, dict) else "shared",
        "background_weight": model.background_weight_,
        "n_symbols": model.n_symbols_,
        "n_windows": model.n_windows_,
        "n_parameters": model.n_parameters_,
        "log_likelihood": model.loglik_,
        "converged": model.converged_,
        "held_out": [score._asdict() for score in fit.scores],
        "warnings": [*fit.summary.warnings, *failures],
    }
    print_json("fit", facts)


def print_run_json(run: "Run", settings: "TrainingSettings", directory: Path) -> None:
    """Print a run, finished or not."""
    from scb.training.verdict import GOOD, by_truth

    last = {name: float(column[-1]) for name, column in run.history.items()}
    judged = run.finished and run.diverged is None
    facts = {
        "directory": directory,
        "settings": asdict(settings),
        "finished": run.finished,
        "steps": run.step,
        "samples": run.samples,
        "diverged": run.diverged,
        "mirrored": run.mirrored,
        "verdict": run.verdict,
        "learned": None if run.verdict is None else run.verdict == GOOD,
        "by_truth": by_truth(last) if judged else None,
        "stages": _rows(run.summary().columns),
    }
    print_json("run", facts)


def _rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a table, each by the names of its columns."""
    cells = (column.tolist() for column in columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]
