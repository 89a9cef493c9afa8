"""``scb show``: a saved run, or a fitted model."""

from pathlib import Path

import tyro


def show(path: tyro.conf.Positional[Path]) -> None:
    """Print the summary of a saved run, finished or not, or of a fitted model, and draw its picture again.

    Args:
        path: Directory that 'scb train' or 'scb fit' wrote, or a saved model.
    """
    from rich.console import Console

    from scb.cli.fit import MODEL, load, report
    from scb.cli.train import show_run

    if path.is_file() or (path / MODEL).exists():
        model, facts, summary = load(path)
        out = path if path.is_dir() else path.parent
        report(Console(), model, facts, out, summary.get("held_out_nats", {}))
    else:
        show_run(Console(), path)
