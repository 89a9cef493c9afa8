"""Kernels in a fresh cache: the first call says that it compiles, and gives the bits of all later ones; and without any cache."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys

import pytest
from numba.core.dispatcher import Dispatcher

import scb.kernels

pytestmark = pytest.mark.slow

WORK = """
import hashlib, json, sys
from pathlib import Path
import scb

class Stop(Exception): pass

out = sys.argv[1]
first = not Path(out).exists()

def stop_in_stage_2(run):
    if first and run.step == 50:
        raise Stop

def digest(*arrays):
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()

task = scb.Task.random(N=10, T=2100, sparsity=2, seed=1)
recipe = scb.recipes.paper(task, steps=(30, 60, 20), lam=1e-4, threshold=1e-3)
options = {"every": 10, "checkpoint": out, "checkpoint_every": 10}
try:
    broken = scb.train(task, recipe, seed=3, callbacks=[stop_in_stage_2], resume=True, **options)
except Stop:
    broken = None
whole = scb.train(task, recipe, seed=3, every=10)
runs = {"whole": whole, "resumed": broken}
found = {name: digest(run.V, run.A, run.history["batch_loss"]) for name, run in runs.items() if run is not None}
fit = scb.recover(scb.sample(task, 3000, seed=2))
found["recover"] = digest(fit.V, fit.A)
sequence = scb.generate(scb.Task.random(N=3, T=6, sparsity=2, seed=1), 3000, seed=1)
found["fit"] = digest(scb.SparseContextualBigram(7).fit(sequence).predict_proba(sequence))
print(json.dumps(found))
"""


def run(code, *arguments, **environment):
    """What a new process prints."""
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done


def test_cold_warm_and_resumed_runs_have_the_same_bits(tmp_path):
    """The process that compiles is stopped in Stage 2; another one, which finds the cache, goes on from there and does all anew."""
    cache = str(tmp_path / "cache")
    cold = run(WORK, tmp_path / "run", NUMBA_CACHE_DIR=cache)
    warm = run(WORK, tmp_path / "run", NUMBA_CACHE_DIR=cache)
    assert "compiling kernels" in cold.stderr
    assert warm.stderr == ""
    first = json.loads(cold.stdout)
    second = json.loads(warm.stdout)
    assert set(first) == {"whole", "recover", "fit"}
    assert second == first | {"resumed": first["whole"]}


def test_without_a_cache_kernels_work_and_say_why_they_are_compiled_each_time():
    code = """
import numba.core.caching
numba.core.caching.CacheImpl._locator_classes = []  # as where no directory can be written to
import numpy as np
from scb.training.engine import step_keys
print(step_keys(0, range(3)).tolist())
"""
    expected = run(code.replace("CacheImpl._locator_classes = []", "CacheImpl"))
    done = run(code)
    assert done.stdout == expected.stdout
    assert done.stderr.count("no cache directory can be written to; NUMBA_CACHE_DIR names one") == 1
    assert "NUMBA_CACHE_DIR" not in expected.stderr


HALF = """
import sys, time
from pathlib import Path
import numpy as np
from numba.core.caching import IndexDataCacheFile
from scb.kernels.compiler import compiled

@compiled
def half(x):
    return x[0] / 2

def slowly(self, load=IndexDataCacheFile._load_index):
    versions = load(self)
    time.sleep(2)
    return versions

if __name__ == "__main__":
    types = sys.argv[1:]
    if len(types) == 1:  # both processes compile at the same time, and both know of no version yet
        IndexDataCacheFile._load_index = slowly
        Path(types[0]).touch()
        while not (Path("int64").exists() and Path("float32").exists()):
            time.sleep(0.01)
    print([float(half(np.array([3], dtype))) for dtype in types], len(half.stats.cache_hits))
"""


def test_processes_that_compile_at_the_same_time_keep_both_versions(tmp_path):
    """Numba alone gives both versions one number, and a later process finds one of them at most."""
    (tmp_path / "halves.py").write_text(HALF)

    def start(*types):
        command = [sys.executable, "halves.py", *types]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)

    both = [start("int64"), start("float32")]
    assert [one.communicate(timeout=100)[0] for one in both] == ["[1.5] 0\n", "[1.5] 0\n"]
    assert start("int64", "float32").communicate(timeout=100)[0] == "[1.5, 1.5] 2\n"


def test_kernels_are_compiled_in_several_processes():
    """Or loaded, where the cache has them."""
    command = [sys.executable, "-m", "scb.kernels"]
    done = subprocess.run(command, env=os.environ | {"NUMBA_NUM_THREADS": "2"}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "kernels are ready" in done.stderr


def test_what_contains_a_reordered_sum_is_inlined():
    """Otherwise a process could use either of two versions of it: that in its own module, or that in the caller's."""
    names = [module.name for module in pkgutil.walk_packages(scb.kernels.__path__, "scb.kernels.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    kernels = {thing for module in modules for thing in vars(module).values() if isinstance(thing, Dispatcher)}

    def called(kernel):
        found = (kernel.py_func.__globals__.get(name) for name in kernel.py_func.__code__.co_names)
        return [thing for thing in found if isinstance(thing, Dispatcher) and thing is not kernel]

    def reorders(kernel):
        return bool(kernel.targetoptions["fastmath"]) or any(map(reorders, called(kernel)))

    inner = {part for kernel in kernels for part in called(kernel) if reorders(part)}
    assert len(inner) > 10
    assert [part.py_func.__name__ for part in inner if not part.targetoptions["forceinline"]] == []
