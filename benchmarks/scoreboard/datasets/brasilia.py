"""Warm and cool days in Brasília, hdMTD's own data: bits of each day of the last year.

The hourly maxima of `tempdata` in the package hdMTD, as its paper (arXiv 2509.01808, 5.4) prepares
them: gaps are filled from their neighbours, a day is warm above the middle of the range of daily
means, and the last 366 days are held out. `make scoreboard-data` says how to get the file.
"""

import csv
import math
from functools import cache

import numpy as np

from chains import DATA, MissingData
from frame import Data, Problem

TITLE = "warm days in Brasília"
LICENCE = "INMET, public; in the R package hdMTD (GPL-3). Nothing is shipped"
JUDGE = "bits"
ALSO = ("hdMTD FS",)
CASES: list[dict] = [{"year": "last"}]
MAX_LAG = 364
HELD_OUT = 366


def filled(hours: np.ndarray) -> np.ndarray:
    """Hourly values without gaps, as the paper's own code fills them.

    A gap is given the value before it, if one of the next six is there, and else the mean of its
    neighbours and of the hour a day before.
    """
    x = hours.copy()
    for i in np.flatnonzero(np.isnan(x)):
        if not math.isnan(x[i - 1]) and not np.isnan(x[i + 1 : i + 7]).all():
            x[i] = x[i - 1]
    for i in np.flatnonzero(np.isnan(x)):
        x[i] = np.nanmean([x[i - 1], x[i + 1], x[i - 24]])
    return x


@cache
def days() -> np.ndarray:
    """A symbol for each day from August 2010: 0 cool, 1 warm."""
    path = DATA / "tempdata.csv"
    if not path.exists():
        raise MissingData(f"{path} is written by R's write.csv(hdMTD::tempdata, row.names = FALSE)")
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["DATE"] >= "2010-08-05"]
    values = [math.nan if row["MAXTEMP"] == "NA" else float(row["MAXTEMP"]) for row in rows]
    _, day = np.unique([row["DATE"] for row in rows], return_inverse=True)
    means = np.bincount(day, weights=filled(np.array(values))) / np.bincount(day)
    return (means >= (means.min() + means.max()) / 2).astype(int)


def load(year: str) -> Problem:
    """All days but those of the last year are learned from."""
    x = days()
    train, test = x[:-HELD_OUT], x[-HELD_OUT - MAX_LAG :]
    return Problem(Data([train], symbols=2, max_lag=MAX_LAG, number=3), test=[test], given=MAX_LAG)
