"""How far a command is, and how long it will still take: a bar on a terminal, a line every ten
seconds elsewhere.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task
from rich.progress_bar import ProgressBar
from rich.text import Text

from scb.cli.terminal import terminal
from scb.jobs.forecast import Forecast

PATIENCE = 10.0  # seconds between two lines where there is no terminal


class Shown:
    """What is shown; ``detail`` is said beside the phase, and may be changed at any time."""

    def __init__(self, console: Console) -> None:
        self.detail = ""
        self._console = console

    def note(self, text: str) -> None:
        """Print a line above."""
        self._console.print(text, soft_wrap=True)


@contextmanager
def progress(forecast: Forecast) -> Iterator[Shown]:
    """Show on stderr how far the forecast is, as long as the context lasts."""
    console = terminal(stderr=True)
    shown = Shown(console)
    if console.is_terminal:
        with Progress(
            _Phase(forecast, shown),
            _Bar(forecast),
            _Left(forecast),
            console=console,
            transient=True,
        ) as bar:
            bar.add_task("")
            yield shown
        return
    over = Event()

    def log() -> None:
        while not over.wait(PATIENCE):
            shown.note(
                f"{_phase(forecast, shown)}: {forecast.share:.0%}, about {duration(forecast.left)} left"
            )

    thread = Thread(target=log, daemon=True)
    thread.start()
    try:
        yield shown
    finally:
        over.set()
        thread.join()


def duration(seconds: float) -> str:
    """A time as one would say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _phase(forecast: Forecast, shown: Shown) -> str:
    return f"{forecast.phase} {shown.detail}".rstrip()


class _Column(ProgressColumn):
    """A column that asks the forecast whenever it is drawn, so that time passes in it while nothing
    else happens.
    """

    def __init__(self, forecast: Forecast) -> None:
        super().__init__()
        self.forecast = forecast


class _Phase(_Column):
    def __init__(self, forecast: Forecast, shown: Shown) -> None:
        super().__init__(forecast)
        self.shown = shown

    def render(self, task: Task) -> Text:
        return Text(_phase(self.forecast, self.shown))


class _Bar(_Column):
    def render(self, task: Task) -> ProgressBar:
        return ProgressBar(total=1.0, completed=self.forecast.share, width=24)


class _Left(_Column):
    def render(self, task: Task) -> Text:
        return Text(f"about {duration(self.forecast.left)} left")
