"""
Which lags matter in my data?
=============================

From a CSV file to a figure for a talk. The file here is made up, so that we know what should be found: visits to a web
site, a row a click, many users.
"""

# %%
# A CSV file
# ----------
# After ``search`` people tend to go back to what they saw three clicks before; everything else depends on the current page
# alone.
import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import scb

pages = np.array(["home", "list", "item", "search"])
rng = np.random.default_rng(0)
P = rng.dirichlet([0.7] * 4, 4).T
folder = Path(tempfile.mkdtemp())
with (folder / "visits.csv").open("w", newline="") as file:
    out = csv.writer(file)
    out.writerow(["user", "time", "page"])
    for user in range(300):
        seen = list(rng.integers(4, size=3))
        for _ in range(60):
            source = seen[-3] if seen[-1] == 3 and rng.random() < 0.7 else seen[-1]
            seen.append(rng.choice(4, p=P[:, source]))
        out.writerows([user, time, pages[page]] for time, page in enumerate(seen))
print((folder / "visits.csv").read_text()[:60])

# %%
# Read and fit
# ------------
# ``group`` names the sequence, ``order`` sorts it. Sequences never run into each other.
visits = scb.read_sequences(folder / "visits.csv", column="page", group="user", order="time")
print(visits.said)
model = scb.SparseContextualBigram(max_lag=10).fit(visits)
print(model.summary())

# %%
# Lag 1 is the current page, lag 2 the one before, and so on. *Influence* says by how much the symbol at that lag moves the
# law of the next one; *nats* and *dBIC* say what the lag is worth. Read more in :doc:`/howto/read-the-summary`.
#
# Would chance find this again?
# -----------------------------
# ``stability`` looks for the lags anew in random halves of the data.
print(model.stability(visits, n_halves=6))

# %%
# Does it predict?
# ----------------
# Fit to the first 240 users, predict the other 60. Bits a symbol, lower is better; the error is that of the difference.
users = list(visits)
models = {
    "found lags": scb.SparseContextualBigram(max_lag=10),
    "current page only": scb.SparseContextualBigram(max_lag=1),
    "one set of lags for all pages": scb.SparseContextualBigram(max_lag=10, context=False),
}
print(scb.compare({name: each.fit(users[:240]) for name, each in models.items()}, users[240:]))

# %%
# A figure for a talk
# -------------------
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
model.plot(ax)
figure.savefig(folder / "lags.pdf")

# %%
# The same on the command line, with a report to send around::
#
#    scb fit visits.csv --column page --group user --order time --max-lag 10
#
# Before you believe a long list of faint lags, read :doc:`/explanation/misspecified`.
