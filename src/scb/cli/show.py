"""``scb show``: a saved run, or a fitted model."""

from pathlib import Path
from typing import Annotated

import tyro

from scb.cli.fit import MODEL, load, report
from scb.cli.terminal import terminal
from scb.cli.train import latest_run, report_run


def show(path: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[PATH]")] = None) -> None:
    """Print the summary of a saved run, finished or not, or of a fitted model, and draw its pictures again.

    Args:
        path: Directory that 'scb train' or 'scb fit' wrote, or a saved model. The default is the latest run in runs.
    """
    from scb.training.run import Run
    from scb.training.settings import TrainingSettings

    console = terminal()
    place = latest_run() if path is None else path
    if place.is_file() or (place / MODEL).exists():
        model, facts, summary = load(place)
        report(console, model, facts, place if place.is_dir() else place.parent, summary.get("held_out", []))
    else:
        report_run(console, Run.load(place), place, TrainingSettings.load(place))
