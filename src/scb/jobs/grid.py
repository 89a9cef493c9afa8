"""A sweep as it is written down: a TOML file with a kind, fixed parameters, axes, and the number of seeds.

    kind = "recover"                # or "train"
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

Everything is checked when it is read: nothing runs, and nothing is written, before all of the grid is known to make sense.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from scb.jobs.job import seed_of
from scb.jobs.kinds import KINDS, Kind, Parameters, Row, fitted

KEYS = ("kind", "seeds", "fixed", "grid", "success", "figure")
FIGURE_KEYS = ("x", "y", "panel", "title")


class Run(NamedTuple):
    """One run. The seed is a hash of all that the run is, and names it: what is random does not depend on where or when it runs."""

    parameters: Parameters
    replicate: int
    seed: int

    @property
    def key(self) -> str:
        """The seed as text."""
        return f"{self.seed:016x}"

    @property
    def columns(self) -> Row:
        """What its row begins with; lists are written as text."""
        plain = {name: json.dumps(v) if isinstance(v, list) else v for name, v in self.parameters.items()}
        return {"key": self.key, **plain, "replicate": self.replicate, "seed": self.seed}


@dataclass(frozen=True)
class Sweep:
    """A checked sweep; ``text`` is the file that it was read from."""

    kind: Kind
    fixed: Parameters
    grid: dict[str, list[Any]]
    seeds: int
    success: Mapping[str, Any]
    figure: dict[str, str] | None
    text: str

    @classmethod
    def read(cls, path: str | Path, kinds: Mapping[str, Kind] = KINDS) -> Sweep:
        """From a file."""
        try:
            return cls.parse(Path(path).read_text(), kinds)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def parse(cls, text: str, kinds: Mapping[str, Kind] = KINDS) -> Sweep:
        """From TOML; a ValueError names the first thing that is wrong, and what would be right."""
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"not TOML: {error}") from None
        _only(values, KEYS, "the file")
        if values.get("kind") not in kinds:
            raise ValueError(f"kind = {values.get('kind')!r}: it must be one of {', '.join(map(repr, kinds))}")
        kind, seeds = kinds[values["kind"]], fitted("seeds", values.get("seeds", 10), int)
        if seeds < 1:
            raise ValueError(f"seeds = {seeds}: it must be at least 1")
        fixed, grid = _table(values, "fixed"), _table(values, "grid")
        _check_axes(fixed, grid)
        success = _table(values, "success") or dict(kind.success)
        _only(success, kind.metrics, "[success]")
        success = {name: fitted(name, v, bool if kind.metrics[name] is bool else float) for name, v in success.items()}
        sweep = cls(kind, fixed, grid, seeds, success, _table(values, "figure") or None, text)
        points = [json.dumps(point, sort_keys=True) for point in sweep.points()]
        if len(set(points)) < len(points):
            raise ValueError("[grid] has the same point twice: every value of an axis must be another")
        if sweep.figure is not None:
            _check_figure(sweep.figure, grid)
        return sweep

    def points(self) -> Iterator[Parameters]:
        """The points of the grid, the last axis running fastest, with all parameters."""
        for values in product(*self.grid.values()):
            yield self.kind.complete(self.fixed | dict(zip(self.grid, values, strict=True)))

    def runs(self) -> list[Run]:
        """All runs, in the order of the table: points, and seeds at each."""
        return [
            Run(point, i, seed_of(sweep=self.kind.name, **point, replicate=i))
            for point in self.points()
            for i in range(self.seeds)
        ]

    @property
    def parameters(self) -> list[str]:
        """Names of all parameters of a run."""
        return sorted(next(self.points()))


def _only(values: Mapping[str, Any], allowed: Any, where: str) -> None:
    for name in values:
        if name not in allowed:
            raise ValueError(f"{where} has {name!r}, which means nothing: it may have {', '.join(allowed)}")


def _table(values: dict[str, Any], name: str) -> dict[str, Any]:
    table = values.get(name, {})
    if not isinstance(table, dict):
        raise ValueError(f"{name} = {json.dumps(table, default=str)}: it must be a table, [{name}]")
    return table


def _check_axes(fixed: Parameters, grid: dict[str, Any]) -> None:
    for name in ("seed", "task_seed", "replicate"):
        if name in fixed or name in grid:
            raise ValueError(f"{name!r} is chosen by the sweep: 'seeds' says how many there are")
    for name, axis in grid.items():
        if not isinstance(axis, list):
            raise ValueError(f"{name} = {json.dumps(axis, default=str)} in [grid]: it must be a list of values")
        if not axis:
            raise ValueError(f"{name} = [] in [grid]: an axis must have at least one value")
        if name in fixed:
            raise ValueError(f"{name!r} is in [fixed] and in [grid]: it must be in one of them")


def _check_figure(figure: dict[str, Any], grid: dict[str, list[Any]]) -> None:
    _only(figure, FIGURE_KEYS, "[figure]")
    for name in ("x", "y"):
        if name not in figure:
            raise ValueError(f"[figure] lacks {name!r}: it must be one of the axes, {', '.join(grid)}")
    axes = [figure[name] for name in ("x", "y", "panel") if name in figure]
    for axis in axes:
        if axis not in grid:
            raise ValueError(f"[figure] has {axis!r}: it must be one of the axes, {', '.join(grid)}")
    if len(set(axes)) < len(axes):
        raise ValueError(f"[figure] uses an axis twice: x, y and panel must be different ones of {', '.join(grid)}")
    for name, axis in grid.items():
        if name not in axes and len(axis) > 1:
            raise ValueError(f"[figure] leaves out the axis {name!r}: a third axis goes to 'panel'")
    fitted("title", figure.get("title", ""), str)
