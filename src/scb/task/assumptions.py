"""The paper's assumptions (a) to (d) on a task, each with its measured value; with several heads,
there is also assumption (e), which we have added.
"""

from dataclasses import dataclass

from scb.arrays import Array


@dataclass(frozen=True)
class Assumption:
    """An assumption from the paper, its measured value on a task, and whether it holds.

    Attributes
    ----------
    name : str
        The letter of the assumption in the paper, "a" to "d"; with several heads, there is also
        "e", which we have added.
    statement : str
        The condition that the assumption states.
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
    report shows a table.

    Examples
    --------
    >>> import scb
    >>> report = scb.Task.random(3, 40, 2, seed=0).check()
    >>> list(report), report["a"].measured, report["d"].holds
    (['a', 'b', 'c', 'd'], 0.05, False)
    """

    def __str__(self) -> str:
        return "\n".join(str(assumption) for assumption in self.values())


def check_assumptions(
    weights: Array, T: int, mu: Array, K_P: float, C: float, singular_values: Array
) -> Assumptions:
    """Check assumptions (a) to (d) on the task with these weights (Q, N), T, μ and K_P; ``C`` is
    the constant of (b).

    With several heads, the smallest singular value takes the place of K_P in (c): for one head, σ²
    = ‖Q‖_μ² K_P. In addition, (e) requires that no singular value is small compared with the first.
    """
    Q, N = weights.shape
    q = weights[weights > 0]
    length = T / float(N * Q) ** 10
    condition = max(Q * q.max(), 1 / (Q * q.min()), N * mu.max(), 1 / (N * mu.min()))
    contrast = K_P / float(mu @ mu)
    nontrivial = Assumption("c", "nontrivial: K_P / ‖μ‖² ≥ 1", contrast, contrast >= 1 - 1e-9)
    heads = []
    if (H := len(singular_values)) > 1:
        smallest = float(singular_values[-1])
        square_Q = float((weights**2).sum(axis=0) @ mu)
        contrast = H * smallest**2 / (square_Q * float(mu @ mu))
        nontrivial = Assumption(
            "c", "nontrivial: H·σ_H² / (‖Q‖_μ²‖μ‖²) ≥ 1", contrast, contrast >= 1 - 1e-9
        )
        ratio = smallest / float(singular_values[0])
        heads = [Assumption("e", "heads differ: σ_H / σ_1 ≥ 1/5", ratio, ratio >= 0.2)]
    long = f"long: T / (N·Q)^10 ≥ 1, that is T ≥ {T / length:.3g}"
    report = (
        Assumption("a", "Q-sparse: Q / T ≤ 1/2", Q / T, Q / T <= 0.5),
        Assumption("b", f"well-conditioned: C ≤ {C:g}", condition, condition <= C * (1 + 1e-9)),
        nontrivial,
        Assumption("d", long, length, length >= 1),
        *heads,
    )
    return Assumptions({assumption.name: assumption for assumption in report})
