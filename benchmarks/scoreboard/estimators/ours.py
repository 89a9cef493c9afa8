"""scb's own estimators."""

from typing import Any

import numpy as np

import scb
from frame import Data
from scb.provenance import code_digest


class Lags:
    """SparseContextualBigram as it comes: not told how many lags there are."""

    name = "scb"
    version = f"scb {scb.__version__}, code {code_digest()[:8]}"
    told = False
    answers = frozenset({"exact", "strongest", "bits", "adaptive"})

    def options(self, data: Data) -> dict[str, Any]:
        """What it is asked for beyond its defaults."""
        return {}

    def fit(self, data: Data) -> None:
        """Fit to all sequences."""
        self.symbols = data.symbols
        self.model = self.estimator(data).fit(list(data.train))

    def estimator(self, data: Data) -> Any:
        """The estimator, not yet fitted."""
        return scb.SparseContextualBigram(data.max_lag, **self.options(data))

    def score(self, test: Any) -> np.ndarray:
        """Log-probabilities, with one part in a thousand for symbols that the fit did not see."""
        column = np.full(self.symbols, -1)
        column[self.model.classes_] = np.arange(self.model.classes_.size)
        scores = []
        for x in test:
            known = np.where(column[x] >= 0, x, self.model.classes_[0])
            seen = column[x[1:]]
            p = self.model.predict_proba(known)[:-1][np.arange(seen.size), seen]
            scores.append(np.log(np.where(seen >= 0, 0.999 * p, 0) + 0.001 / self.symbols))
        return np.concatenate(scores)

    def lags(self) -> list[int]:
        """Lags by their influence, which counts current symbols by how often they come."""
        influence = self.model.influence_.toarray()
        total = self.model.frequencies_ @ influence if influence.shape[0] > 1 else influence[0]
        lags = sorted(set(self.model.lags_["lag"].tolist()))
        return sorted(lags, key=lambda lag: -total[lag - 1])


class OneSet(Lags):
    """The same lags after every current symbol, a matrix for each.

    The class of models that hdMTD fits.
    """

    name = "scb, same lags after every symbol"
    answers = frozenset({"exact", "strongest"})

    def options(self, data: Data) -> dict[str, Any]:
        """One set of lags."""
        return {"context": False, "transition": "per_lag"}


class Told(OneSet):
    """The same, told the number of lags."""

    name = "scb, told the number"
    told = True
    answers = frozenset({"exact"})

    def options(self, data: Data) -> dict[str, Any]:
        """As many lags as there are."""
        return super().options(data) | {"lags": data.number}


class Product(Lags):
    """The predictor around the estimator: lags, an n-gram, and what comes again lately."""

    name = "scb.Experts"
    answers = frozenset({"bits", "adaptive"})

    def estimator(self, data: Data) -> Any:
        """The product of experts, with its defaults."""
        return scb.Experts(super().estimator(data))

    def lags(self) -> list[int]:
        """None: it is asked to predict."""
        return []


ESTIMATORS = (Lags, OneSet, Told, Product)
