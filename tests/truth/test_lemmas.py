"""Every lemma equals full enumeration on every tiny task; and no formula can be broken without a check noticing."""

import ast
import copy
import importlib
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from truth import noise_checks
from truth.checks import CHECKS as LEMMAS
from truth.enumeration import SHORT, WORLDS, World, constrained_point, free_point, precondition, tiny_heads

CHECKS = LEMMAS | noise_checks.CHECKS

HEADS = World.of(tiny_heads(3, 2, 2, 0))


def check_heads(module: types.ModuleType) -> None:
    """Expectations of several heads; tests/theory/test_heads.py has more worlds."""
    rng = np.random.default_rng(0)
    for V, A in (free_point(HEADS.task, rng), constrained_point(HEADS.task, rng)):
        np.testing.assert_allclose(module.population_loss(HEADS.task, V, A), HEADS.mean(HEADS.losses(V, A)), atol=1e-12)
        means = [HEADS.mean(g) for g in HEADS.gradients(V, A)]
        for ours, theirs in zip(module.expected_gradients(HEADS.task, V, A), means, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
    truth = precondition(HEADS.task, *means, "mu")
    for ours, theirs in zip(module.expected_preconditioned_gradients(HEADS.task, V, A), truth, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


ROWS = [(name, check) for name, checks in CHECKS.items() for check in checks]


@pytest.mark.parametrize(("name", "check"), ROWS, ids=lambda v: getattr(v, "__name__", v))
@pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"N{w.task.N}T{w.task.T}")
def test_lemma_equals_enumeration(name, check, world):
    check(importlib.import_module(f"scb.{name}"), world)


@pytest.mark.parametrize("check", noise_checks.CHECKS["theory.noise"], ids=lambda check: check.__name__)
@pytest.mark.parametrize("world", SHORT, ids=lambda w: f"N{w.task.N}T{w.task.T}")
def test_the_noise_of_one_position_equals_enumeration(check, world):
    check(importlib.import_module("scb.theory.noise"), world)


def test_enumeration_is_a_distribution():
    for world in WORLDS:
        assert abs(world.probability.sum() - 1) < 1e-12
        assert len(world) == world.task.N ** (world.task.T + 2)


# ----------------------------------------------------------------------------------------------- broken formulas

SWAP = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}


def places(tree: ast.Module) -> list[ast.BinOp]:
    """The arithmetic operations in functions, outside subscripts and strings."""
    found: list[ast.BinOp] = []

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.Subscript | ast.JoinedStr | ast.arguments):
            return
        if isinstance(node, ast.BinOp) and type(node.op) in SWAP:
            found.append(node)
        for child in ast.iter_child_nodes(node):
            walk(child)

    functions = [node for parent in ast.walk(tree) if isinstance(parent, ast.Module | ast.ClassDef) for node in parent.body]
    for node in functions:
        if isinstance(node, ast.FunctionDef):
            for statement in node.body:
                walk(statement)
    return found


def mutants(name: str):
    module = importlib.import_module(f"scb.{name}")
    tree = ast.parse(Path(module.__file__).read_text())
    for i in range(len(places(tree))):
        mutated = copy.deepcopy(tree)
        node = places(mutated)[i]
        node.op = SWAP[type(node.op)]()
        broken = types.ModuleType(f"scb.{name}_broken")
        sys.modules[broken.__name__] = broken  # dataclasses look their module up
        exec(compile(mutated, module.__file__, "exec"), broken.__dict__)
        yield f"{name}:{node.lineno}:{node.col_offset} {ast.unparse(node)}", broken


def survives(name: str, broken: types.ModuleType) -> bool:
    if name == "theory.expectations":
        try:
            check_heads(broken)
        except Exception:
            return False
    for world in (WORLDS[0], WORLDS[-1]):  # the small one first, which notices most
        for check in CHECKS[name]:
            try:
                check(broken, world)
            except Exception:
                return False
    return True


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # broken formulas may divide by zero
def test_every_broken_formula_is_noticed(name):
    all_of_them = list(mutants(name))
    assert len(all_of_them) >= 3
    assert [label for label, broken in all_of_them if survives(name, broken)] == []


def test_there_is_much_to_break():
    sources = [Path(importlib.import_module(f"scb.{name}").__file__ or "").read_text() for name in CHECKS]
    assert sum(len(places(ast.parse(source))) for source in sources) > 300
