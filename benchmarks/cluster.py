"""What crosses the network in a fit on a cluster? Fits of data in four partitions on two workers, processes of this machine.

    python benchmarks/cluster.py [--tables]

Counted are pickled arguments and answers, without Dask's own messages, and the bytes that the workers themselves say they have
sent. Results are kept in benchmarks/cluster/fits.jsonl; what is there is not run again. The table of
docs/explanation/scale.md comes from there. It takes about five minutes on two cores.
"""

import pickle
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from study import Case, Row, Section, main, rounded, table_of

KEPT = Path(__file__).with_suffix("")
PARTITIONS = 4
ECHOES = 100
CASES = (
    {"fit": "recover", "N": 3, "T": 300, "sparsity": 2, "n": 4000},
    {"fit": "recover", "N": 3, "T": 300, "sparsity": 2, "n": 64_000},
    {"fit": "estimator", "N": 3, "T": 19, "sparsity": 2, "n": 400_000},
    {"fit": "recover", "N": 26, "T": 200, "sparsity": 3, "n": 100_000},
)


def watched(client: Any) -> tuple[Any, Counter[str]]:
    """An executor on the workers of a client, and the counts that it keeps."""
    from scb.mixture.executors import LARGE, Workers

    counts: Counter[str] = Counter()

    class Watched(Workers):
        """Workers that count what goes to them and what comes back."""

        def map(self, function: Any, held: Any, *same: Any) -> list[Any]:
            sent = len(pickle.dumps((function, same)))
            held = list(held)
            counts["out"] += sent if sent > LARGE else sent * len(held)  # larger arguments are sent once
            return super().map(function, held, *same)

        def results(self, held: Any) -> list[Any]:
            answers = super().results(held)
            counts["back"] += len(pickle.dumps(answers))
            counts["trips"] += 1
            return answers

    return Watched(client), counts


def echo(executor: Any) -> float:
    """Milliseconds of a round trip in which nothing is done; the median."""
    held = executor.map(int, [(i,) for i in range(PARTITIONS)])
    seconds = []
    for _ in range(ECHOES):
        start = time.perf_counter()
        executor.total(executor.map(int, [(one,) for one in held]))
        seconds.append(time.perf_counter() - start)
    return 1000 * float(np.median(seconds))


def outgoing(client: Any) -> int:
    """The bytes of data that all workers have sent so far, by their own count."""
    return sum(client.run(_outgoing_of).values())


def _outgoing_of(dask_worker: Any) -> int:
    return dask_worker.transfer_outgoing_bytes_total


def fits(case: Case) -> Row:
    """One fit on a cluster of its own; ``right`` says whether it finds the positions of the task, which are lags of a sequence."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    import scb
    import scb.mixture.dask as on_dask

    task = scb.Task.random(case["N"], case["T"], case["sparsity"], seed=1)
    n, N = case["n"], case["N"]
    local = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**local, silence_logs=50) as cluster, Client(cluster) as client:
        executor, counts = watched(client)
        trip = echo(executor)
        counts.clear()
        on_dask.current_executor = lambda: executor
        before = outgoing(client)
        start = time.perf_counter()
        if case["fit"] == "recover":
            seeds = range(PARTITIONS)
            data = [dask.delayed(scb.sample)(task, n // PARTITIONS, seed=seed) for seed in seeds]  # type: ignore[attr-defined]
            support = scb.recover(data, N=N).support
            size = n * case["T"]
        else:
            tokens = scb.generate(task, n, seed=1)
            model = scb.SparseContextualBigram(case["T"] + 1, context=True, background="labels").fit(
                da.from_array(tokens, chunks=n // PARTITIONS)
            )
            positions = task.T + 1 - model.lags_["lag"]  # lag 1 is the last token
            support = [np.sort(positions[model.lags_["context"] == k]) for k in range(N)]
            size = tokens.size
        seconds = time.perf_counter() - start
        sent = outgoing(client) - before
    right = all(np.array_equal(a, b) for a, b in zip(task.support, support, strict=True))
    return {"data": size, **counts, "sent": sent, "right": right} | rounded(seconds=seconds, trip=trip)


def fits_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Bytes and round trips of each fit."""
    lines = []
    for case, row in rows:
        size = f"`recover`: N = {case['N']}, T = {case['T']}, {case['sparsity']} positions each, {case['n']:,} samples"
        if case["fit"] == "estimator":
            size = f"estimator: N = {case['N']}, `max_lag` = {case['T'] + 1}, {case['n']:,} symbols"
        moved = [_bytes(row[name]) for name in ("data", "back", "out", "sent")]
        lines.append([size, *moved, f"{row['trips']:,}"])
    return table_of("fit|data|sums to the driver|arguments from it|sent by the workers in all|round trips", lines)


def _bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


SECTIONS = {"fits": Section(CASES, fits, {"fits": fits_table})}

if __name__ == "__main__":
    main(__doc__, KEPT, "explanation/scale.md", SECTIONS)
