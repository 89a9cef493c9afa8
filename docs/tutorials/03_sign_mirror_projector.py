"""
The sign, the mirror and the projector
======================================

The paper's literal algorithm often learns the *mirror image* of the truth. This tutorial shows what that is, why it
happens, and two ways out of it.
"""

# %%
# The mirror image
# ----------------
# Turn (V, A) around at the starting point: V becomes 2μ1ᵀ − V and A becomes 2/T − A. The two minus signs cancel in the
# product, so both predict almost the same, and the loss cannot tell.
import matplotlib.pyplot as plt
import numpy as np

import scb
from scb.geometry import trivial_V

task = scb.Task.random(N=3, T=2000, sparsity=2, seed=0)
batch = scb.sample(task, 5000, seed=0)
mirror_V = 2 * trivial_V(task.mu) - task.P
mirror_A = 2 / task.T - task.Q
print(f"loss of the truth  {scb.LinearTransformer(task.P, task.Q).loss(batch):.4f}")
print(f"loss of the mirror {scb.LinearTransformer(mirror_V, mirror_A).loss(batch):.4f}")
found = scb.measure(task, mirror_V, mirror_A)
print("signals of the mirror:", round(found["alpha_V"], 2), round(found["alpha_A"], 2))

# %%
# Who decides?
# ------------
# With an infinite batch a drift of size 1/(T·K_Q) decides, and it points to the truth. With 64 samples a step the noise is
# larger, and the sign is luck. Six seeds of the literal recipe, ``resolve_sign=False``, Stage 1 alone:
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, projector in ((left, "euclidean"), (right, "mu")):
    wrong = 0
    for seed in range(6):
        recipe = scb.recipes.paper(
            task, steps=(500, 0, 0), resolve_sign=False, projector=projector
        )
        run = scb.train(task, recipe, seed=seed, judge=False)
        ax.plot(run.history["step"], run.history["alpha_A"])
        wrong += run.history["alpha_A"][-1] < 0
    ax.axhline(0, color="0.7", lw=1)
    ax.set(xlabel="step", title=f"projector = {projector!r}: {wrong} of 6 go the wrong way")
left.set_ylabel("α_A")

# %%
# The projector
# -------------
# On the right nothing but the projector is different. A step on V has to keep Vμ = μ. The paper takes away H(μμᵀ/‖μ‖²), which
# is right in the Euclidean metric, but leaves noise that does not fall with T. Taking away (Hμ)1ᵀ, which is right in the
# paper's own μ-inner product, leaves O(1/T). ``GradientNoise`` has both exactly; here for a batch of 64 at the start:
from scb.theory.noise import GradientNoise

V, A = trivial_V(task.mu), np.full((task.T, task.N), 1 / task.T)
for projector in ("euclidean", "mu"):
    print(
        f"{projector:9}  E‖h_V‖² = {GradientNoise(task, V, A, projector).square_V() / 64:.1e}"
    )

# %%
# Settle the sign
# ---------------
# The other way out needs no less noise. Q is sparse and nonnegative, so its columns are skewed to the right, and those of its
# mirror to the left. One can see after Stage 1 on which side one is, and turn around. All recipes do this unless told
# otherwise.
signs = []
for seed in range(6):
    recipe = scb.recipes.paper(task, steps=(500, 100, 0), lam=1e-4)
    signs.append(scb.train(task, recipe, seed=seed, judge=False).history["alpha_A"][-1] > 0)
print("right sign:", sum(signs), "of", len(signs))

# %%
# In many runs, and for other lengths: :doc:`/paper/figures/F8` and :doc:`/paper/figures/F14`.
