"""Digests of the parts that determine a training run, which let a resumed run say what differs."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from scb.task import Task

_PLAIN = bool | int | float | str | None


def made_by(
    task: Any, recipe: Any, seed: int, *, every: int, source: Any, start: Any, device: str
) -> dict[str, str]:
    """Return the digests of everything that determines a run."""
    made = fingerprints(
        task=task, recipe=recipe, seed=seed, every=every, source=source, start=start
    )
    return made if device == "cpu" else made | fingerprints(device=device)


def fingerprints(**parts: Any) -> dict[str, str]:
    """Return a digest of each part by its name; equal parts have equal digests in any process."""
    digests = {}
    for name, part in parts.items():
        digest = sha256()
        _add(digest, part)
        digests[name] = digest.hexdigest()[:16]
    return digests


def identity(made_by: Mapping[str, str]) -> str:
    """Return one digest of all parts that determine a run. The files of the run carry it, so none
    of them is taken for a file of another run.
    """
    return fingerprints(run=dict(sorted(made_by.items())))["run"]


def _add(digest: Any, value: Any) -> None:
    """Add a value to a digest: its kind, and what it is made of.

    Functions count by their names, and by the numbers, texts and arrays of the functions around
    them that they use; those without a name by their code, too. Objects of unknown kinds count by
    the names of their classes.
    """
    if isinstance(value, np.ndarray):
        values = (
            np.broadcast_to(value.reshape(-1)[:1], (1,))
            if value.size and not any(value.strides)
            else value
        )
        _text(digest, "array", value.dtype.str, value.shape)
        digest.update(np.ascontiguousarray(values).tobytes())
    elif isinstance(value, Task):
        names = ("T", "P", "positions", "weights", *(("owners",) if value.heads > 1 else ()))
        _members(digest, "Task", {name: getattr(value, name) for name in names})
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        _text(digest, value.__module__, value.__qualname__)
        _function(digest, value)
    elif is_dataclass(value):
        _members(
            digest,
            type(value).__qualname__,
            {field.name: getattr(value, field.name) for field in fields(value)},
        )
    elif isinstance(value, Mapping):
        _members(digest, "mapping", value)
    elif isinstance(value, list | tuple):
        _members(digest, "sequence", dict(enumerate(value)))
    elif isinstance(value, _PLAIN):
        _text(digest, type(value).__name__, repr(value))
    elif hasattr(value, "__dict__"):
        _members(digest, type(value).__qualname__, vars(value))
    else:
        _text(digest, type(value).__qualname__)


def _function(digest: Any, function: Any) -> None:
    """Add what tells two functions of one name apart; nothing for a class."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    if code.co_name == "<lambda>":
        _text(
            digest,
            code.co_code.hex(),
            code.co_names,
            [one for one in code.co_consts if isinstance(one, _PLAIN)],
        )
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # not set yet
            continue
        if isinstance(value, _PLAIN | np.ndarray):
            _text(digest, name)
            _add(digest, value)


def _members(digest: Any, kind: str, members: Mapping[Any, Any]) -> None:
    _text(digest, kind, len(members))
    for name, member in members.items():
        _text(digest, name)
        _add(digest, member)


def _text(digest: Any, *words: Any) -> None:
    digest.update("\0".join(map(str, words)).encode() + b"\n")
