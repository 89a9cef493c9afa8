"""
Several heads
=============

The model of the paper has one head. This tutorial trains two heads on a task that needs two, watches them learn one singular
value after another, and reads the heads off the trained model. :doc:`The page on heads </explanation/heads>` explains why this
works.
"""

# %%
# A task with two heads
# ---------------------
# Each head has its own transition matrix. The last token chooses a head and a position. The ``singular_values`` of the task say
# how strong the two patterns are.
import matplotlib.pyplot as plt
import numpy as np

import scb

task = scb.Task.random(N=4, T=300, sparsity=2, seed=4, heads=2)
print(task)
print(task.check())

# %%
# One after another
# -----------------
# With large batches, the singular values of what the heads compute rise one after another. Heads that start alike do not learn
# the second singular value, because they stay alike.
large = {
    "eta": 0.02,
    "steps": (600, 400),
    "batch_size": 1000,
    "projector": "mu",
    "resolve_sign": False,
}
recipe = scb.recipes.sgd(task, **large)
equal = scb.recipes.sgd(task, **large, start="equal")
figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for ax, chosen, title in zip(
    axes, (recipe, equal), ("a random start", "equal heads"), strict=True
):
    run = scb.train(task, chosen, seed=0, judge=False)
    for i, value in enumerate(task.singular_values, 1):
        (line,) = ax.plot(run.history["step"], run.history[f"sigma_{i}"], label=f"σ_{i}")
        ax.axhline(value, color=line.get_color(), linestyle=":")
    ax.set(title=title, xlabel="step")
axes[0].legend()

# %%
# Reading the heads
# -----------------
# Together, the heads compute the right function, but each head is a mixture of the true heads. The rotation recovers the true
# heads; an overlap of 1 is a perfect match.
run = scb.train(task, recipe, seed=0, judge=False)
V, A = scb.rotate_heads(run.V, run.A)
print("before:", scb.metrics.match_heads(run.V, run.A, task).overlap.round(3))
print("after: ", scb.metrics.match_heads(V, A, task).overlap.round(3))

# %%
# From samples
# ------------
# The recipe ``tuned`` trains on fresh samples and rotates the heads automatically. The function ``recover`` needs far fewer
# samples, and also finds the number of heads.
run = scb.train(task, scb.recipes.tuned(task), seed=0)
print(run.summary())
fit = scb.recover(scb.sample(task, 10_000, seed=1), heads="auto")
print(fit.report())
print(
    "largest error of a P:",
    np.round(scb.metrics.match_heads(fit.V, fit.A, task).dist_V.max(), 3),
)
