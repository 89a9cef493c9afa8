"""What comes out when a claim is judged: a verdict, and the numbers that it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from scb.paper.numbers import Number

Numbers = Mapping[str, Number | float | str | None]
"""Name → number, or a word; None is known to be missing."""


class Verdict(Enum):
    """The verdict on a claim.

    HOLDS, CHANGED (it holds with a change), SOME (it holds in some ensembles) or FAILS.

    Examples
    --------
    >>> from scb.paper.outcome import Verdict
    >>> Verdict.CHANGED.value
    'holds with a change'
    """

    HOLDS = "holds"
    CHANGED = "holds with a change"
    SOME = "holds in some ensembles"
    FAILS = "does not hold"


@dataclass(frozen=True)
class Outcome:
    """What came out: a verdict, and the numbers that it rests on.

    Attributes
    ----------
    verdict : Verdict
        The verdict.
    numbers : mapping of mappings
        The numbers by case and name. A case is a label such as "N = 3"; numbers of all cases
        together have the label "".
    ensembles : mapping of Outcome, default {}
        The outcomes in several ensembles of random tasks by name, if the claim was judged in each;
        ``numbers`` is empty then.

    Examples
    --------
    >>> from scb.paper.outcome import Outcome
    >>> strong, flat = (Outcome.judged(error < 0.1, error=error) for error in (0.02, 0.7))
    >>> flat.numbers, flat.verdict.value
    ({'': {'error': 0.7}}, 'does not hold')
    >>> Outcome.together({"strong": strong, "flat": flat}).verdict.value
    'holds in some ensembles'
    """

    verdict: Verdict
    numbers: Mapping[str, Numbers]
    ensembles: "Mapping[str, Outcome]" = field(default_factory=dict)

    @staticmethod
    def judged(
        literal: Any, changed: Any = False, /, cases: Any = None, **numbers: Any
    ) -> "Outcome":
        """Return the outcome of a claim that holds as printed, holds with a change, or fails.

        Parameters
        ----------
        literal, changed : bool
            Whether the claim holds as printed, and whether it holds with the change.
        cases : mapping of mappings, optional
            The numbers of single cases, by label and name.
        **numbers : Number, float or str
            The other numbers, by name; None for one that is missing.

        Returns
        -------
        Outcome
        """
        found = Verdict.HOLDS if literal else Verdict.CHANGED if changed else Verdict.FAILS
        return Outcome(found, {**(cases or {}), **({"": numbers} if numbers else {})})

    @staticmethod
    def together(parts: "Mapping[str, Outcome]") -> "Outcome":
        """Combine the outcomes in several ensembles.

        Parameters
        ----------
        parts : mapping of Outcome
            The outcomes by name of the ensemble.

        Returns
        -------
        Outcome
        """
        found = {part.verdict for part in parts.values()}
        mixed = Verdict.SOME if Verdict.FAILS in found else Verdict.CHANGED
        verdict = found.pop() if len(found) == 1 else mixed
        return Outcome(verdict, {}, parts)
