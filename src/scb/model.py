"""The two one-layer transformers of the paper, their predictions, squared loss and exact gradients.

Both predict F = V·X·a^(k), where column t of X is the one-hot vector of token x_t and a^(k) is the
attention that the last token k chooses. The attention consists of free weights A, or is a softmax
σ(W) over positions. The linear transformer may have several heads: F = Σ_h V_h·X·a_h^(k).
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scb.arrays import Array
from scb.contexts import head_masses, scatter_scores
from scb.geometry.heads import apart, per_head, side_by_side
from scb.inputs import InputError, real_array

if TYPE_CHECKING:
    from scb.task.sampling import Batch


class Gradient(NamedTuple):
    """The mean loss over a mini-batch and its gradients.

    Attributes
    ----------
    loss : float
        The mean of the loss ½‖e_o − F‖², where e_o is the one-hot vector of the label and F is the
        prediction.
    V : (N, N) array
        The gradient with respect to the value matrix V.
    A : (T, N) array
        The gradient with respect to the attention, or with respect to the parameters from which the
        attention is computed.
    samples : int
        The number of samples in the mini-batch.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> gradient = task.model().gradient(scb.sample(task, 1000, seed=0))
    >>> gradient.V.shape, gradient.A.shape, gradient.samples
    ((3, 3), (40, 3), 1000)
    """

    loss: float
    V: Array
    A: Array
    samples: int


class OneLayerTransformer(ABC):
    """Base class of one-layer transformers F(x, k) = V·X·a^(k).

    Such a transformer predicts the label of a context x with last token k.

    Column t of X is the one-hot vector of token x_t, and a^(k) is the attention over the T
    positions when the last token is k. A subclass defines how its parameters determine a^(k).

    Parameters
    ----------
    V : (N, N) array
        The value matrix.
    parameters : (T, N) array
        The parameters of the attention.

    Examples
    --------
    >>> import numpy as np, scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> batch = scb.sample(task, 1000, seed=0)
    >>> linear = scb.LinearTransformer(task.P, task.Q)
    >>> softmax = scb.SoftmaxTransformer(task.P, np.zeros((40, 3)))
    >>> [round(model.loss(batch), 3) for model in (linear, softmax)]
    [0.202, 0.318]
    >>> softmax.attention.shape, softmax.predict(batch).shape, softmax.gradient(batch).V.shape
    ((40, 3), (1000, 3), (3, 3))
    """

    V: Array

    @abstractmethod
    def __init__(self, V: ArrayLike, parameters: ArrayLike, /) -> None: ...

    @property
    @abstractmethod
    def attention(self) -> Array:
        """The attention (T, N): column k has the weights of the positions for last token k."""

    def predict(self, batch: "Batch") -> Array:
        """Predict the distribution of each sample's label.

        Parameters
        ----------
        batch : Batch
            A batch of n samples with T positions.

        Returns
        -------
        (n, N) array
            The predictions, one row per sample. Rows sum to 1 if the columns of V and of the
            attention sum to 1.
        """
        return head_masses(self.attention, batch) @ side_by_side(self.V).T

    def loss(self, batch: "Batch") -> float:
        """Compute the paper's loss, the mean of ½‖e_o − F‖² over a batch.

        Here, e_o is the one-hot vector of the label.

        Parameters
        ----------
        batch : Batch
            A batch of samples with T positions.

        Returns
        -------
        float
            The mean loss.
        """
        return float(0.5 * np.square(_residual(self.predict(batch), batch)).sum() / len(batch))

    @abstractmethod
    def pull_back(self, gA: Array) -> Array:
        """Convert a gradient with respect to the attention into one with respect to its parameters.

        Parameters
        ----------
        gA : (T, N) array
            The gradient of any function with respect to the attention.

        Returns
        -------
        (T, N) array
            The gradient of the same function with respect to the parameters.

        Examples
        --------
        A gradient that is the same at all positions does not change the parameters of a softmax:

        >>> import numpy as np, scb
        >>> model = scb.SoftmaxTransformer(np.eye(2), np.zeros((4, 2)))
        >>> bool(model.pull_back(np.ones((4, 2))).any())
        False
        """

    def gradient(self, batch: "Batch") -> Gradient:
        """Compute a batch's mean loss and its exact gradients with respect to V and A's parameters.

        Parameters
        ----------
        batch : Batch
            A batch of samples with T positions.

        Returns
        -------
        Gradient
            The mean ``loss``, the gradients ``V`` (N, N) and ``A`` (T, N), and the number of
            ``samples``.
        """
        gradient = batch_gradient(self.V, self.attention, batch)
        return gradient._replace(A=self.pull_back(gradient.A))


class LinearTransformer(OneLayerTransformer):
    """The linear transformer F(x, k) = V·X·A[:, k], whose attention weights A are free parameters.

    Column t of X is the one-hot vector of token x_t. With several heads, F = Σ_h V_h·X·A_h[:, k].

    Parameters
    ----------
    V : (N, N) array, or (H, N, N) with several heads
        The value matrix.
    A : (T, N) array, or (H, T, N) with several heads
        The attention; column k holds the weights of the T positions when the last token is k.

    Examples
    --------
    >>> import numpy as np, scb
    >>> V, A = [[0.9, 0.2], [0.1, 0.8]], [[1.0, 0.0], [0.0, 0.25], [0.0, 0.75]]
    >>> model = scb.LinearTransformer(V, A)
    >>> context, last = np.array([[0, 1, 1], [1, 0, 1]]), np.array([0, 1])
    >>> batch = scb.Batch(context, last, label=np.array([0, 1]))
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
        self.V, self.A = _parameters(V, A, "A", heads=True)

    @property
    def attention(self) -> Array:
        """The attention as a (T, N) array, which consists of the parameters A themselves."""
        return self.A

    def pull_back(self, gA: Array) -> Array:
        """Return the gradient unchanged, because the attention weights are the parameters.

        Parameters
        ----------
        gA : (T, N) array
            The gradient with respect to the attention.

        Returns
        -------
        (T, N) array
            The same array.

        Examples
        --------
        >>> import numpy as np, scb
        >>> g = np.ones((4, 2))
        >>> scb.LinearTransformer(np.eye(2), np.zeros((4, 2))).pull_back(g) is g
        True
        """
        return gA


class SoftmaxTransformer(OneLayerTransformer):
    """The softmax transformer F(x, k) = V·X·σ(W[:, k]).

    The attention weights are a softmax σ over positions.

    The transformer predicts the label of a context x with last token k. Column t of X is the
    one-hot vector of token x_t.

    Parameters
    ----------
    V : (N, N) array
        The value matrix.
    W : (T, N) array
        The logits of the attention; column k is used when the last token is k.

    Examples
    --------
    >>> import numpy as np, scb
    >>> W = np.log([[2.0, 1.0], [1.0, 1.0], [1.0, 2.0]])
    >>> model = scb.SoftmaxTransformer([[0.9, 0.2], [0.1, 0.8]], W)
    >>> model.attention
    array([[0.5 , 0.25],
           [0.25, 0.25],
           [0.25, 0.5 ]])
    >>> context, last = np.array([[0, 1, 1], [1, 0, 1]]), np.array([0, 1])
    >>> batch = scb.Batch(context, last, label=np.array([0, 1]))
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
        """The attention σ(W) as a (T, N) array: the softmax of each column of W over positions."""
        e = np.exp(self.W - self.W.max(axis=0))
        return e / e.sum(axis=0)

    def pull_back(self, gA: Array) -> Array:
        """Convert a gradient with respect to the attention into one with respect to the logits W.

        In each column, this gradient is ∇_w = (diag(a) − aaᵀ)∇_a, where a = σ(w).

        Parameters
        ----------
        gA : (T, N) array
            The gradient with respect to the attention.

        Returns
        -------
        (T, N) array
            The gradient with respect to W.

        Examples
        --------
        >>> import numpy as np, scb
        >>> scb.SoftmaxTransformer(np.eye(2), np.zeros((4, 2))).pull_back(np.eye(4, 2))[:, 0]
        array([ 0.1875, -0.0625, -0.0625, -0.0625])
        """
        a = self.attention
        return a * (gA - (a * gA).sum(axis=0))


def batch_gradient(V: Array, A: Array, batch: "Batch") -> Gradient:
    """Compute the loss l and its gradients with respect to V and A, averaged over a batch.

    The gradients are ∇_V l = (VXa − e_o)(Xa)ᵀ and ∇_{a^(k)} l = 1{last = k}(VX)ᵀ(VXa − e_o).

    Parameters
    ----------
    V, A, batch : (N, N) array, (T, N) array and Batch; (H, N, N) and (H, T, N) with several heads
        The value matrix, the attention, and the samples.

    Returns
    -------
    Gradient

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> g = scb.model.batch_gradient(task.P, task.Q, scb.sample(task, 10_000, seed=0))
    >>> bool(abs(g.V).max() < 0.01)  # the task itself is the minimum of the expected loss
    True
    """
    mass = head_masses(A, batch)  # (n, H·N)
    r = _residual(mass @ side_by_side(V).T, batch)  # (n, N)
    n = len(batch)
    loss = float(0.5 * np.square(r).sum() / n)
    gV = apart(r.T @ mass / n, len(per_head(V)))
    gA = [scatter_scores(r @ one, batch, A.shape[-2]) / n for one in per_head(V)]
    return Gradient(loss, V=gV, A=gA[0] if A.ndim == 2 else np.stack(gA), samples=n)


def _residual(F: Array, batch: "Batch") -> Array:
    """F − e_o, row by row."""
    r = F.copy()
    r[np.arange(len(batch)), batch.label] -= 1.0
    return r


def _parameters(V: ArrayLike, A: ArrayLike, name: str, heads: bool = False) -> tuple[Array, Array]:
    V = real_array("V", V, copy=False)
    A = real_array(name, A, copy=False)
    if heads and V.ndim == 3:
        if V.shape[1] != V.shape[2]:
            raise InputError(f"V has shape {V.shape}: it must be square in each head, (H, N, N)")
        if A.ndim != 3 or A.shape[::2] != V.shape[:2]:
            raise InputError(
                f"{name} has shape {A.shape}: it must be ({len(V)}, T, {V.shape[1]}) to go with V"
            )
        return V, A
    A = np.asfortranarray(A)
    if V.ndim != 2 or V.shape[0] != V.shape[1]:
        raise InputError(f"V has shape {V.shape}: it must be square, (N, N)")
    if A.ndim != 2 or A.shape[1] != V.shape[0]:
        raise InputError(f"{name} has shape {A.shape}: it must be (T, {V.shape[0]}) to go with V")
    return V, A
