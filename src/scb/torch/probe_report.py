"""The result of ``scb.torch.probe``, and how it is printed."""

from dataclasses import dataclass

import numpy as np

from scb.arrays import Array


@dataclass(frozen=True)
class Probe:
    """The result of ``scb.torch.probe``.

    The result is the sparse contextual bigram that best describes the predictions F of a model.

    The predictions determine the product of the scales of V − μ1ᵀ and A but hardly determine the
    two scales separately. Here, A is scaled so that the μ-weighted mean of its column sums is 1;
    ``signal`` does not depend on this choice.

    Attributes
    ----------
    V : (N, N) array
        The value matrix that fits the predictions best.
    A : (T, N) array
        The attention that fits best. In each column, each position of the support has its own
        value, and all other positions share one value.
    support : tuple of N integer arrays (size,)
        For each last token, the positions whose attention stands out.
    spread : float
        The degree to which predictions depend on the context: the root mean square of F − E[F | k],
        where k is the last token.
    unexplained : float
        The fraction of the mean square of F − E[F | k] that the form of a sparse contextual bigram
        does not explain.
    samples : int
        The number of contexts on which the model was evaluated.
    distance_V, distance_A : float
        The distances ‖V − P‖_μ and ‖A − Q‖_μ from the task. These and the following attributes are
        NaN if the task is unknown.
    alpha_V, alpha_A : float
        The signals, which say how far V and A are on the way from the uniform start (0) to P and Q
        (1).
    mass : float
        The fraction of the attention, in absolute values, that lies on the true positions.
    excess, excess_trivial : float
        The loss in excess of that of the true distribution, in nats, which is the mean of KL(true
        distribution ‖ F); and the same excess for a model that ignores the context and always
        predicts μ.

    Examples
    --------
    >>> import scb, scb.torch
    >>> task = scb.Task.random(3, 40, 2)
    >>> model = scb.torch.LinearAttention(task.P, task.Q)
    >>> seen = scb.torch.probe(model, task, output="distribution")
    >>> seen.found, round(seen.signal, 3), bool(seen.left < 1e-6), round(seen.unexplained, 3)
    (True, 1.0, True, 0.0)
    """

    V: Array
    A: Array
    support: tuple[np.ndarray, ...]
    spread: float
    unexplained: float
    samples: int
    distance_V: float = np.nan
    distance_A: float = np.nan
    alpha_V: float = np.nan
    alpha_A: float = np.nan
    mass: float = np.nan
    excess: float = np.nan
    excess_trivial: float = np.nan

    @property
    def found(self) -> bool:
        """Whether predictions depend on some positions of the context more than on others."""
        # With a smaller spread, a model has learned nothing from the context.
        return self.spread >= 0.01 and any(len(positions) for positions in self.support)

    @property
    def signal(self) -> float:
        """The product α_V·α_A of the signals; it is 0 if nothing was learned and 1 for the task."""
        return self.alpha_V * self.alpha_A if self.found else 0.0

    @property
    def left(self) -> float:
        """The excess loss as a fraction of the excess loss of a model that ignores the context."""
        return self.excess / self.excess_trivial

    def __str__(self) -> str:
        """Return a few lines of text for people."""
        lines = [
            f"{self.samples:,} contexts; predictions vary with the context by {self.spread:.3g} "
            "(root mean square)"
        ]
        if self.found:
            lines.append(
                f"{self.unexplained:.1%} of that is not of the form of a sparse contextual bigram"
            )
            lines += [
                f"after token {k}: " + _positions(t, self.A[t, k])
                for k, t in enumerate(self.support)
            ]
        else:
            lines.append("nothing found: no position matters more than the others")
        if not np.isnan(self.excess):  # the task is known
            lines.append(
                f"excess loss {self.excess:.4g} nats, "
                f"{self.left:.1%} of that of a model that ignores the context"
            )
            if self.found:
                lines.append(
                    f"‖V − P‖ = {self.distance_V:.3g}, ‖A − Q‖ = {self.distance_A:.3g}, "
                    f"signal {self.signal:.3g}"
                )
                lines.append(f"attention on the true positions: {self.mass:.1%}")
        return "\n".join(lines)


def _positions(t: np.ndarray, a: Array) -> str:
    order = np.argsort(-np.abs(a))[:8]
    return "  ".join(f"{t[i]}: {a[i]:.3f}" for i in order) or "no position that stands out"
