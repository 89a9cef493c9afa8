"""What an experiment is: one kind of job over a grid of its parameters, with a number of random tasks at each point."""

from dataclasses import dataclass, field
from itertools import product
from typing import Any

from scb.jobs.job import Job

Axes = dict[str | tuple[str, ...], tuple[Any, ...]]
"""Name of a parameter → its values; or several names → values of all of them, which change together."""


@dataclass(frozen=True)
class Experiment:
    """The settings of an experiment; ``seeds`` is None if the number of random tasks cannot be chosen."""

    job: type[Job]
    axes: Axes = field(default_factory=dict)
    seeds: int | None = None

    def jobs(self) -> list[Job]:
        """All jobs, in the order of the table: points, the last axis running fastest, and random tasks at each."""
        found = []
        for coordinates in product(*self.axes.values()):
            point: dict[str, Any] = {}
            for names, value in zip(self.axes, coordinates, strict=True):
                point |= {names: value} if isinstance(names, str) else dict(zip(names, value, strict=True))
            replicates = [{}] if self.seeds is None else [{"replicate": i} for i in range(self.seeds)]
            found += [self.job(**point, **replicate) for replicate in replicates]
        return found

    def changed(self, seeds: int | None = None, axes: Axes | None = None) -> "Experiment":
        """The experiment with another number of random tasks, if that can be chosen, and other values of some parameters."""
        if seeds is None or self.seeds is None:
            seeds = self.seeds
        return Experiment(self.job, self.axes | (axes or {}), seeds)

    @property
    def settings(self) -> dict[str, Any]:
        """What is varied, and over how many random tasks, for people."""
        found = {name if isinstance(name, str) else ", ".join(name): values for name, values in self.axes.items()}
        return found if self.seeds is None else found | {"seeds": self.seeds}

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.settings.items())
