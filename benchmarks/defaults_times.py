"""How long a fit takes, beside an earlier version: with everything left to the data, and with the options of then.

    git worktree add /tmp/before 22d5779
    python benchmarks/defaults_times.py --before /tmp/before/src

Each kind of fit runs in a process of its own, on one thread, three times. The processes take turns, three times each where that is
done in half a minute, because a machine is not always equally fast; what counts is the least CPU time. Results are kept in
benchmarks/defaults/times.jsonl; what is there is not computed again. The table goes to docs/explanation/misspecified.md.
"""

import json
import os
import subprocess
import sys
import time
import warnings
import zlib
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from defaults_sequences import FAMILIES, REAL, drawn
from held_out_tasks import drawn as drawn_mixture
from held_out_tasks import mixture
from study import DOCS, Case, Row, complete, fill, read, table_of

KEPT = Path(__file__).parent / "defaults" / "times.jsonl"
TURNS, SECONDS = 3, 30.0
# The default of then, and of now
OPTIONS: dict[str, dict[str, Any]] = {"then": {"context": True, "background": "labels"}, "auto": {}}
MIXTURES = {"4": 50_000, "20": 60_000, "100": 100_000}  # symbols and tokens
DATA = (
    *(f"mixture {N} {kind}" for N in ("4", "20") for kind in ("shared", "per_lag")),
    "mixture 100 shared",
    "noise 4",
    "noise 30",
    *FAMILIES,
    *REAL,
)


def sequences(name: str) -> tuple[int, list[np.ndarray]]:
    """The longest lag, and the sequences to fit."""
    kind, *about = name.split()
    if kind == "mixture":
        N, transition = about
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        weights, matrices = mixture(int(N), (2, 5, 9), transition == "per_lag", True, rng)
        return 12, [drawn_mixture(weights, matrices, MIXTURES[N], rng)]
    if kind == "noise":
        return 10, [np.random.default_rng(5).integers(int(about[0]), size=20_000)]
    data = drawn(name, 0 if name in REAL else 77)
    return data.max_lag, data.train


def one_fit(name: str, options: str) -> None:
    """Print the CPU time of a fit, the number of lags and the log-likelihood."""
    import scb

    warnings.simplefilter("ignore")
    max_lag, train = sequences(name)
    x: list[Any] = [np.where(one < 0, np.nan, one) if (one < 0).any() else one.astype(float) for one in train]
    model = scb.SparseContextualBigram(max_lag, **OPTIONS[options])
    least = np.inf
    for _ in range(3):
        begin = time.process_time()
        model.fit(x)
        least = min(least, time.process_time() - begin)
    print(json.dumps([round(least, 4), int(model.attention_.nnz), round(float(model.loglik_), 3)]))


def side_by_side(before: str, case: Case) -> Row:
    """Fits of both versions: seconds, lags and log-likelihood of each."""
    now = str(Path(__file__).parents[1] / "src")
    row: Row = {}
    begin = time.monotonic()
    for turn in range(TURNS):
        for name, source, options in (("before", before, "then"), ("now", now, "then"), ("now, auto", now, "auto")):
            command = [sys.executable, __file__, "--one", case["data"], options]
            done = subprocess.run(command, env=os.environ | {"PYTHONPATH": source}, capture_output=True, text=True, check=True)
            row[name] = min(json.loads(done.stdout), row.get(name, [np.inf]), key=itemgetter(0))
        if time.monotonic() - begin > (turn + 1) * SECONDS / TURNS:
            break
    return row


def table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Seconds of the default, before and now, and with the options of then now."""
    by_data = {case["data"]: row for case, row in rows}
    lines = []
    for name in (name for name in DATA if name in by_data):
        before, now, auto = (by_data[name][side][0] for side in ("before", "now", "now, auto"))
        lines.append([name, f"{before:.2f}", f"{auto:.2f}", f"{auto / before:.2f}", f"{now:.2f}", f"{now / before:.2f}"])
    return table_of("data|before, s|now, s|times before|now with the options of then, s|times before", lines)


def main() -> None:
    """The command."""
    if sys.argv[1:2] == ["--one"]:
        one_fit(*sys.argv[2:])
        return
    if sys.argv[1:2] == ["--before"]:
        complete(KEPT, partial(side_by_side, sys.argv[2]), [{"data": name} for name in DATA], jobs=1)
    fill(DOCS / "explanation" / "misspecified.md", "times", table(read(KEPT)))


if __name__ == "__main__":
    main()
