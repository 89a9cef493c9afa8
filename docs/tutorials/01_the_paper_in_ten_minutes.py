"""
The paper in ten minutes
========================

A sequence of tokens comes in. The *last* token decides which earlier positions matter, and the tokens found there decide
what comes next. Can a one-layer transformer find this out by gradient descent? This tutorial makes such a task, trains on
it, and watches the three stages of the paper's Algorithm 1.
"""

# %%
# The task
# --------
# There are N = 3 tokens and T = 1,000 earlier positions. For each last token, two positions matter (``sparsity=2``).
# ``task.P`` is a transition matrix with a distribution in each *column*: ``P[n, m]`` is the probability of n if the token
# found was m.
import matplotlib.pyplot as plt
import numpy as np

import scb

task = scb.Task.random(N=3, T=1000, sparsity=2, seed=0)
print(task.P.round(2))
for token in range(task.N):
    print(f"after token {token}, look at positions {task.support[token]}")

# %%
# A sample is a context, a last token, and a label. Nobody tells the learner which positions count.
batch = scb.sample(task, 5, seed=0)
print(batch.context.shape, batch.last, batch.label)

# %%
# The model
# ---------
# The model has two parts. The attention A, with a column for each last token, says where to look. The value matrix V says
# what to make of what is found there. The truth is A = Q and V = P. Training starts with uniform attention and a V that knows
# only how frequent each token is. The loss at the start, and the least that can be reached:
start = scb.LinearTransformer(np.outer(task.mu, np.ones(3)), np.full((task.T, 3), 1 / task.T))
truth = scb.LinearTransformer(task.P, task.Q)
fresh = scb.sample(task, 20_000, seed=1)
print(f"loss at the start {start.loss(fresh):.3f}, at the truth {truth.loss(fresh):.3f}")

# %%
# Three stages
# ------------
# ``scb.recipes.tuned`` is the paper's Algorithm 1 with step sizes, batch sizes and λ that follow from the noise. Stage 1
# waits for a signal to grow out of nothing. Stage 2 adds an ℓ1 step that wipes off the noise. Stage 3 rounds the attention
# and trains V alone.
run = scb.train(task, scb.recipes.tuned(task), seed=1)
print(run)

# %%
# The two numbers to watch are the signals α: 0 at the start, 1 at the truth. For a long time nothing seems to happen; then
# both take off together. While V knows nothing A has nothing to gain, and the other way round: this is the paper's
# sample-intensive first stage.
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
# The attention is 0 but for the positions that matter.
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
# Take the algorithm apart in :ref:`sphx_glr_learn_02_algorithm_1_step_by_step.py`. The paper's own settings, and what became
# of its claims, are in :doc:`/paper/claims`.
