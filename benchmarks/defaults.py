"""Does the default do as well as the best option, and as the best baseline?

    python benchmarks/defaults.py [families|real|panels ...] [--jobs 2] [--tables]

Ten kinds of sequences that are no mixtures of lags and six real ones (``defaults_sequences.py``): bits per held-out symbol of the
estimator's default, of each of its options, of ``scb.Experts``, and of baselines. Of a real sequence each fifth is held out once.
Panels of sequences that differ, with and without a memory: which lags are found.

Results are kept in benchmarks/defaults/; what is there is not computed again. The tables go to docs/explanation/misspecified.md.
"""

import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from defaults_sequences import FAMILIES, REAL, Drawn, drawn, panel
from numba import njit
from study import Case, Row, Section, group, main, rounded, table_of, wilson

KEPT = Path(__file__).with_suffix("")
SEEDS = range(10, 13)
OPTIONS = {
    f"{background}, {'context' if context else 'no context'}, {transition}": {
        "background": background,
        "context": context,
        "transition": transition,
    }
    for background in ("labels", "ngram")
    for context in (True, False)
    for transition in ("shared", "per_lag")
} | {"per_sequence": {"background": "per_sequence", "context": True}}
BEFORE = {"background": "labels", "context": True}

Fitted = tuple[str, np.ndarray]  # what was chosen, and the log-likelihood of each held-out symbol in nats


# ----------------------------------------------------------------------------------------------------- ours


def lags(data: Drawn, **options: Any) -> Fitted:
    """The estimator."""
    import scb

    model = scb.SparseContextualBigram(data.max_lag, handle_unknown="missing", **options).fit(_symbols(data.train))
    fitted = model._model()
    background = fitted.background.option if fitted.background else "labels"
    kind = f"{background}, {'context' if fitted.context else 'no context'}, {fitted.transition}, {fitted.attention.nnz} lags"
    return kind, _own(model, data)


def experts(data: Drawn) -> Fitted:
    """The product of experts around the estimator's default."""
    import scb

    model = scb.Experts(scb.SparseContextualBigram(data.max_lag, handle_unknown="missing")).fit(_symbols(data.train))
    return ", ".join(f"{name} {weight:.2f}" for name, weight in model.weights_.items()), _own(model, data)


def _symbols(sequences: list[np.ndarray]) -> list[Any]:
    return [np.where(x < 0, np.nan, x) if (x < 0).any() else x.astype(float) for x in sequences]


def _own(model: Any, data: Drawn) -> np.ndarray:
    """The log-likelihood of held-out symbols, in their order; 20 bits for one that the fit has never seen."""
    place = {int(x): i for i, x in enumerate(model.classes_.tolist())}
    found = []
    for x, known, skipped in zip(data.test, _symbols(data.test), data.skipped, strict=True):
        p = model.predict_proba(known)
        at = _predicted(x, skipped)
        found += [np.log(p[t - 1, place[int(x[t])]]) if int(x[t]) in place else -20 * np.log(2) for t in at.tolist()]
    return np.array(found)


def _predicted(x: np.ndarray, skipped: int) -> np.ndarray:
    first = max(skipped, 1)
    return first + np.flatnonzero((x[first:] >= 0) & (x[first - 1 : -1] >= 0))


# ----------------------------------------------------------------------------------------------------- baselines


def counted(name: str, data: Drawn) -> Fitted:
    """An n-gram, a context tree or PPM."""
    from scb.sequences.baselines.scoring import baseline_scorers

    ((full_name, scores),) = baseline_scorers(data.train, data.test, data.N, data.skipped)[name]().items()
    return full_name, scores


def counts(data: Drawn) -> Fitted:
    """Plain counts after the last 1, 2, 3, … symbols, plus one over the number of symbols; how many is chosen on a tenth."""
    X, y = windows(data.train, data)
    cut = len(y) * 9 // 10
    orders = range(min(8, data.max_lag) + 1)
    best = max(orders, key=lambda order: _counts(X[:cut], y[:cut], X[cut:], y[cut:], order, data.N).mean())
    return f"{best} symbols", _counts(X, y, *windows(data.test, data, data.skipped), best, data.N)


def _counts(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, order: int, N: int) -> np.ndarray:
    table: dict[bytes, np.ndarray] = {}
    for row, label in zip(X[:, :order], y, strict=True):
        table.setdefault(row.tobytes(), np.full(N, 1 / N))[label] += 1
    nothing = np.full(N, 1 / N)
    found = (table.get(row.tobytes(), nothing) for row in X_test[:, :order])
    return np.log([own[label] / own.sum() for own, label in zip(found, y_test, strict=True)])


def windows(sequences: list[np.ndarray], data: Drawn, skipped: list[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(n, max_lag), (n,): the symbols before each label, lag 1 first, N where there is none; and the labels."""
    rows, labels = [], []
    for x, first in zip(sequences, skipped or [0] * len(sequences), strict=True):
        padded = np.concatenate([np.full(data.max_lag, data.N), np.where(x < 0, data.N, x)])
        at = _predicted(x, first)
        rows.append(padded[at[:, None] + data.max_lag - 1 - np.arange(data.max_lag)])
        labels.append(x[at])
    return np.concatenate(rows), np.concatenate(labels)


def logistic(data: Drawn) -> Fitted:
    """Logistic regression on the symbol at each lag, and on it together with the current symbol; C is chosen on a tenth."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    def features(X: np.ndarray) -> np.ndarray:
        return np.concatenate([X, (data.N + 1) * X[:, :1] + X[:, 1:]], axis=1)

    def fit(X: np.ndarray, y: np.ndarray, C: float) -> Any:
        return make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(C=C, max_iter=150)).fit(features(X), y)

    X, y = windows(data.train, data)
    cut = len(y) * 9 // 10
    best = max((0.03, 0.3), key=lambda C: _scores(fit(X[:cut], y[:cut], C), features(X[cut:]), y[cut:]).mean())
    X_test, y_test = windows(data.test, data, data.skipped)
    return f"C = {best}", _scores(fit(X, y, best), features(X_test), y_test)


def boosting(data: Drawn) -> Fitted:
    """Gradient boosting on the symbols at all lags, stopped early."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y = windows(data.train, data)
    options: Any = {"categorical_features": list(range(data.max_lag)), "early_stopping": True}
    model = HistGradientBoostingClassifier(max_iter=150, random_state=0, **options)
    model.fit(X, y)
    return f"{model.n_iter_} rounds", _scores(model, *windows(data.test, data, data.skipped))


def _scores(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    place = {int(x): i for i, x in enumerate(model.classes_.tolist())}
    p = model.predict_proba(X)
    return np.log([max(p[i, place[int(label)]], 1e-6) if int(label) in place else 1e-6 for i, label in enumerate(y)])


def hidden(data: Drawn) -> Fitted:
    """A hidden Markov model by EM, of 2, 4 or 8 states; how many is chosen on the *held-out* symbols, more than is fair."""
    scores = {states: _hidden(data, states) for states in (2, 4, 8)}
    best = max(scores, key=lambda states: scores[states].mean())
    return f"{best} states", scores[best]


def _hidden(data: Drawn, states: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    move = rng.dirichlet(np.ones(states), states) + 5 * np.eye(states)
    move /= move.sum(axis=1, keepdims=True)
    emit = rng.dirichlet(np.ones(data.N), states)
    for _ in range(100):
        moves, emits = np.full(move.shape, 0.1), np.full(emit.shape, 0.1)
        for x in data.train:
            expected(x, move, emit, moves, emits)
        move, emit = moves / moves.sum(axis=1, keepdims=True), emits / emits.sum(axis=1, keepdims=True)
    scores = [filtered(x, move, emit)[_predicted(x, skipped)] for x, skipped in zip(data.test, data.skipped, strict=True)]
    return np.concatenate(scores)


@njit(cache=True)
def filtered(x: np.ndarray, move: np.ndarray, emit: np.ndarray) -> np.ndarray:
    """(n,): the log-likelihood of each symbol given those before it."""
    belief = np.full(len(move), 1 / len(move))
    scores = np.zeros(x.size)
    for t in range(x.size):
        joint = belief * emit[:, x[t]] if x[t] >= 0 else belief
        scores[t] = np.log(joint.sum())
        belief = (joint / joint.sum()) @ move
    return scores


@njit(cache=True)
def expected(x: np.ndarray, move: np.ndarray, emit: np.ndarray, moves: np.ndarray, emits: np.ndarray) -> None:
    """Add how often each move and each symbol of a state is expected, given a sequence."""
    S = len(move)
    forward, scale = np.zeros((x.size, S)), np.zeros(x.size)
    belief = np.full(S, 1 / S)
    for t in range(x.size):
        joint = belief * emit[:, x[t]] if x[t] >= 0 else belief.copy()
        scale[t] = joint.sum()
        forward[t] = joint / scale[t]
        belief = forward[t] @ move
    back = np.ones(S)
    for t in range(x.size - 1, -1, -1):
        if x[t] >= 0:
            emits[:, x[t]] += forward[t] * back
        if t > 0:
            seen = (emit[:, x[t]] if x[t] >= 0 else np.ones(S)) * back / scale[t]
            for i in range(S):
                moves[i] += forward[t - 1, i] * move[i] * seen
            back = move @ seen


MODELS: dict[str, Callable[[Drawn], Fitted]] = {
    "default": lags,
    "before": partial(lags, **BEFORE),
    "experts": experts,
    **{name: partial(lags, **options) for name, options in OPTIONS.items()},
    **{name: partial(counted, name) for name in ("n-gram", "context tree", "PPM")},
    "counts": counts,
    "HMM": hidden,
    "logistic": logistic,
    "boosting": boosting,
}
MTD = ("labels, no context, shared", "labels, no context, per_lag")
BASELINES = (*MTD, "n-gram", "context tree", "PPM", "counts", "HMM", "logistic", "boosting")


def predicted(case: Case) -> Row:
    """Draw, fit, and score."""
    data = drawn(case["kind"], case["seed"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        chosen, scores = MODELS[case["model"]](data)
    bits = -scores / np.log(2)
    return rounded(bits=bits.mean()) | {"chosen": chosen, "n": scores.size} | rounded(seconds=time.perf_counter() - began)


# ----------------------------------------------------------------------------------------------------- panels


def found_in_panel(case: Case) -> Row:
    """Which lags are found in sequences that differ."""
    import scb

    X, planted = panel(np.random.default_rng(case["seed"]), case["memory"])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = scb.SparseContextualBigram(10).fit(X)
    fitted = model._model()
    pairs = {(None if k is None else int(k), int(lag)) for k, lag in zip(model.lags_["context"], model.lags_["lag"], strict=True)}
    warned = any("sequences differ" in str(one.message) for one in said)
    background = fitted.background.option if fitted.background else "labels"
    right = len(pairs & planted)
    return {"lags": len(pairs), "planted": len(planted), "right": right, "warned": warned, "background": background}


# ----------------------------------------------------------------------------------------------------- tables


def table(rows: list[tuple[Case, Row]]) -> list[str]:
    """The default beside the best of our options and the best baseline, for each kind."""
    by_model = group(sorted(_in_common(rows), key=lambda one: one[0]["seed"]), "kind", "model")
    lines = []
    for kind in (*FAMILIES, *REAL):
        found = {model: some for (own, model), some in by_model.items() if own == kind}
        if not {"default", "before", "experts", "boosting"} <= found.keys():
            continue
        bits = {model: float(np.mean([row["bits"] for row in some])) for model, some in found.items()}
        option, baseline = (min((name for name in names if name in bits), key=bits.__getitem__) for names in (OPTIONS, BASELINES))
        chosen = sorted({row["chosen"].rpartition(",")[0] for row in found["default"]})
        cells = [f"{bits['before']:.4f}", f"{bits['default']:.4f}", " or ".join(chosen)]
        cells += [f"{_above(found['default'], found[option])} ({option})", f"{bits['experts']:.4f}"]
        cells += [f"{bits[baseline]:.4f} ({'MTD' if baseline in MTD else baseline})"]
        cells += [_above(found[own], found[baseline]) for own in ("default", "experts")]
        lines.append([kind, str(len(found["default"])), *cells])
    headings = "sequence|n|before|default|chosen|above our best option|experts|best baseline|default above it|experts above it"
    return table_of(headings, lines)


def _above(ours: list[Row], others: list[Row]) -> str:
    """How many more bits we need, and the standard error, over sequences or over the fifths of one."""
    own, other = (np.array([row["bits"] for row in some]) for some in (ours, others))
    more = own - other
    return f"{more.mean():+.4f} ± {more.std(ddof=1) / more.size**0.5:.4f}"


def _in_common(rows: list[tuple[Case, Row]]) -> list[tuple[Case, Row]]:
    """The rows of sequences that all models have predicted, of those that have predicted one of this kind."""
    models: dict[tuple[str, int], set[str]] = {}
    for case, _ in rows:
        models.setdefault((case["kind"], case["seed"]), set()).add(case["model"])
    by_kind: dict[str, set[str]] = {}
    for (kind, _), some in models.items():
        by_kind.setdefault(kind, set()).update(some - {"per_sequence"})
    return [(case, row) for case, row in rows if by_kind[case["kind"]] <= models[case["kind"], case["seed"]]]


def panel_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """How many panels, and in how many of them nothing, the planted lags or others are found."""
    lines = []
    for (memory,), some in group(rows, "memory").items():
        none = sum(row["lags"] == 0 for row in some)
        told = sum(row["lags"] == 0 or row["warned"] or row["background"] == "per_sequence" for row in some)
        exact, found = "", ""
        right = sum(row["right"] for row in some) if memory else 0
        if memory:
            exact = str(sum(row["lags"] == row["right"] == row["planted"] for row in some))
            found = f"{right} of {sum(row['planted'] for row in some)}"
        others = sum(row["lags"] for row in some) - right
        lines.append([memory, len(some), f"{none} ({wilson(none, len(some))})", told, exact, found, others])
    headings = "memory|panels|no lag (95 % interval)|no lag, or told that sequences differ|exactly the planted lags"
    headings += "|planted lags found|other lags"
    return table_of(headings, lines)


def cases(kinds: tuple[str, ...], seeds: Iterable[int]) -> list[Case]:
    """All models on all kinds, slow models first within a seed."""
    slow = ("boosting", "logistic", "HMM")
    models = [*slow, *(name for name in MODELS if name not in slow)]
    return [
        {"kind": kind, "seed": seed, "model": model}
        for seed in seeds
        for model in models
        for kind in kinds
        if model != "per_sequence" or kind in ("users", *REAL[4:])
    ]


SECTIONS = {
    "families": Section(cases(FAMILIES, SEEDS), predicted, {"defaults": table}),
    "real": Section(cases(REAL, range(5)), predicted, {"real": table}),
    "panels": Section(
        [{"memory": memory, "seed": seed} for seed in range(1000, 1100) for memory in (0.0, 0.5)],
        found_in_panel,
        {"panels": panel_table},
    ),
}

if __name__ == "__main__":
    main(__doc__, KEPT, "explanation/misspecified.md", SECTIONS)
