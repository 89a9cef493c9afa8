"""``probe`` finds out what a model has learned from its predictions alone.

A sparse contextual bigram predicts F(x, k) = V·Σ_t a_t^(k) e_{x_t}. Tokens of a context are
independent, so with G = F − E[F | k], U = V − Vμ1ᵀ and m = Σ_t a_t (e_{x_t} − μ), the form says
that G = U·m, and moments separate its two factors:

    a_t^(k) = E[⟨G, U e_{x_t}⟩ | k] / E‖U e_x‖²         U = E[G mᵀ] E[m mᵀ]⁺

Computing the two factors in turn is a power iteration for the best such form. The weights a_t that
stand out are kept, and all other positions of a column share one number. With so few unknowns,
least squares fits G exactly if G has the form, and the remainder is the part that the form does not
explain. No label is drawn: the predictions themselves are regressed, and they have no noise.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from scb.arrays import Array
from scb.contexts import scatter_scores, token_mass
from scb.geometry import population_projection
from scb.inputs import InputError, integer, one_of
from scb.metrics import distance_A, distance_V
from scb.task import Task
from scb.task.sampling import Batch, sample, token_dtype
from scb.torch.probe_report import Probe
from scb.training.roundings import noise_threshold

Model = Callable[[torch.Tensor], torch.Tensor]
Sampler = Callable[[int, int], np.ndarray]


def probe(
    model: Model,
    source: Task | Sampler,
    samples: int = 20_000,
    seed: int = 0,
    *,
    output: str = "logits",
    device: torch.device | str = "cpu",
    batch_size: int = 512,
) -> Probe:
    """Find the sparse contextual bigram (V, A) that best describes the predictions of any model.

    Only the predictions are used, not the model's inner structure.

    Parameters
    ----------
    model : callable
        A function or module that maps integer tokens (B, T + 1) on ``device`` to logits or
        probabilities (B, N).
    source : Task or callable
        The task that the model was trained on, or a function (samples, seed) → tokens (samples, T +
        1) that draws independent tokens.
    samples : int, default 20,000
        The number of contexts on which the model is evaluated, at least 100.
    seed : int, default 0
        The seed of the contexts.
    output : {"logits", "distribution"}, default "logits"
        Whether the model returns logits or probabilities.
    device : torch.device or str, default "cpu"
        The device of the model.
    batch_size : int, default 512
        The number of contexts that the model is given at a time.

    Returns
    -------
    Probe
        The best V and A, the positions that stand out, and the fraction of the predictions that
        they leave unexplained. If ``source`` is a task, the distances from it are included.

    Examples
    --------
    >>> import scb, scb.torch
    >>> task = scb.Task.random(3, 40, 2)
    >>> model = scb.torch.LinearAttention(task.P, task.Q)
    >>> seen = scb.torch.probe(model, task, output="distribution")
    >>> bool(seen.distance_V < 1e-3), bool(seen.distance_A < 1e-3), round(seen.mass, 3)
    (True, True, 1.0)
    """
    samples = integer("samples", samples, low=100)
    one_of("output", output, ("logits", "distribution"))
    tokens = (
        sample(source, samples, seed).tokens
        if isinstance(source, Task)
        else np.asarray(source(samples, seed))
    )
    F = _distributions(model, tokens, output, device, batch_size)
    N = F.shape[1]
    batch = Batch(tokens[:, :-1].astype(token_dtype(N)), tokens[:, -1], tokens[:, -1])
    mu = np.bincount(tokens.ravel(), minlength=N) / tokens.size
    G = F - _means(F, batch.last)[batch.last]
    spread = float(np.sqrt(np.square(G).sum(axis=1).mean()))
    U, A = _power(G, batch, mu, seed)
    U, A, support = _refine(U, A, G, batch, mu)
    # F = Vμ + U·m where the columns of A sum to 1
    V = (F.mean(axis=0) - U @ _mass(A, batch, mu).mean(axis=0))[:, None] + U
    left = G - _predict(U, A, batch, mu)
    unexplained = float(np.square(left).sum() / max(np.square(G).sum(), 1e-300))
    report = Probe(V, A, support, spread=spread, unexplained=unexplained, samples=samples)
    return _compared(report, source, F, batch) if isinstance(source, Task) else report


def _distributions(
    model: Model, tokens: np.ndarray, output: str, device: torch.device | str, batch_size: int
) -> Array:
    """(n, N): what the model predicts, as distributions in float64."""
    predictions = []
    with torch.no_grad():
        for start in range(0, len(tokens), batch_size):
            part = torch.from_numpy(tokens[start : start + batch_size].astype(np.int64)).to(device)
            out = model(part).double()
            if out.ndim != 2 or len(out) != len(part):
                raise InputError(
                    f"the model made {tuple(out.shape)} of tokens {tuple(part.shape)}: "
                    "it must make (B, N)"
                )
            predictions.append((out.softmax(dim=1) if output == "logits" else out).cpu().numpy())
    return np.concatenate(predictions)


def _means(F: Array, last: np.ndarray) -> Array:
    """(N, N): row k is the mean of F where the last token is k."""
    N = F.shape[1]
    sums = np.zeros((N, N))
    np.add.at(sums, last, F)
    return sums / np.maximum(np.bincount(last, minlength=N), 1)[:, None]


def _power(G: Array, batch: Batch, mu: Array, seed: int, turns: int = 30) -> tuple[Array, Array]:
    """U (N, N) and a dense A (T, N) by the two moments in turns, from a random U."""
    N = len(mu)
    counts = np.maximum(np.bincount(batch.last, minlength=N), 1)
    U = np.random.default_rng(seed).standard_normal((N, N))
    A = np.zeros((batch.context.shape[1], N))
    for turn in range(turns):
        U = U - (U @ mu)[:, None]
        before = U
        A = scatter_scores(G @ U, batch, len(A)) / (
            counts * max(float(mu @ np.square(U).sum(axis=0)), 1e-300)
        )
        kept = (
            A
            if turn < 5
            else np.where(np.abs(A - np.median(A, axis=0)) > noise_threshold(A), A, 0.0)
        )
        U = _regress(G, _mass(kept, batch, mu))
        if _cosine(U, before) > 1 - 1e-6:
            break
    return U - (U @ mu)[:, None], A


def _cosine(X: Array, Y: Array) -> float:
    return float((X * Y).sum() / max(float(np.linalg.norm(X) * np.linalg.norm(Y)), 1e-300))


def _mass(A: Array, batch: Batch, mu: Array) -> Array:
    """(n, N): m = Σ_t a_t (e_{x_t} − μ), row by row."""
    mass = token_mass(np.asfortranarray(A), batch)
    return mass - mass.sum(axis=1, keepdims=True) * mu


def _regress(G: Array, m: Array) -> Array:
    """The U with the least ‖G − m Uᵀ‖."""
    return np.linalg.lstsq(m.T @ m, m.T @ G, rcond=1e-10)[0].T


def _predict(U: Array, A: Array, batch: Batch, mu: Array) -> Array:
    """(n, N): U·m without its mean for each last token, as G has none."""
    F = _mass(A, batch, mu) @ U.T
    return F - _means(F, batch.last)[batch.last]


def _refine(
    U: Array, A: Array, G: Array, batch: Batch, mu: Array, turns: int = 100
) -> tuple[Array, Array, tuple[np.ndarray, ...]]:
    """Least squares for U, and for each column the entries that stand out and one common value, in
    turns until nothing moves.
    """
    T, N = A.shape
    stands_out = np.abs(A - np.median(A, axis=0)) > noise_threshold(A)
    support = tuple(np.flatnonzero(stands_out[:, k]) for k in range(N))
    if not stands_out.any():
        return U, np.full((T, N), 1 / T), support
    rows = [np.flatnonzero(batch.last == k) for k in range(N)]
    # (n, N): what a uniform attention sees
    shares = _mass(np.full((T, N), 1 / T), batch, mu)
    for _ in range(turns):
        before = U
        A = np.zeros((T, N))
        for k in range(N):
            A[:, k] = _column(
                U, G[rows[k]], batch.context[rows[k]], shares[rows[k]], support[k], T, mu
            )
        A /= mu @ A.sum(axis=0) or 1.0
        U = _regress(G, _centred(_mass(A, batch, mu), batch.last))
        U = U - (U @ mu)[:, None]
        if np.abs(U - before).max() < 1e-10:
            break
    return U, A, support


def _centred(m: Array, last: np.ndarray) -> Array:
    return m - _means(m, last)[last]


def _column(
    U: Array, G: Array, context: np.ndarray, shares: Array, positions: np.ndarray, T: int, mu: Array
) -> Array:
    """Fit a column of A, (T,), by least squares: an entry for each position that stands out, and
    one common value.

    A uniform attention sees nearly the same in every context if T is large, so that the data say
    little about the common value: it is 0 unless it is three standard errors away.
    """
    if len(G) <= len(positions) + 1:
        return np.zeros(T)
    seen = [U[:, context[:, t]].T for t in positions] + [shares @ U.T]
    X = np.stack([(x - x.mean(axis=0)).ravel() for x in seen], axis=1)  # (n_k·N, positions + 1)
    y = G.ravel()
    a = _least_squares(X, y)
    noise = np.square(y - X @ a).mean()
    if not a[-1] ** 2 > 9 * noise * np.linalg.pinv(X.T @ X)[-1, -1]:
        a = np.append(_least_squares(X[:, :-1], y), 0.0)
    column = np.full(T, a[-1] / T)
    column[positions] += a[:-1]
    return column


def _least_squares(X: Array, y: Array) -> Array:
    return np.linalg.lstsq(X.T @ X, X.T @ y, rcond=1e-12)[0]


def _compared(report: Probe, task: Task, F: Array, batch: Batch) -> Probe:
    """The report, compared with the task that the model was to learn."""
    k = batch.last
    sources = batch.context[np.arange(len(batch)), task.positions[:, k]]  # (Q, n)
    truth = np.einsum("qn,jqn->nj", task.weights[:, k], task.P[:, sources])
    at = population_projection(task, report.V, np.asfortranarray(report.A))
    weight = np.abs(report.A)
    on_support = weight[task.positions, np.arange(task.N)].sum(axis=0)
    return replace(
        report,
        distance_V=distance_V(task, report.V),
        distance_A=distance_A(task, report.A),
        alpha_V=at.alpha_V,
        alpha_A=at.alpha_A,
        mass=float(task.mu @ on_support / (task.mu @ weight.sum(axis=0))),
        excess=_divergence(truth, F),
        excess_trivial=_divergence(truth, np.broadcast_to(task.mu, truth.shape)),
    )


def _divergence(truth: Array, F: Array) -> float:
    """Mean of KL(truth ‖ F), in nats; a prediction of 0 or less counts as 1e-12."""
    return float(
        (truth * (np.log(np.maximum(truth, 1e-300)) - np.log(np.maximum(F, 1e-12))))
        .sum(axis=1)
        .mean()
    )
