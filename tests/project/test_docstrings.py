"""The reference: every public name explains itself, and every example in it runs.

What is public is read from the code: ``scb.__all__``, the modules in it with all that they define, ``scb.geometry`` and
``scb.torch``, what one takes for parts of one's own, the classes that any of these return, and of every class the methods and
properties that it has from scb. The index of the reference lists the same names.
"""

import doctest
import inspect
import pkgutil
import pydoc
import re
import sys
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import scb

DOCS = Path(__file__).parents[2] / "docs"
sys.path.append(str(DOCS / "_ext"))

import api_index  # noqa: E402

SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "See Also", "Notes", "Examples")


def roots() -> dict[str, Any]:
    """Public functions and classes by name; those of scb.torch only where PyTorch is installed."""
    found = contents("scb.geometry", scb.geometry)
    for name in scb.__all__:
        value = getattr(scb, name)
        found |= contents(f"scb.{name}", value) if isinstance(value, ModuleType) else {f"scb.{name}": value}
    found |= {name: pydoc.locate(name) for name in (*api_index.OWN, *api_index.COMMANDS, *api_index.WITHIN)}
    if find_spec("torch"):
        found |= contents("scb.torch", import_module("scb.torch"))
    return {name: value for name, value in found.items() if inspect.isroutine(value) or inspect.isclass(value)}


def contents(name: str, module: ModuleType) -> dict[str, Any]:
    """What a module lists, or else defines, under public names; of a package without a list, that of its modules."""
    if hasattr(module, "__all__"):
        return {f"{name}.{one}": getattr(module, one) for one in module.__all__}
    found = {}
    for _, below, _ in pkgutil.iter_modules(getattr(module, "__path__", [])):
        found |= contents(f"{name}.{below}", import_module(f"{module.__name__}.{below}"))
    own = {one: value for one, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    return found | {f"{name}.{one}": value for one, value in own.items() if not one.startswith("_") and inspect.getdoc(value)}


def members(cls: type) -> dict[str, Any]:
    """Public methods and properties of a class that scb wrote, its own and inherited ones."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("scb"):
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    kinds = (classmethod, staticmethod, property, cached_property)
    return {name: value for name, value in found.items() if inspect.isfunction(value) or isinstance(value, kinds)}


def function_of(value: Any) -> Any:
    """The function behind a method or property."""
    for name in ("__func__", "fget", "func"):
        value = getattr(value, name, value)
    return inspect.unwrap(value)


def returned(value: Any) -> Any:
    """What a function says that it returns, a class of scb if it names one; ``None`` for nothing."""
    function = function_of(value)
    said = inspect.signature(function).return_annotation
    if not isinstance(said, str):
        return said
    try:
        return get_type_hints(function).get("return")
    except NameError:  # a type for the checker alone
        return said


def public() -> dict[str, Any]:
    """All of it by dotted name: functions, classes, and the members of classes, also of classes that are given back."""
    found: dict[str, Any] = {}
    waiting = list(roots().items())
    seen = set()
    while waiting:
        name, value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        found[name] = value
        parts = {f"{name}.{one}": member for one, member in members(value).items()} if inspect.isclass(value) else {}
        found |= parts
        annotations = [None if inspect.isclass(one) else returned(one) for one in (value, *parts.values())]
        for given in named_in([*annotations, *getattr(value, "__orig_bases__", ())]):
            if given.__module__.startswith("scb") and not given.__name__.startswith("_"):
                waiting.append((f"{given.__module__}.{given.__name__}", given))
    return found


def named_in(annotations: Any) -> list[type]:
    """The classes in annotations, those inside of list[…] and unions too."""
    found = [one for one in annotations if inspect.isclass(one)]
    return found + [inner for one in annotations for inner in named_in(get_args(one))]


PUBLIC = public()
OWNERS = {name: value for name, value in PUBLIC.items() if inspect.isclass(value)}


def document(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "")


def section(text: str, title: str) -> dict[str, str]:
    """The entries of a section: name, or type of what is returned, → the text below it."""
    match = re.search(rf"^{title}\n-+\n(.*?)(?=^(?:{'|'.join(SECTIONS)})\n---|\Z)", text, re.MULTILINE | re.DOTALL)
    entries: dict[str, str] = {}
    for line in match.group(1).splitlines() if match else []:
        if line and not line.startswith(" "):
            entries[line] = ""
        elif line.strip():
            entries[next(reversed(entries))] += line.strip() + " "
    return entries


def named(text: str, *titles: str) -> set[str]:
    """The names that sections explain; "a, b : float" explains two."""
    heads = [head.partition(" : ")[0] for title in titles for head in section(text, title)]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def example_of(name: str, text: str) -> bool:
    """Whether an example shows it: one of its own, or for a member one of its class."""
    owner, _, member = name.rpartition(".")
    lines = [line for line in document(OWNERS.get(owner)).splitlines() if line.startswith((">>> ", "... "))]
    return ">>> " in text or any(re.search(rf"\.{member}\b", line) for line in lines)


def faults(name: str, value: Any) -> list[str]:
    """What a docstring lacks, in words."""
    text = document(value)
    found = []
    first, _, rest = text.partition("\n")
    if not first.endswith(".") or (rest and not rest.startswith("\n")):
        found.append("a summary: one line that ends in a full stop, and an empty line after it")
    if not example_of(name, text):
        found.append("an example, of its own or in its class")
    if inspect.isclass(value):
        fields = set(getattr(value, "__dataclass_fields__", getattr(value, "_fields", ())))
        wanted = {one for one in fields if not one.startswith("_")} or arguments(value)
        lacking = wanted - named(text, "Parameters", "Attributes")
    elif isinstance(value, property | cached_property):
        lacking = set()
    else:
        lacking = arguments(function_of(value)) - named(text, "Parameters")
        if returned(value) not in (None, type(None)) and not section(text, "Returns"):
            found.append("Returns")
    found += [f"the parameter or attribute {one}" for one in sorted(lacking)]
    for title in ("Parameters", "Attributes"):
        entries = section(text, title).items()
        found += [f"a type and an explanation of {head!r}" for head, below in entries if " : " not in head or not below]
    return found + [f"the shape of {what!r}" for what in shapeless(value)]


def shapeless(value: Any) -> list[str]:
    """What a docstring, or a property by its annotation, calls an array without a shape: (N, N), or an axis for each letter."""
    text = document(value)
    sections = [section(text, title) for title in ("Parameters", "Attributes", "Returns", "Yields")]
    entries = [f"{head} {below}" for one in sections for head, below in one.items() if re.search(r"arrays?\b", head)]
    if isinstance(value, property | cached_property) and "ndarray" in str(returned(value)):
        entries.append(text)
    return [entry for entry in entries if not re.search(r"\([^()]*,[^()]*\)|\baxis\b", entry)]


def arguments(function: Any) -> set[str]:
    """The arguments of a function, or of the __init__ that a class of scb has."""
    if getattr(function, "_is_protocol", False):  # a class that says how a function is called
        function = function.__call__
    elif inspect.isclass(function):
        own = any("__init__" in vars(base) for base in function.__mro__ if base.__module__.startswith("scb"))
        if not own:
            return set()
        function = function.__init__
    return {name for name in inspect.signature(function).parameters if name not in ("self", "cls")}


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring_is_whole(name: str) -> None:
    lacks = faults(name, PUBLIC[name])
    assert not lacks, f"{name} lacks " + "; ".join(lacks)


EXAMPLES = {document(value): name for name, value in reversed(PUBLIC.items()) if ">>> " in document(value)}  # inherited ones once


@pytest.mark.parametrize("name", list(EXAMPLES.values())[::-1])
def test_examples_run(name: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(document(PUBLIC[name]), {}, name, None, None)
    told: list[str] = []
    with np.printoptions(precision=8, suppress=False, linewidth=75, threshold=1000, legacy=False):
        result = doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    assert result.attempted
    assert not result.failed, "".join(told)


def test_nothing_public_is_left_out() -> None:
    """Names of every kind that the walk must reach; one that is gone has another name now, or the walk is broken."""
    wanted = ("scb.Task.random", "scb.recipes.paper", "scb.metrics.distance_V", "scb.theory.noise.GradientNoise.square_V")
    assert {*wanted, "scb.SparseContextualBigram.predict_proba", "scb.Run.A"} <= PUBLIC.keys()
    assert len(PUBLIC) > 150


def test_the_index_of_the_reference_lists_what_is_public_and_nothing_else() -> None:
    """By the objects themselves: ``scb.recipes.paper`` and ``scb.training.recipes.paper`` are one."""
    groups = api_index.api_groups()
    listed = [name for names in groups.values() for name in names if find_spec("torch") or "torch" not in name]
    assert len(listed) == len(set(listed)) > 90
    assert all(groups.values()), "a heading without a name"
    members_of = {f"{owner}.{one}" for owner, cls in OWNERS.items() for one in members(cls)}
    ours = {id(value): name for name, value in PUBLIC.items() if name not in members_of}
    theirs = {id(pydoc.locate(name)): name for name in listed}
    assert [name for one, name in theirs.items() if one not in ours] == []
    assert [name for one, name in ours.items() if one not in theirs] == []


def test_what_pages_import_is_in_the_index() -> None:
    """Functions and classes of how-to pages and tutorials; a page on the inside of files may show more."""
    pages = [*(DOCS / "howto").glob("*.md"), *(DOCS / "tutorials").glob("*.py")]
    lines = [line for page in pages for line in re.findall(r"^from (scb[\w.]*) import (.+)$", page.read_text(), re.MULTILINE)]
    values = {f"{module}.{name}": getattr(import_module(module), name) for module, names in lines for name in names.split(", ")}
    assert len(values) > 15
    listed = {id(value) for value in PUBLIC.values()}
    kinds = [name for name, value in values.items() if inspect.isroutine(value) or inspect.isclass(value)]
    assert [name for name in kinds if id(values[name]) not in listed] == []


def test_a_poor_docstring_is_noticed() -> None:
    def poor(a: int, b: int, c: np.ndarray) -> int:
        """Add two numbers

        Parameters
        ----------
        a : the first
        c : array
            Not needed.
        """
        return a + b

    lacks = " ".join(faults("poor", poor))
    assert all(word in lacks for word in ("a summary", "an example", "Returns", "attribute b", "explanation of 'a : the first'"))
    assert "the shape of 'c : array" in lacks
