"""
Write a gradient source, an update, a claim
===========================================

scb trains with one algorithm that is put together from small pieces, so you can study your own question by replacing one
piece. In this tutorial you write three such pieces: a source of gradients with noisy labels, an update with a hard threshold, and a
claim that compares two methods.
"""

# %%
# A gradient source
# -----------------
# A source is a function of (V, A, batch size, key) that returns a gradient. All randomness of a source must come from the key. The
# source below spoils a share of the labels: it draws them from μ, whatever the context.
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import numpy as np

import scb
from scb.model import batch_gradient
from scb.training.updates import precondition_A, precondition_V

task = scb.Task.random(N=3, T=100, sparsity=2, seed=0)


@dataclass(frozen=True)
class NoisyLabels:
    task: scb.Task
    share: float = 0.1

    def __call__(self, V, A, batch_size, key):
        rng = np.random.default_rng(key)
        batch = scb.sample(self.task, batch_size, rng)
        noise = rng.choice(self.task.N, size=batch_size, p=self.task.mu).astype(
            batch.label.dtype
        )
        spoilt = rng.random(batch_size) < self.share
        return batch_gradient(V, A, replace(batch, label=np.where(spoilt, noise, batch.label)))


recipe = scb.recipes.paper(
    task, eta=(0.05, 0.05, 0.05), steps=(200, 200, 0), batch_size=256, lam=2e-4, projector="mu"
)
clean = scb.train(task, recipe, seed=0, judge=False)
noisy = scb.train(task, recipe, seed=0, source=NoisyLabels(task, 0.3), judge=False)
for name, run in (("clean", clean), ("noisy", noisy)):
    print(
        f"{name}: α_V = {run.history['alpha_V'][-1]:.2f}, ‖A − Q‖ = {run.history['dist_A'][-1]:.3f}"
    )

# %%
# With 30 % of the labels spoilt, the attention is learned nearly as well as with clean labels. The signal of V is smaller, as it
# should be: the matrix that V can learn is 0.7·P + 0.3·μ1ᵀ.
#
# An update rule
# --------------
# A rule is a function that takes the current point, the plain gradients, μ and the stage, and returns the next point. In each
# step of Stage 2, Algorithm 1 moves every entry of A towards 0 by λ, which is called a *soft* threshold. The rule below uses a
# *hard* threshold instead: it keeps the ten largest entries of each column unchanged, and makes all others equal.


def keep_ten(V, A, gV, gA, mu, stage):
    """A preconditioned step; then all but the ten largest entries of each column of A are made equal."""
    A = A - stage.eta_A * precondition_A(gA, mu)
    tenth = np.sort(np.abs(A), axis=0)[-10]
    kept = np.where(np.abs(A) >= tenth, A, 0.0)
    return V - stage.eta_V * precondition_V(gV, mu, "mu"), kept + (1 - kept.sum(axis=0)) / len(
        A
    )


task = scb.Task.random(N=3, T=300, sparsity=2, seed=0)
soft = scb.recipes.paper(
    task, eta=(0.03, 0.03, 0.03), steps=(250, 300, 0), batch_size=128, lam=5e-4, projector="mu"
)
first, second = soft.stages
hard = replace(soft, name="hard", stages=(first, replace(second, rule=keep_ten)))
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for recipe in (soft, hard):
    run = scb.train(task, recipe, seed=0, judge=False)
    ax.plot(
        run.history["step"],
        run.history["delta_A"],
        label="soft: Algorithm 1" if recipe is soft else "hard: keep ten",
    )
ax.set(xlabel="step", ylabel="‖Δ_A‖")
ax.legend()

# %%
# A claim
# -------
# In the picture, the hard threshold looks better on this task. A *claim* states this in a way that can turn out to be false. A
# claim is a function of tables that returns numbers and a verdict, together with the words in which the numbers are reported. The
# docstring of the function is the criterion, a sentence with numbers. Write the criterion before you look at the runs that decide
# whether the claim holds.
from functools import partial

from scb.paper.claims.claim import Claim
from scb.paper.numbers import middle
from scb.paper.outcome import Outcome, at_most


@partial(
    Claim,
    "hard-beats-soft",
    figure="F16",
    says="Keeping ten entries beats ℓ1.",
    where="this tutorial",
    words="the ratio is {ratio:.2f}",
)
def hard_is_better(errors):
    """After Stage 2 ‖Δ_A‖ with the hard threshold is at most half of that with the soft one, in the median run."""
    ratio = middle(errors["hard"] / errors["soft"])
    return Outcome.judged(at_most(ratio, 0.5), ratio=ratio)


table = {"soft": [], "hard": []}
for seed in range(10, 16):
    table["soft"].append(scb.train(task, soft, seed=seed, judge=False).history["delta_A"][-1])
    table["hard"].append(scb.train(task, hard, seed=seed, judge=False).history["delta_A"][-1])
outcome = hard_is_better({name: np.array(values) for name, values in table.items()})
print(hard_is_better.criterion)
print(outcome.verdict.value, "-", *hard_is_better.measured(outcome))

# %%
# There are two reservations. First, one task is no evidence about tasks in general: a claim of the report is judged on 50 random
# tasks or more. Second, the rule was given a hint, because we knew that only two positions matter when we chose to keep ten
# entries.

# %%
# To use such pieces on the command line and in sweeps, put them into a package: :doc:`/howto/add-in-your-own-package`. The page
# :doc:`/howto/add-to-scb` describes how a claim becomes part of the report.
