"""The import graph of scb, read from its sources: what each module imports, in which layer its room lies, and where a circle is."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import scb

ROOT = Path(scb.__file__).parent
LAYERS = (
    {"arrays", "kernels", "lazy", "namesake", "inputs", "extras", "extensions", "handles"}
    | {"files", "tensors", "folders", "provenance", "drawing", "notebook"},
    {"geometry", "contexts", "model", "task"},
    {"theory", "metrics", "picture", "lab"},
    {"mixture"},
    {"training", "sequences"},
    {"jobs", "sweeps", "torch"},
    {"paper", "cli"},
)
"""Rooms, from the ground up. A module imports from its own layer or from those below, and nothing imports in a circle."""
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Name → file of every module but ``scb`` itself, which names others without importing them."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = ("scb", *path.relative_to(root).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    del found["scb"]
    return found


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _imports(node: ast.AST) -> Iterator[ast.ImportFrom | ast.Import]:
    """Every import below a node, in functions too; not those that only a type checker sees."""
    for child in ast.iter_child_nodes(node):
        if _is_type_checking(child):
            continue
        if isinstance(child, ast.ImportFrom | ast.Import):
            yield child
        yield from _imports(child)


def imported(path: Path, known: set[str]) -> set[str]:
    """The modules of scb that a file imports; a package's own ``__init__`` counts for what is imported from it by name."""
    found = set()
    for node in _imports(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "scb"}
        elif node.module and node.module.split(".")[0] == "scb":
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inside & known
            if inside - known:
                found.add(node.module)
    return found


def graph(root: Path = ROOT) -> dict[str, set[str]]:
    """Module → the modules that it imports."""
    found = modules(root)
    known = set(found)
    return {name: imported(path, known) - {name} for name, path in found.items()}


def unlisted(folder: Path, answer: str, listed: Iterable[str]) -> set[str]:
    """Public functions and callable classes in the modules of a folder that return ``answer`` and are not listed."""
    found = set()
    for path in folder.glob("*.py"):
        if path.name == "__init__.py":  # has the protocol, not a thing that follows it
            continue
        for node in ast.parse(path.read_text()).body:
            members = [node]
            if isinstance(node, ast.ClassDef):
                members = [member for member in node.body if getattr(member, "name", "") == "__call__"]
            for member in members:
                if isinstance(member, ast.FunctionDef) and member.returns and ast.unparse(member.returns) == answer:
                    found.add(node.name)
    return {name for name in found if not name.startswith("_")} - set(listed)


def room(module: str) -> str:
    """The part of scb that a module belongs to; what runs as ``python -m`` is a command, wherever it lies."""
    return "cli" if module.endswith(".__main__") else module.split(".")[1]


def upward(edges: dict[str, set[str]]) -> list[str]:
    """Imports from a layer above."""
    return [
        f"{name} imports {other}, which lies above it"
        for name, others in edges.items()
        for other in sorted(others)
        if LEVEL[room(other)] > LEVEL[room(name)]
    ]


def circle(edges: dict[str, set[str]]) -> list[str] | None:
    """A circle of imports, first module repeated at its end; None if there is none."""
    state: dict[str, int] = {}
    path: list[str] = []

    def visit(name: str) -> list[str] | None:
        state[name] = 1
        path.append(name)
        for other in sorted(edges.get(name, ())):
            if state.get(other) == 1:
                return [*path[path.index(other) :], other]
            if other not in state and (found := visit(other)):
                return found
        path.pop()
        state[name] = 2
        return None

    for name in sorted(edges):
        if name not in state and (found := visit(name)):
            return found
    return None


def rooms(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """The same graph between rooms."""
    found: dict[str, set[str]] = {}
    for name, others in edges.items():
        found.setdefault(room(name), set()).update({room(other) for other in others} - {room(name)})
    return found


def unlisted_in_paper(root: Path = ROOT) -> list[str]:
    """Experiments and claims that neither the registry nor the tables import, and figures that nobody names or imports."""
    edges = graph(root)
    listed = set().union(*(edges[f"scb.paper.{name}"] for name in ("registry", "tables", "full_tables")))
    used = set().union(*edges.values())
    captions = (ROOT / "paper" / "figures.toml").read_text()
    found = []
    for name in edges:
        *folder, module = name.split(".")
        if folder in (["scb", "paper", "experiments"], ["scb", "paper", "claims"]) and name not in listed:
            found.append(name)
        if folder == ["scb", "paper", "figures"] and name not in used and f'"{module}:' not in captions:
            found.append(name)
    return found


def private_imports(folder: Path, public: Iterable[object]) -> set[str]:
    """What the files of a folder, such as paper, import from the rest of scb that no user could: functions and classes that are not
    public, and types or constants of a module that has nothing public. Public are these objects, and the type of arrays."""
    listed = {id(value) for value in public}
    modules_listed = {getattr(value, "__module__", "") for value in public}
    homes = {"scb.arrays", *modules_listed, *(name.rpartition(".")[0] for name in modules_listed)}
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if module.split(".")[0] != "scb" or module.startswith(f"scb.{folder.name}"):
                continue
            for alias in node.names:
                value = getattr(import_module(module), alias.name)
                code = inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)
                if id(value) not in listed and (code or module not in homes):
                    found.add(f"{module}.{alias.name}")
    return found
