"""Names and submodules that are imported when they are first used, so ``import scb`` is light, and
``scb.theory.noise`` works after it.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, names: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package that finds submodules and names of other modules.

    ``names`` maps each name to its module. If the module does not define the name, the name stands
    for the module itself.
    """

    def load(name: str) -> Any:
        value = _module(package, name, (names or {}).get(name, f"{package}.{name}"))
        if name in (names or {}):
            value = getattr(value, name, value)
        setattr(sys.modules[package], name, value)
        return value

    return load


def _module(package: str, name: str, home: str) -> Any:
    if not name.startswith("_"):
        try:
            return import_module(home)
        except ModuleNotFoundError as error:
            if error.name != home:  # it is there, but something that it needs is not
                raise
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
