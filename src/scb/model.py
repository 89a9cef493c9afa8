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
    """The mean loss over a mini-batch and its gradients: what a source of gradients gives.

    Attributes
    ----------
    loss : float
        Mean of ½‖e_o − VXa‖².
    V : (N, N) array
        ∇_V l.
    A : (T, N) array
        The gradient in the attention, or in its parameters.
    samples : int
        How many fresh samples it took.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> found = task.model().gradient(scb.sample(task, 1000, seed=0))
    >>> found.V.shape, found.A.shape, found.samples
    ((3, 3), (40, 3), 1000)
    """

    loss: float
    V: Array
    A: Array
    samples: int


class Transformer(ABC):
    """A one-layer transformer F(x, k) = V·X·a^(k); a subclass says which attention a^(k) its parameters give.

    Parameters
    ----------
    V : (N, N) array
        The value matrix.
    parameters : (T, N) array
        What the attention is made of.

    Examples
    --------
    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> batch = scb.sample(task, 1000, seed=0)
    >>> for model in (scb.LinearTransformer(task.P, task.Q), scb.SoftmaxTransformer(task.P, np.zeros((40, 3)))):
    ...     print(type(model).__name__, round(model.loss(batch), 3), model.attention.shape, model.predict(batch).shape)
    LinearTransformer 0.202 (40, 3) (1000, 3)
    SoftmaxTransformer 0.318 (40, 3) (1000, 3)
    """

    V: Array

    @abstractmethod
    def __init__(self, V: ArrayLike, parameters: ArrayLike, /) -> None: ...

    @property
    @abstractmethod
    def attention(self) -> Array:
        """(T, N): column k is the attention over positions when the last token is k."""

    def predict(self, batch: "Batch") -> Array:
        """The predicted law of the label of each sample.

        Parameters
        ----------
        batch : Batch
            Samples with T positions.

        Returns
        -------
        (n, N) array
            A row a sample. Rows sum to 1 where 1ᵀV = 1ᵀ and 1ᵀA = 1ᵀ.
        """
        return token_mass(self.attention, batch) @ self.V.T

    def loss(self, batch: "Batch") -> float:
        """The paper's loss: the mean of ½‖e_o − F‖² over a batch.

        Parameters
        ----------
        batch : Batch
            Samples with T positions.

        Returns
        -------
        float
        """
        return float(0.5 * np.square(_residual(self.predict(batch), batch)).sum() / len(batch))

    @abstractmethod
    def pull_back(self, gA: Array) -> Array:
        """The gradient in the attention's parameters, given the gradient in the attention itself.

        Parameters
        ----------
        gA : (T, N) array
            ∇_A of any function of the attention.

        Returns
        -------
        (T, N) array

        Examples
        --------
        A softmax gains nothing from a constant:

        >>> import numpy as np, scb
        >>> model = scb.SoftmaxTransformer(np.eye(2), np.zeros((4, 2)))
        >>> bool(model.pull_back(np.ones((4, 2))).any())
        False
        """

    def gradient(self, batch: "Batch") -> Gradient:
        """Mean loss over a batch, and its exact gradients in V and in the attention's parameters.

        Parameters
        ----------
        batch : Batch
            Samples with T positions.

        Returns
        -------
        Gradient
            ``loss``, ``V`` (N, N), ``A`` (T, N) and ``samples``.

        Examples
        --------
        >>> import scb
        >>> task = scb.Task.random(3, 40, 2, seed=0)
        >>> found = task.model().gradient(scb.sample(task, 100_000, seed=0))
        >>> bool(abs(found.V).max() < 0.01)  # the task itself is the minimum of the expected loss
        True
        """
        found = batch_gradient(self.V, self.attention, batch)
        return found._replace(A=self.pull_back(found.A))


class LinearTransformer(Transformer):
    """The linear transformer F(x, k) = V·X·a^(k), whose attention weights are its parameters: a^(k) = A[:, k].

    Parameters
    ----------
    V : (N, N) array
        The value matrix.
    A : (T, N) array
        Column k is the attention when the last token is k.

    Examples
    --------
    >>> import numpy as np, scb
    >>> model = scb.LinearTransformer(V=[[0.9, 0.2], [0.1, 0.8]], A=[[1.0, 0.0], [0.0, 0.25], [0.0, 0.75]])
    >>> batch = scb.Batch(np.array([[0, 1, 1], [1, 0, 1]]), last=np.array([0, 1]), label=np.array([0, 1]))
    >>> model.predict(batch)
    array([[0.9  , 0.1  ],
           [0.375, 0.625]])
    >>> model.loss(batch)
    0.0753125
    >>> model.gradient(batch).V
    array([[-0.003125,  0.140625],
           [ 0.003125, -0.140625]])
    >>> model.attention is model.A
    True
    """

    def __init__(self, V: ArrayLike, A: ArrayLike) -> None:
        self.V, self.A = _parameters(V, A, "A")

    @property
    def attention(self) -> Array:
        """The parameters A, (T, N)."""
        return self.A

    def pull_back(self, gA: Array) -> Array:
        """∇_A as it is: the attention has no parameters but itself.

        Parameters
        ----------
        gA : (T, N) array
            The gradient in the attention.

        Returns
        -------
        (T, N) array

        Examples
        --------
        >>> import numpy as np, scb
        >>> g = np.ones((4, 2))
        >>> scb.LinearTransformer(np.eye(2), np.zeros((4, 2))).pull_back(g) is g
        True
        """
        return gA


class SoftmaxTransformer(Transformer):
    """The softmax transformer F_σ(x, k) = V·X·σ(w^(k)): attention weights are a softmax over positions.

    Parameters
    ----------
    V : (N, N) array
        The value matrix.
    W : (T, N) array
        Column k holds the logits of the attention when the last token is k.

    Examples
    --------
    >>> import numpy as np, scb
    >>> model = scb.SoftmaxTransformer(V=[[0.9, 0.2], [0.1, 0.8]], W=np.log([[2.0, 1.0], [1.0, 1.0], [1.0, 2.0]]))
    >>> model.attention
    array([[0.5 , 0.25],
           [0.25, 0.25],
           [0.25, 0.5 ]])
    >>> batch = scb.Batch(np.array([[0, 1, 1], [1, 0, 1]]), last=np.array([0, 1]), label=np.array([0, 1]))
    >>> model.predict(batch)
    array([[0.55 , 0.45 ],
           [0.375, 0.625]])
    >>> round(model.loss(batch), 4), model.gradient(batch).A.shape
    (0.1716, (3, 2))
    """

    def __init__(self, V: ArrayLike, W: ArrayLike) -> None:
        self.V, self.W = _parameters(V, W, "W")

    @property
    def attention(self) -> Array:
        """σ(W), (T, N): a softmax over the positions of each column."""
        e = np.exp(self.W - self.W.max(axis=0))
        return e / e.sum(axis=0)

    def pull_back(self, gA: Array) -> Array:
        """∇_w = (diag(a) − aaᵀ)∇_a, column by column.

        Parameters
        ----------
        gA : (T, N) array
            The gradient in the attention.

        Returns
        -------
        (T, N) array

        Examples
        --------
        >>> import numpy as np, scb
        >>> scb.SoftmaxTransformer(np.eye(2), np.zeros((4, 2))).pull_back(np.eye(4, 2))
        array([[ 0.1875, -0.0625],
               [-0.0625,  0.1875],
               [-0.0625, -0.0625],
               [-0.0625, -0.0625]])
        """
        a = self.attention
        return a * (gA - (a * gA).sum(axis=0))


def batch_gradient(V: Array, A: Array, batch: "Batch") -> Gradient:
    """∇_V l = (VXa − e_o)(Xa)ᵀ and ∇_{a^(k)} l = 1{last = k}(VX)ᵀ(VXa − e_o), and l, averaged over a batch.

    Parameters
    ----------
    V, A : (N, N) and (T, N) array
        The point.
    batch : Batch
        The samples.

    Returns
    -------
    Gradient

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> g = scb.model.batch_gradient(task.P, task.Q, scb.sample(task, 10_000, seed=0))
    >>> bool(abs(g.V).max() < 0.01)  # the truth is where the expected gradient is 0
    True
    """
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
