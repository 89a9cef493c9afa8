"""The definition of a claim: its sentence, how it is judged, and the words in which its numbers are
reported."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from string import Formatter
from typing import Any

import numpy as np

from scb.inputs import InputError
from scb.jobs.table import Table, pick
from scb.paper.numbers import Number
from scb.paper.outcome import Answer, Numbers, Outcome, Verdict, comparisons_kept
from scb.paper.rows import with_ensemble


@dataclass(frozen=True)
class Claim:
    """A claim and everything that belongs to it; calling it with tables returns the outcome.

    The attributes that hold text are templates. A field in braces consists of the name of a number
    and a format that ``Number`` accepts. Phrases end with "; ", and a phrase is left out for a case
    that lacks any number in the phrase.

    Attributes
    ----------
    id : str
        A short, permanent name by which pages refer to the claim.
    judge : callable
        A function that maps tables to the outcome. Its arguments are named after the tables, and
        arguments with a default are optional. Its docstring is the criterion.
    figure : str
        The name of the figure that the claim belongs to.
    says : str
        The claim in one line, in our words.
    where : str
        The section, lemma or figure of the paper.
    words : str
        The words around the numbers of one case.
    quote : str, default ""
        The sentence of the paper, in its words and symbols, with "…" for omissions; empty if the
        claim is ours.
    condition : str, default "none"
        The condition under which the paper makes the claim.
    setting : str, default ""
        Settings that are not columns of the tables, such as step sizes.
    change, instead : str, default ""
        Words for the change with which the claim holds, and for what happens if it fails. If only
        ``change`` is given, it is used for both.
    unsure : str, default ""
        The reason why it cannot be decided whether the claim holds as printed, unless the reason is
        that an interval contains the threshold.
    control : str, default ""
        The words around the numbers of the control, which is the same measurement without the cause
        that the claim names.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.paper.claims.claim import claim
    >>> from scb.paper.outcome import Outcome, at_most
    >>> @claim(
    ...     "error-falls",
    ...     figure="F15",
    ...     says="The error falls.",
    ...     where="Section 4",
    ...     words="{last:.2f} at the end",
    ... )
    ... def error_falls(rates):
    ...     "The error at the largest T is at most that at the smallest."
    ...     first, *_, last = rates["error"].tolist()
    ...     return Outcome.judged(at_most(last, first), last=last)
    >>> error_falls.ours, error_falls.needs, error_falls.uses, error_falls.criterion
    (True, ('rates',), ('rates',), 'The error at the largest T is at most that at the smallest.')
    >>> table = {"T": np.array([10, 100]), "error": np.array([0.5, 0.1])}
    >>> outcome = error_falls(rates=table)
    >>> outcome.verdict.value, error_falls.measured(outcome), error_falls.settings(table)
    ('holds as printed', ['0.10 at the end'], 'T = 10, 100')
    >>> error_falls.controlled(outcome), error_falls.note(outcome)
    ([], '')
    """

    id: str
    judge: Callable[..., Outcome]
    figure: str
    says: str
    where: str
    words: str
    quote: str = ""
    condition: str = "none"
    setting: str = ""
    change: str = ""
    instead: str = ""
    unsure: str = ""
    control: str = ""

    def __call__(self, *given: Table, **named: Table) -> Outcome:
        """Judge the claim by tables; in each ensemble of random tasks on its own, if they have
        several."""
        tables = signature(self.judge).bind(*given, **named).arguments
        ensembles = _found("ensemble", tuple(tables.values()))
        if len(ensembles) < 2:
            return self._judged(tables)
        parts = {}
        for name in ensembles:
            mine = {
                key: pick(table, ensemble=name) if "ensemble" in table else table
                for key, table in tables.items()
            }
            parts[name] = self._judged(mine)
        return Outcome.together(parts)

    def _judged(self, tables: Mapping[str, Table]) -> Outcome:
        """What the judge says; InputError if words of the claim name a number that it does not
        give."""
        with comparisons_kept():
            outcome = self.judge(**tables)
        words = (self.words, self.control, self.change, self.instead)
        parts = outcome.ensembles.values() or (outcome,)
        given = [numbers for part in parts for numbers in part.numbers.values()]
        unknown = set().union(*map(_names, words)).difference(*given)
        if unknown:
            raise InputError(
                f"claim {self.id}: its judge gives no number {', '.join(sorted(unknown))}"
            )
        return outcome

    @property
    def ours(self) -> bool:
        """Whether the claim is ours, not the paper's."""
        return not self.quote

    @property
    def criterion(self) -> str:
        """The criterion by which the claim counts as true."""
        return " ".join((self.judge.__doc__ or "").split())

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the tables that ``judge`` requires."""
        parameters = signature(self.judge).parameters.values()
        return tuple(
            parameter.name.replace("_", " ")
            for parameter in parameters
            if parameter.default is Parameter.empty
        )

    @property
    def uses(self) -> tuple[str, ...]:
        """The names of all tables that ``judge`` accepts."""
        return tuple(name.replace("_", " ") for name in signature(self.judge).parameters)

    def measured(self, outcome: Outcome) -> list[str]:
        """Describe what was measured.

        Parameters
        ----------
        outcome : Outcome
            What came out.

        Returns
        -------
        list of str
            A line for each ensemble, or for each case if there is one ensemble.
        """
        return _lines(self.words, outcome)

    def controlled(self, outcome: Outcome) -> list[str]:
        """Describe the result of the control.

        Parameters
        ----------
        outcome : Outcome
            What came out.

        Returns
        -------
        list of str
            A line for each ensemble or case; empty if there is no control.
        """
        return _lines(self.control, outcome)

    def note(self, outcome: Outcome) -> str:
        """Describe, for each ensemble, the change that the claim needs or what happens instead.

        Parameters
        ----------
        outcome : Outcome
            What came out.

        Returns
        -------
        str
            The description, which is empty if the claim holds.
        """
        if not outcome.ensembles:
            return self._reason(outcome)
        groups = {
            found: [name for name, part in outcome.ensembles.items() if part.verdict is found]
            for found in Verdict
        }
        return "; ".join(
            self._told(outcome, found, names) for found, names in groups.items() if names
        )

    def _reason(self, outcome: Outcome) -> str:
        """What the change is, what happens instead, or what cannot be told."""
        numbers = outcome.numbers.get("", {})
        if outcome.verdict is Verdict.UNSURE:
            why = self.unsure if outcome.printed is Answer.UNSURE else ""
            answers = [why or SO_FAR[outcome.printed].format("as printed")]
            if self.change and outcome.changed is not Answer.NO:
                how = f"with the change ({_phrases(self.change, numbers)})"
                answers.append(SO_FAR[outcome.changed].format(how))
            return "; ".join(answers)
        words = {Verdict.CHANGED: self.change, Verdict.FAILS: self.instead or self.change}
        return _phrases(words.get(outcome.verdict, ""), numbers)

    def _told(self, outcome: Outcome, found: Verdict, names: list[str]) -> str:
        """In which ensembles that is so, unless it is so in all, and why."""
        reasons = "; ".join(
            filter(None, dict.fromkeys(self.note(outcome.ensembles[name]) for name in names))
        )
        if len(names) == len(outcome.ensembles):
            return reasons
        where = f"{found.value} in {', '.join(names)}"
        return f"{where} ({reasons})" if reasons else where

    def settings(self, *tables: Table) -> str:
        """Describe the settings, using the tables and ``setting``.

        Parameters
        ----------
        *tables : dict of (rows,) arrays
            The tables named in ``uses``.

        Returns
        -------
        str
        """
        sizes = [
            f"{symbol} = {_range(found)}"
            for symbol, column in SIZES.items()
            if (found := _found(column, tables))
        ]
        counts = sorted(
            {_tasks(table) for table in tables if "replicate" in table and "N" in table}
        )
        if counts:
            many = " or ".join(map(str, counts))
            sizes.append(f"{many} random {'task' if counts == [1] else 'tasks'} at each point")
        if any("ensemble" in table for table in tables):
            tables = tuple(with_ensemble(table) for table in tables if "replicate" in table)
        drawn = [
            f"{plural}: {', '.join(found)}"
            for column, plural in DRAWN.items()
            if (found := _found(column, tables))
        ]
        sizes += drawn or ["ensemble: strong"] * bool(counts)
        return "; ".join([*sizes, *filter(None, [self.setting])])


claim = partial(partial, Claim)
"""A decorator that makes a claim of its judge, given all else that belongs to the claim."""

SO_FAR = {
    Answer.NO: "it does not hold {}",
    Answer.UNSURE: "{} an interval contains the threshold",
    Answer.YES: "{} it holds",
}
"""An answer in words, with room for what it is the answer to."""


def _lines(words: str, outcome: Outcome) -> list[str]:
    """The words with the numbers of each case; with ensembles, a line for each of them."""
    if outcome.ensembles:
        parts = {name: "; ".join(_lines(words, part)) for name, part in outcome.ensembles.items()}
    else:
        parts = {case: _phrases(words, numbers) for case, numbers in outcome.numbers.items()}
    return [f"{label}: {text}" if label else text for label, text in parts.items() if text]


def _phrases(words: str, numbers: Numbers) -> str:
    """Those phrases whose numbers are all there."""
    given = {
        name: x if isinstance(x, str | Number) else Number(float(x))
        for name, x in numbers.items()
        if x is not None
    }
    return "; ".join(
        phrase.format_map(given) for phrase in words.split("; ") if _names(phrase) <= given.keys()
    )


def _names(words: str) -> set[str]:
    """The numbers that words name."""
    return {name for _, name, _, _ in Formatter().parse(words) if name}


LITERAL = "paper's projector, not centred"
TUNED = "the tuned recipe (μ-projector, Stage 2 centred, λ of its own, sign resolved)"
"""Two settings that many claims have: of the paper's letter, and of ours."""

SIZES = {"N": "N", "T": "T", "B": "batch_size", "n": "n", "tokens": "length"}
"""Sizes as they are shown → columns of tables."""


DRAWN = {"ensemble": "ensembles", "chain": "chains", "family": "distributions"}
"""Columns that say how random tasks are drawn → several of them."""


def _found(column: str, tables: tuple[Table, ...]) -> list[Any]:
    """The different values of a column in these tables; numbers ascend."""
    found = list(
        dict.fromkeys(
            value for table in tables if column in table for value in table[column].tolist()
        )
    )
    return found if any(isinstance(value, str) for value in found) else sorted(found)


def _range(found: list[Any]) -> str:
    """All finite values if they are few, else the first and the last."""
    found = [value for value in found if np.isfinite(value)]
    words = [f"{value:,.0f}" if value == round(value) else f"{value:,}" for value in found]
    return ", ".join(words) if len(words) <= 4 else f"{words[0]} to {words[-1]}"


def _tasks(table: Table) -> int:
    """Random tasks at a point: one per replicate, or as many as its search takes."""
    each = int(table["runs"][0]) if "runs" in table else 1
    return each * len(np.unique(table["replicate"]))
