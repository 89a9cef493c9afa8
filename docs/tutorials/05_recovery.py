"""
Recovery down to the Cramér–Rao bound
=====================================

Gradient descent is not the only way to find the transition matrix P and the attention Q of a task. ``scb.recover`` takes a
fixed data set and finds both by moments and maximum likelihood. It needs far fewer samples than gradient descent, and it reports
standard errors. This tutorial shows how to use ``scb.recover``, what its standard errors mean, and that they are as small as
possible.
"""

# %%
# From 2,000 samples
# ------------------
# There are 500 positions, of which two matter for each last token. ``recover`` finds these positions, with their weights and
# standard errors. In its result, A is the estimate of Q, and V is the estimate of P.
import warnings

import matplotlib.pyplot as plt
import numpy as np

import scb
from scb.theory.information import cramer_rao

task = scb.Task.random(N=3, T=500, sparsity=2, seed=0)
fit = scb.recover(scb.sample(task, 2000, seed=1))
print(fit.report())
for token in range(task.N):
    print(f"after {token}: found {fit.support[token]}, true {task.support[token]}")

# %%
# What a standard error means
# ---------------------------
# If you drew the data again, the estimate would be a little different. The standard error says how different it would be, and it
# is computed from a single data set. Thirty data sets show that the standard error is right:
n = 2000
first = task.positions[0, 0], 0
estimates, errors = [], []
for seed in range(30):
    again = scb.recover(scb.sample(task, n, seed=100 + seed))
    estimates.append(again.A[first])
    errors.append(again.stderr.A[first])
print(
    f"spread of the weight over data sets {np.std(estimates):.4f}, standard error {np.median(errors):.4f}"
)

# %%
# The bound
# ---------
# No unbiased estimate can have a smaller variance than the Cramér–Rao bound, which ``cramer_rao`` computes for a task. The
# estimate of ``recover`` reaches this bound: the measured squared errors of V are close to the line of the bound.
bound = cramer_rao(task, n)
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
sizes = (500, 1000, 2000, 4000, 8000)
squares = []
for size in sizes:
    fits = [scb.recover(scb.sample(task, size, seed=200 + seed)) for seed in range(8)]
    squares.append(np.mean([((each.V - task.P) ** 2).sum() for each in fits]))
ax.loglog(sizes, squares, "o", label="measured, 8 data sets each")
ax.loglog(sizes, [bound.P.sum() * n / size for size in sizes], label="the bound")
ax.set(xlabel="samples", ylabel="squared error of V")
ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
ax.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
ax.legend()

# %%
# NaN: the data cannot tell
# -------------------------
# With only 60 samples, no position stands out. The fit does not guess: the list of positions is empty, the standard errors are
# NaN, and ``incomplete`` is true.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    little = scb.recover(scb.sample(task, 60, seed=0))
print(little.support, little.incomplete)
print("standard errors of the weights after token 0:", np.unique(little.stderr.A[:, 0]))

# %%
# The page :doc:`/howto/nan-standard-error` lists all cases of NaN, and :doc:`/explanation/recovery` explains how the method
# works.
