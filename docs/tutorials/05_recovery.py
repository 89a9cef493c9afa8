"""
Recovery down to the Cramér–Rao bound
=====================================

Gradient descent is not the only way to find P and Q. ``scb.recover`` takes a fixed data set and finds them by moments and
maximum likelihood. It needs far fewer samples, and it says how sure it is. This tutorial explains what its standard errors
mean.
"""

# %%
# From 2,000 samples
# ------------------
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
# Draw the data again, and again: the estimate moves. Its standard error says by how much, from a single data set. Thirty data
# sets show that it is right.
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
# No unbiased estimate can have a smaller variance than the Cramér–Rao bound. ``cramer_rao`` computes it for a task. The
# likelihood reaches it: the mean squared error of V, over the bound, is close to 1.
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
ax.legend()

# %%
# NaN: the data cannot tell
# -------------------------
# With 60 samples nothing stands out. The fit does not guess: the support is empty, the standard errors are NaN, and
# ``incomplete`` is true.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    little = scb.recover(scb.sample(task, 60, seed=0))
print(little.support, little.incomplete)
print("standard errors of the weights after token 0:", np.unique(little.stderr.A[:, 0]))

# %%
# All cases of NaN are listed in :doc:`/howto/nan-standard-error`. How the method works is told in
# :doc:`/explanation/recovery`.
