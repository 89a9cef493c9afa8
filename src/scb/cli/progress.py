"""Progress of a command and the time left: a bar on a terminal, or a line every ten seconds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rich.progress import Progress, ProgressColumn, Task
from rich.progress_bar import ProgressBar
from rich.text import Text

from scb.cli.terminal import terminal
from scb.jobs.forecast import Forecast

PATIENCE = 10.0  # seconds between two lines where there is no terminal


@contextmanager
def progress(forecast: Forecast, patience: float = PATIENCE) -> Iterator[Callable[[str], None]]:
    """Show on stderr how far the forecast is; yields a function that prints a line above.

    Where there is no terminal, a line is printed every ``patience`` seconds.
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
    over = Event()

    def log() -> None:
        while not over.wait(patience):
            left = duration(forecast.left)
            note(f"{_phase(forecast)}: {forecast.share:.0%}, about {left} left")

    thread = Thread(target=log, daemon=True)
    thread.start()
    try:
        yield note
    finally:
        over.set()
        thread.join()


def duration(seconds: float) -> str:
    """A time as one would say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _phase(forecast: Forecast) -> str:
    return f"{forecast.phase} {forecast.detail}".rstrip()


class _Column(ProgressColumn):
    """A column that asks the forecast whenever it is drawn, so that it moves while nothing else
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
