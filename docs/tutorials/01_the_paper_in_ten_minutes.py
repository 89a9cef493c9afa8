"""
The paper in ten minutes
========================

.. image:: /images/strip.svg
   :alt: The last token points back to a position, and what it finds there sets the odds of the next.
   :class: dark-light
   :width: 560px

In the paper's task, the *last* token of a sequence decides which earlier positions matter, and the tokens found there decide
what comes next. Can a one-layer transformer learn this rule by gradient descent? In this tutorial you make such a task, train on
it, and watch the three stages of the paper's Algorithm 1.
"""

# %%
# The task
# --------
# There are N = 3 tokens and T = 1,000 earlier positions. For each last token, two of the positions matter (``sparsity=2``). One
# of the two is picked at random, and the token found there decides the next token through the transition matrix ``task.P``. Each
# *column* of P is a distribution: ``P[n, m]`` is the probability that the next token is n if the token found was m.
import matplotlib.pyplot as plt
import numpy as np

import scb

task = scb.Task.random(N=3, T=1000, sparsity=2, seed=0)
print(task.P.round(2))
for token in range(task.N):
    print(f"after token {token}, look at positions {task.support[token]}")

# %%
# A sample consists of a context of T tokens, a last token, and a label, which is the token that comes next. A sample does not say
# which positions matter: the learner has to find this out.
batch = scb.sample(task, 5, seed=0)
print(batch.context.shape, batch.last, batch.label)

# %%
# The model
# ---------
# The model has two parts. The attention A, with a column for each last token, says where to look. The value matrix V says
# what follows from the tokens found there. The truth is A = Q, where Q holds the true weights of the positions, and V = P.
# Training starts with uniform attention and a V that knows only how frequent each token is. Here are the loss at the start and
# the smallest loss that can be reached:
start = scb.LinearTransformer(np.outer(task.mu, np.ones(3)), np.full((task.T, 3), 1 / task.T))
truth = scb.LinearTransformer(task.P, task.Q)
fresh = scb.sample(task, 20_000, seed=1)
print(f"loss at the start {start.loss(fresh):.3f}, at the truth {truth.loss(fresh):.3f}")

# %%
# Three stages
# ------------
# ``scb.recipes.tuned`` is the paper's Algorithm 1, with step sizes, batch sizes and a threshold λ that are computed from the
# noise. Its three stages have different purposes:
#
# - Stage 1 is plain gradient descent. It continues until a signal has grown out of almost nothing.
# - Stage 2 adds an ℓ1 step, which removes the noise from the attention.
# - Stage 3 rounds the attention and trains V alone.
run = scb.train(task, scb.recipes.tuned(task), seed=1)
print(run)

# %%
# The two numbers to watch are the signals α_V and α_A. They say how much of P and of Q has been learned: both are 0 at the start
# and 1 at the truth. For a long time nothing seems to happen, and then both signals grow together. The reason is that V and A
# need each other: while V knows nothing, no attention is better than another, and while A knows nothing, V sees only averages.
# This is the sample-intensive first stage of the paper.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
step = run.history["step"]
left.plot(step, run.history["alpha_V"], label="α_V")
left.plot(step, run.history["alpha_A"], label="α_A")
left.axhline(1, color="0.7", lw=1)
left.set(xlabel="step", title="signals")
left.legend()
right.semilogy(step, run.history["dist_V"], label="‖V − P‖")
right.semilogy(step, run.history["dist_A"], label="‖A − Q‖")
right.set(xlabel="step", title="distances to the truth")
right.legend()

# %%
# What was learned
# ----------------
# The learned attention (lines) is 0 everywhere except at the positions that matter (circles).
figure, axes = plt.subplots(3, 1, figsize=(8, 4), sharex=True, layout="constrained")
for token, ax in enumerate(axes):
    ax.stem(run.A[:, token], markerfmt=" ", basefmt=" ")
    ax.plot(
        task.support[token],
        task.Q[task.support[token], token],
        "o",
        mfc="none",
        color="C3",
        label="truth",
    )
    ax.set_ylabel(f"after {token}")
axes[0].legend()
axes[-1].set_xlabel("position")
print("largest error in V:", abs(run.V - task.P).max().round(3))

# %%
# Where to go on
# --------------
# The next tutorial, :ref:`sphx_glr_learn_02_algorithm_1_step_by_step.py`, takes the algorithm apart. The page
# :doc:`/paper/claims` shows the paper's own settings, and what became of its claims.
