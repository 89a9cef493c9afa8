"""Who predicts held-out symbols best: the rivals, each fitted to the same symbols and scored on the same others."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from scb.geometry import Array
from scb.sequences.rivals.counts import Ints, deepest, labels_of
from scb.sequences.rivals.crossfit import ContextLaw, HeldLabels, best_ngram
from scb.sequences.rivals.ctw import ContextTree
from scb.sequences.rivals.ngram import NGram
from scb.sequences.rivals.ppm import PPM

DEPTH = 16  # of the contexts that any rival looks at
Say = Callable[[str], None]
Likelihoods = dict[str, Array]


def rivals(sequences: Sequence[Ints], N: int, say: Say | None = None) -> dict[str, ContextLaw]:
    """Unigram, bigram, the best interpolated n-gram, the context tree and PPM, by name; each chooses its order on its own.

    Parameters
    ----------
    sequences : codes 0 … N − 1, −1 where a symbol is missing
    say : called with the name of each before it is fitted
    """
    found = {}
    for name, make in makers(sequences, N).items():
        if say is not None:
            say(name)
        law = make()
        found[title(name, law)] = law
    return found


def makers(sequences: Sequence[Ints], N: int) -> dict[str, Callable[[], ContextLaw]]:
    """What fits each baseline of ``rivals``, by name."""
    return {
        "unigram": lambda: NGram.fit(sequences, N, 1, "witten-bell"),
        "bigram": lambda: NGram.fit(sequences, N, 2, "witten-bell"),
        "n-gram": lambda: best_ngram(HeldLabels.of(sequences, N, DEPTH)).law,
        "context tree": lambda: ContextTree.fit(sequences, N, DEPTH),
        "PPM": lambda: PPM.fit(sequences, N),
    }


def title(name: str, law: ContextLaw) -> str:
    """The name of a fitted baseline, with the order that it has chosen."""
    return name if name in ("unigram", "bigram") else law.name


def log_likelihoods(models: dict[str, ContextLaw], test: Sequence[Ints], skipped: int = 0) -> Likelihoods:
    """(n,) by name: the logarithm of the probability of each symbol of ``test`` that has one right before it, in nats.

    The first ``skipped`` symbols of each sequence are only there to be looked back at.
    """
    N = next(iter(models.values())).counts.N
    labels = labels_of(test, N, deepest(N, DEPTH), skipped)
    return {name: np.log(model.likelihoods(labels)) for name, model in models.items()}


def scored(baselines: Mapping[str, Callable[[], Likelihoods]], say: Say) -> tuple[Likelihoods, list[str]]:
    """The likelihoods that each baseline gives, and a line for each baseline that could not be computed."""
    found: Likelihoods = {}
    failed = []
    for name, likelihoods in baselines.items():
        say(name)
        try:
            found |= likelihoods()
        except Exception as error:  # whatever it is, the model that was fitted must not be lost with it
            failed.append(f"the baseline {name} could not be computed: {type(error).__name__}: {' '.join(str(error).split())}")
    return found, failed
