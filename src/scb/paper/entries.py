"""The entries of the registry: experiments, whose jobs produce a table, and figures, which are
drawn from tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, Any

from scb.jobs.job import Job
from scb.jobs.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Axes = dict[str | tuple[str, ...], tuple[Any, ...]]
"""Name of a parameter → its values; or several names → values of all of them, which change
together."""


@dataclass(frozen=True)
class Experiment:
    """The settings of an experiment; ``seeds`` is None if the number of random tasks is fixed."""

    job: type[Job]
    axes: Axes = field(default_factory=dict)
    seeds: int | None = None
    # Random tasks, and values of parameters, for a first look
    quick: tuple[int | None, Axes | None] = (None, None)
    full: Axes | None = None  # values of parameters that take a minute or more
    # Whether the table is made in the full run and left out of the default one
    full_only: bool = False
    # whether it is made on a GPU alone, by scb reproduce --device cuda, and left out of all other
    # runs
    gpu: bool = False

    def jobs(self) -> list[Job]:
        """All jobs, in the order of the table: points, with the last axis varying fastest, and
        random tasks at each point."""
        found = []
        for coordinates in product(*self.axes.values()):
            point: dict[str, Any] = {}
            for names, value in zip(self.axes, coordinates, strict=True):
                point |= (
                    {names: value}
                    if isinstance(names, str)
                    else dict(zip(names, value, strict=True))
                )
            replicates = (
                [{}] if self.seeds is None else [{"replicate": i} for i in range(self.seeds)]
            )
            found += [self.job(**point, **replicate) for replicate in replicates]
        return found

    def changed(self, seeds: int | None = None, axes: Axes | None = None) -> "Experiment":
        """The experiment with another number of random tasks, if that can be chosen, and other
        values of some parameters."""
        if seeds is None or self.seeds is None:
            seeds = self.seeds
        return replace(self, axes=self.axes | (axes or {}), seeds=seeds)

    @property
    def shipped(self) -> bool:
        """Whether its table is shipped with the docs, because few users will recompute it."""
        return self.full_only or self.gpu

    @property
    def command(self) -> str:
        """The command that makes its table."""
        return "scb reproduce --device cuda" if self.gpu else "scb reproduce --full"

    @property
    def settings(self) -> dict[str, Any]:
        """A description of what is varied, and over how many random tasks."""
        found = {
            name if isinstance(name, str) else ", ".join(name): values
            for name, values in self.axes.items()
        }
        return found if self.seeds is None else found | {"seeds": self.seeds}

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.settings.items())


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the report, as figures.toml describes it."""

    title: str  # what it shows, in a sentence
    paper: str  # where it is in the paper
    needs: list[str]  # the tables that it is drawn from
    # "module:function" of scb.paper.figures, loaded when it is asked to draw: matplotlib is heavy
    drawn_by: str
    see: str  # what to see in it

    def draw(self, tables: Mapping[str, Table]) -> "Figure":
        """Draw the figure from its tables, in the common style."""
        from scb.drawing import caption, quiet

        module, _, name = self.drawn_by.partition(":")
        function = getattr(import_module(f"scb.paper.figures.{module}"), name)
        figure, settings = quiet(function)(*(tables[need] for need in self.needs))
        caption(figure, settings, self.title)
        return figure
