"""Submodules that are loaded when they are asked for, so that ``import scb`` is light and
``scb.theory.noise`` works after it.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def submodules(package: str) -> Callable[[str], ModuleType]:
    """A ``__getattr__`` for a package: its submodules by name, each imported at its first use."""

    def load(name: str) -> ModuleType:
        module = f"{package}.{name}"
        if not name.startswith("_"):
            try:
                return import_module(module)
            except ModuleNotFoundError as error:
                if error.name != module:  # it is there, but something that it needs is not
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
