"""
Transfer: a trained V saves Stage 1
===================================

Stage 1 is slow because V and A know nothing of each other. If V comes from a *related* task, there is something to attend
to from the first step on, and the number of samples no longer grows with T. This is the paper's second theorem.
"""

# %%
# Two related tasks
# -----------------
# ``task.related`` makes a task with the same μ and Q and another P that is correlated with the first one. Training on it
# gives V̂.
import matplotlib.pyplot as plt

import scb

task = scb.Task.random(N=3, T=500, sparsity=2, seed=0)
other = task.related(overlap=0.6, seed=1)
pretrained = scb.train(other, scb.recipes.tuned(other), seed=0)
print("pretraining:", pretrained.verdict, "after", f"{pretrained.samples:,}", "samples")

# %%
# One step shows the support
# --------------------------
# The recipe takes one large step on A, with V half way between V̂ and nothing. That is enough for the true positions to stand
# out.
recipe = scb.recipes.transfer(task, pretrained.V)
run = scb.train(task, recipe, seed=2, every=1)
print(run)

# %%
# No plateau: compare with the run from scratch.
scratch = scb.train(task, scb.recipes.tuned(task), seed=2)
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for each, name in ((scratch, "from scratch"), (run, "with V̂")):
    ax.plot(each.history["samples"], each.history["alpha_A"], label=name)
ax.set(xlabel="samples", ylabel="α_A", xscale="log", xlim=(500, None))
ax.legend()

# %%
# The length does not matter
# --------------------------
# Samples that the recipe takes, for longer and longer contexts:
for T in (100, 1000, 10_000):
    longer = scb.Task.random(N=3, T=T, sparsity=2, seed=0)
    V_hat = longer.related(overlap=0.6, seed=1).P
    print(
        f"T = {T:6,}: {sum(s.steps * s.batch_size for s in scb.recipes.transfer(longer, V_hat).stages):,} samples"
    )

# %%
# It can fail, and says so
# ------------------------
# If the tasks are not related at all, nothing stands out. Two held-out batches judge every run without knowing the truth.
import warnings

unrelated = task.related(overlap=0.0, seed=3)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    failed = scb.train(task, scb.recipes.transfer(task, unrelated.P), seed=0)
print("verdict:", failed.verdict)

# %%
# Over many tasks and overlaps: :doc:`/paper/figures/F20`.
