"""Jobs are the units of work of a sweep or experiment. The seed and key of a job are hashes of its
parameters.
"""

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

# What a job returns: column name → array of values, or single values if there is one row
Rows = Mapping[str, Any]


@dataclass(frozen=True)
class Job(ABC):
    """A unit of work: a frozen dataclass whose fields (or ``parameters``) determine its result.

    A subclass defines ``label``, its fields, and ``run``.

    Attributes
    ----------
    label : dict of str
        The kind of job; the seeds depend on it. The label must never change, even if classes and
        files are renamed, because all samples would change with it.
    usual : dict
        The usual values of fields. A field that has its usual value is left out of the identity, so
        a field can be added to a class of jobs without changing the seeds of existing jobs.
    seconds : float, default 1
        The approximate time on one core, if it does not depend on the parameters.

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
    usual: ClassVar[dict[str, Any]] = {"ensemble": "strong", "K_P": None, "device": None}
    seconds: ClassVar[float] = 1.0

    @abstractmethod
    def run(self) -> Rows:
        """Do the work and return one or more rows of a table.

        Returns
        -------
        Mapping
            The columns by name, each an array of values; if there is only one row, single values
            are accepted.
        """

    @property
    def parameters(self) -> dict[str, Any]:
        """All fields, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that the result depends on, except the code."""
        usual = self.usual.items()
        return self.label | {
            name: value for name, value in self.parameters.items() if (name, value) not in usual
        }

    @property
    def seed(self) -> int:
        """The seed of the job's randomness: a hash of its identity without the device.

        Jobs that share samples override this property.
        """
        return seed_of(**{name: value for name, value in self.identity.items() if name != "device"})

    @cached_property
    def key(self) -> str:
        """The name of the stored result: a hash of the identity, 16 hexadecimal digits."""
        return f"{seed_of(**self.identity):016x}"

    @property
    def cost(self) -> float:
        """A rough estimate of the seconds on one core.

        Jobs are ordered and batched by their costs, and the time left is estimated from these
        costs.
        """
        return self.seconds

    @property
    def columns(self) -> dict[str, Any]:
        """The columns before those of ``run``: the parameters that are not None, and the seed."""
        return {name: value for name, value in self.parameters.items() if value is not None} | {
            "seed": self.seed
        }

    def table(self, rows: Rows) -> Table:
        """Return a table that consists of ``columns`` and the columns that ``run`` returned.

        Parameters
        ----------
        rows : mapping
            The values by column name.

        Returns
        -------
        dict of (rows,) arrays
        """
        found = {name: np.atleast_1d(values) for name, values in rows.items()}
        count = len(next(iter(found.values())))
        return {name: np.full(count, value) for name, value in self.columns.items()} | found


def seed_of(**identity: Any) -> int:
    """Return a 63-bit seed that is a hash of the given values.

    Equal parts of two experiments therefore have equal seeds.

    Parameters
    ----------
    **identity : Any
        JSON values by name; their order does not matter.

    Returns
    -------
    int

    Examples
    --------
    >>> from scb.jobs.job import seed_of
    >>> seed_of(use="task", N=3) == seed_of(N=3, use="task")
    True
    """
    text = json.dumps(identity, sort_keys=True)  # the order of the names does not matter
    # An int64 of Parquet has a sign
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1


def task_seed(N: int, T: int, sparsity: int, replicate: int) -> int:
    """Return the seed of random task number ``replicate`` of this size."""
    return seed_of(use="task", N=N, T=T, sparsity=sparsity, replicate=replicate)


def random_task(
    N: int,
    T: int,
    sparsity: int,
    replicate: int,
    ensemble: Ensemble = "strong",
    K_P: float | None = None,
) -> Task:
    """Return random task number ``replicate`` with this size, ensemble and K_P.

    Parameters
    ----------
    N, T, sparsity : int
        The sizes of the task.
    replicate : int
        The number of the task among those of the same size.
    ensemble : str, default "strong"
        The distribution of P; see ``Task.random``.
    K_P : float, optional
        The value of K_P that P is moved to.

    Returns
    -------
    Task

    Examples
    --------
    >>> from scb.jobs.job import random_task
    >>> task = random_task(N=3, T=40, sparsity=2, replicate=0)
    >>> task == random_task(N=3, T=40, sparsity=2, replicate=0)
    True
    """
    return Task.random(
        N, T, sparsity, task_seed(N, T, sparsity, replicate), ensemble=ensemble, K_P=K_P
    )
