"""Progress of a command: a bar or a line on a terminal; elsewhere, a line every ten seconds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from rich.progress import Progress, ProgressColumn, Task
from rich.progress_bar import ProgressBar
from rich.text import Text

from scb.cli.terminal import terminal
from scb.jobs.forecast import Forecast

# Between two lines where there is no terminal
PATIENCE = 10.0  # seconds


@contextmanager
def progress(forecast: Forecast, patience: float = PATIENCE) -> Iterator[Callable[[str], None]]:
    """While the body of ``with`` runs, show on stderr what share of the work is done and the time
    left.

    On a terminal this is a bar; elsewhere a thread prints a line every ``patience`` seconds. The
    body gets a function that prints a separate line above the bar.
    """
    console = terminal(stderr=True)

    def note(text: str) -> None:
        console.print(text, soft_wrap=True)

    if console.is_terminal:
        columns = (_Phase(forecast), _Bar(forecast), _Left(forecast))
        with Progress(*columns, console=console, transient=True) as bar:
            bar.add_task("")
            yield note
        return
    finished = Event()

    def log() -> None:
        while not finished.wait(patience):
            left = duration(forecast.left)
            note(f"{_phase(forecast)}: {forecast.share:.0%}, about {left} left")

    thread = Thread(target=log, daemon=True)
    thread.start()
    try:
        yield note
    finally:
        finished.set()
        thread.join()


@contextmanager
def steps(first: str, patience: float = PATIENCE) -> Iterator[Callable[[str], None]]:
    """While the body of ``with`` runs, show on stderr its current step, whose length is unknown;
    the body gets a function that names the next step.

    On a terminal this is one line that changes; elsewhere a thread prints a line every ``patience``
    seconds.
    """
    console = terminal(stderr=True)
    if console.is_terminal:
        with console.status(first) as status:
            yield status.update
        return
    names = [first]
    began = monotonic()
    finished = Event()

    def log() -> None:
        while not finished.wait(patience):
            console.print(f"{duration(monotonic() - began)}: {names[-1]}", soft_wrap=True)

    thread = Thread(target=log, daemon=True)
    thread.start()
    try:
        yield names.append
    finally:
        finished.set()
        thread.join()


def duration(seconds: float) -> str:
    """Return a time as text for a reader."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _phase(forecast: Forecast) -> str:
    return f"{forecast.phase} {forecast.detail}".rstrip()


class _Column(ProgressColumn):
    """A column that asks the forecast whenever it is drawn, so it moves even while nothing else
    happens.
    """

    def __init__(self, forecast: Forecast) -> None:
        super().__init__()
        self.forecast = forecast


class _Phase(_Column):
    def render(self, task: Task) -> Text:
        return Text(_phase(self.forecast))


class _Bar(_Column):
    def render(self, task: Task) -> ProgressBar:
        return ProgressBar(total=1.0, completed=self.forecast.share, width=24)


class _Left(_Column):
    def render(self, task: Task) -> Text:
        return Text(f"about {duration(self.forecast.left)} left")
