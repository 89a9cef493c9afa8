"""The frame of the scoreboard: what a data set and an estimator are, and how one is judged.

A data set is a file in datasets/, an estimator is a class in a file of estimators/;
howto/add-to-the-scoreboard.md of the site says how to add either. Every pair of a case and an
estimator makes one row, which is kept with the version that made it.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

HERE = Path(__file__).parent
BLOCKS = 20  # of a text, for standard errors
FIRST = 2048  # symbols of a text that are learned as one goes, before the first fit
KEPT_LAGS = 12  # of an answer, in its row
AUDITED = 5  # places of the held-out symbols at which a distribution is summed
Codes = Sequence[np.ndarray]
Case = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Data:
    """What an estimator is given.

    ``train`` is a list of sequences of codes 0 … ``symbols`` − 1, and lags up to ``max_lag`` are
    asked for. ``number`` says how many lags there are, where that is known. An estimator that reads
    it has ``told = True``, which the table says.
    """

    train: Codes
    symbols: int
    max_lag: int
    number: int | None = None


@dataclass(frozen=True)
class Problem:
    """Data and what they are judged by: the ``lags`` that are right, or symbols that are held out.

    ``shortest`` is the smallest lag that counts as an answer to "which lag is it?", ``given`` is
    how many symbols at the start of a held-out sequence are not counted, and ``kinds`` has the
    bytes that the codes of a text stand for.
    """

    data: Data
    lags: frozenset[int] = frozenset()
    test: Codes = ()
    shortest: int = 1
    kinds: np.ndarray | None = None
    given: int = 1


class Estimator(Protocol):
    """What the scoreboard asks of an estimator.

    ``answers`` names the judges that it can be asked by.
    """

    name: str
    version: str
    answers: frozenset[str]
    told: bool

    def fit(self, data: Data) -> None:
        """Learn from the data."""
        ...

    def score(self, test: Codes) -> np.ndarray:
        """Of each symbol with a symbol before it, in order.

        Its log-probability in nats, given what comes before it.
        """
        ...

    def lags(self) -> Sequence[int]:
        """The lags that matter, the most important one first."""
        ...


class Compressor(ABC):
    """An estimator that is a compressor.

    All it says is how long a text becomes, and that is a code that can be decoded.
    """

    name: str
    version: str
    answers = frozenset({"bits", "adaptive"})
    told = False

    @abstractmethod
    def size(self, text: bytes) -> int:
        """The bytes of the compressed text."""


class Nonsense(ValueError):
    """An estimator gave an answer that is not one."""


def modules(folder: str) -> dict[str, ModuleType]:
    """The modules of a folder beside this file, by name."""
    names = sorted(path.stem for path in (HERE / folder).glob("*.py") if path.stem != "__init__")
    return {name: import_module(f"{folder}.{name}") for name in names}


def estimators() -> dict[str, type[Estimator]]:
    """All estimators by name: what the files of estimators/ list as ESTIMATORS."""
    classes = [one for module in modules("estimators").values() for one in module.ESTIMATORS]
    return {one.name: one for one in classes}


# ------------------------------------------------------------------------------------- the judges


def checked_lags(model: Estimator, data: Data) -> list[int]:
    """The lags of an estimator, or Nonsense."""
    lags = [int(lag) for lag in model.lags()]
    if len(set(lags)) < len(lags) or any(not 1 <= lag <= data.max_lag for lag in lags):
        raise Nonsense(f"lags are to be distinct and between 1 and {data.max_lag}: {lags}")
    return lags


def judge_exact(model: Estimator, problem: Problem) -> Row:
    """Are the lags exactly those of the task?"""
    model.fit(problem.data)
    lags = checked_lags(model, problem.data)
    missed = len(problem.lags - set(lags))
    false = len(set(lags) - problem.lags)
    return {
        "lags": lags[:KEPT_LAGS],
        "missed": missed,
        "false": false,
        "right": missed == false == 0,
    }


def judge_strongest(model: Estimator, problem: Problem) -> Row:
    """Is the most important lag, of those that count as an answer, one of the right ones?"""
    model.fit(problem.data)
    lags = checked_lags(model, problem.data)
    answer = next((lag for lag in lags if lag >= problem.shortest), None)
    return {"lags": lags[:KEPT_LAGS], "answer": answer, "right": answer in problem.lags}


def judge_bits(model: Estimator, problem: Problem) -> Row:
    """How many bits does it need for a held-out symbol?"""
    if isinstance(model, Compressor):
        assert problem.kinds is not None
        (train,), (test,) = problem.data.train, problem.test
        return bits_row(code_lengths(model, problem.kinds[train], problem.kinds[test]))
    model.fit(problem.data)
    bits = checked_bits(model, problem.test)
    starts = np.cumsum([0, *(len(x) - 1 for x in problem.test)])[:-1]
    uncounted = (starts[:, None] + np.arange(problem.given - 1)).ravel()
    row = bits_row(np.delete(bits, uncounted))
    audit(model, problem)
    return row | {"lags": [int(lag) for lag in getattr(model, "lags", list)()][:KEPT_LAGS]}


def judge_adaptive(model: Estimator, problem: Problem) -> Row:
    """How many bits does it need for a symbol of a text that it learns as it goes?

    The first symbols cost 8 bits each. Every later stretch is as long as all before it, and is
    coded by a model of all before it.
    """
    (x,) = problem.data.train
    if isinstance(model, Compressor):
        assert problem.kinds is not None
        return bits_row(code_lengths(model, problem.kinds[x[:0]], problem.kinds[x]))
    bits = [np.full(FIRST, 8.0)]
    known = FIRST
    while known < len(x):
        model.fit(replace(problem.data, train=[x[:known]]))
        bits.append(checked_bits(model, [x[: 2 * known]])[known - 1 :])
        known *= 2
    return bits_row(np.concatenate(bits))


def checked_bits(model: Estimator, test: Codes) -> np.ndarray:
    """The bits of each symbol with a symbol before it, or Nonsense."""
    scores = np.asarray(model.score(test), dtype=float)
    expected = sum(len(x) - 1 for x in test)
    if scores.shape != (expected,):
        raise Nonsense(f"there are {expected} symbols to predict, not {scores.shape}")
    if not (np.isfinite(scores) & (scores <= 1e-9)).all():
        raise Nonsense("a log-probability is a finite number that is not positive")
    return -scores / math.log(2)


def bits_row(bits: np.ndarray) -> Row:
    """The mean.

    And means over blocks of neighbours, from which standard errors and paired differences follow.
    """
    blocks = [round(float(part.mean()), 6) for part in np.array_split(bits, BLOCKS)]
    return {"bits": round(float(bits.mean()), 6), "blocks": blocks, "symbols": int(bits.size)}


def code_lengths(model: "Compressor", before: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Bits of each symbol of x, those of a block spread evenly.

    By how much longer the file becomes with the block at its end.
    """
    ends = np.cumsum([len(part) for part in np.array_split(x, BLOCKS)])
    sizes = [model.size(np.concatenate([before, x[:end]]).tobytes()) for end in (0, *ends)]
    if not len(before):
        sizes[0] = 0
    lengths = np.diff(np.r_[0, ends])
    return np.repeat(8 * np.diff(sizes) / lengths, lengths)


def audit(model: Estimator, problem: Problem) -> None:
    """Ask for the probability of every symbol at a few places.

    Nonsense, unless none sums to more than 1.
    """
    longest = max(problem.test, key=len)
    places = np.random.default_rng(0).integers(1, len(longest), AUDITED)
    for place in places.tolist():
        past = longest[max(0, place - 4 * problem.data.max_lag) : place]
        variants = [np.append(past, symbol) for symbol in range(problem.data.symbols)]
        scores = np.asarray(model.score(variants)).reshape(problem.data.symbols, past.size)
        if (total := float(np.exp(scores[:, -1]).sum())) > 1 + 1e-6:
            raise Nonsense(f"the probabilities of all symbols sum to {total:.3g}")


JUDGES = {
    "exact": judge_exact,
    "strongest": judge_strongest,
    "bits": judge_bits,
    "adaptive": judge_adaptive,
}
WORST: dict[str, Row] = {
    "exact": {"lags": [], "right": False},
    "strongest": {"lags": [], "answer": None, "right": False},
    "bits": {"bits": math.inf, "blocks": []},
    "adaptive": {"bits": math.inf, "blocks": []},
}


def judge(name: str, model: Estimator, problem: Problem) -> Row:
    """The row of one estimator on one problem.

    What is nonsense, or fails, gets the worst score and says why.
    """
    began = time.process_time()
    try:
        row = JUDGES[name](model, problem)
    except (ValueError, ArithmeticError, IndexError, TypeError) as error:
        row = WORST[name] | {"error": f"{type(error).__name__}: {error}"[:200]}
    return row | {"seconds": round(time.process_time() - began, 4), "version": model.version}


def work(case: Case) -> Row:
    """Run one estimator on one case of a data set: what a process of the scoreboard does."""
    of = dict(case)
    dataset = import_module(f"datasets.{of.pop('dataset')}")
    model = estimators()[of.pop("estimator")]()
    return judge(dataset.JUDGE, model, dataset.load(**of))


def cases(datasets: Iterable[str], names: Iterable[str]) -> list[Case]:
    """Every case of these data sets with every one of these estimators that answers its judge."""
    known = estimators()
    pairs = []
    for dataset in datasets:
        module = import_module(f"datasets.{dataset}")
        also = getattr(module, "ALSO", ())
        suited = [one for one in names if module.JUDGE in known[one].answers or one in also]
        pairs += [
            {"dataset": dataset, "estimator": name, **case}
            for case in module.CASES
            for name in suited
        ]
    return pairs
