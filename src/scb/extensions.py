"""Extensions by other packages: recipes, update rules, gradient sources and kinds of sweep, found
by their entry points.

An installed package lists its extensions in its pyproject.toml, and scb finds them by these names:

    [project.entry-points."scb.recipes"]
    brief = "their_package:brief"

``GROUPS`` holds the names of the groups. Another package is imported only when one of its names is
used.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Any

from scb.inputs import InputError

GROUPS = {
    "recipe": "scb.recipes",
    "rule": "scb.rules",
    "source": "scb.sources",
    "kind": "scb.sweeps",
}
"""The kinds of extension, and the group of entry points of each."""


def something_to_call(name: str, loaded: Any) -> Any:
    """Return what was loaded; raise an InputError if it is not callable."""
    if not callable(loaded):
        raise InputError(
            f"it is of type {type(loaded).__name__}, and must be something that can be called"
        )
    return loaded


class Registry(MutableMapping[str, Any]):
    """A mapping from names to extensions of one kind: scb's own extensions, and those of other
    packages, which are loaded on first use.

    Other packages cannot replace scb's own names. If an extension cannot be loaded, using it raises
    an InputError that names its package; all other names keep working.

    Parameters
    ----------
    noun : the kind of extension, a key of ``GROUPS``
    own : scb's own, by name; "module:name" stands for an object that is imported on first use
    adapt : a function (name, object of another package) → object to keep, which may refuse what
    does not fit
    """

    def __init__(
        self,
        noun: str,
        own: Mapping[str, Any],
        adapt: Callable[[str, Any], Any] = something_to_call,
    ) -> None:
        self.noun = noun
        self._known = dict(own)
        self._adapt = adapt

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._load(name)
        elif isinstance(self._known[name], str):
            self._known[name] = resolve_name(self._known[name])
        return self._known[name]

    def __setitem__(self, name: str, thing: Any) -> None:
        self._known[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known or any(name == point.name for point in self._points())

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._known, *(point.name for point in self._points()))))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _points(self) -> tuple[EntryPoint, ...]:
        return _named_in(GROUPS[self.noun])

    def _load(self, name: str) -> Any:
        """Import the extension that another package has under this name; raise a KeyError if there
        is none.
        """
        offers = {point.value: point for point in self._points() if point.name == name}
        if not offers:
            raise KeyError(name)
        if len(offers) > 1:
            packages = " and ".join(_package(point) for point in offers.values())
            raise InputError(
                f"{self.noun} = {name!r}: {packages} both have it; uninstall one of them"
            )
        (point,) = offers.values()
        try:
            return self._adapt(name, point.load())
        except Exception as error:  # whatever goes wrong in code that is not ours
            what = f"{type(error).__name__}: {error}"
            raise InputError(
                f"{self.noun} = {name!r} of {_package(point)} cannot be loaded ({point.value}):"
                f" {what}"
            ) from error


@cache
def _named_in(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group. They are cached, because the lookup reads all packages."""
    return tuple(entry_points(group=group))


def _package(point: EntryPoint) -> str:
    return "an unnamed package" if point.dist is None else f"package {point.dist.name!r}"
