"""Calls of the API and of the commands with right, odd and absurd arguments: each ends right, or with an error of ours."""

import contextlib
import inspect
import io
import os
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import scb
from scb.cli import main
from scb.inputs import InputError
from scb.jobs.grid import Sweep
from scb.jobs.kinds import KINDS
from scb.task import Task
from scb.training.recipes import RECIPES
from scb.training.settings import TrainingSettings, parse_option, recipe_hints

SECONDS = 10
TASK = Task.random(3, 6, 2)
SHORT = {"steps": (2, 2, 1), "batch_size": 4}


@cache
def odd_arrays() -> list[Any]:
    masked = np.ma.array([1.0, 2.0], mask=[True, False])
    plain = [
        np.zeros(0),
        np.eye(3),
        np.full((3, 3), np.nan),
        np.eye(3) * 1j,
        np.array("x"),
        np.array(3),
        np.array([None, 1]),
        masked,
    ]
    return [*plain, np.arange(6).astype(">i4"), np.arange(27).reshape(3, 3, 3), np.array(["a", "b"]), np.full((3, 3), -1 / 3)]


ODD = st.one_of(
    st.sampled_from(
        [None, True, False, -1, 0, 1, 2, 2.5, -0.0, float("nan"), float("inf"), -float("inf"), 10**30, -(10**30), 1e300]
    ),
    st.sampled_from(
        ["", "x", "3", "[/b]", "$x_$", "\0", "\ud800", b"x", 1j, [], [1], [[1], 2], {}, {"a": 1}, (1, 2), object, range(3)]
    ),
    st.sampled_from([np.int64(3), np.float32(0.5), np.bool_(True), np.str_("x"), np.datetime64("2020-01-01"), np.uint8(200)]),
    st.deferred(lambda: st.sampled_from(odd_arrays())),
    st.integers(-5, 50),
    st.floats(-2, 2),
    st.text(max_size=3),
)


def typed(name: str, hint: Any) -> st.SearchStrategy[Any]:
    """Values that a type allows, small enough to be run."""
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) is tuple:
        parts = get_args(hint)
        return st.tuples(*(typed(name, part) for part in parts if part is not Ellipsis))
    if get_args(hint):
        return st.one_of([typed(name, part) for part in get_args(hint)])
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.integers(1, 8)
    if hint is float:
        return st.floats(0, 1)
    return st.sampled_from(["a", "uniform", None])


def likely(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly right, so that calls come far; sometimes odd."""
    return st.one_of(right, right, right, right, ODD)


class Target(NamedTuple):
    """A function of its arguments, what may be given, and what must hold of the answer."""

    call: Callable[..., Any]
    given: dict[str, st.SearchStrategy[Any]]
    holds: Callable[[Any], bool]


SIZES = {"N": st.integers(2, 5), "T": st.integers(1, 12), "sparsity": st.integers(1, 3), "seed": st.integers(0, 9)}
LAWS = st.sampled_from([TASK.P, TASK.P.tolist(), np.asfortranarray(TASK.P), TASK.P.astype(np.float32), np.eye(3)])
ATTENTION = st.sampled_from([TASK.Q, TASK.Q.tolist(), np.full((6, 3), 1 / 6)])
TOKENS = st.one_of(st.lists(st.integers(0, 3), max_size=60), st.builds(lambda s: scb.generate(TASK, 60, s), st.integers(0, 5)))
SYMBOLS = st.one_of(
    st.lists(st.sampled_from("abc"), max_size=40),
    st.lists(st.sampled_from(["a", "b", None]), max_size=40),
    st.lists(st.lists(st.sampled_from([1, 2, 3]), max_size=9), max_size=5),
    st.lists(st.sampled_from([0.5, float("nan"), 2.0]), max_size=20),
)


def is_law(columns: Any) -> bool:
    return bool((np.asarray(columns) >= -1e-9).all() and np.allclose(np.sum(columns, axis=0), 1, atol=1e-6))


def is_task(task: Task) -> bool:
    return is_law(task.P) and is_law(task.Q) and np.allclose(task.P @ task.mu, task.mu) and is_law(task.mu)


def trained(recipe: str, options: dict[str, Any], **how: Any) -> Any:
    """A run by a recipe with these options, unless that would take long."""
    known = recipe_hints(recipe)
    short = {name: value for name, value in SHORT.items() if name in known and recipe == "paper"}
    if "V_hat" in inspect.signature(RECIPES[recipe]).parameters:
        made = RECIPES[recipe](TASK, TASK.related(0.5).P, **options)
    else:
        made = RECIPES[recipe](TASK, **(short | options))
    if sum(stage.steps * stage.batch_size for stage in made.stages) > 20_000 or made.samples > 20_000:
        return None
    return scb.train(TASK, made, **how)


def is_run(run: Any) -> bool:
    return run is None or (run.A.shape == (6, 3) and bool(np.isfinite(run.V).all()) and run.finished)


def estimated(parameters: dict[str, Any], X: Any, lengths: Any, length: Any) -> Any:
    estimator = scb.SparseContextualBigram(**parameters).fit(X, lengths=lengths)
    return estimator, estimator.sample(length), estimator.predict_proba(X, lengths=lengths), estimator.score(X, lengths=lengths)


def is_estimate(found: Any) -> bool:
    estimator, drawn, laws, score = found
    return set(drawn.tolist()) <= set(estimator.classes_.tolist()) and is_law(laws.T) and score <= 1e-9


def recipe_options() -> st.SearchStrategy[Any]:
    def options(name: str) -> st.SearchStrategy[Any]:
        hints = {key: hint for key, hint in get_type_hints(RECIPES[name]).items() if key not in ("task", "return", "V_hat")}
        given = {key: likely(typed(key, hint)) for key, hint in hints.items()}
        return st.tuples(st.just(name), st.fixed_dictionaries({}, optional=given))

    return st.sampled_from(sorted(RECIPES)).flatmap(options)


SETTINGS = {name: typed(name, hint) for name, hint in get_type_hints(TrainingSettings).items() if name != "options"}
PARAMETERS = {
    "max_lag": likely(st.integers(1, 5)),
    "transition": likely(st.sampled_from(["shared", "per_lag"])),
    "context": likely(st.booleans()),
    "lags": likely(st.one_of(st.just("auto"), st.integers(1, 3), st.lists(st.integers(1, 5), min_size=1, max_size=2))),
    "smoothing": likely(st.floats(0, 2)),
}
TARGETS: dict[str, Target] = {
    "Task.random": Target(
        Task.random, SIZES | {"K_P": st.sampled_from([None, 0.1]), "ensemble": st.sampled_from(scb.task.ENSEMBLES)}, is_task
    ),
    "Task": Target(Task, {"P": LAWS, "Q": ATTENTION}, is_task),
    "Task.sparse": Target(
        Task.sparse,
        {"P": LAWS, "positions": st.just(TASK.positions), "weights": st.just(TASK.weights), "T": st.integers(6, 9)},
        is_task,
    ),
    "related": Target(TASK.related, {"overlap": st.floats(0, 1), "seed": st.integers(0, 5)}, is_task),
    "sample": Target(
        lambda **given: scb.sample(TASK, **given),
        {"n": st.integers(0, 20), "seed": st.integers(0, 5), "compiled": st.booleans()},
        lambda batch: batch.context.max(initial=0) < 3,
    ),
    "generate": Target(lambda **given: scb.generate(TASK, **given), {"length": st.integers(0, 40)}, lambda x: x.max(initial=0) < 3),
    "LinearTransformer": Target(scb.LinearTransformer, {"V": LAWS, "A": ATTENTION}, lambda m: m.V.dtype == m.A.dtype == np.float64),
    "Stage": Target(
        scb.Stage,
        {
            "name": st.just("1"),
            "steps": st.integers(0, 5),
            "eta_V": st.floats(0, 1),
            "eta_A": st.floats(0, 1),
            "lam": st.floats(0, 1),
        }
        | {"batch_size": st.integers(1, 9), "check_every": st.integers(1, 9)},
        lambda stage: type(stage.eta_V) is float and type(stage.steps) is int,
    ),
    "plan": Target(
        scb.plan,
        {"N": st.integers(2, 50), "T": st.integers(10, 9999), "sparsity": st.integers(1, 9), "eps": st.floats(1e-3, 0.3)}
        | {name: st.one_of(st.none(), st.floats(1e-3, 1)) for name in ("K_P", "K_Q", "overlap", "eta")}
        | {"delta": st.floats(1e-3, 0.9)},
        lambda plan: 0 < plan.samples < np.inf and 0 < plan.transfer_samples < np.inf,
    ),
    "recover": Target(
        lambda data, **given: scb.recover(data, **given),
        {
            "data": TOKENS,
            "max_lag": st.integers(1, 4),
            "N": st.sampled_from([None, 3, 4]),
            "method": st.sampled_from(["likelihood", "spectral"]),
        }
        | {"false_positions": st.floats(0.01, 0.9)},
        lambda found: is_law(found.A) and is_law(found.V),
    ),
    "train": Target(
        lambda made, **how: trained(*made, **how),
        {"made": recipe_options(), "seed": st.integers(0, 5), "every": st.integers(1, 9)},
        is_run,
    ),
    "SparseContextualBigram": Target(
        estimated,
        {
            "parameters": st.fixed_dictionaries({}, optional=PARAMETERS),
            "X": SYMBOLS,
            "lengths": st.none(),
            "length": st.integers(0, 20),
        },
        is_estimate,
    ),
    "TrainingSettings": Target(TrainingSettings, SETTINGS, lambda found: True),
    "parse_option": Target(
        lambda text: TrainingSettings(options=dict([parse_option(text)])),
        {"text": st.builds(lambda a, b: f"{a}={b}", st.sampled_from(sorted(recipe_hints("paper"))), st.text(max_size=8))},
        lambda found: True,
    ),
    "Sweep": Target(
        lambda text: Sweep.parse(text, KINDS),
        {
            "text": st.builds(
                lambda kind, name, value: f'kind = "{kind}"\nseeds = 2\n[grid]\n{name} = {value}\n',
                st.sampled_from(["recover", "train", "x"]),
                st.sampled_from(["N", "T", "samples", "lam", "steps", "ensemble"]),
                st.sampled_from(
                    ["[2, 3]", "[1e400]", "[nan]", "[]", "[[1,2,3]]", '["strong"]', "3", "[true]", f"[{10**30}]", "[-1]"]
                ),
            )
        },
        lambda sweep: len(sweep.jobs()) > 0,
    ),
}


INNER = ("made", "text", "parameters")  # arguments of ours, which hold those of users


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """The name of a target, and arguments for it."""
    name = draw(st.sampled_from(sorted(TARGETS)))
    return name, {key: draw(right if key in INNER else likely(right)) for key, right in TARGETS[name].given.items()}


WORDS = st.sampled_from(
    ["3", "0", "-1", "nan", "inf", "1e400", "x", "", "--", "--help", "[/b]", "λ", "\ud800", "9" * 40, "text.txt", "nowhere", "."]
)
OPTIONS = {
    "plan": ["--eps", "--delta", "--k-p", "--overlap", "--eta"],
    "show": [],
    "sample": ["--length", "--seed", "--separator"],
    "fit": ["--max-lag", "--lags", "--split", "--by", "--top", "--sep", "--column"],
    "train": [
        "--N",
        "--sparsity",
        "--ensemble",
        "--K-P",
        "--seed",
        "--every",
        "--set",
        "--recipe",
        "--config",
        "--eta",
        "--lam",
        "--source",
    ],
    "sweep": ["--status", "--jobs"],
    "reproduce": ["--only", "--seeds", "--shipped"],
    "bench": ["--sizes", "--repeats"],
}
BEGIN = {
    "plan": ["3", "100", "2"],
    "fit": ["text.txt", "--out", "fit"],
    "train": ["--recipe", "paper", "--T", "9", "--set", "steps=[2,0,0]", "--out", "run"],
    "reproduce": ["--only", "F99"],
    "bench": ["--sizes", "x"],
    "sweep": ["nowhere.toml"],
}


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with options, each followed by a word that may not fit."""
    name = draw(st.sampled_from(sorted(OPTIONS)))
    more = []
    if OPTIONS[name]:
        for option in draw(st.lists(st.sampled_from(OPTIONS[name]), max_size=2)):
            word = draw(WORDS)
            more += [option, f"lam={word}" if option == "--set" else word]
    begin = BEGIN.get(name, [draw(WORDS)]) if draw(st.booleans()) or name in ("reproduce", "bench", "sweep") else [draw(WORDS)]
    return [name, *begin, *more]


def judge(name: str, call: Callable[[], Any], holds: Callable[[Any], bool]) -> None:
    """Raise AssertionError unless the call ends right, or with an error of ours, in time."""
    start = time.process_time()  # of this process alone: machines may be busy
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = call()
        assert holds(answer), f"{name}: a wrong answer"
    except (InputError, OSError, MemoryError):
        pass
    except AssertionError:
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise AssertionError(f"{name}: FOREIGN {type(error).__name__}: {error} ({where.filename}:{where.lineno})") from error
    assert time.process_time() - start < SECONDS, f"{name}: {time.process_time() - start:.0f} s"


def run_command(line: list[str]) -> None:
    """Run a command in this process: its status is 0 or 2, and 2 has a message but no traceback."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(line)
            status = 0
        except SystemExit as ended:
            status = ended.code or 0
    assert status in (0, 2), f"{line}: status {status}"
    assert "Traceback" not in err.getvalue(), f"{line}: {err.getvalue()}"
    assert status == 0 or err.getvalue().strip(), f"{line}: no word"


def case(number: int, examples: int = 100) -> str:
    """A hundred calls, ninety of functions and ten of commands, from a seed: "fine" or the smallest call that is not."""
    quiet = {
        "database": None,
        "deadline": None,
        "phases": (Phase.generate, Phase.shrink),
        "suppress_health_check": list(HealthCheck),
    }
    quiet |= {"report_multiple_bugs": False}

    @seed(number)
    @settings(max_examples=max(1, examples * 9 // 10), **quiet)
    @given(calls())
    def functions(call: tuple[str, dict[str, Any]]) -> None:
        name, arguments = call
        judge(f"{name} {arguments!r:.300}", lambda: TARGETS[name].call(**arguments), TARGETS[name].holds)

    @seed(number)
    @settings(max_examples=max(1, examples // 10), **quiet)
    @given(command_lines())
    def commands(line: list[str]) -> None:
        judge(f"scb {line}", lambda: run_command(line), lambda _: True)

    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="scb-fuzz-") as folder:
        Path(folder, "text.txt").write_text("abacabadabacaba" * 6)
        os.chdir(folder)
        try:
            functions()
            commands()
        except AssertionError as error:
            return f"FOUND in {number}: {' '.join(str(error).split())[:600]}"
        finally:
            os.chdir(before)
    return "fine"
