"""What an experiment is made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Protocol

import numpy as np

from scb.jobs.table import Table, concatenate


@dataclass(frozen=True)
class Job:
    """One piece of an experiment; its fields say all that its result depends on."""

    @property
    def identity(self) -> dict[str, Any]:
        """Experiment, kind of job, and all fields."""
        module = type(self).__module__.rpartition(".")[2]
        return {"experiment": module, "job": type(self).__name__, **asdict(self)}

    @property
    def cost(self) -> float:
        """Seconds on one core, roughly: for the order of work and the time left."""
        return 0.1

    @property
    def seed(self) -> int:
        """What is random in the job; by default a hash of its identity."""
        return seed_of(**self.identity)

    @property
    def columns(self) -> dict[str, Any]:
        """What every row of the table begins with."""
        return asdict(self) | {"seed": self.seed}

    def run(self) -> Table:
        """The rows."""
        raise NotImplementedError

    def table(self) -> Table:
        """The rows, each with ``columns`` before them."""
        rows = self.run()
        count = len(next(iter(rows.values())))
        return {name: np.full(count, value) for name, value in self.columns.items()} | rows


class Config(Protocol):
    """A frozen dataclass: the settings of an experiment."""

    def jobs(self) -> Sequence[Job]:
        """Its jobs, in the order of the table."""
        ...


def seed_of(**identity: Any) -> int:
    """A seed of 63 bits: a hash of what it is for. Equal parts of two experiments get equal seeds, and nothing else does."""
    text = json.dumps(identity, sort_keys=True)
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1


def run(config: Config) -> Table:
    """All jobs in turn, in this process."""
    return concatenate([job.table() for job in config.jobs()])


def task_seed(N: int, T: int, sparsity: int, replicate: int) -> int:
    """The seed of the random task that runs of this size use as their number ``replicate``."""
    return seed_of(use="task", N=N, T=T, sparsity=sparsity, replicate=replicate)


def random_task(N: int, T: int, sparsity: int, replicate: int) -> Any:
    """That task."""
    from scb.task import Task

    return Task.random(N, T, sparsity, task_seed(N, T, sparsity, replicate))
