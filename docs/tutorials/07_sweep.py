"""
A sweep, from a laptop to a cluster
===================================

How many samples does it take until the support is found? One run does not say; a grid of sizes with many random tasks at
each does. A *sweep* is such a grid, written down in a file.
"""

# %%
# The file
# --------
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet

folder = Path(tempfile.mkdtemp())
(folder / "small.toml").write_text("""
kind = "recover"        # what one run does: recover P and Q from a sample
seeds = 12              # random tasks at each point

[fixed]
N = 3

[grid]
T = [30, 100, 300]
samples = [100, 150, 200, 300, 400, 600]

[success]
exact = true            # the support is found exactly

[figure]
x = "samples"
y = "T"
""")

# %%
# On this machine
# ---------------
# ``--jobs 1`` runs it in one process. Without it, all cores are used. What is finished is kept: after an interruption the
# same command goes on.
command = [sys.executable, "-m", "scb", "sweep", "small.toml", "--jobs", "1"]
done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
print(sorted(path.name for path in (folder / "results" / "small").iterdir()))

# %%
# The table has one row a run; everything that a row depends on is a column.
table = pyarrow.parquet.read_table(folder / "results" / "small" / "table.parquet")
print(table.num_rows, "rows:", ", ".join(table.column_names))
columns = {
    name: table[name].to_numpy(zero_copy_only=False) for name in ("T", "samples", "exact")
}
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for T in np.unique(columns["T"]):
    sizes = np.unique(columns["samples"])
    here = columns["T"] == T
    ax.plot(
        sizes,
        [columns["exact"][here & (columns["samples"] == size)].mean() for size in sizes],
        "o-",
        label=f"T = {T}",
    )
ax.set(xlabel="samples", ylabel="share of supports found")
ax.legend()

# %%
# The sweep has drawn a phase diagram of its own:
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.imshow(plt.imread(folder / "results" / "small" / "phase.png"))
ax.set_axis_off()

# %%
# On a cluster
# ------------
# The same file and the same command, with the address of a Dask scheduler; the rows are the same to the last bit::
#
#    scb sweep small.toml --scheduler tcp://10.0.0.1:8786
#
# A sweep that was begun on a laptop can be finished on a cluster. :doc:`/howto/cluster` shows Slurm and Kubernetes.
