"""The Fisher information of (P, q) in samples of a mixture, stored in blocks, and its inverse under
the constraint that columns sum to 1.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scb.arrays import Array
from scb.kernels.mixture import likelihood_information
from scb.theory.tangent import inverse_if_definite, tangent

# Numbers in the blocks that are inverted together, so that they stay in a cache
ENTRIES_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Information:
    """The Fisher information about (P, q) in samples from a mixture.

    The information is stored as the blocks that do not vanish.

    P is the (N, C) matrix of label distributions, and row k of the (K, s) array q holds the weights
    of the mixture in state k. For a task, the state is the last token. The blocks ignore the
    constraints that columns of P and rows of q sum to 1; ``variances``, ``solve`` and ``inverse``
    respect these constraints by working on their tangent space.

    Attributes
    ----------
    PP : (N, C, C) array
        For each label o, the block of the row P[o]. C is N for a single transition matrix and
        larger for several matrices side by side.
    Pq : (N, C, K, s) array
        The blocks between each row P[o] and each q[k].
    qq : (K, s, s) array
        The block of each q[k].
    free_P, free_q : (N, C) and (K, s) boolean arrays
        Whether an entry is a free parameter; other entries are treated as known.

    Examples
    --------
    >>> import numpy as np, scb
    >>> from scb.theory.information import fisher_information
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> found = fisher_information(task)
    >>> of_P, of_q = found.variances()  # for one sample
    >>> of_P.round(2), of_q.T.round(2)
    (array([[0.55, 0.06, 0.24],
           [0.57, 0.05, 0.08],
           [0.06, 0.02, 0.31]]), array([[1.13, 1.46, 1.78],
           [1.13, 1.46, 1.78]]))
    >>> step = found.solve(of_P, of_q)
    >>> pushed = found.times(*step)
    >>> [part.shape for part in pushed], found.ridged(0.0) is found, found.inverse() is None
    ([(3, 3), (3, 2)], True, False)
    """

    PP: Array
    Pq: Array
    qq: Array
    free_P: NDArray[np.bool_]
    free_q: NDArray[np.bool_]
    # Inverses of the blocks of rows of P, by row and free entries: the rounds of a Newton step
    # differ in a few rows
    _inverses: dict[tuple[int, bytes], Array] = field(default_factory=dict, repr=False)

    @classmethod
    def from_contexts(
        cls, tokens: NDArray[Any], last: NDArray[Any], weight: Array, q: Array, P: Array
    ) -> "Information":
        """Compute the information in the given contexts; the expectation is over their labels only.

        Entries of P and q that are 0 lie on the boundary of the parameter space and are treated as
        known. A column of P whose token does not occur is also treated as known, because the
        samples contain no information about it.

        Parameters
        ----------
        tokens, last : (n, s) and (n,) integer arrays
            The tokens at the positions attended to, and the last tokens.
        weight : (n,) array
            The number of times that each context is counted.
        q, P : (K, s) and (N, C) arrays
            The values of the parameters.

        Returns
        -------
        Information
            The sum over the contexts.

        Examples
        --------
        >>> import numpy as np, scb
        >>> from scb.theory.fisher import Information
        >>> task = scb.Task.random(3, 40, 2, seed=0)
        >>> tokens, last = np.array([[0, 1], [2, 2]]), np.array([0, 1])
        >>> q, once = task.weights.T, np.ones(2)
        >>> Information.from_contexts(tokens, last, once, q, task.P).qq.shape
        (3, 2, 2)
        """
        PP, Pq, qq = blocks(P, q)
        no_background = np.zeros(len(tokens), np.int64), np.zeros((1, len(P)))
        at = np.ascontiguousarray(q), np.ascontiguousarray(P)
        likelihood_information(tokens, last, weight, *no_background, *at, PP, Pq, qq)
        seen = np.einsum("omm->m", PP) > 0
        return cls(PP, Pq, qq, (P > 0) & seen, (q > 0) & (np.einsum("kjj->kj", qq) > 0))

    def variances(self, of_P: bool = True) -> tuple[Array, Array]:
        """Compute the variance bounds of all entries.

        The bounds are the diagonal of the inverse on the tangent space.

        Parameters
        ----------
        of_P : bool
            Whether those of P are wanted. If not, they may be NaN, which takes about half the time.

        Returns
        -------
        in_P : (N, C) array
            The variances of P; 0 for entries that are known, and NaN for entries that the
            information does not determine.
        in_q : (K, s) array
            The variances of q, with the same conventions.
        """
        inverse = self.inverse()
        if inverse is None:
            return self._variances_of_the_rest()
        rows, middle, moved, cov, basis = inverse
        in_q = (basis @ cov * basis).sum(axis=1).reshape(self.free_q.shape)
        in_P = np.full(self.free_P.shape, np.nan)
        if of_P:
            in_P = np.einsum("omm->om", rows)
            in_P = in_P - (rows @ middle * rows).sum(axis=2)  # both are symmetric
            in_P = in_P + (moved @ cov * moved).sum(axis=2)
            in_P = np.maximum(in_P, 0.0) * self.free_P
        return in_P, np.maximum(in_q, 0.0)

    def _variances_of_the_rest(self) -> tuple[Array, Array]:
        """Variances where some directions are flat: NaN for the entries that move along them; all
        NaN if there are too many.
        """
        from scipy.linalg import block_diag

        (N, C), (K, s) = self.free_P.shape, self.free_q.shape
        of_P, of_q = np.full((N, C), np.nan), np.full((K, s), np.nan)
        if N * C + K * s > 1500:  # too many parameters to decompose as a whole
            return of_P, of_q
        J: Any = block_diag(*self.PP, *self.qq)
        J[: N * C, N * C :] = self.Pq.reshape(N * C, K * s)
        J[N * C :, : N * C] = J[: N * C, N * C :].T
        in_P = tangent(self.free_P.T)
        in_P = in_P.reshape(C, N, in_P.shape[1]).transpose(1, 0, 2).reshape(N * C, in_P.shape[1])
        B: Any = block_diag(in_P, tangent(self.free_q))
        H = B.T @ J @ B
        if H.size == 0 or not np.isfinite(H).all() or np.diag(H).max() <= 0:
            return of_P, of_q
        scale = 1 / np.sqrt(np.maximum(np.diag(H), 1e-12 * np.diag(H).max()))
        eigenvalues, vectors = np.linalg.eigh(H * scale * scale[:, None])
        flat = eigenvalues <= 1e-10
        parts = (B * scale) @ vectors
        variances = (parts[:, ~flat] ** 2 / eigenvalues[~flat]).sum(axis=1)
        variances[(parts[:, flat] ** 2).sum(axis=1) > 1e-9 * (parts**2).sum(axis=1)] = np.nan
        return variances[: N * C].reshape(N, C), variances[N * C :].reshape(K, s)

    def solve(self, gP: Array, gq: Array) -> tuple[Array, Array] | None:
        """Apply the inverse on the tangent space to a pair of arrays.

        Applied to the derivatives of the likelihood, the inverse gives a Newton step.

        Parameters
        ----------
        gP, gq : (N, C) and (K, s) arrays
            The arrays that the inverse is applied to.

        Returns
        -------
        in_P, in_q : (N, C) and (K, s) arrays
            The products. If the information is singular, the result is None.
        """
        inverse = self.inverse()
        return None if inverse is None else inverse.solve(gP * self.free_P, gq * self.free_q)

    def times(self, in_P: Array, in_q: Array) -> tuple[Array, Array]:
        """Multiply the information, including the entries that are not free, by a direction.

        Parameters
        ----------
        in_P, in_q : (N, C) and (K, s) arrays
            The direction.

        Returns
        -------
        along_P, along_q : (N, C) and (K, s) arrays
            The product.
        """
        N, C = in_P.shape
        cross = self.Pq.reshape(N * C, in_q.size)
        along_P = (self.PP @ in_P[:, :, None])[:, :, 0] + (cross @ in_q.ravel()).reshape(N, C)
        along_q = (self.qq @ in_q[:, :, None])[:, :, 0] + (in_P.ravel() @ cross).reshape(in_q.shape)
        return along_P, along_q

    def ridged(self, ridge: float) -> "Information":
        """Return the information with its diagonal entries multiplied by 1 + ``ridge``.

        A Newton step with the returned information moves little along directions in which the
        likelihood is flat.

        Parameters
        ----------
        ridge : float
            The fraction of each diagonal entry that is added to it; with 0, the same object is
            returned.

        Returns
        -------
        Information
        """
        if ridge == 0:
            return self
        PP, qq = (
            x + ridge * np.einsum("...mm->...m", x)[..., None] * np.eye(x.shape[-1])
            for x in (self.PP, self.qq)
        )
        return replace(self, PP=PP, qq=qq, _inverses={})

    def inverse(self) -> "Inverse | None":
        """Compute the inverse on the tangent space of the constraints, in parts.

        With H the block-diagonal matrix of PP, the inverse under the constraint 1ᵀP = 1ᵀ is C = H⁻¹
        − H⁻¹1 (1ᵀH⁻¹1)⁻¹ 1ᵀH⁻¹. The Schur complement of the q's, in coordinates of their tangent
        space, is S = qq − PqᵀC·Pq. This complement gives Cov q = S⁻¹ and Cov P = C +
        C·Pq·S⁻¹·Pqᵀ·C.

        Returns
        -------
        Inverse or None
            The parts of the inverse, or None if the information is singular.
        """
        K, s = self.free_q.shape
        N, C = self.free_P.shape
        rows = self._inverse_rows()
        if rows is None:
            return None
        middle = np.linalg.inv(rows.sum(axis=0) + np.diag(~self.free_P.any(axis=0)))
        basis = tangent(self.free_q)  # (K·s, r)
        cross = self.Pq.reshape(N, C, K * s) @ basis * self.free_P[:, :, None]
        moved = _constrained(rows, middle, cross)
        weights = np.zeros((K, s, K, s))
        weights[np.arange(K), :, np.arange(K), :] = self.qq
        schur = basis.T @ weights.reshape(K * s, K * s) @ basis - cross.reshape(
            N * C, -1
        ).T @ moved.reshape(N * C, -1)
        cov = inverse_if_definite(schur) if schur.size else schur
        return None if cov is None else Inverse(rows, middle, moved, cov, basis)

    def _inverse_rows(self) -> Array | None:
        """(N, C, C): the inverse of the block of each row of P, 0 at entries that are not free;
        None if one is singular.
        """
        keys = [(o, free.tobytes()) for o, free in enumerate(self.free_P)]
        new = [key for key in keys if key not in self._inverses]
        C = self.free_P.shape[1]
        at_once = max(1, ENTRIES_AT_ONCE // C**2)
        for begin in range(0, len(new), at_once):
            some = new[begin : begin + at_once]
            at = [o for o, _ in some]
            free = self.free_P[at]
            both = free[:, :, None] & free[:, None, :]
            held = np.eye(C) * ~free[:, None, :]
            inverses = inverse_if_definite(np.where(both, self.PP[at], held))
            if inverses is None:
                return None
            self._inverses.update(zip(some, np.where(both, inverses, 0.0), strict=True))
        return np.array([self._inverses[key] for key in keys])


class Inverse(NamedTuple):
    """The parts of the inverse of an ``Information``, in the notation of ``Information.inverse``.

    Attributes
    ----------
    rows : (N, C, C) array
        The inverse H⁻¹ of the block of each row of P.
    middle : (C, C) array
        The matrix (1ᵀH⁻¹1)⁻¹.
    moved : (N, C, r) array
        The product C·Pq, with q in coordinates of its tangent space.
    cov : (r, r) array
        The covariance Cov q in these coordinates.
    basis : (K·s, r) array
        An orthonormal basis of the tangent space of the q's.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> inverse = scb.theory.information.fisher_information(task).inverse()
    >>> inverse.cov.shape  # one free weight in each column
    (3, 3)
    >>> in_P, in_q = inverse.solve(task.P, task.weights.T)
    >>> in_P.shape, in_q.shape
    ((3, 3), (3, 2))
    """

    rows: Array
    middle: Array
    moved: Array
    cov: Array
    basis: Array

    def solve(self, gP: Array, gq: Array) -> tuple[Array, Array]:
        """Apply the inverse to a pair of arrays.

        Parameters
        ----------
        gP, gq : (N, C) and (K, s) arrays
            The arrays that the inverse is applied to; entries that are not free are 0.

        Returns
        -------
        in_P, in_q : (N, C) and (K, s) arrays
            The products.
        """
        step = _constrained(self.rows, self.middle, gP[:, :, None])[:, :, 0]
        in_q = self.cov @ (self.basis.T @ gq.ravel() - np.einsum("omr,om->r", self.moved, gP))
        return step - self.moved @ in_q, (self.basis @ in_q).reshape(gq.shape)


def blocks(P: Array, q: Array) -> tuple[Array, Array, Array]:
    """Allocate the blocks of an ``Information``, filled with zeros.

    Parameters
    ----------
    P, q : (N, C) and (K, s) arrays
        The parameters, of which only the shapes are used.

    Returns
    -------
    PP, Pq, qq : (N, C, C), (N, C, K, s) and (K, s, s) arrays
        The blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.theory.fisher import blocks
    >>> [block.shape for block in blocks(np.eye(3), np.ones((3, 2)))]
    [(3, 3, 3), (3, 3, 3, 2), (3, 2, 2)]
    """
    (N, C), (K, s) = P.shape, q.shape
    return np.zeros((N, C, C)), np.zeros((N, C, K, s)), np.zeros((K, s, s))


def _constrained(rows: Array, middle: Array, X: Array) -> Array:
    """C·X for X (N, C, r)."""
    Y = rows @ X
    return Y - rows @ (middle @ Y.sum(axis=0))
