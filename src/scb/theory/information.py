"""The accuracy with which P and Q can be known from n samples: Fisher information and the
Cramér–Rao bound.

The distribution of the label is f_o = Σ_t q_t^(k) P[o, x_t]; the distribution of the context does
not depend on the parameters. Columns of P and of Q sum to 1, so the information is inverted on the
tangent space of these constraints. The support of Q is taken as known.
"""

from itertools import product
from typing import NamedTuple

import numpy as np

from scb.arrays import Array
from scb.geometry.heads import one_head
from scb.inputs import InputError
from scb.task import Seed, Task
from scb.theory.fisher import Information


def fisher_information(
    task: Task, draws: int = 400_000, seed: Seed = 0, *, enumerated: int = 2_000_000
) -> Information:
    """Compute the expected Fisher information about (P, Q) in one sample of a task.

    The support of Q is taken as known.

    The expectation is over the last token and the tokens at the positions attended to. The
    expectation is computed exactly if the number of combinations of these tokens, N^(Q + 1), is at
    most ``enumerated``. Otherwise, it is estimated by the average over random combinations.

    Parameters
    ----------
    task : Task
        The task that defines the distribution of the samples.
    draws : int, default 400,000
        The number of random contexts, if they cannot be enumerated; the relative error is of order
        1/√draws.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness of these contexts.
    enumerated : int, default 2,000,000
        The largest number of combinations that are enumerated.

    Returns
    -------
    Information
        The blocks of the information matrix.

    Examples
    --------
    >>> import scb
    >>> task = scb.Task.random(3, 40, 2, seed=0)
    >>> scb.theory.information.fisher_information(task).qq[0].round(2)
    array([[0.68, 0.2 ],
           [0.2 , 0.6 ]])
    """
    one_head(task, "the Fisher information")
    N, s = task.N, task.sparsity
    if N ** (s + 1) <= enumerated:
        rows = np.array(list(product(range(N), repeat=s + 1)))
        weight = np.prod(task.mu[rows], axis=1)
    else:
        rows = np.random.default_rng(seed).choice(N, size=(draws, s + 1), p=task.mu)
        weight = np.full(draws, 1 / draws)
    return Information.from_contexts(
        rows[:, 1:].copy(), rows[:, 0].copy(), weight, task.weights.T, task.P
    )


class CramerRao(NamedTuple):
    """Lower bounds on the variances of unbiased estimates of P and Q.

    The sums of these bounds are lower bounds on E‖P̂ − P‖² and E‖Q̂ − Q‖², where P̂ and Q̂ are the
    estimates.

    Attributes
    ----------
    P : (N, N) array
        The bound for each entry of P.
    Q : (sparsity, N) array
        The bound for each attention weight, in the layout of ``task.weights``.

    Examples
    --------
    >>> import scb
    >>> bound = scb.theory.information.cramer_rao(scb.Task.random(3, 40, 2, seed=0), n=1000)
    >>> bound.P.shape, bound.Q.shape
    ((3, 3), (2, 3))
    """

    P: Array
    Q: Array


def cramer_rao(task: Task, n: int, draws: int = 400_000, seed: Seed = 0) -> CramerRao:
    """Compute the Cramér–Rao bound for (P, Q) from n independent samples.

    The support of Q is taken as known.

    Entries that are exactly 0 lie on the boundary of the parameter space. Such entries are treated
    as known and have a bound of 0.

    Parameters
    ----------
    task : Task
        The true task.
    n : int
        The number of samples.
    draws : int, default 400,000
        The number of random contexts, if they cannot be enumerated; see ``fisher_information``.
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None, default 0
        The source of randomness of these contexts.

    Returns
    -------
    CramerRao
        The smallest possible variance of each entry of P and each weight of Q.

    Examples
    --------
    Compare the smallest standard deviations that an unbiased estimate of the weights from 4,000
    samples can have with the standard errors that ``recover`` reports:

    >>> import scb
    >>> task = scb.Task.random(3, 20, 2, seed=0)
    >>> (scb.theory.information.cramer_rao(task, n=4000).Q[0] ** 0.5).round(3)
    array([0.017, 0.019, 0.021])
    >>> found = scb.recover(scb.sample(task, 4000, seed=0))
    >>> [round(float(found.stderr.A[s[0], k]), 3) for k, s in enumerate(found.support)]
    [0.017, 0.019, 0.021]
    """
    if n < 1:
        raise InputError(f"n = {n}: there must be at least 1 sample")
    of_P, of_q = fisher_information(task, draws, seed).variances()
    return CramerRao(of_P / n, of_q.T / n)
