"""Learners of general use.

A hidden Markov model (hmmlearn), boosted trees on lags (scikit-learn), a small transformer
(PyTorch).
"""

from typing import Any

import numpy as np

from frame import Data


class HiddenMarkov:
    """A hidden Markov model of 16 states, 40 rounds of EM from one start."""

    name, version, told = "HMM, 16 states", "hmmlearn 0.3.3", False
    answers = frozenset({"bits"})

    def fit(self, data: Data) -> None:
        """Fit with hmmlearn."""
        from hmmlearn.hmm import CategoricalHMM  # pyright: ignore[reportMissingImports]

        self.model = CategoricalHMM(
            16,
            n_features=data.symbols,
            n_iter=40,
            tol=1,
            random_state=0,
            emissionprob_prior=1.01,
            implementation="scaling",
        )
        self.model.fit(np.concatenate(data.train)[:, None], [len(x) for x in data.train])

    def score(self, test) -> np.ndarray:
        """Log-probabilities, filtered."""
        from sequence_baselines import _filtered

        return np.concatenate([_filtered(self.model, x)[1:] for x in test])


class BoostedTrees:
    """Boosted trees on the last 12 symbols, each as a category; 30 rounds.

    Without a penalty on the leaves they diverge on letters, of which some are rare.
    """

    name, version, told = "boosted trees on lags", "scikit-learn 1.9", False
    answers = frozenset({"bits"})
    depth = 12

    def fit(self, data: Data) -> None:
        """Fit with scikit-learn."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        label, past = self.windows(data.train)
        self.symbols = data.symbols
        options: Any = {"categorical_features": list(range(self.depth)), "early_stopping": False}
        model = HistGradientBoostingClassifier(max_iter=30, l2_regularization=10.0, **options)
        self.model = model.fit(past, label)

    def windows(self, sequences) -> tuple[np.ndarray, np.ndarray]:
        """The symbols with one before them, and the last twelve before each.

        What lies before the start is missing.
        """
        pasts = []
        for x in sequences:
            padded = np.r_[np.full(self.depth, np.nan), x[:-1]]
            pasts.append(np.lib.stride_tricks.sliding_window_view(padded, self.depth)[1:])
        return np.concatenate([x[1:] for x in sequences]), np.concatenate(pasts)

    def score(self, test) -> np.ndarray:
        """Log-probabilities, with one part in a thousand for symbols that the fit did not see."""
        label, past = self.windows(test)
        p = np.zeros((label.size, self.symbols))
        p[:, self.model.classes_] = self.model.predict_proba(past)
        return np.log(0.999 * p[np.arange(label.size), label] + 0.001 / self.symbols)


ESTIMATORS = (HiddenMarkov, BoostedTrees)
