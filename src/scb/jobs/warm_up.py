"""Compiling as a job of its own: which kernels jobs will need, what they cost to compile, and the
smallest work that uses them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from scb.jobs.forecast import Forecast
from scb.jobs.job import Job
from scb.jobs.processes import Processes
from scb.kernels.compiler import functions_compiled
from scb.mixture.recovery import recover
from scb.provenance import dependencies
from scb.task import Task
from scb.task.sampling import generate, sample
from scb.training.loop import train
from scb.training.recipes.algorithm1 import paper


def compile_training(N: int = 3) -> None:
    """Take a few steps with the engine."""
    task = Task.random(N, 40, 2)
    train(task, paper(task, steps=(2, 2, 2)))


def compile_mixture(N: int = 3) -> None:
    """Recover a task from samples and from a sequence."""
    recover(sample(Task.random(N, 40, 2), 200), N=N)
    recover(generate(Task.random(3, 5, 2), 300), max_lag=5)


def compile_sampling(N: int = 3) -> None:
    """Draw a sequence."""
    generate(Task.random(N, 40, 2), 60)


class Piece(NamedTuple):
    """Kernels that are compiled together."""

    compile: Callable[[], None]
    # Module of scb; who imports it will need them
    used_by: str
    seconds: float  # of compiling, on one core


FIRST = Piece(compile_sampling, used_by="scb.task", seconds=0.6)
"""What everybody needs, and is there soon: it tells whether kernels have to be compiled, and the pace of the machine."""
PIECES = (
    Piece(compile_training, used_by="scb.training.engine", seconds=25.0),
    Piece(compile_mixture, used_by="scb.mixture.fit", seconds=3.6),
)
SPAWN = 1.5  # seconds until another process is there and has loaded what it needs
# Of that: how long it takes to load kernels that have been compiled
LOADING = 0.01


class Warm(NamedTuple):
    """What became of a piece."""

    cold: bool  # whether anything had to be compiled
    seconds: float  # what compiling was expected to take


def pieces_for(jobs: Iterable[Job]) -> list[Piece]:
    """The kernels that jobs need beyond ``FIRST``, the longest first."""
    modules = {type(job).__module__ for job in jobs}
    used = {name for module in modules for name in dependencies(module)}
    return [piece for piece in PIECES if piece.used_by in used]


def compile_piece(piece: Piece) -> Warm:
    """In a worker: use these kernels once, so that they are compiled, or loaded."""
    before = functions_compiled()
    piece.compile()
    return Warm(functions_compiled() > before, piece.seconds)


def warm_up(pool: Processes, jobs: Sequence[Job], forecast: Forecast) -> None:
    """Compile what the jobs need, each kernel in one process only; the others load it. The forecast
    learns how long it takes.
    """
    forecast.note("starting", 0.0)
    (first,) = pool.each(compile_piece, [(FIRST,)])
    pieces = pieces_for(jobs)
    cost = compiling(pieces, pool.workers) * (1.0 if first.cold else LOADING)
    forecast.expect("compiling kernels", cost)
    forecast.note("compiling kernels", 0.0)
    through = SPAWN if pool.workers > 1 else 0.0
    for piece in pool.each(compile_piece, [(piece,) for piece in pieces]):
        through += piece.seconds
        forecast.note("compiling kernels", min(through / compiling(pieces, pool.workers), 1.0))


def compiling(pieces: Sequence[Piece], workers: int) -> float:
    """Seconds that it takes to compile these, side by side where there are several workers."""
    seconds = [piece.seconds for piece in pieces]
    return max(seconds, default=0.0) if workers > 1 else sum(seconds)
