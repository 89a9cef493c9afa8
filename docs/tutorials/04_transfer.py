"""
Transfer: a trained V saves Stage 1
===================================

Stage 1 is slow because V and A have to learn from each other, and at the start neither knows anything. If V comes from a
*related* task, A can learn from V in the first step, and the number of samples no longer grows with the length T.
This is the paper's second theorem. In this tutorial you use transfer, and see when it fails.
"""

# %%
# Two related tasks
# -----------------
# ``task.related`` makes a task with the same μ and Q, and with another P that is correlated with the P of ``task``. Training on
# this other task produces a value matrix, which we call V̂.
import matplotlib.pyplot as plt

import scb

task = scb.Task.random(N=3, T=500, sparsity=2, seed=0)
other = task.related(overlap=0.6, seed=1)
pretrained = scb.train(other, scb.recipes.tuned(other), seed=0)
print("pretraining:", pretrained.verdict, "after", f"{pretrained.samples:,}", "samples")

# %%
# One step shows the support
# --------------------------
# The recipe ``transfer`` begins with V halfway between the uninformed start and V̂, and takes one large step on A. This step is
# enough for the true positions to stand out.
recipe = scb.recipes.transfer(task, pretrained.V)
run = scb.train(task, recipe, seed=2, every=1)
print(run)

# %%
# Compare this with a run from scratch: with V̂ there is no plateau.
scratch = scb.train(task, scb.recipes.tuned(task), seed=2)
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for each, name in ((scratch, "from scratch"), (run, "with V̂")):
    ax.plot(each.history["samples"], each.history["alpha_A"], label=name)
ax.set(xlabel="samples", ylabel="α_A", xscale="log", xlim=(500, None))
ax.legend()

# %%
# The length does not matter
# --------------------------
# The recipe decides beforehand how many samples it uses. These are the numbers for longer and longer contexts:
for T in (100, 1000, 10_000):
    longer = scb.Task.random(N=3, T=T, sparsity=2, seed=0)
    V_hat = longer.related(overlap=0.6, seed=1).P
    print(
        f"T = {T:6,}: {sum(s.steps * s.batch_size for s in scb.recipes.transfer(longer, V_hat).stages):,} samples"
    )

# %%
# It can fail, and says so
# ------------------------
# If the tasks are not related at all, no position stands out. You can notice this without knowing the truth: every run is judged
# on two held-out batches, and the verdict says what is wrong.
import warnings

unrelated = task.related(overlap=0.0, seed=3)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    failed = scb.train(task, scb.recipes.transfer(task, unrelated.P), seed=0)
print("verdict:", failed.verdict)

# %%
# The figure :doc:`/paper/figures/F20` shows the same for many tasks and overlaps.
