"""Functions that rotate the heads of a model until the heads divide the positions among them, and
that match these heads with the true heads.

Heads (A R, Ṽ R⁻ᵀ) compute the same function for every invertible R (H, H), so training learns the
function but not the heads. If each position belongs to one head, the rows of A over heads (one
vector for each last token and position) lie on H lines through 0. Finding the lines and turning
them onto the axes gives the heads, up to their order. The signs of the heads follow, because
attention is positive. Their sizes follow to the extent that last tokens divide their attention
differently between the heads, because the columns of all heads together sum to 1.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.geometry.columns import project
from scb.geometry.heads import head_products, left_factor, per_head, right_factor
from scb.geometry.lines import trivial_V
from scb.geometry.products import mu_inner, mu_norm
from scb.inputs import InputError, integer, real_array

if TYPE_CHECKING:
    from scb.task import Task

# Chosen starts of ``lines_through``, and rounds of each at most
_STARTS = 20
_ROUNDS = 100


def rotate_heads(
    V: Array, A: Array, mu: Array | None = None, *, heads: int | None = None
) -> tuple[Array, Array]:
    """Rotate heads so that every position belongs to one head, as far as possible.

    The function that the heads compute changes only by O(1/T), because the columns are projected so
    that they sum to 1. Heads stay unchanged if they do not differ or if too few of their positions
    stand out.

    Parameters
    ----------
    V : (H, N, N) array
        The value matrices.
    A : (H, T, N) array
        The attention.
    mu : (N,) array, optional
        The stationary distribution. The default is the distribution that V keeps: V_h μ = μ.
    heads : int, optional
        The number of heads that matter; by default, all heads matter. Spare heads become V = μ1ᵀ
        and A = 0, and the other heads compute the nearest function that needs no spare heads.

    Returns
    -------
    V : (H, N, N) array
    A : (H, T, N) array
        The heads, ordered by the sizes of the functions that they compute.

    Examples
    --------
    >>> import numpy as np, scb
    >>> task = scb.Task.random(4, 100, 2, heads=2)
    >>> U = task.P - task.mu[:, None]
    >>> V = np.stack([U[0] + U[1], U[0] - U[1]]) / 2 + task.mu[:, None]
    >>> A = np.stack([task.Q[0] + task.Q[1], task.Q[0] - task.Q[1]])
    >>> V, A = scb.rotate_heads(V, A)
    >>> scb.metrics.match_heads(V, A, task).dist_V.round(2)
    array([0., 0.])
    """
    V, A = real_array("V", V), real_array("A", A)
    if V.ndim != 3 or A.ndim != 3 or V.shape[::2] != A.shape[::2]:
        raise InputError(
            f"V has shape {V.shape} and A {A.shape}: they must be (H, N, N) and (H, T, N)"
        )
    mu = _kept_by(V) if mu is None else mu
    if heads is not None and integer("heads", heads, low=1) < len(V):
        main = rotate_heads(*fewer_heads(V, A, mu, heads), mu)
        spare = len(V) - heads
        V = np.concatenate([main[0], np.repeat(trivial_V(mu)[None], spare, axis=0)])
        return V, np.concatenate([main[1], np.zeros((spare, *A.shape[1:]))])
    H, T, N = A.shape
    basis, to_basis = np.linalg.qr(right_factor(V, mu))  # (N², H) and (H, H)
    rows = left_factor(A, mu) @ to_basis.T  # (T·N, H), what each position adds to the function
    there = standing_rows(rows.reshape(T, N, H)).ravel()
    sizes = np.linalg.svd(rows[there], compute_uv=False)
    if len(sizes) < H or sizes[-1] < 1e-6 * sizes[0]:
        return V, A
    D = lines_through(rows[there])  # (H, H), a line in each column
    left = np.linalg.solve(D, rows.T)  # (H, T·N)
    right = basis @ D
    new_A = left.reshape(H, T, N) / np.sqrt(mu)
    sums = np.where(there.reshape(T, N), new_A, 0.0).sum(axis=1)  # (H, N)
    scale = _scales(sums, mu)
    new_V = (right / scale).T.reshape(H, N, N) / np.sqrt(mu) + mu[:, None]
    new_A = new_A * scale[:, None, None]
    order = np.argsort(-np.linalg.norm(left, axis=1))
    return new_V[order], project(new_A[order])


def fewer_heads(V: Array, A: Array, mu: Array, heads: int) -> tuple[Array, Array]:
    """Return a given number of heads, (G, N, N) and (G, T, N), whose function is nearest to that of
    more heads; the columns of A are not projected.
    """
    H, T, N = A.shape
    if heads >= H:
        return V, A
    Q_left, R_left = np.linalg.qr(left_factor(A, mu))
    Q_right, R_right = np.linalg.qr(right_factor(V, mu))
    U, values, W = np.linalg.svd(R_left @ R_right.T)
    left = (Q_left @ U[:, :heads] * np.sqrt(values[:heads])).T.reshape(heads, T, N)
    right = (Q_right @ W[:heads].T * np.sqrt(values[:heads])).T.reshape(heads, N, N)
    return right / np.sqrt(mu) + mu[:, None], left / np.sqrt(mu)


class HeadMatch(NamedTuple):
    """The heads of a model, each paired with the true head that it matches.

    Attributes
    ----------
    V : (G, N, N) array
        The matched value matrices, in the order of the task's heads.
    A : (G, T, N) array
        The matched attention.
    overlap : (G,) array
        The cosine of a_h ⊗ Ṽ_h and q_g ⊗ P̃_g in ⟨·, ·⟩_μ.
    dist_V, dist_A : (G,) arrays
        The distances ‖V_h − P_g‖_μ and ‖A_h − Q_g‖_μ.
    order : (G,) integer array
        For each head of the task, the head of the model that matches it.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(4, 40, 2, heads=2)
    >>> scb.metrics.match_heads(task.P[::-1], task.Q[::-1], task).order
    array([1, 0])
    """

    V: Array
    A: Array
    overlap: Array
    dist_V: Array
    dist_A: Array
    order: NDArray[np.intp]


def match_heads(V: Array, A: Array, task: "Task") -> HeadMatch:
    """Match the heads of a model with those of a task by their overlaps.

    The order of the heads is free, and so are the sign and the size of each head, because (cA_h,
    Ṽ_h/c) computes the same function. Order, signs and sizes are chosen to fit the task. All other
    differences count as distance.

    Parameters
    ----------
    V : (H, N, N) array
        The value matrices.
    A : (H, T, N) array
        The attention.
    task : Task
        The true task, with at most H heads.

    Returns
    -------
    HeadMatch

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(4, 40, 2, heads=2)
    >>> mirrored = 2 * task.mu[:, None] - task.P, -task.Q
    >>> scb.metrics.match_heads(*mirrored, task).dist_A.round(12)
    array([0., 0.])
    """
    # Import lazily: SciPy is slow to load.
    from scipy.optimize import linear_sum_assignment

    V, A = per_head(real_array("V", V)), per_head(real_array("A", A))
    P, Q, mu = per_head(task.P), per_head(task.Q), task.mu
    if V.shape[1:] != P.shape[1:] or A.shape[1:] != Q.shape[1:] or len(V) != len(A):
        raise InputError(
            f"V has shape {V.shape} and A {A.shape}: with this task they must be "
            f"(H, {task.N}, {task.N}) and (H, {task.T}, {task.N})"
        )
    if len(V) < len(P):
        raise InputError(f"V has {len(V)} heads, the task {len(P)}: each needs one of its own")
    U, W = V - mu[:, None], P - mu[:, None]
    AQ = head_products(A, Q, mu)
    products = AQ * head_products(U, W, mu)
    sizes = np.sqrt([mu_inner(a, a, mu) * mu_inner(u, u, mu) for a, u in zip(A, U, strict=True)])
    truths = np.sqrt([mu_inner(q, q, mu) * mu_inner(w, w, mu) for q, w in zip(Q, W, strict=True)])
    overlaps = products / np.maximum(np.outer(sizes, truths), 1e-300)
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    order = rows[np.argsort(columns)]
    heads = np.arange(len(P))
    # The c with A_h ≈ c·Q_g; a head that has nothing of the true one keeps its size
    c = AQ[order, heads] / [mu_inner(q, q, mu) for q in Q]
    c = np.where(c == 0, 1.0, c)[:, None, None]
    V, A = mu[:, None] + c * U[order], A[order] / c
    return HeadMatch(
        V=V,
        A=A,
        overlap=overlaps[order, heads],
        dist_V=np.array([mu_norm(x, mu) for x in V - P]),
        dist_A=np.array([mu_norm(x, mu) for x in A - Q]),
        order=order,
    )


def standing_rows(rows: Array, false_rows: float = 0.01) -> NDArray[np.bool_]:
    """Return which of the rows (T, N, H) are too long to be noise, as (T, N) flags.

    Most rows of a column are noise about a common value. In the basis in which this noise is white,
    the squared length of a row is approximately χ² with H degrees of freedom. On average,
    ``false_rows`` rows of noise are flagged.
    """
    T, N, H = rows.shape
    centred = rows - np.median(rows, axis=0)
    spread = 1.4826 * np.median(np.abs(centred), axis=0)  # (N, H)
    squares = np.square(centred / np.maximum(spread, 1e-12)).sum(axis=2)
    # Laurent and Massart: χ² exceeds H + 2√(Hx) + 2x with a chance of at most e^−x
    x = np.log(T * N / false_rows)
    return squares > H + 2 * np.sqrt(H * x) + 2 * x


def _kept_by(V: Array) -> Array:
    """(N,): the μ with V_h μ = μ in all heads."""
    _, _, right = np.linalg.svd((V - np.eye(V.shape[1])).reshape(-1, V.shape[1]))
    return right[-1] / right[-1].sum()


def lines_through(rows: Array) -> Array:
    """Return the unit vectors of H lines through 0 near which the rows (n, H) lie, as columns (H,
    H).

    The lines minimise the sum of the distances of the rows, not of the squared distances, so
    positions that heads share do not bend the lines.
    """
    H = rows.shape[1]
    rng = np.random.default_rng(0)
    lengths = np.linalg.norm(rows, axis=1)
    best, least = np.eye(H), np.inf
    for _ in range(_STARTS):
        # Each first line goes through a row that is far from the lines before it
        D = np.zeros((H, 0))
        for _ in range(H):
            left = _off(rows, D).min(axis=1) if D.shape[1] else lengths
            row = (
                rows[rng.choice(len(rows), p=left**2 / (left**2).sum())]
                if left.any()
                else rng.normal(size=H)
            )
            D = np.column_stack([D, row / np.linalg.norm(row)])
        D, distance = _settled(rows, D, lengths)
        if distance < least * (1 - 1e-9) and np.linalg.cond(D) < 1e6:
            best, least = D, distance
    return best


def _off(rows: Array, D: Array) -> Array:
    """(n, ·): the distance of each row from each line."""
    square = np.square(rows).sum(axis=1)[:, None] - np.square(rows @ D)
    return np.sqrt(np.maximum(square, 0.0))


def _settled(rows: Array, D: Array, lengths: Array) -> tuple[Array, float]:
    """Give each row to its nearest line and move the lines, until nothing changes."""
    for _ in range(_ROUNDS):
        off = _off(rows, D)
        mine = off.argmin(axis=1)
        new = D.copy()
        for h in range(D.shape[1]):
            own = rows[mine == h]
            if len(own):
                weights = 1 / np.maximum(off[mine == h, h], 1e-3 * lengths[mine == h] + 1e-12)
                _, axes = np.linalg.eigh(own.T @ (weights[:, None] * own))
                new[:, h] = axes[:, -1] * np.sign(axes[:, -1] @ D[:, h] or 1.0)
        moved = np.abs(new - D).max()
        D = new
        if moved < 1e-10:
            break
    return D, float(_off(rows, D).min(axis=1).sum())


def _scales(sums: Array, mu: Array) -> Array:
    """(H,): factors x_h with Σ_h x_h·sums[h, k] = 1 for all last tokens k, in the sense of least
    squares; directions that the sums leave open keep one common size.
    """
    sign = np.where(sums @ mu < 0, -1.0, 1.0)
    S = (sign[:, None] * sums * np.sqrt(mu)).T  # (N, H)
    goal = np.sqrt(mu)
    total = S.sum(axis=1)
    common = max(float(total @ goal) / max(float(total @ total), 1e-300), 1e-12)
    x = common + np.linalg.pinv(S, rcond=0.1) @ (goal - common * total)
    return sign * (x if (x > 0).all() else common)
