"""Short sequences, few symbols, rare symbols: a fit is finite and sane, or says in one line why not.

Half of the cases go through the API, half through the command, from text, CSV and JSON lines.
"""

import contextlib
import io
import json
import os
import random
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import scb
from scb.cli import main
from scb.inputs import InputError
from torture.targets import is_distribution

BACKGROUNDS = ("labels", "ngram")
TRANSITIONS = ("auto", "shared", "per_lag")
# A number that is none: "inf" and "nan" as words of their own.
NO_NUMBER = re.compile(r"(?<![\w'])[+-]?(inf|nan)(?![\w'])", re.IGNORECASE)


def sequences(rng: random.Random) -> list[list[str]]:
    """Up to 300 sequences of up to 15 symbols, or one long one in which some symbols are rare."""
    symbols = "abcdef"[: rng.randint(1, 6)]
    if rng.random() < 0.15:
        chain = rng.choices(symbols, k=rng.randint(200, 1000))
        return [[*rng.choices("uvwxyz", k=rng.randint(1, 30)), *chain]]
    number = rng.choice((1, 2, 3, rng.randint(1, 30), rng.randint(1, 300)))
    longest = rng.randint(0, 15)
    shortest = longest if rng.random() < 0.3 else rng.randint(0, longest)
    return [rng.choices(symbols, k=rng.randint(shortest, longest)) for _ in range(number)]


def case(seed: int) -> str:
    """A fit of short sequences: "right" and "refused" are fine, anything else is a finding."""
    rng = random.Random(f"short {seed}")
    data = sequences(rng)
    given = {
        "max_lag": rng.choice((1, 2, 3, 5, 8, 20)),
        "transition": rng.choice(TRANSITIONS),
        "background": rng.choice(BACKGROUNDS),
        "context": rng.random() < 0.8,
        "lags": rng.choice(("auto", "auto", "auto", 1, 2, [1], [1, 2])),
    }
    lengths = [len(sequence) for sequence in data]
    words = f"{len(data)} sequences of {min(lengths)} to {max(lengths)}, {given}"
    verdict = through_api(data, given) if rng.random() < 0.5 else through_command(data, given, rng)
    return f"{verdict} [{words}]"


def through_api(data: list[list[str]], given: dict[str, Any]) -> str:
    """A fit and what it says of its own data."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model = scb.SparseContextualBigram(**given).fit(data)
            verdict = _sane(model, data)
        except InputError as error:
            verdict = f"refused: {error}"
        except Exception as error:
            return f"FOREIGN {type(error).__name__}: {error}"
    raw = [str(one.message) for one in said if issubclass(one.category, RuntimeWarning)]
    if raw and not any("did not converge" in text for text in raw):
        return f"RAW WARNING: {raw[0]}"
    return verdict


def _sane(model: Any, data: list[list[str]]) -> str:
    """Whether a fitted model's numbers are numbers, and its distributions distributions."""
    numbers = [model.loglik_, model.gap_, *model.criterion_.values()]
    if not np.isfinite(numbers).all():
        return f"NOT FINITE: loglik {numbers[0]}, gap {numbers[1]}, criterion {model.criterion_}"
    if not is_distribution(model.predict_proba(data).T):
        return "NO DISTRIBUTION: predict_proba"
    matrices = model.transition_ if isinstance(model.transition_, dict) else {0: model.transition_}
    if not all(is_distribution(matrix) for matrix in matrices.values()):
        return "NO DISTRIBUTION: transition_"
    if not model.score(data) <= 1e-9:
        return f"NO LIKELIHOOD: score {model.score(data)}"
    if NO_NUMBER.search(text := str(model.summary())):
        return f"NOT FINITE: {text}"
    return "right"


# ---------------------------------------------------------------------------------------- the command


def _written(data: list[list[str]], rng: random.Random, folder: Path) -> list[str]:
    """The data as a file, and the words that have it read."""
    form = rng.choice(("text", "csv", "json lines", "plain text"))
    if form == "text":
        (folder / "s.txt").write_text("\n".join(map(",".join, data)) + "\n")
        return ["s.txt", "--sep", ","]
    if form == "plain text":
        (folder / "s.txt").write_text("\n".join(map("".join, data)))
        return ["s.txt"]
    if form == "json lines":
        (folder / "s.jsonl").write_text("".join(json.dumps(one) + "\n" for one in data))
        return ["s.jsonl"]
    rows = [f"{symbol},{i}" for i, sequence in enumerate(data) for symbol in sequence]
    (folder / "s.csv").write_text("\n".join(["symbol,user", *rows]) + "\n")
    return ["s.csv", "--column", "symbol", "--group", "user"]


def through_command(data: list[list[str]], given: dict[str, Any], rng: random.Random) -> str:
    """``scb fit`` of a file in this process."""
    lags = given["lags"]
    words = {"lags": ",".join(map(str, lags)) if isinstance(lags, list) else lags}
    options = given | words | {"split": rng.choice((0, 0.2, 0.5)), "halves": rng.choice((0, 0, 2))}
    context = "--context" if options.pop("context") else "--no-context"
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="scb-short-") as folder:
        line = ["fit", *_written(data, rng, Path(folder)), context, "--out", "out"]
        for name, value in options.items():
            line += [f"--{name.replace('_', '-')}", str(value)]
        os.chdir(folder)
        try:
            return _said(line)
        finally:
            os.chdir(before)


def _said(line: list[str]) -> str:
    """The verdict on what a command prints, and on its status."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(line)
        except SystemExit as ended:
            status = ended.code or 0
        except Exception as error:
            return f"FOREIGN {type(error).__name__}: {error} in {' '.join(line)}"
    said = " ".join(err.getvalue().split())
    if "Traceback" in said or "encountered in" in said:
        return f"RAW WARNING: {said[-300:]}"
    if NO_NUMBER.search(out.getvalue()):
        return f"NOT FINITE: {NO_NUMBER.findall(out.getvalue())} in {' '.join(line)}"
    if status == 0:
        return "right"
    if status == 2 and err.getvalue().count("scb: ") == 1:
        return f"refused: {said[-150:]}"
    return f"FAILED {status}: {said[-300:]}"
