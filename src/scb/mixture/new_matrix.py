"""What a position could gain by a new matrix of its own, before that matrix is fitted.

All of it is computed from the scores and the information of the matrix, tables (token, label) over
the samples: with the label's present distribution f, the sums of 1/f of the observed labels, and of
1/f of every label.
"""

import numpy as np

from scb.arrays import Array
from scb.mixture.data import Data
from scb.mixture.lag_costs import matrix_costs
from scb.mixture.model import quotient, rounded, smoothed_columns
from scb.mixture.price import MatrixPrice
from scb.mixture.tuning import TUNING

# How often labels came with each token, and how often they were to be expected
Tables = tuple[Array, Array]
# Weights at which a new matrix is tried, from 0.001 to 1
WEIGHTS = 12


def labels_by_score(scores: Array, information: Array) -> Tables:
    """Tables (T, N, N) of the labels that came and that were to be expected, from those of scores
    and information of a matrix.

    Of n samples a score has the mean n, and its variance is the information, Σ 1/f over samples
    whose labels have the distribution f. So it is as if n²/information labels had been expected,
    and score·n/information had come; exactly so where f is the same for all samples. The χ² of
    these tables is the score statistic, with (N − 1)² degrees of freedom.
    """
    w = quotient(1.0, information)
    n = quotient((w * scores).sum(axis=2), w.sum(axis=2))[..., None]
    return n * w * scores, n**2 * w


def difference_of_tokens(scores: Tables, labels: Tables) -> Array:
    """(T,): the χ² of the labels after the tokens of each position, without the part that is the
    same after all of them; from the scores and information, and from their ``labels_by_score``. No
    position explains that part better than another.
    """
    common = (table.sum(axis=1, keepdims=True) for table in scores)
    return _chi_square(*labels) - _chi_square(*labels_by_score(*common))


def _chi_square(came: Array, expected: Array) -> Array:
    return quotient((came - expected) ** 2, expected).sum(axis=(1, 2))


def new_matrix_gains(
    data: Data,
    states: list[int],
    tables: Tables,
    closed: list[int],
    least: float,
    scores: Tables | None = None,
) -> Array:
    """(T,): by how much twice the log-likelihood ratio of a whole new matrix at each position
    exceeds ``least`` times its cost; from the labels that came and those to be expected, tables (T,
    N, N) of (token, label). It is −∞ for positions that are ``closed``, for others that certainly
    are not the best or do not exceed their cost, and for those that cannot attain their cost by
    their tables of scores and information, if these are given.

    It is the ratio of two independent models of the label given the token, of which the second
    knows what to expect. Its columns are shrunk to that.
    """
    came, expected = tables
    more = np.divide(came, expected, out=np.ones_like(came), where=came > 0)
    statistics = 2 * (came * np.log(more)).sum(axis=(1, 2))
    # Before the price of the matrix
    most = statistics - least * matrix_costs(data, states, np.zeros(data.T))
    most[closed] = -np.inf
    gains = np.full(data.T, -np.inf)
    for t in np.argsort(-most, kind="stable").tolist():
        if most[t] < max(gains.max(), 0.0):
            break
        total = expected[t].sum(axis=1, keepdims=True)
        base = quotient(expected[t], np.broadcast_to(total, expected[t].shape)).T
        gain = most[t] - 2 * least * MatrixPrice.of(came[t].T, base).differences
        if scores is None or can_attain(scores, t, statistics[t] - gain):
            gains[t] = gain
    return gains


def can_attain(scores: Tables, t: int, cost: float) -> bool:
    """Whether a new matrix at position t may be worth its cost, from tables (T, N, N) of scores and
    information.
    """
    return TUNING.understated * attainable_ratio(*(table[t] for table in scores)) >= cost


def attainable_ratio(scores: Array, information: Array) -> float:
    """Twice the log-likelihood ratio that a new matrix promises, from its tables (N, N) of (token,
    label), by a quadratic model around the present fit.

    A slot with the weight w and the matrix M adds u = w·M to the distributions of all samples, and
    takes the part w of them away. The model is Σ u·(s − n) − ½·(Σ u²·I − w²·Σ n) for the scores s,
    the information I and n samples with each token. It is maximised over what is possible: u ≥ 0,
    with the sum w after each token. A χ² statistic ignores these limits. Where labels are nearly
    certain, it may promise a lot where nothing can be gained.
    """
    seen = information.max(axis=1) > 0
    s = scores[seen]
    inverse = quotient(1.0, information[seen])
    n = quotient((inverse * s).sum(axis=1), inverse.sum(axis=1))[:, None]
    order = np.argsort(-s, axis=1)
    s = np.take_along_axis(s - n, order, axis=1)
    inverse = np.take_along_axis(inverse, order, axis=1)
    # For each weight, the labels with the highest scores get u = (s − level)/I: as many of them as
    # lie above the level at which the sum is w
    w = np.geomspace(1e-3, 1.0, WEIGHTS)[:, None, None]
    sums = np.maximum(np.cumsum(inverse, axis=1), TUNING.tiny)
    levels = (np.cumsum(inverse * s, axis=1) - w) / sums
    last = np.count_nonzero(s > levels, axis=2)[..., None] - 1
    above = np.maximum(s - np.take_along_axis(levels, last, axis=2), 0.0)
    u = above * inverse
    # u²·I is u·above
    gains = (u * (2 * s - above)).sum(axis=(1, 2)) + w.ravel() ** 2 * n.sum()
    return float(gains.max())


def full_prices(data: Data, k: int) -> Array:
    """(T,): what a matrix would cost in nats if each of its entries mattered, by the BIC, from the
    samples of state k. For a matrix that one state has to itself this is asked before it is tried,
    which saves time: a position that serves many states is found over all of them.
    """
    n = np.maximum(data.present[k], 2)
    mu = np.array([data.mu_at(t) for t in range(data.T)])
    columns = np.sort(np.log(1 + n[:, None] * mu), axis=1)[:, :-1]
    return (data.labels - 1) / 2 * columns.sum(axis=1)


def first_matrix(came: Array, expected: Array, distribution: Array) -> Array:
    """(N, N): where a new matrix starts: the distribution of the labels, times how much more often
    than expected each label came after each symbol.
    """
    n = came.sum(axis=1, keepdims=True)
    more = distribution * n * quotient(came, np.maximum(expected, TUNING.tiny))
    return rounded(smoothed_columns(more.T, distribution))
