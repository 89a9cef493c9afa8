"""How large an installation is: the files of scb's dependencies, with each of its extras, as they lie in this environment.

    python benchmarks/installation.py

The rows go to benchmarks/installation.jsonl: the extra, how many packages it installs besides scb, their size in megabytes
(10⁶ bytes, compiled Python files included), and how much more than a plain installation that is. docs/howto/install.md takes its
sizes from there.
"""

import json
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "sparse-contextual-bigrams"
EXTRAS = {"plain": "", "tables": "tables", "report": "report", "all": "all"}  # name in the table → extra
KEPT = Path(__file__).with_suffix(".jsonl")


def packages(extra: str) -> dict[str, Distribution]:
    """Everything that ``pip install '.[extra]'`` brings, by name, without scb."""
    found: dict[str, Distribution] = {}
    seen = set()
    wanted = [(NAME, extra)]
    while wanted:
        name, asked = wanted.pop()
        if (name, asked) in seen:
            continue
        seen.add((name, asked))
        found[name] = distribution(name)
        for text in found[name].requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": asked}):
                wanted += [(canonicalize_name(needed.name), more) for more in ("", *needed.extras)]
    del found[NAME]
    return found


def megabytes(package: Distribution) -> float:
    """Size of the files of a package."""
    paths = (Path(str(package.locate_file(file))) for file in package.files or ())
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def main() -> None:
    """Measure every extra and write the rows."""
    rows = []
    for name, extra in EXTRAS.items():
        found = packages(extra)
        size = sum(megabytes(package) for package in found.values())
        rows.append({"extra": name, "packages": len(found), "megabytes": round(size, 1)})
        print(rows[-1], sorted(found), flush=True)
    for row in rows:
        row["more"] = round(row["megabytes"] - rows[0]["megabytes"], 1)
    KEPT.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
