"""The experiments of the paper as kinds of sweep."""

from scb.paper.registry import EXPERIMENTS
from scb.sweeps.grid import Kind
from scb.sweeps.kinds import kind_of


def experiment_kinds() -> dict[str, Kind]:
    """Return the paper's experiments as kinds of sweep.

    Returns
    -------
    dict of Kind

    Examples
    --------
    >>> from scb.paper.kinds import experiment_kinds
    >>> from scb.sweeps.grid import Sweep
    >>> text = 'kind = "noise"\\nseeds = 2\\n[grid]\\nT = [30, 60]'
    >>> len(Sweep.parse(text, experiment_kinds()).jobs())
    4
    """
    return {name: kind_of(name, job) for name, job in EXPERIMENTS.items()}
