"""What a job is: one piece of work, named by what it depends on, whose seed and key are hashes of that name."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np

from scb.jobs.table import Table
from scb.task import Ensemble, Task

Rows = Mapping[str, Any]  # what a job gives: column name → array of values, or a single value each if there is one row only


@dataclass(frozen=True)
class Job(ABC):
    """One piece of work: a frozen dataclass whose fields, or ``parameters``, say all that its result depends on.

    A class of one's own has a ``label``, fields, and ``run``.

    Attributes
    ----------
    label : dict of str
        What kind of job it is, as that enters seeds. Classes and files may be renamed, this may not: the samples would change.
    came_later : dict
        Fields that came later: at these values they are left out of the identity, so that seeds and stored results stay.
    seconds : float, default 1
        On one core, roughly, if that does not depend on the parameters.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> import numpy as np
    >>> from scb.jobs.job import Job
    >>> @dataclass(frozen=True)
    ... class Dice(Job):
    ...     label: ClassVar = {"sweep": "dice"}
    ...     throws: int = 100
    ...     replicate: int = 0
    ...     def run(self):
    ...         return {"mean": np.random.default_rng(self.seed).integers(1, 7, self.throws).mean()}
    >>> job = Dice(throws=10_000)
    >>> job.parameters, job.identity, len(job.key), job.cost
    ({'throws': 10000, 'replicate': 0}, {'sweep': 'dice', 'throws': 10000, 'replicate': 0}, 16, 1.0)
    >>> sorted(job.columns), list(job.table(job.run()))
    (['replicate', 'seed', 'throws'], ['throws', 'replicate', 'seed', 'mean'])
    """

    label: ClassVar[dict[str, str]]
    came_later: ClassVar[dict[str, Any]] = {"ensemble": "strong", "K_P": None, "device": None}
    seconds: ClassVar[float] = 1.0

    @abstractmethod
    def run(self) -> Rows:
        """Do the work.

        Returns
        -------
        Mapping
            From the name of a column to an array of values, or to one value each if there is one row only.
        """

    @property
    def parameters(self) -> dict[str, Any]:
        """All fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def identity(self) -> dict[str, Any]:
        """All that the result depends on, but for the code."""
        found = self.label | self.parameters
        return {name: value for name, value in found.items() if name not in self.came_later or value != self.came_later[name]}

    @property
    def seed(self) -> int:
        """What is random in the job: a hash of its identity but for the device, unless it shares its samples with another one."""
        return seed_of(**{name: value for name, value in self.identity.items() if name != "device"})

    @cached_property
    def key(self) -> str:
        """The name under which the result is kept: a hash of the identity, as 16 hexadecimal digits."""
        return f"{seed_of(**self.identity):016x}"

    @property
    def cost(self) -> float:
        """Seconds on one core, roughly: for the order of work, batches, and the time left."""
        return self.seconds

    @property
    def columns(self) -> dict[str, Any]:
        """What every row of the table begins with: the parameters that are given, and the seed."""
        return {name: value for name, value in self.parameters.items() if value is not None} | {"seed": self.seed}

    def table(self, rows: Rows) -> Table:
        """What ``run`` gave, as a table, with ``columns`` before it.

        Parameters
        ----------
        rows : mapping
            From names to values.

        Returns
        -------
        dict of (rows,) arrays
        """
        found = {name: np.atleast_1d(values) for name, values in rows.items()}
        count = len(next(iter(found.values())))
        return {name: np.full(count, value) for name, value in self.columns.items()} | found


def seed_of(**identity: Any) -> int:
    """A seed of 63 bits: a hash of what it is for. Equal parts of two experiments get equal seeds, and nothing else does."""
    text = json.dumps(identity, sort_keys=True)  # the order of the names does not matter
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1  # an int64 of Parquet has a sign


def task_seed(N: int, T: int, sparsity: int, replicate: int) -> int:
    """The seed of the random task that runs of this size use as their number ``replicate``."""
    return seed_of(use="task", N=N, T=T, sparsity=sparsity, replicate=replicate)


def random_task(N: int, T: int, sparsity: int, replicate: int, ensemble: Ensemble = "strong", K_P: float | None = None) -> Task:
    """The random task that runs of this size, ensemble and K_P use as their number ``replicate``.

    Parameters
    ----------
    N, T, sparsity : int
        Sizes of the task.
    replicate : int
        Its number among those of this size.
    ensemble : str, default "strong"
        The law of P; see ``Task.random``.
    K_P : float, optional
        Move P to this K_P.

    Returns
    -------
    Task

    Examples
    --------
    >>> from scb.jobs.job import random_task
    >>> random_task(N=3, T=40, sparsity=2, replicate=0) == random_task(N=3, T=40, sparsity=2, replicate=0)
    True
    """
    return Task.random(N, T, sparsity, task_seed(N, T, sparsity, replicate), ensemble=ensemble, K_P=K_P)
