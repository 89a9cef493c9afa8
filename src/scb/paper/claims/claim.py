"""What a claim is: a sentence, how it is judged, and what came out; and the words in which that is said."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import numpy as np

from scb.jobs.table import Table, at, pick, values, wilson

CLOSE = 0.05
"""A distance to the truth that counts as recovery."""
MOST = 0.9
"""The share of tasks in which something has to be so, where a claim speaks of all of them."""


class Verdict(Enum):
    """The verdict on a claim: HOLDS, CHANGED (it holds with a change), SOME (it holds in some ensembles) or FAILS.

    Examples
    --------
    >>> from scb.paper.claims.claim import Verdict
    >>> Verdict.CHANGED.value
    'holds with a change'
    """

    HOLDS = "holds"
    CHANGED = "holds with a change"
    SOME = "holds in some ensembles"
    FAILS = "does not hold"


@dataclass(frozen=True)
class Outcome:
    """What came out.

    Attributes
    ----------
    measured : str
        The measured numbers, with their spread, or with confidence intervals if they are shares.
    verdict : Verdict
        The verdict.
    note : str, default ""
        The change that is needed, or what happens instead; empty if the claim holds.
    control : str, default ""
        The same measurement with the cause that the claim names removed.

    Examples
    --------
    >>> from scb.paper.claims.claim import Outcome
    >>> strong = Outcome.judged("error 0.02", literal=True, changed=True, change="", instead="it diverges")
    >>> flat = Outcome.judged("error 0.70", literal=False, changed=False, change="", instead="it diverges")
    >>> both = Outcome.together({"strong": strong, "flat": flat})
    >>> both.verdict.value, both.note
    ('holds in some ensembles', 'holds in strong; not in flat (it diverges)')
    """

    measured: str
    verdict: Verdict
    note: str = ""
    control: str = ""

    @staticmethod
    def judged(measured: str, *, literal: Any, changed: Any, change: str, instead: str, control: str = "") -> "Outcome":
        """Return the outcome of a claim that holds as printed, holds with a change, or fails.

        Parameters
        ----------
        measured : str
            The measured numbers.
        literal, changed : bool
            Whether the claim holds as printed, and whether it holds with the change.
        change, instead : str
            A description of the change, and of what happens if the claim fails.
        control : str, default ""
            The result of the control.

        Returns
        -------
        Outcome
        """
        found = verdict(literal, changed)
        notes = {Verdict.HOLDS: "", Verdict.CHANGED: change, Verdict.FAILS: instead}
        return Outcome(measured, found, notes[found], control)

    @staticmethod
    def together(parts: "dict[str, Outcome]") -> "Outcome":
        """Combine the outcomes in several ensembles; the note says in which of them the claim holds.

        Parameters
        ----------
        parts : dict of Outcome
            The outcomes by name of the ensemble.

        Returns
        -------
        Outcome
        """
        groups = {found: [name for name, part in parts.items() if part.verdict is found] for found in Verdict}
        return Outcome(
            measured="\n".join(f"{name}: {part.measured}" for name, part in parts.items()),
            verdict=_overall(groups),
            note="; ".join(_told(found, names, parts) for found, names in groups.items() if names),
            control="\n".join(f"{name}: {part.control}" for name, part in parts.items() if part.control),
        )


def _overall(groups: dict[Verdict, list[str]]) -> Verdict:
    """One verdict from the names of the ensembles that have each."""
    if groups[Verdict.FAILS]:
        return Verdict.SOME if groups[Verdict.HOLDS] or groups[Verdict.CHANGED] else Verdict.FAILS
    return Verdict.CHANGED if groups[Verdict.CHANGED] else Verdict.HOLDS


def _told(found: Verdict, names: list[str], parts: dict[str, Outcome]) -> str:
    """In which ensembles that is so, unless it is so in all, and why."""
    notes = [] if found is Verdict.HOLDS else [parts[name].note for name in names]
    reasons = "; ".join(filter(None, dict.fromkeys(notes)))
    if len(names) == len(parts):
        return reasons
    words = {Verdict.HOLDS: "holds in", Verdict.CHANGED: "with a change in", Verdict.FAILS: "not in"}
    where = f"{words[found]} {', '.join(names)}"
    return f"{where} ({reasons})" if reasons else where


@dataclass(frozen=True)
class Claim:
    """One row of the table of claims.

    Attributes
    ----------
    figure : str
        The name of the figure that the claim belongs to.
    says : str
        The claim in one line, in our words.
    quote : str
        The sentence of the paper, in its words and symbols, with "…" for omissions; empty if the claim is ours.
    where : str
        The section, lemma or figure of the paper.
    judge : callable
        A function from tables to the outcome. Its arguments are named after the tables, and those with a default are optional.
        Its docstring is the criterion.
    condition : str, default "none"
        The condition under which the paper makes the claim.
    setting : str, default ""
        Settings that are not columns of the tables, such as step sizes.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.paper.claims.claim import Claim, Outcome, Verdict
    >>> def falls(rates):
    ...     "The error at the largest T is below that at the smallest."
    ...     down = rates["error"][-1] < rates["error"][0]
    ...     return Outcome(f"{rates['error'][-1]:.2f}", Verdict.HOLDS if down else Verdict.FAILS)
    >>> claim = Claim(figure="F15", says="The error falls.", quote="", where="Section 4", judge=falls)
    >>> claim.ours, claim.needs, claim.uses, claim.criterion
    (True, ('rates',), ('rates',), 'The error at the largest T is below that at the smallest.')
    >>> table = {"T": np.array([10, 100]), "error": np.array([0.5, 0.1])}
    >>> claim.judge(table).verdict.value, claim.settings(table)
    ('holds', 'T = 10, 100')
    """

    figure: str
    says: str
    quote: str
    where: str
    judge: Callable[..., Outcome]
    condition: str = "none"
    setting: str = ""

    @property
    def ours(self) -> bool:
        """Whether the claim is ours, not the paper's."""
        return not self.quote

    @property
    def criterion(self) -> str:
        """When the claim counts as true."""
        return " ".join((self.judge.__doc__ or "").split())

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the tables without which ``judge`` cannot do."""
        parameters = signature(self.judge).parameters.values()
        return tuple(parameter.name.replace("_", " ") for parameter in parameters if parameter.default is Parameter.empty)

    @property
    def uses(self) -> tuple[str, ...]:
        """Names of all tables that ``judge`` takes."""
        return tuple(name.replace("_", " ") for name in signature(self.judge).parameters)

    def settings(self, *tables: Table) -> str:
        """Describe the settings: sizes, ensembles and numbers of tasks from the tables, and ``setting``.

        Parameters
        ----------
        *tables : dict of (rows,) arrays
            The tables named in ``uses``.

        Returns
        -------
        str
        """
        sizes = [f"{symbol} = {_range(found)}" for symbol, column in SIZES.items() if (found := _found(column, tables))]
        counts = sorted({_tasks(table) for table in tables if "replicate" in table and "N" in table})
        if counts:
            many = " or ".join(map(str, counts))
            sizes.append(f"{many} random {'task' if counts == [1] else 'tasks'} at each point")
        ensembles = _found("ensemble", tables)
        if ensembles:
            sizes.append(f"ensembles: {', '.join(ensembles)}")
        elif counts:
            sizes.append("ensemble: strong")
        return "; ".join([*sizes, *filter(None, [self.setting])])


SIZES = {"N": "N", "T": "T", "B": "batch_size", "n": "n", "tokens": "length"}
"""Sizes as they are shown → columns of tables."""


def _found(column: str, tables: tuple[Table, ...]) -> list[Any]:
    """The different values of a column in these tables; numbers ascend."""
    found = list(dict.fromkeys(value for table in tables if column in table for value in table[column].tolist()))
    return found if any(isinstance(value, str) for value in found) else sorted(found)


def _range(found: list[Any]) -> str:
    """All values if they are few, else the first and the last."""
    words = [f"{value:,.0f}" if value == round(value) else f"{value:,}" for value in found]
    return ", ".join(words) if len(words) <= 4 else f"{words[0]} to {words[-1]}"


def _tasks(table: Table) -> int:
    """Random tasks at a point: one a replicate, or as many as its search takes."""
    each = int(table["runs"][0]) if "runs" in table else 1
    return each * len(np.unique(table["replicate"]))


# ------------------------------------------------------------------------------------------------------ ensembles


def in_each_ensemble(judge: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """A judge that is asked once for every ensemble of random tasks in its tables, and tells where the claim holds."""

    @wraps(judge)
    def judge_each(*given: Table | None) -> Outcome:
        tables = [table for table in given if table is not None]
        names = list(dict.fromkeys(name for table in tables if "ensemble" in table for name in values(table, "ensemble")))
        if not names:
            return judge(*tables)
        parts = {name: judge(*(pick(table, ensemble=name) if "ensemble" in table else table for table in tables)) for name in names}
        return Outcome.together(parts)

    return judge_each


# ------------------------------------------------------------------------------------------------------ words for judges


def joined(*given: Table | None) -> Table:
    """The rows of tables one after the other, with the columns that all of them have; None is passed over."""
    tables = [table for table in given if table is not None]
    names = [name for name in tables[0] if all(name in table for table in tables)]
    return {name: np.concatenate([table[name] for table in tables]) for name in names}


def ends(table: Table, step: int | None, *methods: str) -> list[Table]:
    """The state of each method after ``step`` steps, or at the end: one row a replicate, in the same order."""
    return [at(pick(table, method=method), step) for method in methods]


def verdict(literal: Any, changed: Any = False) -> Verdict:
    """Holds as the paper has it; or with the change; or not."""
    if literal:
        return Verdict.HOLDS
    return Verdict.CHANGED if changed else Verdict.FAILS


def spread(values: Any, digits: int = 2) -> str:
    """Median and quartiles; a dash if there is nothing."""
    if np.size(values) == 0:
        return "–"
    low, middle, high = (rounded(x, digits) for x in np.percentile(np.asarray(values, dtype=float), (25, 50, 75)))
    return f"{middle} [{low}, {high}]"


def rounded(x: float, digits: int) -> str:
    """A number to so many digits; with commas, not with a power of ten, if it is large."""
    text = f"{x:.{digits}g}"
    return f"{float(text):,.0f}" if abs(x) >= 1000 else text


def share(hits: Any) -> str:
    """How many of how many, with Wilson's 95 % interval for the share."""
    count = np.size(hits)
    if count == 0:
        return "0 of 0"
    low, high = wilson(np.sum(hits), np.array(count))
    return f"{int(np.sum(hits))} of {count} ({100 * float(low):.0f}–{100 * float(high):.0f} %)"


def mostly(hits: Any, least: float = MOST) -> bool:
    """Whether at least this share of them are true; false if there are none."""
    return bool(np.size(hits)) and bool(np.mean(hits) >= least)


def log_slope(x: Any, y: Any) -> float:
    """The slope of log y in log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
