"""The design, enforced: imports go one way, nothing imports in a circle, and ``import scb`` stays light."""

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from importlib import import_module
from itertools import groupby
from pathlib import Path

import pytest

import scb
from architecture import LEVEL, ROOT, circle, graph, modules, private_imports, room, rooms, unlisted, unlisted_in_paper, upward
from scb.jobs.job import Job
from scb.paper.claims.claim import Claim
from scb.paper.figures.bars import Drawing
from scb.paper.registry import CLAIMS, EXPERIMENTS, FIGURES, TABLES
from scb.training import settings
from scb.training.recipes import RECIPES
from training.test_training import SOURCES

sys.path.append(str(Path(__file__).parents[2] / "docs" / "_ext"))
from api_index import api_groups

EDGES = graph()


def test_every_room_has_a_layer():
    assert {room(name) for name in modules()} == set(LEVEL)


def test_imports_go_one_way():
    assert upward(EDGES) == []


def test_nothing_imports_in_a_circle():
    assert circle(EDGES) is None
    assert circle(rooms(EDGES)) is None


@pytest.fixture
def copy(tmp_path):
    """The sources, to be spoilt."""
    for path in ROOT.rglob("*.py"):
        target = tmp_path / "scb" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text())
    return tmp_path / "scb"


@pytest.mark.parametrize("where", ["top", "in a function"])
def test_a_planted_circle_is_noticed(copy, where):
    """Within one package, at the top of a file or inside a function; an import for the type checker alone is none."""
    spoilt = copy / "task" / "chains.py"
    before = spoilt.read_text()
    spoilt.write_text(before + "\nif TYPE_CHECKING:\n    from scb.task.task import Task\n")
    assert circle(graph(copy)) is None
    line = "from scb.task.task import Task\n"
    spoilt.write_text(before + (line if where == "top" else f"\n\ndef f():\n    {line}"))
    assert set(circle(graph(copy))) >= {"scb.task.chains", "scb.task.task"}


def test_a_planted_import_from_above_is_noticed(copy):
    (copy / "geometry" / "columns.py").write_text("def f():\n    from scb.theory.noise import noise_quantile\n")
    assert upward(graph(copy)) == ["scb.geometry.columns imports scb.theory.noise, which lies above it"]


def test_every_recipe_and_every_source_is_listed(copy):
    """A recipe that ``RECIPES`` lacks is unknown to the commands; a source that ``SOURCES`` lacks is held to no distribution."""
    for folder, answer, listed, planted in (
        ("recipes", "Recipe", RECIPES, "def mine(task) -> Recipe:\n    return Recipe()\n"),
        ("sources", "Gradient", SOURCES, "class Mine:\n    def __call__(self, V) -> Gradient:\n        return V\n"),
    ):
        assert unlisted(ROOT / "training" / folder, answer, listed) == set()
        assert unlisted(ROOT / "training" / folder, answer, ()) == set(listed)
        (copy / "training" / folder / "planted.py").write_text(planted)
        assert {name.lower() for name in unlisted(copy / "training" / folder, answer, listed)} == {"mine"}


def test_every_source_that_a_task_is_enough_for_has_a_name():
    assert {settings.SOURCES[name].__name__ for name in settings.SOURCES} == set(SOURCES) - {"Dataset"}


def test_the_paper_is_listed_in_one_place():
    """Every module; and in them every job, every claim, and every figure of the paper."""
    assert unlisted_in_paper() == []
    found = {name: vars(import_module(name)).values() for name in modules() if name.startswith("scb.paper.")}
    jobs = {x for values in found.values() for x in values if inspect.isclass(x) and issubclass(x, Job)} - {Job}
    assert set(EXPERIMENTS.values()) == jobs == {experiment.job for experiment in TABLES.values()}
    drawn = set()
    claims = {x for values in found.values() for x in values if isinstance(x, Claim)}
    for name, values in found.items():
        for x in values:
            public = inspect.isfunction(x) and x.__module__ == name and not x.__name__.startswith("_")
            if public and x.__annotations__.get("return") == Drawing:
                drawn.add(f"{name.rpartition('.')[2]}:{x.__name__}")
    assert set(CLAIMS) == claims
    assert drawn == {figure.drawn_by for figure in FIGURES.values()}


@pytest.mark.parametrize("folder", ["experiments", "figures", "claims"])
def test_a_planted_unlisted_part_of_the_paper_is_noticed(copy, folder):
    (copy / "paper" / folder / "planted.py").write_text("X = 1\n")
    assert unlisted_in_paper(copy) == [f"scb.paper.{folder}.planted"]


@pytest.mark.parametrize(("client", "spoilt"), [("paper", "claims/models.py"), ("cli", "plan.py")])
def test_the_paper_and_the_commands_are_clients_of_the_library(copy, client, spoilt):
    """They import what any user could, and a planted private import is noticed."""
    public = [pydoc.locate(name) for names in api_groups().values() for name in names if not name.startswith("scb.torch")]
    assert private_imports(ROOT / client, public) == set()
    file = copy / client / spoilt
    file.write_text(file.read_text() + "\nfrom scb.mixture.em import maximise\n")
    assert private_imports(copy / client, public) == {"scb.mixture.em.maximise"}


def test_import_scb_is_light():
    code = "import sys, scb; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"matplotlib", "sklearn", "pandas", "dask", "pyarrow", "scipy", "tyro", "rich", "numba", "safetensors"}
    assert heavy & set(loaded) == set()


def test_public_names_exist():
    for name in scb.__all__:
        assert hasattr(scb, name)


# ------------------------------------------------------------------------------------------------- docs/explanation/architecture.md

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "architecture.md"
HOP = re.compile(r"^\| \d+ \| `([\w/]+\.py)` `(\w+)` \|", re.M)
WALKS = [HOP.findall(section) for section in PAGE.read_text().split("\n## ") if HOP.search(section)]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk[0][1])
def test_a_walk_goes_down_once_and_up_once(walk):
    """Every hop exists; layers fall and then rise; no room is entered again once it has been left on that way."""
    assert len(walk) > 10
    for file, function in walk:
        defined = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)}
        assert function in defined, f"{file} has no {function}"
    entered = [name for name, _ in groupby(file.split("/")[0] for file, _ in walk)]
    levels = [LEVEL[name] for name in entered]
    bottom = levels.index(min(levels))
    assert levels[: bottom + 1] == sorted(levels[: bottom + 1], reverse=True)
    assert levels[bottom:] == sorted(levels[bottom:])
    for way in (entered[: bottom + 1], entered[bottom:]):
        assert len(set(way)) == len(way)
