"""A forecast of how long the rest of a piece of work will take, if the costs of its parts are known
but the pace of the machine is known only from the work done so far.

A cost is a number of seconds on an otherwise idle machine. The pace is the number of seconds that
one second of cost currently takes; every finished part provides a measurement of the pace.
"""

import os
from collections.abc import Callable, Mapping
from time import monotonic

# Seconds of cost after which the measured pace counts as much as the expected one
_TRUST = 1.0


def crowding(workers: int) -> float:
    """Return the pace to expect on a shared machine.

    Parameters
    ----------
    workers : int
        The number of processes that are about to be started.

    Returns
    -------
    float
        The number of processes per core, or 1 if there are fewer processes than cores.

    Examples
    --------
    >>> from scb.jobs.forecast import crowding
    >>> crowding(workers=1) >= 1.0
    True
    """
    others = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1.0, (others + workers) / (os.cpu_count() or 1))


class Forecast:
    """A forecast of the time left in a series of phases.

    Parameters
    ----------
    costs : dict of float
        The seconds that each phase takes on an otherwise idle machine, in the order of the phases.
    pace : float, default 1
        The initial pace, in seconds per second of cost.
    clock : callable
        A function that returns the time in seconds; tests replace it.

    Attributes
    ----------
    phase : str
        The current phase.
    detail : str
        The latest detail that was noted about the current phase.

    Examples
    --------
    >>> from scb.jobs.forecast import Forecast
    >>> forecast = Forecast({"running": 60.0, "drawing": 2.0}, clock=lambda: 0.0)
    >>> forecast.expect("running", 8.0)
    >>> forecast.note("running", 0.5, "5 of 10 runs")
    >>> forecast.phase, forecast.detail, forecast.share
    ('running', '5 of 10 runs', 0.4)
    >>> forecast.left < 6
    True
    """

    def __init__(
        self, costs: Mapping[str, float], pace: float = 1.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self._clock = clock
        self._costs = dict(costs)
        self._shares = dict.fromkeys(costs, 0.0)  # how much of each phase is done
        self._pace = pace  # at the end of the phase before
        self.phase = next(iter(self._costs))
        self.detail = ""
        self._begun = self._last = clock()  # when this phase began, and when it last went on

    def expect(self, phase: str, cost: float) -> None:
        """Correct the cost of a phase.

        Parameters
        ----------
        phase : str
            The name of the phase.
        cost : float
            The seconds that the phase takes on an otherwise idle machine.
        """
        self._costs[phase] = cost

    def note(self, phase: str, share: float, detail: str = "") -> None:
        """Record that all earlier phases and the given share of this phase are done.

        Parameters
        ----------
        phase : str
            The name of the phase.
        share : float
            The share of the phase that is done, from 0 to 1.
        detail : str, optional
            A few words to show next to the name of the phase.
        """
        now = self._clock()
        self.detail = detail
        if phase != self.phase:
            names = list(self._costs)
            for name in names[: names.index(phase)]:
                self._shares[name] = 1.0
            self._pace = self._measured(now)
            self.phase = phase
            self._begun = self._last = now
        if share > self._shares[phase]:
            self._shares[phase] = share
            self._last = now

    def _measured(self, now: float) -> float:
        """The pace: the expected one, corrected by what this phase has taken so far."""
        done = self._costs[self.phase] * self._shares[self.phase]
        if not done:
            return self._pace
        return (_TRUST * self._pace + (now - self._begun)) / (_TRUST + done)

    @property
    def left(self) -> float:
        """The number of seconds until everything is done."""
        pace = self._measured(self._last)
        rest = {name: cost * (1 - self._shares[name]) for name, cost in self._costs.items()}
        current = rest.pop(self.phase) * pace
        waited = self._clock() - self._last  # for the next piece, of which nothing is known yet
        return max(current - waited, 0.2 * waited if current else 0.0) + pace * sum(rest.values())

    @property
    def share(self) -> float:
        """The share of the work that is done, by cost and by the time spent on the current part."""
        done = sum(cost * self._shares[name] for name, cost in self._costs.items())
        waited = (self._clock() - self._last) / self._measured(self._last)
        current = self._costs[self.phase] * (1 - self._shares[self.phase])
        return min((done + min(waited, 0.95 * current)) / sum(self._costs.values()), 1.0)
