"""
Which lags matter in my data?
=============================

This tutorial goes from a CSV file to a figure for a talk. The file lists visits to a web site, with one row for each click and
many users. The file is made up, so we know what should be found.
"""

# %%
# A CSV file
# ----------
# After ``search``, the next page mostly depends on the page that the user saw two clicks before the search; counted back from
# the next page, this is lag 3. In all other cases, the next page depends only on the current page, which is lag 1.
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
# ``group`` names the column that says which sequence a row belongs to, and ``order`` names the column that puts the rows of a
# sequence in order. Sequences are kept apart: no lag reaches back into the clicks of another user.
visits = scb.read_sequences(folder / "visits.csv", column="page", group="user", order="time")
print(visits.said)
model = scb.SparseContextualBigram(max_lag=10).fit(visits)
print(model.summary())

# %%
# The table says which lags matter after each page. Lag 1 is the current page, lag 2 is the page before it, and so on. The column
# *influence* says how much the page at that lag changes the distribution of the next page. The columns *nats* and *dBIC* say how
# much the lag improves the fit.
# Read more in :doc:`/howto/read-the-summary`.
#
# Is it found again in other data?
# --------------------------------
# ``stability`` searches for the lags again in random halves of the data. It returns, for each row of the table, the share of the
# halves in which the lag was found.
print(model.stability(visits, n_halves=6))

# %%
# Does it predict?
# ----------------
# Fit three models to the first 240 users, and predict the other 60. The table lists the bits per symbol (fewer are better), and how
# much worse each model is than the best model, with the standard error of that difference.
users = list(visits)
models = {
    "found lags": scb.SparseContextualBigram(max_lag=10),
    "current page only": scb.SparseContextualBigram(max_lag=1),
    "one set of lags for all pages": scb.SparseContextualBigram(
        max_lag=10, context=False, background="labels"
    ),
}
print(scb.compare({name: each.fit(users[:240]) for name, each in models.items()}, users[240:]))

# %%
# A figure for a talk
# -------------------
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
model.plot(ax)
figure.savefig(folder / "lags.pdf")

# %%
# On the command line, a single command does the same and writes a report that you can send to others::
#
#    scb fit visits.csv --column page --group user --order time --max-lag 10
#
# Before you believe a long list of faint lags, read :doc:`/explanation/misspecified`.
