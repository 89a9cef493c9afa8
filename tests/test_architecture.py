"""The design, enforced: imports go one way, and ``import scb`` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import scb

ROOT = Path(scb.__file__).parent
LAYERS = [
    {"norms", "symbols"},
    {"kernels"},
    {"couplings", "task", "sampling", "model"},
    {"gradients", "updates", "theory"},
    {"metrics", "record"},
    {"recovery"},
    {"recipes"},
    {"engine", "simulation"},
    {"training"},
    {"config", "benchmarking"},
    {"experiments", "estimator", "baselines"},
    {"figures", "claims"},
    {"reproduction", "report", "sweeps"},
    {"cli"},
]
LEVEL = {name: i for i, names in enumerate(LAYERS) for name in names}


def imported(path: Path) -> set[str]:
    """Top-level parts of scb that a file imports, anywhere in it, outside TYPE_CHECKING blocks and ``Task.model``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "scb":
            parts = node.module.split(".")[1:]
            found |= {parts[0]} if parts else {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize(
    "path",
    sorted(p for p in ROOT.rglob("*.py") if p not in (ROOT / "__init__.py", ROOT / "kernels" / "__main__.py")),
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_imports_go_one_way(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for other in imported(path):
        assert LEVEL[other] <= LEVEL[part], f"{path} imports scb.{other}, which lies above it"


def test_import_scb_is_light():
    code = "import sys, scb; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"matplotlib", "sklearn", "pandas", "dask", "pyarrow", "scipy", "tyro", "rich", "numba", "safetensors"}
    assert heavy & set(loaded) == set()


def test_public_names_exist():
    for name in scb.__all__:
        assert hasattr(scb, name)
