"""The noise of gradients against full enumeration; functions of the module, so that mutants can be tried too."""

from __future__ import annotations

from types import ModuleType

import numpy as np
from scipy.stats import norm

from scb.geometry import mu_inner, population_projection
from truth.enumeration import World, constrained_point, free_point, precondition

PROJECTORS = ("euclidean", "mu")
POINTS = {"constrained": constrained_point, "free": free_point}
_truths: dict = {}


def close(got, truth) -> None:
    """Equal to 1e-10, relative to the largest entry where that is above 1."""
    np.testing.assert_allclose(got, truth, rtol=0, atol=1e-10 * max(1.0, np.abs(truth).max()))


def point(world: World, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """A random (V, A) with or without the constraints."""
    V, A = POINTS[kind](world.task, np.random.default_rng(11))
    return V, A * 0.5 ** (kind == "free")  # moments of degree four: keep them of order one, so that 1e-10 means something


def enumerated(world: World, kind: str, projector: str) -> tuple[np.ndarray, np.ndarray]:
    """The covariances of the preconditioned gradients of one sample: (N, N, N, N) and (T, N, T, N)."""
    key = (id(world), kind, projector)
    if key not in _truths:
        pairs = [precondition(world.task, *pair, projector) for pair in zip(*world.gradients(*point(world, kind)), strict=True)]
        found = []
        for gradients in zip(*pairs, strict=True):
            h = np.array(gradients) - world.mean(np.array(gradients))
            flat = h.reshape(len(world), -1)
            found.append(((flat.T * world.probability) @ flat).reshape(h.shape[1:] * 2))
        _truths[key] = found[0], found[1]
    return _truths[key]


def covariances(m: ModuleType, w: World) -> None:
    """Whole covariances and entries, of both gradients, with both projectors."""
    for kind in POINTS:
        for projector in PROJECTORS:
            noise = m.GradientNoise(w.task, *point(w, kind), projector)
            truth_V, truth_A = enumerated(w, kind, projector)
            close(noise.covariance_V(), truth_V)
            close(noise.variances_V(), np.einsum("nini->ni", truth_V))
            if projector == "mu":  # of A they are the same with both
                close(noise.covariance_A(), truth_A)
                close(noise.variances_A(), np.einsum("pkpk->pk", truth_A))


def norms(m: ModuleType, w: World) -> None:
    """E‖h‖_μ² and the variance along a direction that meets no constraint."""
    rng = np.random.default_rng(3)
    mu = w.task.mu
    for kind in POINTS:
        for projector in PROJECTORS:
            noise = m.GradientNoise(w.task, *point(w, kind), projector)
            answers = ((noise.square_V, noise.variance_along_V), (noise.square_A, noise.variance_along_A))
            for truth, (square, along) in zip(enumerated(w, kind, projector), answers, strict=True):
                close(square(), np.einsum("nini,i->", truth, mu))
                W = rng.normal(size=truth.shape[:2])
                close(along(W), np.einsum("nimj,ni,mj,i,j->", truth, W, W, mu, mu))


def gaussian_model(m: ModuleType, w: World) -> None:
    """The formulas of the Gaussian model, and a closed form of the leak."""
    task, mu = w.task, w.task.mu
    V, A = point(w, "constrained")
    p = population_projection(task, V, A)
    square = 2 * w.mean(w.losses(V, A))
    close(m.residual_square(task, p), square)
    close(m.residual_variance(3.0, task.N) * (task.N - 1), 3.0)
    scale_V, scale_A = m.noise_scales(task, p, 7)
    each = square / (task.N - 1) / 7
    close(scale_V**2, mu_inner(A, A, mu) * each)
    close(scale_A**2, (mu_inner(V, V, mu) - mu @ mu) * each)
    columns = np.array([m.common_noise(task, p, 7, Unit(i)) for i in range(task.N)]).T
    label = np.diag(mu) - np.outer(mu, mu)
    close(columns @ columns.T, label * square / np.trace(label) / 7)
    close(norm.sf(m.noise_quantile(300, 0.02)) * 300, 0.02)


class Unit:
    """In the place of a generator: "random" numbers that are a unit vector, which shows a linear draw as a matrix."""

    def __init__(self, index: int) -> None:
        self.index = index

    def normal(self, size: int) -> np.ndarray:
        return np.eye(size)[self.index]


def token_moments(m: ModuleType, w: World) -> None:
    """Moments of two to four statistics, given the last token and over all of them, by summing over outcomes."""
    rng = np.random.default_rng(5)
    N, T, mu = w.task.N, w.task.T, w.task.mu
    eye = np.eye(N)
    statistics = []
    values = []
    for number in range(4):
        weights, L, c, v = rng.normal(size=(T, N)), rng.normal(size=(2, N)), rng.normal(size=N), rng.normal(size=2)
        L -= np.outer(L @ mu, np.ones(N))
        position = {2: "p", 3: "q"}.get(number, "")
        pieces = [m.Piece(weights, L), m.Piece(c, v)]
        summed = np.einsum("mt,dmt->md", weights.T[w.last], L[:, w.context]) + c[w.last][:, None] * v  # outcomes, d
        found = np.repeat(summed[:, None], T, axis=1)  # outcomes, position, d
        if position:
            pieces.append(m.Piece(None, L))
            found = found + np.moveaxis(L[:, w.context], 0, -1)
        statistics.append(m.Statistic(tuple(pieces), "abcd"[number], position))
        values.append(found)
    for letters, which in (("ab", [0, 1]), ("acp", [0, 2]), ("abcp", [0, 1, 2]), ("acdpq", [0, 2, 3]), ("abcdpq", [0, 1, 2, 3])):
        operands = []
        for i in which:
            position = statistics[i].position
            operands += [values[i] if position else values[i][:, 0], ("m" + position + "abcd"[i])]
        inputs = ",".join(operands[1::2])
        last = eye[w.last] / mu
        by_k = np.einsum(f"m,mk,{inputs}->k{letters}", w.probability, last, *operands[0::2])
        chosen = [statistics[i] for i in which]
        close(m.product_moment(chosen, mu, "k" + letters), by_k)
        close(m.product_moment(chosen, mu, letters), np.tensordot(mu, by_k, 1))


CHECKS = {"theory.gaussian": (gaussian_model,), "theory.noise": (norms, covariances), "theory.token_moments": (token_moments,)}
