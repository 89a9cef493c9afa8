"""The two one-layer transformers of the paper, their predictions, squared loss and exact gradients.

Both predict F = V·X·a^(k), where column t of X is the one-hot of token x_t and a^(k) is the attention that the last
token k chooses. They differ in the attention: free weights A, or a softmax σ(W) over positions.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scb.geometry import Array
from scb.inputs import InputError, real_array

if TYPE_CHECKING:
    from scb.task.sampling import Batch

_CHUNK = 1 << 22  # (sample, position) pairs held at a time


class Gradient(NamedTuple):
    """The mean loss over a mini-batch and its gradients."""

    loss: float  # mean of ½‖e_o − VXa‖²
    V: Array  # (N, N), ∇_V l
    A: Array  # (T, N), in the attention or in its parameters
    samples: int  # how many fresh samples it took


class Transformer(ABC):
    """F(x, k) = V·X·a^(k), made from V (N, N) and (T, N) parameters; a subclass says what attention a^(k) these give."""

    V: Array

    @abstractmethod
    def __init__(self, V: ArrayLike, parameters: ArrayLike, /) -> None: ...

    @property
    @abstractmethod
    def attention(self) -> Array:
        """(T, N): column k is the attention over positions when the last token is k."""

    def predict(self, batch: "Batch") -> Array:
        """(n, N): the predicted law of the label of each sample."""
        return token_mass(self.attention, batch) @ self.V.T

    def loss(self, batch: "Batch") -> float:
        """Mean of ½‖e_o − F‖² over the batch, the paper's loss."""
        return float(0.5 * np.square(_residual(self.predict(batch), batch)).sum() / len(batch))

    @abstractmethod
    def pull_back(self, gA: Array) -> Array:
        """The gradient in the attention's parameters, given the gradient in the attention itself."""

    def gradient(self, batch: "Batch") -> Gradient:
        """Mean loss over the batch, and its exact gradients in V and in the attention's parameters."""
        found = batch_gradient(self.V, self.attention, batch)
        return found._replace(A=self.pull_back(found.A))


class LinearTransformer(Transformer):
    """Attention weights are the parameters themselves: a^(k) = A[:, k].

    Parameters
    ----------
    V : (N, N) array
    A : (T, N) array
    """

    def __init__(self, V: ArrayLike, A: ArrayLike) -> None:
        self.V, self.A = _parameters(V, A, "A")

    @property
    def attention(self) -> Array:
        """The parameters A."""
        return self.A

    def pull_back(self, gA: Array) -> Array:
        """∇_A: the attention has no parameters but itself."""
        return gA


class SoftmaxTransformer(Transformer):
    """Attention weights are a softmax over positions: a^(k) = σ(W[:, k]).

    Parameters
    ----------
    V : (N, N) array
    W : (T, N) array
    """

    def __init__(self, V: ArrayLike, W: ArrayLike) -> None:
        self.V, self.W = _parameters(V, W, "W")

    @property
    def attention(self) -> Array:
        """σ(W), column by column."""
        e = np.exp(self.W - self.W.max(axis=0))
        return e / e.sum(axis=0)

    def pull_back(self, gA: Array) -> Array:
        """∇_w = (diag(a) − aaᵀ)∇_a, column by column."""
        a = self.attention
        return a * (gA - (a * gA).sum(axis=0))


def batch_gradient(V: Array, A: Array, batch: "Batch") -> Gradient:
    """∇_V l = (VXa − e_o)(Xa)ᵀ and ∇_{a^(k)} l = 1{last = k}(VX)ᵀ(VXa − e_o), and l, averaged over a batch."""
    mass = token_mass(A, batch)  # (n, N)
    r = _residual(mass @ V.T, batch)  # (n, N)
    n = len(batch)
    loss = float(0.5 * np.square(r).sum() / n)
    return Gradient(loss, V=r.T @ mass / n, A=scatter_scores(r @ V, batch, A.shape[0]) / n, samples=n)


def token_mass(A: Array, batch: "Batch") -> Array:
    """(n, N): the attention that falls on each token, X·a^(k), row by row."""
    n, T = batch.context.shape
    positions, N = A.shape
    if positions != T:
        raise InputError(f"the batch has T = {T} positions, the attention {positions}: they must agree")
    mass = np.empty((n, N))
    for rows in _chunks(n, T):
        part = batch[rows]
        flat = (np.arange(len(part))[:, None] * N + part.context).ravel()
        mass[rows] = np.bincount(flat, A.T[part.last].ravel(), minlength=len(part) * N).reshape(-1, N)
    return mass


def scatter_scores(U: Array, batch: "Batch", T: int) -> Array:
    """(T, N): column k is the sum of U[i, x_t] over the samples i with last token k; (VX)ᵀr for U = rV."""
    G = np.zeros((T, U.shape[1]), order="F")
    for rows in _chunks(len(batch), T):
        part = batch[rows]
        for k in np.unique(part.last):
            mine = part.last == k
            G[:, k] += np.take_along_axis(U[rows][mine], part.context[mine].astype(np.intp), axis=1).sum(axis=0)
    return G


def _chunks(n: int, T: int) -> list[slice]:
    """Slices of n samples, so few at a time that their (sample, position) pairs fit into memory."""
    size = max(1, _CHUNK // max(T, 1))
    return [slice(i, min(n, i + size)) for i in range(0, n, size)]


def _residual(F: Array, batch: "Batch") -> Array:
    """F − e_o, row by row."""
    r = F.copy()
    r[np.arange(len(batch)), batch.label] -= 1.0
    return r


def _parameters(V: ArrayLike, A: ArrayLike, name: str) -> tuple[Array, Array]:
    V = real_array("V", V, copy=False)
    A = np.asfortranarray(real_array(name, A, copy=False))
    if V.ndim != 2 or V.shape[0] != V.shape[1]:
        raise InputError(f"V has shape {V.shape}: it must be square, (N, N)")
    if A.ndim != 2 or A.shape[1] != V.shape[0]:
        raise InputError(f"{name} has shape {A.shape}: it must be (T, {V.shape[0]}) to go with V")
    return V, A
