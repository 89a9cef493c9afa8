"""Frozen criteria: the words of a claim's criterion when it was frozen, the commit, and whether its
tables had been seen by then.

    python -m scb.paper.frozen

freezes every criterion that is new or has changed, at the commit that is checked out.
"""

import csv
import subprocess
from collections.abc import Mapping
from datetime import date
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from scb.inputs import InputError
from scb.paper.claims.claim import Claim

HERE = Path(__file__).parent
FILE = HERE / "frozen.csv"


class Frozen(NamedTuple):
    """A frozen criterion: its digest, the commit that contains it, the date, and whether its tables
    had been "seen" or "not seen".
    """

    id: str
    digest: str
    commit: str
    date: str
    tables: str

    @property
    def told(self) -> str:
        """A phrase with the date, the commit and whether the tables had been seen."""
        return f"{self.date}, commit {self.commit[:9]}, tables {self.tables}"


def digest(claim: Claim) -> str:
    """The digest of the words of a claim's criterion, regardless of line breaks."""
    return sha256(claim.criterion.encode()).hexdigest()[:16]


@cache
def frozen() -> Mapping[str, Frozen]:
    """The frozen criteria, by the identifier of the claim."""
    with FILE.open(encoding="utf-8", newline="") as lines:
        return {row["id"]: Frozen(**row) for row in csv.DictReader(lines)}


def freeze() -> list[str]:
    """Freeze all criteria that are new or have changed, and return the identifiers of their claims.

    An InputError is raised if the files of the claims differ from those of the commit, because the
    commit would then lack the criteria.
    """
    from scb.paper.registry import CLAIMS, ELSEWHERE, TABLES

    changed = _git("status", "--porcelain", "--", "claims")
    if changed:
        raise InputError(f"commit the claims first, then freeze them:\n{changed}")
    before = frozen()
    commit, today = _git("rev-parse", "HEAD"), date.today().isoformat()
    rows = []
    for claim in CLAIMS:
        found = digest(claim)
        old = before.get(claim.id)
        if old is None or old.digest != found:
            # A table of the registry may have been made by anyone
            seen = (
                "not seen"
                if set(claim.needs) - TABLES.keys() - ELSEWHERE.keys() and old is None
                else "seen"
            )
            old = Frozen(claim.id, found, commit, today, seen)
        rows.append(old)
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([Frozen._fields, *rows])
    frozen.cache_clear()
    return [row.id for row in rows if before.get(row.id) != row]


def _git(*arguments: str) -> str:
    """What git says of this folder."""
    command = ["git", "-C", str(HERE), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout.strip()


if __name__ == "__main__":
    print("\n".join(freeze()) or "nothing to freeze")
