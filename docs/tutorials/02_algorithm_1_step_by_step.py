"""
Algorithm 1 step by step, and a recipe of your own
==================================================

Algorithm 1 is short. Here it is written out by hand, step by step, with the functions that the library itself uses. Then it
is put together as a *recipe*, which is how one changes it.
"""

# %%
# A gradient
# ----------
# A *gradient source* answers one question: at (V, A), what is the mini-batch gradient? ``Reference`` draws samples in plain
# NumPy.
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import scb
from scb.geometry import threshold_normalize, threshold_project, uniform_start
from scb.training.sources.sampled import Reference
from scb.training.stages import precondition_A, precondition_V, proximal_step

task = scb.Task.random(N=3, T=200, sparsity=2, seed=0)
source = Reference(task)
V, A = uniform_start(task.mu, task.T)
gradient = source(V, A, 64, np.uint64(1))
print("shapes", gradient.V.shape, gradient.A.shape, "loss", round(gradient.loss, 3))

# %%
# A step
# ------
# Both gradients are preconditioned, so that rare tokens learn as fast as common ones, and so that a step keeps two things:
# the columns of A sum to 1, and Vμ = μ.
gV = precondition_V(gradient.V, task.mu, "mu")
gA = precondition_A(gradient.A, task.mu)
print("A step keeps the sums of A:", abs(gA.sum(axis=0)).max() < 1e-12)
print("and Vμ = μ:", abs(gV @ task.mu).max() < 1e-12)

# %%
# Stage 1 by hand
# ---------------
# ``proximal_step`` does all this for a ``Stage``, which says how large steps are, and λ. With λ = 0 it is plain
# preconditioned descent.
eta = 0.05
one = scb.Stage(
    "1", steps=300, eta_V=eta / task.K_Q, eta_A=eta / task.K_P, batch_size=512, projector="mu"
)
rng = np.random.default_rng(0)
for _ in range(one.steps):
    g = source(V, A, one.batch_size, rng.integers(2**63, dtype=np.uint64))
    V, A = proximal_step(V, A, g.V, g.A, task.mu, one)
    if scb.measure(task, V, A)["alpha_A"] > 0.2:
        break
found = scb.measure(task, V, A)
print({name: round(found[name], 2) for name in ("alpha_V", "alpha_A", "dist_V", "dist_A")})

# %%
# Between the stages
# ------------------
# Entries of A below a threshold are made equal. The noise of 200 positions is gone in one stroke, and the signal stays.
A = threshold_project(A, 0.05)
two = replace(one, name="2", steps=80, lam=2e-4)
for _ in range(two.steps):
    g = source(V, A, two.batch_size, rng.integers(2**63, dtype=np.uint64))
    V, A = proximal_step(V, A, g.V, g.A, task.mu, two)

# %%
# Stage 3
# -------
# The attention is rounded for good, and V is trained alone: ``eta_A=0`` freezes A.
A = threshold_normalize(A, 0.1)
three = replace(one, name="3", steps=150, eta_A=0.0)
for _ in range(three.steps):
    g = source(V, A, three.batch_size, rng.integers(2**63, dtype=np.uint64))
    V, A = proximal_step(V, A, g.V, g.A, task.mu, three)
found = scb.measure(task, V, A)
print({name: round(found[name], 3) for name in ("alpha_V", "alpha_A", "dist_V", "dist_A")})

# %%
# A recipe of your own
# --------------------
# A recipe is an initial point and a list of stages. ``scb.recipes.paper`` makes one; change a stage and you have another.
# Here λ falls from step to step in Stage 2, and Stage 3 is added.
recipe = scb.recipes.paper(
    task, steps=(400, 600, 200), batch_size=256, lam=1e-4, projector="mu"
)
first, second, third = recipe.stages
mine = replace(
    recipe,
    name="falling λ",
    stages=(first, replace(second, lam=lambda step: 3e-4 / (1 + step / 50)), third),
)
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for each in (recipe, mine):
    run = scb.train(task, each, seed=0)
    ax.semilogy(run.history["step"], run.history["dist_A"], label=each.name)
ax.set(xlabel="step", ylabel="‖A − Q‖")
ax.legend()

# %%
# To give a recipe a name on the command line, see :doc:`/howto/add-in-your-own-package`.
