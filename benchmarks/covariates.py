"""What covariates are worth, and whether noise is taken for one.

- Rain in Seattle with its season: each year is predicted by a model of the three others, with and without the season. A season is
  half a year, a quarter, or a month.
- Clicks with their hour: users of a shop who browse by day and buy in the evening. The clicks are simulated; new users are
  predicted.
- Noise: sequences without any covariate, offered a column of noise of 2, 4 or 8 values. It must not be taken.

    python benchmarks/covariates.py [--out FILE] [--seeds 100] [--parts seattle clicks noise]
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import scb

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
PAGES = ("home", "list", "item", "cart", "pay")
# From each page (columns) to the next, by day and in the evening: then an item goes into the cart
DAY = np.array([[1, 2, 2, 3, 6], [5, 2, 4, 3, 2], [3, 5, 3, 2, 1], [0.5, 0.5, 0.6, 1, 0.5], [0.1, 0.1, 0.1, 1, 0.5]])
EVENING = np.array([[1, 1, 1, 1, 6], [3, 2, 2, 1, 2], [5, 5, 2, 1, 1], [1, 1, 4, 1, 0.5], [0.1, 0.1, 0.3, 5, 0.5]])


def clicks(users: int, seed: int) -> tuple[list[list[str]], list[list[int]]]:
    """Pages and hours: of each user, a visit of about 20 pages. The hour is the one of the click; a third of the clicks return to
    the page that was seen two clicks before.
    """
    rng = np.random.default_rng(seed)
    pages, hours = [], []
    for _ in range(users):
        minute = int(rng.integers(8 * 60, 24 * 60))
        page, hour = [0, int(rng.integers(1, 3))], [minute // 60] * 2
        for _ in range(int(rng.integers(10, 31))):
            minute += int(rng.integers(1, 6))
            own = (EVENING if 18 <= minute // 60 % 24 < 23 else DAY)[:, page[-1]]
            page.append(page[-2] if rng.random() < 1 / 3 else int(rng.choice(5, p=own / own.sum())))
            hour.append(minute // 60 % 24)
        pages.append([PAGES[i] for i in page])
        hours.append(hour)
    return pages, hours


def compared(part: str, name: str, seed: int, train: tuple, test: tuple, max_lag: int) -> dict:
    """Held-out bits without and with a covariate; train and test are sequences and their values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = scb.SparseContextualBigram(max_lag).fit(train[0])
        model = scb.SparseContextualBigram(max_lag).fit(train[0], covariates={name: train[1]})
    without = -plain.log_likelihoods(test[0]) / np.log(2)
    given = -model.log_likelihoods(test[0], covariates={name: test[1]}) / np.log(2)
    saved = (without - given)[~np.isnan(given)]
    return {
        "part": part,
        "covariate": name,
        "seed": seed,
        "n": int(saved.size),
        "without": float(np.nanmean(without)),
        "with": float(np.nanmean(given)),
        "saved": float(saved.mean()),
        "square": float((saved**2).mean()),
        "taken": bool(model.covariates_[name]),
        "chooses": model._fitted.chooser is not None,
    }


def seattle(name: str, held_out: str) -> dict:
    """One year predicted from the others."""
    from data import read  # pyright: ignore[reportMissingImports]

    rows = list(csv.DictReader(read("vega-datasets", "vega_datasets/_data/seattle-weather.csv").splitlines()))
    month = np.array([int(row["date"][5:7]) for row in rows])
    values = {"half-year": (month >= 4) & (month <= 9), "quarter": month % 12 // 3, "month": month}[name]
    rain = np.array([("dry", "wet")[float(row["precipitation"]) > 0] for row in rows])
    year = np.array([row["date"][:4] for row in rows])
    others = [one for one in np.unique(year) if one != held_out]
    train = tuple([column[year == one].tolist() for one in others] for column in (rain, values))
    test = tuple([column[year == held_out].tolist()] for column in (rain, values))
    return compared("seattle", name, int(held_out), train, test, 14)


def clicked(seed: int) -> dict:
    """New users predicted, with the hour of each click."""
    return compared("clicks", "hour", seed, clicks(400, 2 * seed), clicks(200, 2 * seed + 1), 6)


def noise(values: int, seed: int) -> dict:
    """Whether a column of noise is taken beside lags."""
    task = scb.Task.random(N=2, T=3, sparsity=1, seed=seed)
    x = scb.generate(task, 600, seed=seed)
    column = np.random.default_rng([seed, values]).integers(0, values, x.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = scb.SparseContextualBigram(3).fit(x, covariates={"noise": column})
    return {"part": "noise", "values": values, "seed": seed, "taken": bool(model.covariates_["noise"])}


def run(job: tuple) -> dict:
    """One row."""
    function, *arguments = job
    return function(*arguments)


def main() -> None:
    """Run what is asked for, and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".jsonl"))
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--parts", nargs="*", default=["seattle", "clicks", "noise"])
    asked = parser.parse_args()
    jobs: dict[str, list[tuple]] = {
        "seattle": [
            (seattle, name, year) for name in ("half-year", "quarter", "month") for year in ("2012", "2013", "2014", "2015")
        ],
        "clicks": [(clicked, seed) for seed in range(min(asked.seeds, 3))],
        "noise": [(noise, (2, 4, 8)[seed % 3], seed) for seed in range(asked.seeds)],
    }
    wanted = [job for part in asked.parts for job in jobs[part]]
    with ProcessPoolExecutor(int(os.environ.get("N_CORES", "1"))) as pool, asked.out.open("w") as file:
        for row in pool.map(run, wanted):
            print(json.dumps(row), file=file, flush=True)
            print(row, flush=True)


if __name__ == "__main__":
    main()
