"""How well baselines predict held-out symbols: all baselines are fitted to the same symbols and
scored on the same held-out symbols.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from scb.arrays import Array
from scb.sequences.baselines.counts import DEPTH, HistoryModel, Ints, deepest, histories_in
from scb.sequences.baselines.crossfit import HeldLabels, best_ngram
from scb.sequences.baselines.ctw import ContextTree
from scb.sequences.baselines.ngram import NGram
from scb.sequences.baselines.ppm import PPM

Likelihoods = dict[str, Array]
Scorer = Callable[[], Likelihoods]


def baseline_scorers(
    train: Sequence[Ints], test: Sequence[Ints], N: int, skipped: int | Sequence[int] = 0
) -> dict[str, Scorer]:
    """Functions by name. Each function fits a baseline to sequences of codes and returns, under the
    full name of the baseline, the log-likelihood in nats of each symbol of ``test`` that directly
    follows another.

    The first ``skipped`` symbols of each test sequence are history only; ``skipped`` is one number
    for all or one for each.
    """
    fits: dict[str, Callable[[], HistoryModel]] = {
        "unigram": lambda: NGram.fit(train, N, 1, "witten-bell"),
        "bigram": lambda: NGram.fit(train, N, 2, "witten-bell"),
        "n-gram": lambda: best_ngram(HeldLabels.here(train, N, DEPTH)).model,
        "context tree": lambda: ContextTree.fit(train, N, DEPTH),
        "PPM": lambda: PPM.fit(train, N),
    }
    labels = histories_in(test, N, deepest(N, DEPTH), skipped)

    def score(name: str) -> Likelihoods:
        model = fits[name]()
        full_name = name if name in ("unigram", "bigram") else model.name
        return {full_name: np.log(model.likelihoods(labels))}

    return {name: partial(score, name) for name in fits}


def scored(
    scorers: Mapping[str, Scorer], progress: Callable[[str], None]
) -> tuple[Likelihoods, list[str]]:
    """The log-likelihoods under each baseline, and a line for each baseline that failed."""
    likelihoods: Likelihoods = {}
    failures = []
    for name, scorer in scorers.items():
        progress(name)
        try:
            likelihoods |= scorer()
        except Exception as error:
            # A baseline that fails must not take the fitted model with it
            message = f"{type(error).__name__}: {' '.join(str(error).split())}"
            failures.append(f"the baseline {name} could not be computed: {message}")
    return likelihoods, failures
