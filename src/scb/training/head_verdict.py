"""Verdicts on whether a run has learned the heads of its task, based on held-out samples.

With the error E = F − M of the function (``geometry.heads``) and the factors of F = LRᵀ, the
expected gradients are EᵀL and ER. These gradients show every part of E that can be reached by
moving A or V alone. They cannot show a part of M that no head has begun to learn, as at the saddle
of equal heads. At such a point, a singular value of F is missing. The learner notices this, because
it knows the singular values of M, just as Algorithm 1 knows K_P and K_Q.
"""

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array, Flags
from scb.geometry import rotate_heads
from scb.geometry.columns import column_sums
from scb.geometry.gauge import standing_rows
from scb.geometry.heads import left_factor, product_singular_values, right_factor, triangular
from scb.theory.gaussian import noise_quantile, residual_variance
from scb.training.sources import GradientSource
from scb.training.updates import precondition_A, precondition_V
from scb.training.verdict import GOOD, TOLERANCE, Distance, Judgement, distance

HEAD_TOLERANCE = 0.1
"""The largest ‖V_h − P_h‖_μ and ‖A_h − Q_h‖_μ of a head that counts as learned."""


@dataclass(frozen=True)
class HeadsHeldOut:
    """A judge that assesses several heads (V, A) by the gradients on two held-out batches.

    Parameters
    ----------
    batch_size : the number of samples in each batch
    singular_values : those of the task, descending
    tolerance : the largest distance of the function that counts as learned
    """

    batch_size: int
    singular_values: tuple[float, ...]
    tolerance: float = TOLERANCE

    @classmethod
    def sized(cls, mu: Array, singular_values: Array, sparsity: int) -> "HeadsHeldOut":
        """Make a judge with batches so large that the standard errors of squared distances are an
        eighth of their tolerances².
        """
        N, H = len(mu), len(singular_values)
        rho = residual_variance(1 - float(mu @ mu), N)
        function = max((N - 1) * sqrt(H), sqrt(N * sparsity)) * rho / TOLERANCE**2
        # Of one head: divided by ‖A_h‖² or ‖Ṽ_h‖², which are of the size of the least σ
        heads = function / sqrt(H) * (TOLERANCE / HEAD_TOLERANCE) ** 2 / float(singular_values[-1])
        return cls(ceil(8 * max(function, heads)), tuple(map(float, singular_values)))

    def __call__(
        self, V: Array, A: Array, mu: Array, source: GradientSource, keys: NDArray[np.uint64]
    ) -> Judgement:
        """Judge (V, A) by the gradients that ``source`` returns for two keys."""
        gradients = [source(V, A, self.batch_size, key) for key in keys]
        samples = sum(g.samples for g in gradients)
        left = left_factor(A, mu)
        right = right_factor(V, mu)
        learned = product_singular_values(left, right)[: len(self.singular_values)]
        shares = learned / self.singular_values
        if not shares.min() >= 0.5:
            worst = int(shares.argmin())
            return Judgement(
                f"too slow: singular value {worst + 1} of {len(shares)} has come to "
                f"{shares[worst]:.2g} of its size",
                dist_V=np.inf,
                dist_A=np.inf,
                samples=samples,
            )
        steps_V = [left_factor(precondition_V(g.V, mu, "mu"), mu) for g in gradients]
        steps_A = [left_factor(precondition_A(g.A, mu), mu) for g in gradients]
        there = _seen(left @ triangular(right).T, steps_A[0], A.shape)
        # Columns sum to 1 over the true heads, so that what they lack shows in the sparse gauge
        turned = rotate_heads(V, A, mu, heads=len(self.singular_values))
        hidden = self._hidden(*turned, mu, there)
        steps_A = [np.where(there[:, None], step, 0.0) for step in steps_A]
        function = _whole(self._moved(steps_V, left, 0.5), self._moved(steps_A, right, 0.5), hidden)
        heads = [
            _whole(self._moved(steps_V, left, 1.0, h), self._moved(steps_A, right, 1.0, h))
            for h in range(len(V))
            if np.linalg.norm(left[:, h]) * np.linalg.norm(right[:, h]) > 0.1 * learned[-1]
        ]
        worst = max(heads, key=lambda head: head.value)
        mixed = _mixed(left[there] * np.linalg.norm(right, axis=0))
        word = self._word(function, worst, mixed)
        return Judgement(word, dist_V=worst.value, dist_A=function.value, samples=samples)

    def _word(self, function: Distance, head: Distance, mixed: float) -> str:
        """ "learned", or what is wrong."""
        if function.beyond(self.tolerance):
            return f"too noisy: the function is about {function} off, more than {self.tolerance:g}"
        if not function.within(self.tolerance):
            return (
                f"undecided: the function is about {function} off, and the held-out samples are too"
                f" few to tell that from {self.tolerance:g}: give more judge_samples"
            )
        if mixed > HEAD_TOLERANCE:
            return f"heads mixed: the function is learned, but {mixed:.2g} of it lies between heads"
        if not head.within(HEAD_TOLERANCE):
            return f"heads unsure: the function is learned, but a head is about {head} off"
        return GOOD

    def _moved(
        self, steps: list[Array], factor: Array, power: float, head: int | None = None
    ) -> Distance:
        """The distance that two estimates of EᵀL (or ER) show, times (LᵀL)^−power; of one head, or
        of all.
        """
        sizes, axes = np.linalg.eigh(factor.T @ factor)
        kept = sizes > 1e-4 * sizes[-1]
        whitening = (axes[:, kept] * sizes[kept] ** -power) @ axes[:, kept].T
        one, two = (step @ whitening for step in steps)
        if head is not None:
            one, two = one[:, [head]], two[:, [head]]
        dimensions = max(int((one != 0).any(axis=1).sum()) * one.shape[1], 1)
        return distance(one, two, np.ones(one.shape[1]), dimensions)

    def _hidden(self, V: Array, A: Array, mu: Array, there: Flags) -> Distance:
        """What the function lacks because of attention at positions that are not seen: what columns
        lack there, at one position; and what A has there.
        """
        seen = there.reshape(A.shape[1:])
        lacking = 1 - column_sums(np.where(seen, A, 0.0))
        spread = max(np.linalg.norm(one) for one in right_factor(V, mu).T)
        elsewhere = np.linalg.norm(
            product_singular_values(left_factor(np.where(seen, 0.0, A), mu), right_factor(V, mu))
        )
        return Distance(float(np.hypot(sqrt(mu @ lacking**2) * spread, elsewhere)))


def _seen(rows: Array, step: Array, shape: tuple[int, ...]) -> Flags:
    """(T·N,): where A stands out of the noise, or its gradient does. Where most positions matter,
    all are looked at.
    """
    H, T, N = shape
    there = standing_rows(rows.reshape(T, N, H))
    if 2 * there.sum() > there.size:
        return np.ones(there.size, dtype=bool)
    step = step.reshape(T, N, H)
    spread = 1.4826 * np.median(np.abs(step), axis=0)
    there |= (np.abs(step) > spread * noise_quantile(step.size) + 1e-12).any(axis=2)
    return there.ravel()


def _mixed(parts: Array) -> float:
    """The share of the function, in its norm, that positions have in other heads than their own;
    ``parts`` (n, H) is what each position adds in each head.
    """
    squares = np.square(parts)
    total = float(squares.sum())
    return sqrt((total - float(squares.max(axis=1, initial=0.0).sum())) / max(total, 1e-300))


def _whole(*parts: Distance) -> Distance:
    """The distance that several parts, orthogonal to each other, make together."""
    value = sqrt(sum(part.value**2 for part in parts))
    return Distance(value, float(np.linalg.norm([part.error for part in parts])))
