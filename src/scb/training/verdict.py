"""Whether a run has learned its task, told from held-out samples and without the truth.

At (P, Q) the expected preconditioned gradients vanish, and elsewhere they say how far it is: with S = ‖A‖_μ² and
K_V = ‖V − μ1ᵀ‖_μ²

    E∇̂_V l = S(V − μ1ᵀ) − ⟨Q, A⟩_μ (P − μ1ᵀ)        E∇̂_A l = K_V(A − 11ᵀ/T) − K_VP(Q − 11ᵀ/T),

so E∇̂_V l / S is V − P where A is right, and A − E∇̂_A l / K_V is Q where V is. The product of two independent estimates of a
gradient has no noise on average, so ⟨g, g'⟩_μ measures squared distances down to well below the noise of either.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array, centred_square, mu_inner, root
from scb.theory.noise import noise_quantile
from scb.training.sources import GradientSource
from scb.training.stages import precondition_A, precondition_V

GOOD = "learned"
HELD_OUT = 1 << 40  # steps whose keys no run uses: their samples are not those that it was trained on


@dataclass(frozen=True)
class Verdict:
    """What held-out samples say of a run.

    Attributes
    ----------
    word : ``GOOD``, or what is wrong
    dist_V, dist_A : estimates of ‖V − P‖_μ and ‖A − Q‖_μ
    samples : how many were held out
    """

    word: str
    dist_V: float
    dist_A: float
    samples: int


@dataclass(frozen=True)
class HeldOut:
    """Judge a run by the gradients of two held-out batches.

    Parameters
    ----------
    batch_size : samples of each
    K_P : ‖P − μ1ᵀ‖_μ²; a V that has less than half of it, or more than twice, has not learned P
    sparsity : positions of a column that matter, at most
    tolerance : the largest distance that counts as learned
    """

    batch_size: int
    K_P: float
    sparsity: int
    tolerance: float = 0.05

    def __call__(self, V: Array, A: Array, mu: Array, source: GradientSource, keys: NDArray[np.uint64]) -> Verdict:
        """The verdict on (V, A), by the gradients that ``source`` gives with these two keys."""
        one, two = (source(V, A, self.batch_size, key) for key in keys)
        square_A = mu_inner(A, A, mu)
        K_V = centred_square(V, mu)
        steps_V = [precondition_V(g.V, mu, "mu") / square_A for g in (one, two)]
        dist_V = root(mu_inner(steps_V[0], steps_V[1], mu))
        dist_A = np.inf
        if K_V > 1e-12:
            dist_A = self._distance_A(A, [A - precondition_A(g.A, mu) / K_V for g in (one, two)], mu)
        samples = one.samples + two.samples
        return Verdict(self._word(K_V, dist_V, dist_A), dist_V, dist_A, samples)

    def _word(self, K_V: float, dist_V: float, dist_A: float) -> str:
        if not self.K_P / 2 <= K_V <= 2 * self.K_P:
            return f"not learned: V has {K_V / self.K_P:.2g} of the K_P of the task"
        for name, distance in (("V − P", dist_V), ("A − Q", dist_A)):
            if not distance <= self.tolerance:
                return f"not learned: ‖{name}‖ is about {distance:.2g} by held-out samples, more than {self.tolerance:g}"
        return GOOD

    def _distance_A(self, A: Array, estimates: list[Array], mu: Array) -> float:
        """‖A − Q‖_μ from two independent estimates of βQ + (1 − β)11ᵀ/T, β = K_VP/K_V, all (T, N).

        All but a few of the T·N entries are noise: looked at is where A stands out, and where the first estimate does. What columns
        sum to there tells β, which is not 1 where V is P on another scale. Where most positions matter, all are looked at.
        """
        T = len(A)
        there = np.ones(A.shape, dtype=bool)
        beta = 1.0
        if 4 * self.sparsity <= T:
            apart = estimates[0] - A
            spread = 1.4826 * np.median(np.abs(apart), axis=0)
            there = (np.abs(A - np.median(A, axis=0)) > 1e-9) | (np.abs(apart) > spread * noise_quantile(A.size) + 1e-12)
            share = mu @ there.mean(axis=0)
            mass = np.mean([mu @ np.where(there, estimate, 0.0).sum(axis=0) for estimate in estimates])
            beta = float((mass - share) / (1 - share))
        if not beta > 0.1:
            return np.inf
        errors = [np.where(there, A - (estimate - (1 - beta) / T) / beta, 0.0) for estimate in estimates]
        return root(mu_inner(errors[0], errors[1], mu))
