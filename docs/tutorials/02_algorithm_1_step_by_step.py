"""
Algorithm 1 step by step, and a recipe of your own
==================================================

Algorithm 1 is short. In this tutorial you write it out by hand, step by step, with the functions that the library itself
uses. Then you put the algorithm together as a *recipe*, which makes it easy to change.
"""

# %%
# A gradient
# ----------
# The model has a value matrix V and an attention A, which should become the true P and Q of the task. A *gradient source*
# answers one question: at (V, A), what is the gradient of a mini-batch? ``Reference`` draws its samples in plain NumPy. The
# last argument, a random number, decides which samples are drawn.
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import scb
from scb.geometry import threshold_normalize, threshold_project, uniform_start
from scb.training.sources.sampled import Reference
from scb.training.stages import proximal_step
from scb.training.updates import precondition_A, precondition_V

task = scb.Task.random(N=3, T=200, sparsity=2, seed=0)
source = Reference(task)
V, A = uniform_start(task.mu, task.T)
gradient = source(V, A, 64, np.uint64(1))
print("shapes", gradient.V.shape, gradient.A.shape, "loss", round(gradient.loss, 3))

# %%
# A step
# ------
# Both gradients are preconditioned, for two reasons. First, rare tokens should be learned as fast as common tokens. Second, a
# step must preserve two properties: the columns of A sum to 1, and Vμ = μ, where μ is the distribution of the tokens.
gV = precondition_V(gradient.V, task.mu, "mu")
gA = precondition_A(gradient.A, task.mu)
print("A step keeps the sums of A:", abs(gA.sum(axis=0)).max() < 1e-12)
print("and Vμ = μ:", abs(gV @ task.mu).max() < 1e-12)

# %%
# Stage 1 by hand
# ---------------
# ``proximal_step`` preconditions the gradients and takes the step. A ``Stage`` holds the step sizes and the threshold λ of the
# ℓ1 step. Here λ is 0, so this is preconditioned gradient descent. We stop when the signal α_A has reached 0.2. (The learner
# could not know α_A; the recipes of the library look at the attention instead.)
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
# Entries of A below a threshold are now made equal. This removes the noise of nearly all of the 200 positions at once, and the
# signal stays. In Stage 2, each step also moves all entries of A towards 0 by λ and sets small entries to 0. This keeps the
# noise from coming back.
A = threshold_project(A, 0.05)
two = replace(one, name="2", steps=80, lam=2e-4)
for _ in range(two.steps):
    g = source(V, A, two.batch_size, rng.integers(2**63, dtype=np.uint64))
    V, A = proximal_step(V, A, g.V, g.A, task.mu, two)

# %%
# Stage 3
# -------
# The attention is thresholded and normalised, and then V is trained alone: ``eta_A=0`` freezes A. In the end, both signals
# should be close to 1, and both distances should be close to 0.
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
# A recipe is an initial point and a list of stages. ``scb.recipes.paper`` makes a recipe; if you replace one of its stages, you
# have your own recipe. Here λ falls from step to step in Stage 2, instead of staying the same.
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
# To use your own recipe on the command line, give it a name in a small package: :doc:`/howto/add-in-your-own-package`.
