"""Progress of a command: a bar or a line on a terminal; elsewhere, a line every ten seconds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from rich.console import RenderableType
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

    def phase() -> str:
        return f"{forecast.phase} {forecast.detail}".rstrip()

    def left() -> str:
        return f"about {duration(forecast.left)} left"

    if console.is_terminal:
        columns = (
            _Column(lambda: Text(phase())),
            _Column(lambda: ProgressBar(total=1.0, completed=forecast.share, width=24)),
            _Column(lambda: Text(left())),
        )
        with Progress(*columns, console=console, transient=True) as bar:
            bar.add_task("")
            yield note
    else:
        with _repeated(lambda: note(f"{phase()}: {forecast.share:.0%}, {left()}"), patience):
            yield note


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

    def say() -> None:
        console.print(f"{duration(monotonic() - began)}: {names[-1]}", soft_wrap=True)

    with _repeated(say, patience):
        yield names.append


@contextmanager
def _repeated(say: Callable[[], None], patience: float) -> Iterator[None]:
    """While the body of ``with`` runs, call a function every ``patience`` seconds in a thread."""
    finished = Event()

    def repeat() -> None:
        while not finished.wait(patience):
            say()

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def duration(seconds: float) -> str:
    """Return a time as text for a reader."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class _Column(ProgressColumn):
    """A column that is made anew whenever it is drawn, so it moves even while nothing else
    happens.
    """

    def __init__(self, make: Callable[[], RenderableType]) -> None:
        super().__init__()
        self.make = make

    def render(self, task: Task) -> RenderableType:
        return self.make()
