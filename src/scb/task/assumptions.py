"""The paper's assumptions (a) to (d) on a task, each with the value that the task has."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scb.task.task import Task

# Task.random keeps every Q·q and every N·μ inside [1/2, 2]: the C of assumption (b)
CONDITION = 2.0


@dataclass(frozen=True)
class Assumption:
    """One assumption of the paper, with the value that a task has and whether it holds.

    Attributes
    ----------
    name : str
        The letter of the assumption in the paper, "a" to "d".
    statement : str
        The condition that it states.
    measured : float
        The value of the quantity in the statement, measured on the task.
    holds : bool
        Whether the measured value satisfies the condition.

    Examples
    --------
    >>> import scb
    >>> print(scb.Task.random(3, 40, 2, seed=0).check()["a"])
    (a) Q-sparse: Q / T ≤ 1/2                            measured 0.05       holds
    """

    name: str
    statement: str
    measured: float
    holds: bool

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does not hold"
        return f"({self.name}) {self.statement:<48} measured {self.measured:<10.4g} {verdict}"


class Assumptions(dict[str, Assumption]):
    """The report of ``Task.check``: a dictionary from the letter of each assumption to its result.

    Each value has the attributes ``name``, ``statement``, ``measured`` and ``holds``. Printing the
    report gives a table.

    Examples
    --------
    >>> import scb
    >>> report = scb.Task.random(3, 40, 2, seed=0).check()
    >>> list(report), report["a"].measured, report["d"].holds
    (['a', 'b', 'c', 'd'], 0.05, False)
    """

    def __str__(self) -> str:
        return "\n".join(str(assumption) for assumption in self.values())


def check_assumptions(task: "Task", C: float) -> Assumptions:
    """Assumptions (a)-(d) on a task; ``C`` is the constant of (b)."""
    Q, N, T, mu = task.sparsity, task.N, task.T, task.mu
    q = task.weights[task.weights > 0]
    length = T / float(N * Q) ** 10
    condition = max(Q * q.max(), 1 / (Q * q.min()), N * mu.max(), 1 / (N * mu.min()))
    contrast = task.K_P / float(mu @ mu)
    report = (
        Assumption("a", "Q-sparse: Q / T ≤ 1/2", measured=Q / T, holds=Q / T <= 0.5),
        Assumption(
            "b",
            f"well-conditioned: C ≤ {C:g}",
            measured=condition,
            holds=condition <= C * (1 + 1e-9),
        ),
        Assumption(
            "c", "nontrivial: K_P / ‖μ‖² ≥ 1", measured=contrast, holds=contrast >= 1 - 1e-9
        ),
        Assumption(
            "d",
            f"long: T / (N·Q)^10 ≥ 1, that is T ≥ {T / length:.3g}",
            measured=length,
            holds=length >= 1,
        ),
    )
    return Assumptions({assumption.name: assumption for assumption in report})
