"""What an experiment of the paper is: settings that say which jobs there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

from scb.jobs.job import Job
from scb.jobs.table import Table, concatenate


@dataclass(frozen=True)
class ExperimentJob(Job):
    """One piece of an experiment. A frozen dataclass: its fields are its parameters, and columns of its table."""

    label: ClassVar[tuple[str, str]]
    """Experiment and part as they enter seeds. Classes and files may be renamed, these may not: the samples would change."""

    @property
    def identity(self) -> dict[str, Any]:
        """The label and all fields."""
        experiment, part = self.label
        return {"experiment": experiment, "job": part, **asdict(self)}

    @property
    def columns(self) -> dict[str, Any]:
        """All fields, and the seed."""
        return asdict(self) | {"seed": self.seed}

    @property
    def cost(self) -> float:
        """Seconds on one core, roughly."""
        return 0.1


class Experiment(Protocol):
    """A frozen dataclass: the settings of an experiment."""

    def jobs(self) -> Sequence[ExperimentJob]:
        """The jobs of the experiment, in the order of its table."""
        ...


def run_here(experiment: Experiment) -> Table:
    """The table of an experiment, all of whose jobs run in this process, one after the other."""
    return concatenate([job.table(job.run()) for job in experiment.jobs()])
