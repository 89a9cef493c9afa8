"""``scb show`` prints a saved run or a fitted model."""

from functools import partial
from pathlib import Path
from typing import Annotated

import tyro

from scb.cli.fit import print_fit, print_tables
from scb.cli.json_output import print_fit_json, print_run_json
from scb.cli.terminal import terminal
from scb.cli.train import draw_run, latest_run, report_run
from scb.folders import opened


def show(
    path: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[PATH]")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    overwrite: bool = False,
    lock: bool = True,
    json: bool = False,
) -> None:
    """Print the summary of a saved run, finished or not, or of a fitted model; with --out, draw its
    pictures again.

    Args:
        path: Directory that 'scb train' or 'scb fit' wrote, or a saved model. The default is the
            latest run in runs.
        out: Directory for the pictures, and for the table of a model. By default nothing is
            written.
        overwrite: Replace files in OUT that scb did not write.
        lock: Keep other processes out of OUT. Some file systems do not support this.
        json: Print the results as one JSON object on stdout, and the human-readable text on stderr.
    """
    from scb.sequences.fit_folder import MODEL, read_fit
    from scb.training.settings import load_run

    console = terminal(stderr=json)
    place = latest_run() if path is None else path
    # A fit is a saved model, or a directory with one; anything else is a run
    if place.is_file() or (place / MODEL).exists():
        fit = read_fit(place)
        print_fit(console, fit)
        write = partial(print_tables, console, fit.model)
        print_json = partial(print_fit_json, fit, place)
    else:
        run, settings = load_run(place)
        report_run(console, run, place, settings)
        write = partial(draw_run, console, run, settings)
        print_json = partial(print_run_json, run, settings, place)
    if out is not None:
        inputs = (place,) if place.is_file() else ()
        with opened(out, "drawing", lock=lock, overwrite=overwrite, inputs=inputs) as folder:
            write(folder)
    if json:
        print_json()
