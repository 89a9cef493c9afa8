"""Who predicts best: models of lags, with and without an n-gram as background, or n-grams, context trees, PPM, HMMs, the MTD.

    python benchmarks/sequence_baselines.py [NAME ...] [--jobs 2] [--with hmmlearn's folder]

Six public sequences (examples/sequences.py), of which the last fifth is held out; bits per symbol, and for each baseline the
difference to the best model of lags with its standard error, symbol by symbol. Each baseline chooses its order on the symbols that
it is fitted to; the HMM is given the number of states (2, 4, 8, 16; three starts each) that is best on the *held-out* symbols, more
than is fair.

Results are kept in benchmarks/sequence_baselines/, a file for each sequence and model; what is there is not computed again. The
tables go to benchmarks/sequence_baselines.md and, once all models are there, to docs/explanation/examples.md. hmmlearn is in no
lock: pip install --target hmm --no-deps hmmlearn, and --with hmm.
"""

import os

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "examples"))

from sequences import SOURCES, parted  # pyright: ignore[reportMissingImports]
from study import DOCS, fill, table_of

import scb
from scb.sequences.baselines.counts import DEPTH, deepest, histories_in
from scb.sequences.baselines.crossfit import HeldLabels, best_ngram
from scb.sequences.baselines.ctw import ContextTree
from scb.sequences.baselines.ngram import NGram
from scb.sequences.baselines.ppm import PPM
from scb.sequences.comparison import paired_error
from scb.sequences.symbols import as_sequences, encode

KEPT = Path(__file__).with_suffix("")
TABLE = Path(__file__).with_suffix(".md")
STATES = (2, 4, 8, 16)
STARTS = 3
ABOUT = (
    "This comparison was written by `python benchmarks/sequence_baselines.py`. "
    "Each model is fitted to four fifths of a sequence and predicts the last fifth. "
    "*Bits* are bits per held-out symbol; fewer are better. "
    "The next column is the mean difference from our model, symbol by symbol, with its standard error. "
    "*Seconds* are the time of fit and prediction, on one thread."
)
Codes = list[np.ndarray]
Scored = tuple[str, np.ndarray]  # what was chosen; of each held-out symbol that has one right before it, the log-likelihood in nats


def counted(fit: Callable[[Codes, int], Any], train: Codes, test: Codes, N: int, max_lag: int) -> Scored:
    """A distribution that is read off counts of histories."""
    model = fit(train, N)
    return model.name, np.log(model.likelihoods(histories_in(test, N, deepest(N, DEPTH))))


def lags(train: Codes, test: Codes, N: int, max_lag: int, **options: Any) -> Scored:
    """A model of lags, asked through what everybody uses."""
    gap = [np.where(x < 0, np.nan, x) if (x < 0).any() else x.astype(float) for x in (*train, *test)]
    fitted, held = gap[: len(train)], gap[len(train) :]
    model = scb.SparseContextualBigram(max_lag, **options).fit(fitted)
    place = {float(x): i for i, x in enumerate(model.classes_.tolist())}
    scores = []
    for x in held:
        distributions = model.predict_proba(x)[:-1]
        at = np.flatnonzero(~np.isnan(x[1:]) & ~np.isnan(x[:-1]))
        scores.append(np.log(distributions[at, [place[y] for y in x[at + 1].tolist()]]))
    return f"{len(model.lags_['lag'])} lags", np.concatenate(scores)


def hidden(states: int, train: Codes, test: Codes, N: int, max_lag: int) -> Scored:
    """A hidden Markov model of hmmlearn, the best of some starts on what it is fitted to."""
    from hmmlearn.hmm import CategoricalHMM  # pyright: ignore[reportMissingImports]

    runs = [run for x in train for run in _runs(x)]
    X, lengths = np.concatenate(runs)[:, None], [len(run) for run in runs]
    best, score = None, -np.inf
    fast: Any = {"implementation": "scaling"}  # seven times as fast as with logarithms
    for seed in range(STARTS):
        model = CategoricalHMM(states, n_features=N, n_iter=200, tol=0.1, random_state=seed, emissionprob_prior=1.01, **fast)
        model.fit(X, lengths)
        if (now := model.score(X, lengths)) > score:
            best, score = model, now
    assert best is not None
    filtered = [_filtered(best, run)[1:] for x in test for run in _runs(x)]
    return f"{states} states", np.concatenate(filtered)


def _runs(codes: np.ndarray) -> Codes:
    """A sequence cut at its gaps."""
    bounds = np.r_[-1, np.flatnonzero(codes < 0), codes.size]
    return [codes[a + 1 : b] for a, b in pairwise(bounds) if b > a + 1]


def _filtered(model: Any, run: np.ndarray) -> np.ndarray:
    """The log-likelihood of each symbol of a run given those before it."""
    belief = model.startprob_
    scores = np.empty(run.size)
    for i, x in enumerate(run):
        joint = belief * model.emissionprob_[:, x]
        total = max(joint.sum(), 1e-12)
        scores[i] = np.log(total)
        belief = joint / total @ model.transmat_
    return scores


def _ngram(train: Codes, N: int) -> NGram:
    return best_ngram(HeldLabels.here(train, N, DEPTH)).model  # pyright: ignore[reportReturnType]


MODELS: dict[str, Callable[..., Scored]] = {
    "unigram": partial(counted, lambda train, N: NGram.fit(train, N, 1, "witten-bell")),
    "bigram": partial(counted, lambda train, N: NGram.fit(train, N, 2, "witten-bell")),
    "best n-gram": partial(counted, _ngram),
    "context tree": partial(counted, lambda train, N: ContextTree.fit(train, N, DEPTH)),
    "PPM": partial(counted, PPM.fit),
    "plain MTD": partial(lags, context=False, transition="shared", background="labels"),
    "lags": partial(lags, transition="per_lag", context=True, background="labels"),
    "lags beyond the recent past": partial(lags, transition="per_lag", context=True, background="ngram"),
    **{f"HMM {states}": partial(hidden, states) for states in STATES},
}


def work(source: str, name: str, folder: str | None) -> str:
    """Fit one model to one sequence, and keep what it says of the held-out symbols."""
    if folder:
        sys.path.append(folder)
    train, test = parted(SOURCES[source].read())
    codes, classes = encode(as_sequences([*train, *test]))
    began = time.perf_counter()
    chosen, scores = MODELS[name](codes[: len(train)], codes[len(train) :], len(classes), SOURCES[source].max_lag)
    path = _place(source, name)
    path.parent.mkdir(exist_ok=True, parents=True)
    np.savez_compressed(path, scores=scores, chosen=chosen, seconds=time.perf_counter() - began)
    return f"{source}: {name} ({chosen}): {-scores.mean() / np.log(2):.4f} bits, {time.perf_counter() - began:.1f} s"


def _place(source: str, name: str) -> Path:
    return KEPT / f"{re.sub(r'[^a-z0-9]+', '-', f'{source} {name}'.lower())}.npz"


def table() -> str:
    """What has been computed so far, best first for each sequence."""
    lines = []
    for source, about in SOURCES.items():
        found = {name: np.load(_place(source, name)) for name in MODELS if _place(source, name).exists()}
        states = [name for name in found if name.startswith("HMM")]
        for name in sorted(states, key=lambda one: -found[one]["scores"].mean())[1:]:
            del found[name]
        if not found:
            continue
        ours = [name for name in found if name.startswith("lags")]
        own = max(ours, key=lambda one: found[one]["scores"].mean()) if ours else next(iter(found))
        n = found[own]["scores"].size
        lines += ["", f"## {source}", "", f"{about.about}, max_lag {about.max_lag}, {n:,} held-out symbols.", ""]
        lines += [f"| model | chosen | bits | above {own} | seconds |", "|---|---|---|---|---|"]
        for name in sorted(found, key=lambda one: -found[one]["scores"].mean()):
            scores = found[name]["scores"]
            difference = (found[own]["scores"] - scores) / np.log(2)
            beside = "" if name == own else f"{difference.mean():+.4f} ± {paired_error(difference):.4f}"
            title = f"**{name}**" if name == own else name
            bits = f"{-scores.mean() / np.log(2):.4f}"
            lines.append(f"| {title} | {found[name]['chosen']} | {bits} | {beside} | {found[name]['seconds']:.1f} |")
    return "\n".join(["# Who predicts best", "", ABOUT, *lines, ""])


def overview() -> list[str] | None:
    """Bits of all models, a line for each sequence, the best ones bold; None as long as some are missing."""
    columns = ("best n-gram", "context tree", "PPM", "HMM", "plain MTD", "lags", "lags beyond the recent past")
    if not all(_place(source, name).exists() for source in SOURCES for name in MODELS):
        return None
    lines = []
    for source in SOURCES:
        bits = {name: -float(np.load(_place(source, name))["scores"].mean()) / np.log(2) for name in MODELS}
        states = min(STATES, key=lambda number: bits[f"HMM {number}"])
        bits["HMM"] = bits[f"HMM {states}"]
        best = min(bits[name] for name in columns)
        cells = [f"**{bits[name]:.4f}**" if bits[name] == best else f"{bits[name]:.4f}" for name in columns]
        cells[columns.index("HMM")] += f" ({states})"
        lines.append([source, *cells])
    return table_of(f"held out, bits per symbol|{'|'.join(columns)}".replace("HMM", "HMM (states)"), lines)


def main() -> None:
    """Compute what is missing, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"models, of {', '.join(MODELS)}; all if none is named")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--with", dest="folder", help="folder that hmmlearn was installed into")
    asked = parser.parse_args()
    names = asked.names or [name for name in MODELS if asked.folder or not name.startswith("HMM")]
    missing = [(source, name) for name in names for source in SOURCES if not _place(source, name).exists()]
    with ProcessPoolExecutor(asked.jobs) as pool:
        jobs = {pool.submit(work, source, name, asked.folder): (source, name) for source, name in missing}
        for job in as_completed(jobs):
            try:
                print(job.result(), file=sys.stderr, flush=True)
            except Exception as error:
                print(f"{jobs[job]}: {error!r}", file=sys.stderr, flush=True)
            TABLE.write_text(table())
    TABLE.write_text(table())
    if found := overview():
        fill(DOCS / "explanation" / "examples.md", "baselines", found)


if __name__ == "__main__":
    main()
