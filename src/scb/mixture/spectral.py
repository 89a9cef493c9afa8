"""P and Q from moments: a sparse rank-one matrix in noise of unit size. For contexts of iid tokens.

Given the last token k, the covariance of label and token t is q_t^(k) G with G = (P − μ1ᵀ) diag(μ): over all (k, t) this is the
rank-one matrix vec(Q)·vec(G)ᵀ with a sparse, positive left factor. So:

1. start at the (k, t) whose table of pairs (o, x_t) has the largest χ²; its covariance is a first guess at G;
2. score every (k, t): the projection of its covariance onto the guess, in units of noise. Keep what is too large to be noise;
   keeping the positive side only settles the sign;
3. the kept covariances, weighted by their scores, are a better guess; go on until the kept positions stay the same.

What a position adds to the guess is left out of its own score, so that noise cannot confirm itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scb.geometry import Array
from scb.mixture.data import Samples
from scb.mixture.tails import score_level
from scb.theory.noise import noise_quantile

_ROUNDS, _STARTS = 12, 8


@dataclass(frozen=True)
class Spectral:
    """What the moments say.

    Attributes
    ----------
    P : (N, N), distributions in columns
    positions : list of N arrays, ascending: the positions whose scores pass the threshold
    weights : list of N arrays: their attention, which sums to 1 where there are any
    """

    P: Array
    positions: list[NDArray[np.intp]]
    weights: list[Array]


def spectral(data: Samples, false_positions: float = 0.05) -> Spectral:
    """The sparse rank-one estimate; ``false_positions`` is how many wrong positions a fit may have on average."""
    best, best_value = np.zeros((0, 2), np.intp), -np.inf
    found = _Moments(data, false_positions)
    for start in found.starts():
        pairs, value = found.alternate(start)
        if value > best_value:
            best, best_value = pairs, value
        if len(best) >= data.N:  # more than a stray start or two
            break
    return found.estimate(best)


class _Moments:
    """Label-token covariances of the data, at chosen (k, t) or projected at all of them."""

    def __init__(self, data: Samples, false_positions: float) -> None:
        self.data, self.false_positions = data, false_positions
        self.pi, self.counts, self.by_label = data.label_law, data.counts, data.by_label
        noise = np.outer(self.pi, data.mu)
        self.inverse = np.divide(1.0, noise, out=np.zeros_like(noise), where=noise > 0)

    def starts(self) -> list[NDArray[np.intp]]:
        """The (k, t) of largest χ², each relative to its degrees of freedom."""
        freedom = np.maximum((self.by_label > 0).sum(axis=1) * ((self.data.mu > 0).sum() - 1), 1)
        excess = (self.data.chi_squares() - freedom[:, None]) / np.sqrt(2 * freedom)[:, None]
        top = np.argsort(excess, axis=None)[::-1][: min(_STARTS, excess.size)]
        return [np.array([np.unravel_index(i, excess.shape)]) for i in top]

    def covariances(self, pairs: NDArray[np.intp]) -> Array:
        """(r, N, N): C − n_k(o) μ_m at each (k, t)."""
        return self.data.pair_tables(pairs) - self.by_label[pairs[:, 0], :, None] * self.data.mu

    def direction(self, G: Array) -> Array:
        """The table W whose sums over samples are the projections onto G, centred in label and token."""
        W = G * self.inverse
        W = W - (W @ self.data.mu)[:, None]
        return W - self.pi @ W

    def spread(self, W: Array) -> Array:
        """(N,): standard deviation of the score of a position without signal, for each last token."""
        W = W - (W @ self.data.mu)[:, None]
        return np.sqrt(self.by_label @ (W**2 @ self.data.mu))

    def alternate(self, pairs: NDArray[np.intp]) -> tuple[NDArray[np.intp], float]:
        """Score, keep, guess again, until nothing changes; the kept (k, t), and the sum of their squared scores."""
        D, weights, kept = self.covariances(pairs), np.ones(1), np.zeros(0)
        seen: set[bytes] = set()
        while len(seen) < _ROUNDS:
            z, levels = self.scores(pairs, D, weights)
            pairs = np.argwhere(z >= levels[:, None])
            if len(pairs) == 0:
                return pairs, 0.0
            kept = z[tuple(pairs.T)]
            if pairs.tobytes() in seen:
                break
            seen.add(pairs.tobytes())
            D, weights = self.covariances(pairs), kept / np.sqrt(self.counts[pairs[:, 0]])  # weights ∝ q_t^(k)
        return pairs, float(kept @ kept)

    def scores(self, pairs: NDArray[np.intp], D: Array, weights: Array) -> tuple[Array, Array]:
        """(N, T) scores in units of noise onto the guess Σ_j weights_j D_j, and (N,) what is too large to be noise."""
        data, N = self.data, self.data.N
        W = self.direction(np.tensordot(weights, D, axes=1))
        spread = np.where(self.counts > 0, self.spread(W), 1.0)
        spread = np.where(spread > 0, spread, 1.0)
        z = data.label_scores(W) / spread[:, None]
        for j, (k, t) in enumerate(pairs):
            z[k, t] = self.left_out(j, k, D, weights)
        quantile = noise_quantile(N * data.T, self.false_positions)
        levels = np.array([score_level(W, labels, data.mu, quantile) for labels in self.by_label])
        return z, levels / spread

    def left_out(self, j: int, k: int, D: Array, weights: Array) -> float:
        """The score of pair j, whose last token is k, onto a guess made from the others; 0 if there are none."""
        W = self.direction(np.tensordot(weights, D, axes=1) - weights[j] * D[j])
        spread = self.spread(W)[k]
        return float((D[j] * W).sum()) / spread if len(D) > 1 and spread > 0 else 0.0

    def estimate(self, pairs: NDArray[np.intp]) -> Spectral:
        """Least squares for Q and G at the kept (k, t), scaled so that columns of Q sum to 1."""
        N, mu = self.data.N, self.data.mu
        if len(pairs) == 0:
            return Spectral(np.repeat(self.pi[:, None], N, axis=1), [np.zeros(0, np.intp)] * N, [np.zeros(0)] * N)
        D, n = self.covariances(pairs), self.counts[pairs[:, 0]]
        q = np.ones(len(pairs))
        for _ in range(20):
            G = np.tensordot(q, D, axes=1)
            W = self.direction(G)
            q = np.maximum((D * W).sum(axis=(1, 2)) / n, 1e-3 * np.abs((D * W).sum(axis=(1, 2)) / n).max())
            q = q / np.bincount(pairs[:, 0], q, minlength=N)[pairs[:, 0]]
        G = np.tensordot(q, D, axes=1) / (n @ q**2)
        P = self.pi[:, None] + np.divide(G, mu, out=np.zeros_like(G), where=mu > 0)
        P = np.maximum(P, 1e-3 * self.pi[:, None])
        mine = [pairs[:, 0] == k for k in range(N)]
        return Spectral(P / P.sum(axis=0), [pairs[m, 1] for m in mine], [q[m] for m in mine])
