"""Moments of sums over independent tokens: E[X₁ ⋯ X_d | last token k] for d ≤ 4, exactly.

Each X is a ``Statistic``, a sum of pieces. Given k, a piece is a constant c_k·v, or a *token sum*
Σ_t w[t, k]·L e_{x_t}, which has mean zero because Lμ = 0. Tokens are independent, so the
expectation of a product of token sums is a sum over the ways to split the factors into blocks of
two or more factors that share a position:

    E[X₁X₂]     = (Σ_t w₁w₂) ⟨L₁L₂⟩                       ⟨L₁ … L_d⟩ = Σ_j μ_j L₁e_j ⊗ … ⊗ L_d e_j
    E[X₁X₂X₃]   = (Σ_t w₁w₂w₃) ⟨L₁L₂L₃⟩
    E[X₁X₂X₃X₄] = (Σ_t w₁w₂w₃w₄) ⟨L₁L₂L₃L₄⟩ + Σ over the three pairings of (Σ_{t≠u} w₁w₂[t] w₃w₄[u])
    ⟨L₁L₂⟩⟨L₃L₄⟩

Letters say which indices are summed and which are kept, as in ``np.einsum``.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from scb.arrays import Array


class Piece(NamedTuple):
    """One term of a ``Statistic``.

    A piece is a constant c_k·v, or a sum over tokens Σ_t w[t, k]·L e_{x_t} with Lμ = 0.

    Here, k is the last token, and e_{x_t} is the one-hot vector of the token at position t.

    Attributes
    ----------
    weights : (N,) or (T, N) array, or None
        The factors c of a constant, or the weights w of a sum over tokens. None stands for the
        single token at the position that the statistic's letter ``position`` names.
    values : (d,) or (d, N) array
        The vector v of a constant, or the matrix L of a sum over tokens.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.theory.token_moments import Piece
    >>> Piece(np.ones(2), np.array([0.5, 0.5])).is_constant
    True
    >>> Piece(np.ones((4, 2)), np.eye(2) - 0.5).is_constant
    False
    """

    weights: Array | None
    values: Array

    @property
    def is_constant(self) -> bool:
        """Whether the piece is a constant, which does not depend on the tokens."""
        return self.values.ndim == 1


class Statistic(NamedTuple):
    """A random vector that is a sum of pieces.

    Letters name the indices of the vector, as in ``np.einsum``.

    Attributes
    ----------
    pieces : tuple of Piece
        The terms of the sum.
    row : str
        The letter of the vector's index.
    position : str, default ""
        The letter of the position that the vector depends on, if there is such a position.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.theory.token_moments import Piece, Statistic
    >>> Statistic((Piece(np.ones((4, 2)), np.eye(2) - 0.5),), row="n").row
    'n'
    """

    pieces: tuple[Piece, ...]
    row: str
    position: str = ""


def product_moment(statistics: Sequence[Statistic], mu: Array, kept: str, *extra: Any) -> Array:
    """Compute the exact expectation of a product of up to four statistics, given the last token k.

    The letters in ``kept`` become the axes of the result. All other indices are summed over; the
    sum over k is weighted by μ.

    Parameters
    ----------
    statistics : sequence of Statistic
        The factors, at most four.
    mu : (N,) array
        The distribution of the tokens.
    kept : str
        The letters to keep: those of rows, of positions and "k". Letters of positions must be kept.
    *extra : arrays and str
        Further factors that are not random, in pairs of an array and its letters, one for each
        axis.

    Returns
    -------
    array
        The expectations, with one axis for each letter of ``kept``.

    Examples
    --------
    The covariance matrix of the counts of two tokens among four positions is 4·(diag(μ) − μμᵀ):

    >>> import numpy as np
    >>> from scb.theory.token_moments import Piece, Statistic, product_moment
    >>> mu = np.array([0.5, 0.5])
    >>> count = Piece(np.ones((4, 2)), np.eye(2) - mu[:, None])
    >>> product_moment([Statistic((count,), "n"), Statistic((count,), "m")], mu, "nm")
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    where = {"k", *(statistic.position for statistic in statistics)}
    places = "".join(letter for letter in kept if letter in where)
    rows = "".join(letter for letter in kept if letter not in where)
    total: Any = 0.0
    for pieces in product(*(statistic.pieces for statistic in statistics)):
        factors = list(zip(pieces, statistics, strict=True))
        weights: list[Any] = [1.0, ""] if "k" in kept else [mu, "k"]
        values = [*extra]
        for piece, statistic in factors:
            if piece.is_constant:
                weights += [piece.weights, "k"]
                values += [piece.values, statistic.row]
        sums = [factor for factor in factors if not factor[0].is_constant]
        for blocks in _splits(sums):
            apart = _einsum(sum((_position_sum(block) for block in blocks), weights), places)
            if len(blocks) == 2:  # the two stand at different positions
                apart = apart - _einsum(weights + _position_sum(sums), places)
            tensor = _einsum(sum((_token_mean(block, mu) for block in blocks), values), rows)
            total = total + _einsum([apart, places, tensor, rows], kept)
    return total


Factor = tuple[Piece, Statistic]


def _splits(sums: list[Factor]) -> list[list[list[Factor]]]:
    """All ways to split at most four token sums into blocks of at least two; one empty way if there
    are none.
    """
    if not sums:
        return [[]]
    ways = [[sums]] if len(sums) > 1 else []
    if len(sums) == 4:
        first, *others = sums
        ways += [[[first, others[i]], [*others[:i], *others[i + 1 :]]] for i in range(3)]
    return ways


def _position_sum(block: list[Factor]) -> list[Any]:
    """Σ_t Π w[t, k] over the pieces of a block, and its letters; a piece that is a single token
    fixes t instead of weighing it.
    """
    fixed = sorted({statistic.position for piece, statistic in block if piece.weights is None})
    operands: list[Any] = []
    t = fixed[0] if fixed else "t"
    if len(fixed) == 2:  # two such tokens are the same one only where their positions are
        sums = (
            piece.weights
            for _, statistic in block
            for piece in statistic.pieces
            if not piece.is_constant
        )
        T = next(len(weights) for weights in sums if weights is not None)
        operands = [np.eye(T), "".join(fixed)]
    for piece, _ in block:
        if piece.weights is not None:
            operands += [piece.weights, t + "k"]
    if not operands:
        return []
    letters = "".join(fixed) + ("k" if any("k" in given for given in operands[1::2]) else "")
    return [_einsum(operands, letters), letters]


def _token_mean(block: list[Factor], mu: Array) -> list[Any]:
    """⟨L₁ L₂ …⟩ = Σ_y μ_y L₁e_y ⊗ L₂e_y ⊗ … over the pieces of a block, and its letters."""
    operands: list[Any] = [mu, "y"]
    for piece, statistic in block:
        operands += [piece.values, statistic.row + "y"]
    letters = "".join(sorted({statistic.row for _, statistic in block}))
    return [_einsum(operands, letters), letters]


def _einsum(operands: list[Any], kept: str) -> Array:
    """``np.einsum`` of operands in pairs with their letters; along a kept letter that none of them
    has, the result is constant.
    """
    inputs = ",".join(operands[1::2])
    output = "".join(letter for letter in kept if letter in inputs)
    result = np.asarray(np.einsum(f"{inputs}->{output}", *operands[0::2]))
    return result[tuple(slice(None) if letter in inputs else None for letter in kept)]
