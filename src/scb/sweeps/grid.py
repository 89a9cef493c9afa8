"""The description of a sweep: a TOML file with a kind, fixed parameters, axes and the number of
seeds. Each point of the grid is one or more jobs.

    kind = "recover"                # or "train", or an experiment of the paper
    seeds = 20                      # random tasks at each point of the grid

    [fixed]
    N = 3

    [grid]
    T = [100, 1000, 10000]
    samples = [100, 200, 400, 800]

    [success]                       # optional
    exact = true

    [figure]                        # optional
    x = "samples"
    y = "T"

The whole grid is checked when the file is read, before anything is run or written.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from scb.files import read_regular
from scb.inputs import InputError, coerced, integer, one_of, unreadable
from scb.jobs.job import Job
from scb.jobs.table import Table

Parameters = dict[str, Any]
SHIPPED = Path(__file__).parent
"""The folder of the sweeps that come with scb."""
MOST_SEEDS = 1_000_000
"""More at one point are a mistake: the list of all runs must fit into memory."""


@dataclass(frozen=True)
class Kind:
    """A kind of sweep: the parameters of a run, and what is measured.

    Attributes
    ----------
    name : str
        The value of ``kind`` in the file of a sweep.
    metrics : dict of type, or None
        The type of each quantity that a run measures, by name: bool, int or float. None means that
        the quantities are known only after a run.
    success : dict
        The criteria of success that apply unless the sweep sets others.
    complete : callable
        A function that checks the given parameters and adds the defaults for the others.
    make : callable
        A function that takes parameters and the number of a random task and returns the job for
        them.

    Examples
    --------
    >>> from scb.sweeps.kinds import KINDS
    >>> kind = KINDS["recover"]
    >>> kind.success, kind.make(kind.complete({"T": 50}), 0).T
    ({'exact': True}, 50)
    """

    name: str
    metrics: Mapping[str, type] | None
    success: Mapping[str, Any]
    complete: Callable[[Parameters], Parameters]
    make: Callable[[Parameters, int], Job]


Further = Callable[[], Mapping[str, Kind]]


@dataclass(frozen=True)
class Sweep:
    """A sweep whose settings have been checked.

    Attributes
    ----------
    kind : Kind
        The kind of the sweep, which says what is run and measured.
    fixed : dict
        The parameters that all runs share.
    grid : dict of list
        The axes: parameters and their values.
    seeds : int
        The number of random tasks at each point.
    success : dict
        The criteria of success.
    figure : dict or None
        The axes of the diagram, and its title.
    text : str
        The text of the file that the sweep was read from.

    Examples
    --------
    >>> from pathlib import Path
    >>> from scb.sweeps.grid import Sweep
    >>> from scb.sweeps.kinds import KINDS
    >>> text = 'kind = "recover"\\nseeds = 2\\n[fixed]\\nN = 4\\n[grid]\\nT = [10, 20]'
    >>> _ = Path("mine.toml").write_text(text)
    >>> sweep = Sweep.read("mine.toml", KINDS)
    >>> [point["T"] for point in sweep.points()], len(sweep.jobs())
    ([10, 20], 4)
    >>> Sweep.parse(text.replace("[10, 20]", "[]"), KINDS)
    Traceback (most recent call last):
    scb.inputs.InputError: T = [] in [grid]: an axis must have at least one value
    """

    kind: Kind
    fixed: Parameters
    grid: dict[str, list[Any]]
    seeds: int
    success: Mapping[str, Any]
    figure: dict[str, str] | None
    text: str

    @classmethod
    def read(cls, path: str | Path, kinds: Mapping[str, Kind], further: Further = dict) -> "Sweep":
        """Read a sweep from a TOML file.

        Parameters
        ----------
        path : str or Path
            The file.
        kinds : dict of Kind
            The kinds of sweep by name.
        further : callable
            A function that returns further kinds. The function is called only if the kind of the
            sweep is not among ``kinds``, because loading these kinds may take a long time.

        Returns
        -------
        Sweep
        """
        try:
            return cls.parse(read_regular(Path(path)).decode(), kinds, further)
        except ValueError as error:
            raise InputError(f"{path}: {unreadable(error)}") from None

    @classmethod
    def parse(cls, text: str, kinds: Mapping[str, Kind], further: Further = dict) -> "Sweep":
        """Read a sweep from TOML text.

        An InputError names the first mistake and says what would be accepted.

        Parameters
        ----------
        text : str
            The text.
        kinds : dict of Kind
            The kinds of sweep by name.
        further : callable
            A function that returns further kinds. The function is called only if the kind of the
            sweep is not among ``kinds``.

        Returns
        -------
        Sweep
        """
        try:
            given = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"not TOML: {unreadable(error)}") from None
        _only(given, ("kind", "seeds", "fixed", "grid", "success", "figure"), "the file")
        known = kinds if _known(given, kinds) else further()
        kind = known[one_of("kind", given.get("kind"), (*kinds, *known))]
        seeds = integer("seeds", given.get("seeds", 10), low=1, high=MOST_SEEDS)
        fixed = _table(given, "fixed")
        grid = _table(given, "grid")
        _check_axes(fixed, grid)
        success = _checked_success(_table(given, "success"), kind)
        figure = _table(given, "figure") or None
        sweep = cls(
            kind=kind,
            fixed=fixed,
            grid=grid,
            seeds=seeds,
            success=success,
            figure=figure,
            text=text,
        )
        # This checks every point, too
        points = [json.dumps(point, sort_keys=True) for point in sweep.points()]
        if len(set(points)) < len(points):
            raise InputError(
                "[grid] has the same point twice: every value of an axis must be another"
            )
        if figure is not None:
            _check_figure(figure, grid)
        return sweep

    def points(self) -> Iterator[Parameters]:
        """Iterate over the points of the grid; the last axis varies fastest.

        Returns
        -------
        iterator of dict
            All parameters at each point.
        """
        for coordinates in product(*self.grid.values()):
            yield self.kind.complete(self.fixed | dict(zip(self.grid, coordinates, strict=True)))

    def jobs(self) -> list[Job]:
        """Return all runs in the order of the table.

        Returns
        -------
        list of Job
            The runs of all seeds, point by point; one run per point if nothing is random.
        """
        found = [self.kind.make(point, i) for point in self.points() for i in range(self.seeds)]
        # Without random tasks, all replicates have one key
        return list({job.key: job for job in found}.values())


def _known(given: Parameters, kinds: Mapping[str, Kind]) -> bool:
    return isinstance(given.get("kind"), str) and given["kind"] in kinds


def _sense(name: str, level: Any) -> str:
    """How a metric is compared with its level: booleans by =, signals α and similarities by ≥,
    other numbers by ≤.
    """
    if isinstance(level, bool):
        return "="
    return "≥" if name.startswith(("alpha", "sim")) else "≤"


def succeeded(table: Table, asked: Mapping[str, Any]) -> np.ndarray:
    """Return which rows satisfy the criteria; NaN satisfies no criterion."""
    _only(asked, table, "[success]")
    compare = {"=": np.equal, "≥": np.greater_equal, "≤": np.less_equal}
    # Where nothing is asked, a run that is through succeeds
    reached = [np.ones(len(table["key"]), dtype=bool)]
    reached += [compare[_sense(name, level)](table[name], level) for name, level in asked.items()]
    return np.logical_and.reduce(reached)


def in_words(asked: Mapping[str, Any]) -> str:
    """Return the criteria of success as text.

    Parameters
    ----------
    asked : dict
        The level of each metric. Signals α and similarities must reach this level, and other
        numbers must not exceed it.

    Returns
    -------
    str

    Examples
    --------
    >>> from scb.sweeps.grid import in_words
    >>> in_words({"dist_A": 0.1, "alpha_V": 0.9, "diverged": False})
    'dist_A ≤ 0.1, alpha_V ≥ 0.9, diverged = false'
    """
    return ", ".join(
        f"{name} {_sense(name, level)} {json.dumps(level)}" for name, level in asked.items()
    )


def _checked_success(asked: dict[str, Any], kind: Kind) -> dict[str, Any]:
    if not asked:
        return dict(kind.success)
    if kind.metrics is None:
        return {name: coerced(name, level, bool | float) for name, level in asked.items()}
    _only(asked, kind.metrics, "[success]")
    types = {name: bool if kind.metrics[name] is bool else float for name in asked}
    return {name: coerced(name, level, types[name]) for name, level in asked.items()}


def _only(given: Mapping[str, Any], allowed: Any, part: str) -> None:
    for name in given:
        if name not in allowed:
            raise InputError(
                f"{part} has {name!r}, which means nothing: it may have {', '.join(allowed)}"
            )


def _table(given: dict[str, Any], name: str) -> dict[str, Any]:
    table = given.get(name, {})
    if not isinstance(table, dict):
        raise InputError(f"{name} = {json.dumps(table, default=str)}: it must be a table, [{name}]")
    return table


def _check_axes(fixed: Parameters, grid: dict[str, Any]) -> None:
    for name in ("seed", "task_seed", "replicate"):
        if name in fixed or name in grid:
            raise InputError(f"{name!r} is chosen by the sweep: 'seeds' says how many there are")
    for name, axis in grid.items():
        if not isinstance(axis, list):
            raise InputError(
                f"{name} = {json.dumps(axis, default=str)} in [grid]: it must be a list of values"
            )
        if not axis:
            raise InputError(f"{name} = [] in [grid]: an axis must have at least one value")
        if name in fixed:
            raise InputError(f"{name!r} is in [fixed] and in [grid]: it must be in one of them")


def _check_figure(figure: dict[str, Any], grid: dict[str, list[Any]]) -> None:
    _only(figure, ("x", "y", "panel", "title"), "[figure]")
    axes = [figure[name] for name in ("x", "y", "panel") if name in figure]
    wrong = [f"lacks {name!r}" for name in ("x", "y") if name not in figure] + [
        f"has {x!r}" for x in axes if x not in grid
    ]
    if wrong:
        raise InputError(f"[figure] {wrong[0]}: it must be one of the axes, {', '.join(grid)}")
    if len(set(axes)) < len(axes):
        raise InputError(
            "[figure] uses an axis twice: x, y and panel must be different ones of"
            f" {', '.join(grid)}"
        )
    for name, axis in grid.items():
        if name not in axes and len(axis) > 1:
            raise InputError(f"[figure] leaves out the axis {name!r}: a third axis goes to 'panel'")
    coerced("title", figure.get("title", ""), str)
