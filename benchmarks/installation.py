"""How large an installation is, and how long its parts take to load: measured in a new environment that pip has filled.

    python benchmarks/installation.py

Rows of ``benchmarks/installation.jsonl`` are of three kinds. ``size``: a part of scb, how many packages it needs besides scb, and
their size in megabytes (10⁶ bytes, compiled Python files included). ``package``: the size of each package of a plain installation
that has more than a megabyte. ``time``: seconds that an import takes in a new process, as the median of n and an interval that
holds the true median in 95 of 100 cases. docs/howto/install.md shows all three.
"""

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from study import Row, keep

from scb.provenance import machine

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_suffix(".jsonl")
NAME = "sparse-contextual-bigrams"
TRAINING = ("numpy", "numba", "safetensors", "threadpoolctl", "rich", "tyro")
PARTS = {
    "compiler": ("numpy", "numba"),
    "training": TRAINING,
    "recovery": (*TRAINING, "scipy"),
    "plain": (NAME,),
    "tables": (f"{NAME}[tables]",),
    "report": (f"{NAME}[report]",),
    "all": (f"{NAME}[all]",),
}
"""Part of scb → what it requires. Compiler, training and recovery are parts of a plain installation, the last three are extras."""
IMPORTS = {
    "scb": "import scb",
    "training": "import scb; scb.train",
    "estimator": "import scb; scb.SparseContextualBigram",
    "report": "import scb.paper.report, scb.paper.registry, matplotlib.figure",
}
"""What is loaded → the statements that load it."""
REPEATS = 15
WITHIN = 3, 11
"""Ranks, from 0, between which the median of 15 draws lies in more than 95 of 100 cases, by the binomial distribution."""


def needed(parts: Iterable[str], site: Path) -> dict[str, Distribution]:
    """All packages that requirements bring, by name, as they lie in an environment; scb apart."""
    found: dict[str, Distribution] = {}
    seen = set()
    wanted = [(Requirement(part).name, extra) for part in parts for extra in ("", *Requirement(part).extras)]
    while wanted:
        name, asked = wanted.pop()
        if (name, asked) in seen:
            continue
        seen.add((name, asked))
        found[name] = next(iter(distributions(name=name, path=[str(site)])))
        for text in found[name].requires or ():
            other = Requirement(text)
            if other.marker is None or other.marker.evaluate({"extra": asked}):
                wanted += [(canonicalize_name(other.name), more) for more in ("", *other.extras)]
    found.pop(NAME, None)
    return found


def megabytes(package: Distribution) -> float:
    """Size of the files of a package."""
    paths = (Path(str(package.locate_file(file))) for file in package.files or ())
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def sizes(site: Path) -> list[Row]:
    """A row for each part."""
    rows = []
    for part, requirements in PARTS.items():
        packages = needed(requirements, site)
        size = sum(map(megabytes, packages.values()))
        rows.append({"what": "size", "part": part, "packages": len(packages), "megabytes": round(size, 1)})
    return rows


def packages(site: Path) -> list[Row]:
    """A row for each large package of a plain installation, the largest first."""
    found = {name: round(megabytes(package), 1) for name, package in needed(PARTS["plain"], site).items()}
    large = sorted((name for name in found if found[name] >= 1), key=lambda name: -found[name])
    return [{"what": "package", "package": name, "megabytes": found[name]} for name in large]


def seconds(python: Path, statements: str) -> float:
    """How long a new process takes to import something, the start of Python apart."""
    code = f"import time; began = time.perf_counter(); {statements}; print(time.perf_counter() - began)"
    return float(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout)


def times(python: Path) -> list[Row]:
    """A row for each import; they take turns, and a first round is not counted."""
    rounds = [[seconds(python, statements) for statements in IMPORTS.values()] for _ in range(REPEATS + 1)]
    rows = []
    for name, taken in zip(IMPORTS, np.sort(np.array(rounds[1:]), axis=0).T, strict=True):
        low, high = taken[list(WITHIN)].round(4).tolist()
        median = round(float(np.median(taken)), 4)
        rows.append({"what": "time", "import": name, "seconds": median, "low": low, "high": high, "n": REPEATS})
    return rows


def main() -> None:
    """Fill an environment, measure, and keep the rows."""
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(sysconfig.get_path("scripts", "venv", vars={"base": folder})) / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"{ROOT}[all]"], check=True)
        site = Path(sysconfig.get_path("purelib", "venv", vars={"base": folder}))
        about = {"python": sys.version.split()[0], "machine": machine()}
        keep(KEPT, "size", [row | about for row in sizes(site)])
        keep(KEPT, "package", [row | about for row in packages(site)])
        keep(KEPT, "time", [row | about for row in times(python)])


if __name__ == "__main__":
    main()
