"""Who predicts held-out symbols best: the baselines, each fitted to the same symbols and scored on
the same others.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from scb.arrays import Array
from scb.sequences.baselines.counts import Ints, deepest, labels_of
from scb.sequences.baselines.crossfit import HeldLabels, HistoryModel, best_ngram
from scb.sequences.baselines.ctw import ContextTree
from scb.sequences.baselines.ngram import NGram
from scb.sequences.baselines.ppm import PPM

DEPTH = 16  # of the contexts that any baseline looks at
Say = Callable[[str], None]
Likelihoods = dict[str, Array]


def baselines(sequences: Sequence[Ints], N: int, say: Say | None = None) -> dict[str, HistoryModel]:
    """Unigram, bigram, the best interpolated n-gram, the context tree and PPM, by name; each
    chooses its order on its own.

    Parameters
    ----------
    sequences : codes 0 … N − 1, −1 where a symbol is missing
    say : called with the name of each before it is fitted
    """
    found = {}
    for name, make in makers(sequences, N).items():
        if say is not None:
            say(name)
        model = make()
        found[title(name, model)] = model
    return found


def makers(sequences: Sequence[Ints], N: int) -> dict[str, Callable[[], HistoryModel]]:
    """What fits each baseline of ``baselines``, by name."""
    return {
        "unigram": lambda: NGram.fit(sequences, N, 1, "witten-bell"),
        "bigram": lambda: NGram.fit(sequences, N, 2, "witten-bell"),
        "n-gram": lambda: best_ngram(HeldLabels.of(sequences, N, DEPTH)).model,
        "context tree": lambda: ContextTree.fit(sequences, N, DEPTH),
        "PPM": lambda: PPM.fit(sequences, N),
    }


def title(name: str, model: HistoryModel) -> str:
    """The name of a fitted baseline, with the order that it has chosen."""
    return name if name in ("unigram", "bigram") else model.name


def log_likelihoods(
    models: dict[str, HistoryModel], test: Sequence[Ints], skipped: int = 0
) -> Likelihoods:
    """(n,) by name: the logarithm of the probability of each symbol of ``test`` that has one right
    before it, in nats.

    The first ``skipped`` symbols of each sequence are only there to be looked back at.
    """
    N = next(iter(models.values())).counts.N
    labels = labels_of(test, N, deepest(N, DEPTH), skipped)
    return {name: np.log(model.likelihoods(labels)) for name, model in models.items()}


def scored(
    baselines: Mapping[str, Callable[[], Likelihoods]], say: Say
) -> tuple[Likelihoods, list[str]]:
    """The likelihoods that each baseline gives, and a line for each baseline that could not be
    computed.
    """
    found: Likelihoods = {}
    failed = []
    for name, likelihoods in baselines.items():
        say(name)
        try:
            found |= likelihoods()
        except Exception as error:
            # Whatever it is, the model that was fitted must not be lost with it
            failed.append(
                f"the baseline {name} could not be computed: {type(error).__name__}: {' '.join(str(error).split())}"
            )
    return found, failed
