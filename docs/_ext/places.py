"""Where in the code something is that a page names: a path, `path:name`, or a dotted name."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "scb"
PATH = re.compile(r"[\w./-]+\.(?:py|cu|cuh|mjs|toml|j2)")
NAME = re.compile(r"(?:scb\.)?[a-zA-Z_]\w*(?:\.[a-zA-Z_]\w*)+(?:\(\))?")


@cache
def lines_of(file: Path) -> dict[str, int]:
    """Line of every function, class, method and assigned name of a Python file."""
    found: dict[str, int] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(prefix + node.name, node.lineno)
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(prefix + target.id, node.lineno)

    if file.suffix == ".py":
        visit(ast.parse(file.read_text()).body, "")
    return found


@cache
def imported_by(file: Path) -> dict[str, str]:
    """Name → the module that a Python file has it from: a package hands on the names of its modules."""
    imports = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


@cache
def find_file(text: str) -> Path | None:
    """The file that a path in a page means: from the root of the repository, or from src/scb."""
    for base in (ROOT, PACKAGE, ROOT / "src"):
        file = base / text.removeprefix("./")
        if file.is_file() and file.is_relative_to(ROOT):
            return file
    return None


@cache
def find_name(text: str) -> tuple[Path, int] | None:
    """File and line of a dotted name such as ``theory.expectations.population_loss``."""
    parts = text.removesuffix("()").removeprefix("scb.").split(".")
    for cut in range(len(parts), 0, -1):
        for file in (PACKAGE.joinpath(*parts[:cut]).with_suffix(".py"), PACKAGE.joinpath(*parts[:cut], "__init__.py")):
            if file.is_file():
                rest = ".".join(parts[cut:])
                if not rest:
                    return file, 1
                line = lines_of(file).get(rest)
                if line is None and rest in imported_by(file):
                    return find_name(f"{imported_by(file)[rest]}.{rest}")
                return (file, line) if line else None
    return None


def find_place(text: str) -> tuple[Path, int] | None:
    """File and line that a piece of inline code stands for, if it names one: a path, ``path:name``, or a dotted name."""
    path, _, name = text.partition(":")
    if PATH.fullmatch(path):
        file = find_file(path)
        if file is None:
            return None
        return file, lines_of(file).get(name, 1)
    return find_name(text) if NAME.fullmatch(text) else None
