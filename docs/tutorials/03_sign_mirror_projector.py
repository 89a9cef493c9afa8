"""
The sign, the mirror and the projector
======================================

Run exactly as printed, the paper's algorithm often learns a *mirror image* of the truth. This tutorial shows what the mirror image
is, why it is learned, and two ways to avoid it: a projector with less noise, and a test of the sign.
"""

# %%
# The mirror image
# ----------------
# Training starts at V = μ1ᵀ and A = 1/T. Reflect (V, A) about this point: V becomes 2μ1ᵀ − V, and A becomes 2/T − A. The
# prediction depends on the product of the two, in which the minus signs cancel. So the mirror image makes almost the same
# predictions as the original, and the loss can hardly tell them apart.
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
# With an infinite batch, a small drift of size 1/(T·K_Q) decides the sign, and it points to the truth. (K_Q measures how much
# signal Q has.) With 64 samples per step, the noise can be larger than the drift, and then the sign is a matter of luck. The
# figure shows six runs of Stage 1 for each of two projectors, with ``resolve_sign=False`` to follow the paper exactly:
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
# The two pictures differ only in the projector. A step H on V has to keep Vμ = μ, so the part of H that would change Vμ is
# removed. The paper removes H(μμᵀ/‖μ‖²), the projection in the Euclidean metric. This leaves noise that does not fall as T grows.
# The projection in the paper's own μ-inner product removes (Hμ)1ᵀ, and leaves noise of order 1/T. ``GradientNoise`` computes
# the noise of both projectors exactly, here for a batch of 64 at the start:
from scb.theory.noise import GradientNoise

V, A = trivial_V(task.mu), np.full((task.T, task.N), 1 / task.T)
for projector in ("euclidean", "mu"):
    print(
        f"{projector:9}  E‖h_V‖² = {GradientNoise(task, V, A, projector).square_V() / 64:.1e}"
    )

# %%
# Resolve the sign
# ----------------
# The second way to avoid the mirror image works even with the noise of the paper's projector. Q is sparse and nonnegative: most
# entries of a column are small and a few are large, so the column is skewed to the right. In the mirror image, the column is
# skewed to the left. After Stage 1, the skew shows whether the truth or its mirror image has been learned, and the recipe can
# reflect (V, A) if necessary. All recipes do this unless told otherwise.
signs = []
for seed in range(6):
    recipe = scb.recipes.paper(task, steps=(500, 100, 0), lam=1e-4)
    signs.append(scb.train(task, recipe, seed=seed, judge=False).history["alpha_A"][-1] > 0)
print("right sign:", sum(signs), "of", len(signs))

# %%
# The figures :doc:`/paper/figures/F8` and :doc:`/paper/figures/F14` show the same for many runs and for other lengths T.
