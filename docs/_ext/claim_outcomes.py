"""The outcomes of claims in docs/paper/claims.csv, which ``scb reproduce`` writes, for the numbers and the pages of the site."""

from pathlib import Path
from typing import Any, NamedTuple

from scb.jobs.shipped import read_shipped
from scb.paper.claims_file import ANSWERS, COLUMNS
from scb.paper.numbers import Number
from scb.paper.outcome import Answer, Outcome
from scb.paper.registry import CLAIMS
from scb.paper.report import Judged


class Rows(NamedTuple):
    """The rows of a claim in one ensemble: its answers, and for each case its numbers and words."""

    answers: dict[str, Answer]
    cases: dict[str, dict[str, Any]]

    @property
    def outcome(self) -> Outcome:
        """The outcome in one ensemble; the verdict follows from the answers."""
        self.cases.setdefault("", {}).pop("verdict", None)
        printed, changed = (self.answers[name] for name in ANSWERS)
        return Outcome(printed, changed, self.cases)


def read_outcomes(directory: Path) -> list[Judged]:
    """The claims that ``scb.paper.claims_file.write_outcomes`` wrote, in the order of today's claims."""
    table, _ = read_shipped(directory, "claims")
    found: dict[str, dict[str, Rows]] = {}
    for claim, ensemble, case, name, *numbers, text in zip(*(table[name].tolist() for name in COLUMNS), strict=True):
        rows = found.setdefault(claim, {}).setdefault(ensemble, Rows({}, {}))
        if text and name in ANSWERS:
            rows.answers[name] = Answer[text]
        else:
            rows.cases.setdefault(case, {})[name] = text or Number(*numbers)
    judged = []
    for number, claim in enumerate(CLAIMS, start=1):
        if claim.id in found:
            outcomes = {name: rows.outcome for name, rows in found[claim.id].items()}
            whole = outcomes.pop("")
            settings = str(whole.numbers[""]["settings"])
            outcome = Outcome(whole.printed, whole.changed, whole.numbers, outcomes)
            judged.append(Judged(number, claim, outcome, settings))
    return judged
