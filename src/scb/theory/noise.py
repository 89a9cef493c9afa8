"""The exact covariance of the noise of a mini-batch gradient at any (V, A). ``gaussian`` has a
model of this noise, from which noise can be drawn quickly.

A sample with last token k and mass m = Xa^(k) has the residual r = Vm − e_o and, with C = I − 11ᵀ/N
and w the row of the projector (``geometry.projector_row``), the preconditioned gradients

    ∇̂_V = C r zᵀ,  z = m/μ − (1ᵀm)w          ∇̂_{a^(k)} = (I − 11ᵀ/T)(VX)ᵀr / μ_k,

and nothing in other columns of A. Given the context, the label has the distribution λ = Pμ_q, μ_q =
Xq^(k), so with e = Vm − λ

    E[rrᵀ | X, k] = eeᵀ + diag(λ) − λλᵀ.

All of these quantities are sums over independent tokens. Second moments of gradients are therefore
moments of degree four of such sums, which ``token_moments`` computes in closed form. The covariance
for a mini-batch of B samples is 1/B of that for one sample.
"""

from functools import cached_property

import numpy as np

from scb.arrays import Array
from scb.geometry import Projector, keep_mu, projector_row
from scb.geometry.heads import one_head
from scb.task import Task
from scb.theory.expectations import expected_gradients
from scb.theory.token_moments import Piece, Statistic, product_moment


class GradientNoise:
    """The exact covariance of the noise h = ∇̂l − E∇̂l in one sample, at any V and A.

    All gradients are preconditioned.

    The noise has a part h_V for V and a part h_A for A. The covariance for a mini-batch of B
    samples is 1/B of this covariance. The full covariances of h_V and h_A require O(N⁴) and O(T²N²)
    memory, respectively; everything else requires O(N³ + TN).

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    V, A : (N, N) and (T, N) arrays
        The value matrix and the attention; they need not satisfy any constraint.
    projector : {"euclidean", "mu"}, default "euclidean"
        The projector in the preconditioner of V, which keeps Vμ = μ: the paper's projector or the
        μ-projector.

    Examples
    --------
    At the start of training, the noise is larger with the paper's projector than with the
    μ-projector:

    >>> import scb
    >>> from scb.geometry import uniform_start
    >>> from scb.theory.noise import GradientNoise
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> start = uniform_start(task.mu, task.T)
    >>> for projector in ("euclidean", "mu"):
    ...     noise = GradientNoise(task, *start, projector=projector)
    ...     print(projector, round(noise.square_V(), 4), round(noise.variance_along_V(task.P), 5))
    euclidean 0.0544 0.00633
    mu 0.0325 0.00388
    >>> at_task = GradientNoise(task, task.P, task.Q)
    >>> round(at_task.square_A(), 2), round(at_task.variance_along_A(task.Q), 3)
    (11.59, 0.025)
    >>> at_task.variances_A().shape
    (40, 3)
    >>> bool(at_task.mean[0].round(12).any()), at_task.variances_V().round(3)[0]
    (False, array([0.108, 0.093, 0.152]))
    >>> at_task.covariance_V().shape, at_task.covariance_A().shape
    ((3, 3, 3, 3), (40, 3, 40, 3))
    """

    def __init__(self, task: Task, V: Array, A: Array, projector: Projector = "euclidean") -> None:
        one_head(task, "GradientNoise")
        self.task = task
        self.V = V
        self.A = A
        self.projector: Projector = projector

    @cached_property
    def mean(self) -> tuple[Array, Array]:
        """The expected preconditioned gradients E∇̂_V l (N, N) and E∇̂_A l (T, N)."""
        mu = self.task.mu
        gV, gA = expected_gradients(self.task, self.V, self.A)
        gV = keep_mu((gV - gV.mean(axis=0)) / mu, mu, self.projector)
        return gV, (gA - gA.mean(axis=0)) / mu

    # ----------------------------------------------------------------------------------------- of V

    def covariance_V(self) -> Array:
        """Compute the covariances Cov(h_V[n, i], h_V[m, j]) of all pairs of entries.

        Returns
        -------
        (N, N, N, N) array
            The covariances, with axes n, i, m and j.
        """
        mean = self.mean[0]
        second = self._second_moment_V(self._z("i"), self._z("j"), "nimj")
        return second - np.multiply.outer(mean, mean)

    def variances_V(self) -> Array:
        """Compute the variance of each entry of h_V.

        Returns
        -------
        (N, N) array
            The variances.
        """
        z = self._z("i")
        return self._second_moment_V(z, z, "ni", same_row=True) - self.mean[0] ** 2

    def square_V(self) -> float:
        """Compute the mean squared size E‖h_V‖_μ² of the noise in V.

        Returns
        -------
        float
            The expectation.
        """
        return float(self.variances_V().sum(axis=0) @ self.task.mu)

    def variance_along_V(self, W: Array) -> float:
        """Compute the variance of ⟨h_V, W⟩_μ, the noise in V along a direction.

        Parameters
        ----------
        W : (N, N) array
            The direction, whose length matters.

        Returns
        -------
        float
            The variance.
        """
        towards = self._centre @ W * self.task.mu
        one = self._z("n", towards)
        two = self._z("m", towards)
        mean = np.sum(self.mean[0] * W * self.task.mu)
        return float(self._second_moment_V(one, two, "") - mean**2)

    def _z(self, row: str, towards: Array | None = None) -> Statistic:
        """z, or ``towards`` times it: s_k(1 − w) + Σ_t a_t (1/μ_{x_t} − 1)."""
        mu = self.task.mu
        constant = 1 - projector_row(mu, self.projector)
        values = np.diag(1 / mu) - 1
        if towards is not None:
            constant = towards @ constant
            values = towards @ values
        return Statistic((Piece(self.A.sum(axis=0), constant), Piece(self.A, values)), row)

    def _second_moment_V(
        self, one: Statistic, two: Statistic, kept: str, same_row: bool = False
    ) -> Array:
        """E[(Cr)_n (Cr)_m z z'] with the rows n and m, or n twice."""
        C = self._centre
        rows = ("n", "n") if same_row else ("n", "m")
        factors = [self._mean_residual(row, C) for row in rows]
        labels = [self._label_distribution(row, C) for row in rows]
        mu = self.task.mu
        moment = product_moment([*factors, one, two], mu, kept)
        moment = moment - product_moment([*labels, one, two], mu, kept)
        label = [self._label_distribution("l"), one, two]
        return moment + product_moment(label, mu, kept, C, rows[0] + "l", C, rows[1] + "l")

    # ----------------------------------------------------------------------------------------- of A

    def covariance_A(self) -> Array:
        """Compute the covariances Cov(h_A[p, k], h_A[q, l]) of all pairs of entries.

        Returns
        -------
        (T, N, T, N) array
            The covariances, with axes p, k, q and l.
        """
        mean = self.mean[1]
        second = self._second_moment_A(self._token("p"), self._token("q"), "kpq")
        N = self.task.N
        covariance = -np.multiply.outer(mean, mean)
        covariance[:, range(N), :, range(N)] += second  # a sample touches one column
        return covariance

    def variances_A(self) -> Array:
        """Compute the variance of each entry of h_A.

        Returns
        -------
        (T, N) array
            The variances.
        """
        token = self._token("p")
        return self._second_moment_A(token, token, "kp").T - self.mean[1] ** 2

    def square_A(self) -> float:
        """Compute the mean squared size E‖h_A‖_μ² of the noise in A.

        Returns
        -------
        float
            The expectation.
        """
        return float(self.variances_A().sum(axis=0) @ self.task.mu)

    def variance_along_A(self, W: Array) -> float:
        """Compute the variance of ⟨h_A, W⟩_μ, the noise in A along a direction.

        Parameters
        ----------
        W : (T, N) array
            The direction, whose length matters.

        Returns
        -------
        float
            The variance.
        """
        mu = self.task.mu
        U = self.V - (self.V @ mu)[:, None]
        centred = (W - W.mean(axis=0)) * mu
        total = Statistic((Piece(centred, U),), "n")
        second = self._second_moment_A(total, total, "k")
        return float(second.sum() - np.sum(self.mean[1] * W * mu) ** 2)

    def _token(self, position: str) -> Statistic:
        """Ve_{x_p} less its mean over positions: U e_{x_p} − (1/T) Σ_t U e_{x_t}, U = V − Vμ1ᵀ."""
        U = self.V - (self.V @ self.task.mu)[:, None]
        return Statistic(
            (Piece(None, U), Piece(np.full_like(self.A, -1 / self.task.T), U)), "n", position
        )

    def _second_moment_A(self, one: Statistic, two: Statistic, kept: str) -> Array:
        """E[(rᵀy)(rᵀy') 1{k}]/μ_k² for statistics y and y' in the place of Ve_{x_t}; the first axis
        is k.
        """
        mu = self.task.mu
        other = two._replace(row="m")
        factors = [self._mean_residual("n"), one, self._mean_residual("m"), other]
        labels = [self._label_distribution("n"), one, self._label_distribution("m"), other]
        moment = product_moment(factors, mu, kept) - product_moment(labels, mu, kept)
        moment = moment + product_moment([self._label_distribution("n"), one, two], mu, kept)
        return moment / mu.reshape(-1, *[1] * (len(kept) - 1))

    # -------------------------------------------------------------------------------------- of both

    @property
    def _centre(self) -> Array:
        N = self.task.N
        return np.eye(N) - 1 / N

    def _label_distribution(self, row: str, left: Array | None = None) -> Statistic:
        """λ = μ + Σ_t q_t (P − μ1ᵀ)e_{x_t}, or ``left`` times it."""
        task = self.task
        constant = task.mu
        values = task.P - task.mu[:, None]
        if left is not None:
            constant = left @ constant
            values = left @ values
        return Statistic((Piece(np.ones(task.N), constant), Piece(task.Q, values)), row)

    def _mean_residual(self, row: str, left: Array | None = None) -> Statistic:
        """e = Vm − λ = s_k Vμ − μ + Σ_t (a_t (V − Vμ1ᵀ) − q_t (P − μ1ᵀ))e_{x_t}, or ``left`` times
        it.
        """
        mu = self.task.mu
        left = np.eye(self.task.N) if left is None else left
        mean = left @ self.V @ mu
        moved = (Piece(self.A.sum(axis=0), mean), Piece(self.A, left @ self.V - mean[:, None]))
        label = tuple(
            Piece(piece.weights, -piece.values)
            for piece in self._label_distribution(row, left).pieces
        )
        return Statistic(moved + label, row)
