"""
A sweep, from a laptop to a cluster
===================================

How many samples does it take until the right positions are found? A single run cannot answer this question, but a grid of sizes
with many random tasks at each point can. A *sweep* is such a grid, written down in a file. This tutorial runs a sweep on a single
machine, and shows how to run it on a cluster.
"""

# %%
# The file
# --------
# A sweep file says what one run does (``kind``), how many random tasks there are at each point (``seeds``), which parameters
# stay fixed and which vary, what counts as success, and which two parameters span the figure.
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
# ``--jobs 1`` runs the sweep in one process; without this option, all cores are used. Finished runs are kept: after an
# interruption, the same command continues where it stopped.
command = [sys.executable, "-m", "scb", "sweep", "small.toml", "--jobs", "1"]
done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
print(sorted(path.name for path in (folder / "results" / "small").iterdir()))

# %%
# The table has one row for each run, with everything that the run depends on as columns. The figure shows how often the positions
# are found exactly, against the number of samples:
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
# The sweep has also drawn a phase diagram:
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.imshow(plt.imread(folder / "results" / "small" / "phase.png"))
ax.set_axis_off()

# %%
# On a cluster
# ------------
# On a cluster, use the same file and the same command with the address of a Dask scheduler. The rows are the same to the last
# bit::
#
#    scb sweep small.toml --scheduler tcp://10.0.0.1:8786
#
# A sweep that was begun on a laptop can be finished on a cluster. :doc:`/howto/cluster` shows how to
# use Slurm and Kubernetes.
