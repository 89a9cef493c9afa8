"""``scb show``: a saved run, or a fitted model."""

from pathlib import Path

import tyro

from scb.cli.fit import MODEL, load, report
from scb.cli.terminal import terminal
from scb.cli.train import report_run


def show(path: tyro.conf.Positional[Path]) -> None:
    """Print the summary of a saved run, finished or not, or of a fitted model, and draw its picture again.

    Args:
        path: Directory that 'scb train' or 'scb fit' wrote, or a saved model.
    """
    from scb.training.run import Run
    from scb.training.settings import TrainingSettings

    console = terminal()
    if path.is_file() or (path / MODEL).exists():
        model, facts, summary = load(path)
        report(console, model, facts, path if path.is_dir() else path.parent, summary.get("held_out", []))
    else:
        report_run(console, Run.load(path), path, TrainingSettings.load(path))
