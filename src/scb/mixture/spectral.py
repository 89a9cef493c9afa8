"""Estimates of P and Q from moments, for contexts of iid tokens: a sparse rank-one matrix in noise.

Given the last token k, the covariance of label and token t is q_t^(k) G with G = (P − μ1ᵀ) diag(μ):
over all (k, t) this is the rank-one matrix vec(Q)·vec(G)ᵀ with a sparse, positive left factor. The
steps are:

1. start at the (k, t) whose table of pairs (o, x_t) has the largest χ²; its covariance is a first
   guess at G;
2. score every (k, t): the projection of its covariance onto the guess, in units of noise. Keep
   scores that are too large to be noise; keeping only positive scores resolves the sign;
3. use the kept covariances, weighted by their scores, as a better guess, and repeat until the kept
   positions stay the same.

The contribution of a position to the guess is left out of its own score, so noise cannot confirm
itself.
"""

import numpy as np

from scb.arrays import Array, Positions
from scb.mixture.data import Data
from scb.mixture.levels import ScoreNoise, noise_levels
from scb.mixture.model import Initial, quotient
from scb.mixture.partition import Partition
from scb.mixture.tuning import TUNING
from scb.theory.gaussian import noise_quantile

# (r, 2), last tokens and positions
Pairs = Positions


def spectral(data: Data, false_positions: float = 0.05) -> Initial:
    """The sparse rank-one estimate; ``false_positions`` is the average number of wrong positions
    that a fit may have.
    """
    moments = _Moments(data, false_positions)
    best = np.zeros((0, 2), np.intp)
    best_value = -np.inf
    freedom = data.degrees_of_freedom()[:, None]
    excess = (data.chi_squares() - freedom) / np.sqrt(2 * freedom)
    for start in np.argsort(excess, axis=None)[::-1][: TUNING.spectral_starts]:
        pairs, value = moments.alternate(np.array([np.unravel_index(start, excess.shape)]))
        if value > best_value:
            best, best_value = pairs, value
        if len(best) >= data.N:  # more than a stray start or two
            break
    return moments.estimate(best)


class _Moments:
    """Label-token covariances of the data, at chosen (k, t) or projected at all of them."""

    def __init__(self, data: Data, false_positions: float) -> None:
        self.data = data
        self.false_positions = false_positions
        self.label_distribution = data.label_distribution
        self.whitening = quotient(1.0, np.outer(self.label_distribution, data.mu))

    def covariances(self, pairs: Pairs) -> Array:
        """(r, N, N): C − n_k(o) μ_m at each (k, t), where C counts pairs of label and token."""
        expected = self.data.by_label[pairs[:, 0], :, None] * self.data.mu
        return self.data.total(Partition.pair_tables, pairs) - expected

    def direction(self, G: Array) -> Array:
        """The table W whose sums over samples are the projections onto G, centred in label and
        token.
        """
        W = G * self.whitening
        W = W - (W @ self.data.mu)[:, None]
        return W - self.label_distribution @ W

    def spread(self, W: Array) -> Array:
        """(N,): standard deviation of the score of a position without signal, by last token."""
        W = W - (W @ self.data.mu)[:, None]
        return np.sqrt(self.data.by_label @ (W**2 @ self.data.mu))

    def alternate(self, pairs: Pairs) -> tuple[Pairs, float]:
        """Score, keep, guess again, until nothing changes; the kept (k, t), and the sum of their
        squared scores.
        """
        D = self.covariances(pairs)
        weights = np.ones(1)
        kept = np.zeros(0)
        seen: set[bytes] = set()
        while len(seen) < TUNING.spectral_rounds:
            z, levels = self.scores(pairs, D, weights)
            pairs = np.argwhere(z >= levels[:, None])
            if len(pairs) == 0:
                return pairs, 0.0
            kept = z[tuple(pairs.T)]
            if pairs.tobytes() in seen:
                break
            seen.add(pairs.tobytes())
            D = self.covariances(pairs)
            weights = kept / np.sqrt(self.data.counts[pairs[:, 0]])  # proportional to q_t^(k)
        return pairs, float(kept @ kept)

    def scores(self, pairs: Pairs, D: Array, weights: Array) -> tuple[Array, Array]:
        """(N, T) scores in units of noise onto the guess Σ_j weights_j D_j, and (N,) what is too
        large to be noise.
        """
        data = self.data
        guess = np.tensordot(weights, D, axes=1)
        W = self.direction(guess)
        spread = self.spread(W)
        spread[spread <= 0] = 1.0
        z = data.total(Partition.scores, W) / spread[:, None]
        # A pair that has a part in the guess is scored by what the others make of it; 0 if there
        # are none.
        for j, (k, t) in enumerate(pairs):
            others = self.direction(guess - weights[j] * D[j])
            scale = self.spread(others)[k]
            z[k, t] = (D[j] * others).sum() / scale if len(pairs) > 1 and scale > 0 else 0.0
        quantile = noise_quantile(data.N * data.T, self.false_positions)
        noises = [ScoreNoise(W, labels, data.mu) for labels in data.by_label]
        return z, noise_levels(noises, quantile) / spread

    def estimate(self, pairs: Pairs) -> Initial:
        """Least squares for Q and G at the kept (k, t), scaled so that columns of Q sum to 1."""
        N = self.data.N
        mu = self.data.mu
        distribution = self.label_distribution[:, None]
        if len(pairs) == 0:
            return Initial.without_positions(np.repeat(distribution, N, axis=1), N)
        last = pairs[:, 0]
        D = self.covariances(pairs)
        n = self.data.counts[last]
        q = np.ones(len(pairs))
        for _ in range(TUNING.least_squares_steps):
            W = self.direction(np.tensordot(q, D, axes=1))
            along = (D * W).sum(axis=(1, 2)) / n
            least = 1e-3 * np.abs(along).max()
            # With very few samples, the covariances can cancel out
            q = np.maximum(along, least) if least > 0 else q
            q = q / np.bincount(last, q, minlength=N)[last]
        G = np.tensordot(q, D, axes=1) / (n @ q**2)
        P = distribution + quotient(G, np.broadcast_to(mu, G.shape))
        P = np.maximum(P, 1e-3 * distribution)
        mine = [last == k for k in range(N)]
        return Initial(P / P.sum(axis=0), [pairs[m, 1] for m in mine], [q[m] for m in mine])
