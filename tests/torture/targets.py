"""What the fuzzer calls: each public function with right, odd and absurd arguments, and what must hold of its answers."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from hypothesis import strategies as st

import scb
from scb.sweeps.grid import Sweep
from scb.sweeps.kinds import KINDS
from scb.task import Task
from scb.training.recipe_options import recipe_hints
from scb.training.recipes import RECIPES
from scb.training.settings import TrainingSettings, parse_option
from scb.training.starts import GivenStart
from torture.arguments import ATTENTION, LAWS, SIZES, SYMBOLS, TASK, TOKENS, likely, typed

SHORT = {"steps": (2, 2, 1), "batch_size": 4}


class Target(NamedTuple):
    """A function of its arguments, what may be given, and what must hold of the answer."""

    call: Callable[..., Any]
    given: dict[str, st.SearchStrategy[Any]]
    holds: Callable[[Any], bool]


def is_distribution(columns: Any) -> bool:
    return bool((np.asarray(columns) >= -1e-9).all() and np.allclose(np.sum(columns, axis=0), 1, atol=1e-6))


def is_task(task: Task) -> bool:
    return (
        is_distribution(task.P) and is_distribution(task.Q) and np.allclose(task.P @ task.mu, task.mu) and is_distribution(task.mu)
    )


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
    estimator, drawn, distributions, score = found
    return set(drawn.tolist()) <= set(estimator.classes_.tolist()) and is_distribution(distributions.T) and score <= 1e-9


@cache
def fitted(text: str = "abcabd" * 20, max_lag: int = 2) -> Any:
    """A model that is there already, for calls that go on from one."""
    return scb.SparseContextualBigram(max_lag).fit(list(text))


def predicted(X: Any, lengths: Any, steps: Any, n_samples: Any, random_state: Any) -> Any:
    """All that a fitted model says of new symbols."""
    distributions = fitted().predict_proba(X, lengths=lengths)
    criteria = (fitted().bic(X, lengths=lengths), fitted().aic(X, lengths=lengths), fitted().perplexity(X, lengths=lengths))
    return distributions, fitted().predict(X, lengths=lengths), criteria, forecast(X, steps, n_samples, random_state)


def forecast(X: Any, steps: Any, n_samples: Any, random_state: Any) -> Any:
    """A forecast, unless that would take long."""
    if any(type(count) is int and 1000 < count < 10**12 for count in (steps, n_samples)):
        return np.ones((1, 1))
    return fitted().forecast(X, steps, n_samples=n_samples, random_state=random_state)


def is_prediction(found: Any) -> bool:
    distributions, symbols, criteria, ahead = found
    return (
        is_distribution(distributions.T)
        and len(symbols) == len(distributions)
        and not np.isnan(criteria).any()
        and is_distribution(ahead.T)
    )


def drawn(length: Any, start: Any, random_state: Any) -> Any:
    """Symbols from a fitted model, unless those are many."""
    if type(length) is int and 10**5 < length < 10**12:
        return np.array([])
    return fitted().sample(length, start=start, random_state=random_state)


def recipe_of(V: Any, A: Any, mu: Any, samples: Any, name: Any) -> Any:
    """A recipe that somebody writes by hand, and a run by it."""
    made = scb.Recipe(name, GivenStart(V, A), mu, (scb.Stage("1", 2, 0.1, 0.1, batch_size=3),), samples)
    return scb.train(TASK, made)


def is_batch(batch: Any) -> bool:
    return batch.context.max(initial=0) < 3 and len(batch.last) == len(batch.label) == len(batch)


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
SEEDS = st.integers(0, 5)
TARGETS: dict[str, Target] = {
    "Batch": Target(
        lambda **given: scb.LinearTransformer(TASK.P, TASK.Q).loss(scb.Batch(**given)),
        {
            "context": st.sampled_from([np.zeros((2, 6), dtype=int), np.full((2, 6), 2), scb.sample(TASK, 2).context]),
            "last": st.sampled_from([np.array([0, 1]), np.array([2, 2], dtype=np.uint8)]),
            "label": st.sampled_from([np.array([0, 1]), np.array([2, 2], dtype=np.uint8)]),
        },
        lambda loss: bool(np.isfinite(loss)),
    ),
    "Recipe": Target(
        recipe_of,
        {"V": LAWS, "A": ATTENTION, "mu": st.just(TASK.mu), "samples": st.integers(0, 9), "name": st.just("mine")},
        is_run,
    ),
    "Run": Target(scb.Run.load, {"directory": st.sampled_from([".", "nowhere", "run"])}, lambda run: run.step >= 0),
    "SoftmaxTransformer": Target(
        scb.SoftmaxTransformer,
        {"V": LAWS, "W": ATTENTION},
        lambda model: np.isnan(model.W).any() or is_distribution(model.attention),
    ),
    "check": Target(TASK.check, {"C": st.floats(0.1, 5)}, lambda found: True),
    "compare": Target(
        lambda models, X, lengths: scb.compare(models, X, lengths=lengths),
        {
            "models": st.sampled_from([{"one": 0}, {"one": 0, "two": 1}]).map(
                lambda names: {name: fitted(max_lag=2 + i) for name, i in names.items()}
            ),
            "X": SYMBOLS,
            "lengths": st.none(),
        },
        lambda found: bool((found.columns["difference"] >= 0).all()),
    ),
    "analyse": Target(
        lambda X, **given: scb.analyse(scb.SparseContextualBigram(2), X, **given),
        {
            "X": SYMBOLS,
            "lengths": st.none(),
            "held_out": st.floats(0, 0.9),
            "n_halves": st.integers(0, 4),
            "name": st.text(max_size=5),
        },
        lambda found: all(score.bits >= 0 for score in found.scores),
    ),
    "sparsity_path": Target(
        lambda X, **given: scb.sparsity_path(scb.SparseContextualBigram(2), X, **given),
        {"X": SYMBOLS, "numbers": st.lists(st.integers(1, 2), max_size=2), "lengths": st.none(), "held_out": st.floats(0.1, 0.6)},
        lambda found: bool((found.columns["difference"] >= -1e-9).all()),
    ),
    "measure": Target(
        lambda **given: scb.measure(TASK, **given),
        {"V": LAWS, "A": ATTENTION},
        lambda found: set(found) == set(scb.metrics.COLUMNS),
    ),
    "star": Target(
        lambda **given: scb.star(TASK, **given),
        {"A": ATTENTION, "threshold": st.one_of(st.none(), st.floats(0, 0.3))},
        lambda found: found[0].shape == (3, 3) and found[1].shape == (6, 3),
    ),
    "stream": Target(
        lambda **given: next(scb.stream(TASK, **given)),
        {
            "batch_size": st.integers(1, 9),
            "seed": SEEDS,
            "dtype": st.sampled_from([None, "int64", np.int32, "uint8"]),
            "start": st.integers(0, 9),
        },
        is_batch,
    ),
    "read_sequences": Target(
        lambda **given: [list(x) for x in scb.read_sequences(**given)],
        {
            "source": st.sampled_from(["text.txt", "table.csv", "lines.jsonl", "nowhere.txt", "."]),
            "column": st.sampled_from([None, "a", "b"]),
            "group": st.sampled_from([None, None, "g"]),
            "order": st.sampled_from([None, None, "t"]),
            "by": st.sampled_from(["char", "word", "line"]),
            "sep": st.sampled_from([None, None, ","]),
            "top": st.sampled_from([None, 1, 2]),
        },
        lambda found: all(isinstance(x, list) for x in found),
    ),
    "predict": Target(
        predicted,
        {
            "X": st.lists(st.sampled_from("abcd"), min_size=1, max_size=20),
            "lengths": st.none(),
            "steps": st.integers(1, 4),
            "n_samples": st.integers(1, 20),
            "random_state": SEEDS,
        },
        is_prediction,
    ),
    "draw": Target(
        drawn,
        {"length": st.integers(0, 20), "start": st.sampled_from([None, list("abcd")]), "random_state": SEEDS},
        lambda found: set(found.tolist()) <= set("abcd"),
    ),
    "stability": Target(
        lambda X, n_halves, random_state: fitted().stability(X, n_halves=n_halves, random_state=random_state),
        {"X": st.just(list("abcabd" * 20)), "n_halves": st.sampled_from([2, 4]), "random_state": SEEDS},
        lambda found: bool(((found >= 0) & (found <= 1)).all()),
    ),
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
    "generate": Target(
        lambda **given: scb.generate(TASK, **given),
        {"length": st.integers(0, 40), "seed": SEEDS, "n": st.sampled_from([None, 1, 3])},
        lambda x: x.max(initial=0) < 3,
    ),
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
        lambda found: is_distribution(found.A) and is_distribution(found.V),
    ),
    "train": Target(
        lambda made, **how: trained(*made, **how),
        {
            "made": recipe_options(),
            "seed": st.integers(0, 5),
            "every": st.integers(1, 9),
            "device": st.just("cpu"),
            "judge": st.sampled_from([None, True, False]),
        },
        is_run,
    ),
    "ProgressBar": Target(
        lambda steps: scb.train(TASK, scb.recipes.paper(TASK, **SHORT), callbacks=[scb.ProgressBar(steps)]),
        {"steps": st.integers(0, 9)},
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
