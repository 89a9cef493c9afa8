"""The inputs of a fitted model, translated to the codes of its symbols and covariates."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from scb.arrays import Ints
from scb.sequences.covariates import beside_symbols, coded_covariates, flat_columns
from scb.sequences.fitted import FittedLags
from scb.sequences.symbols import as_sequences, encode
from scb.sequences.tables import Codes, Sequences


class CodedInputs(FittedLags):
    """A fitted estimator that reads sequences and covariates."""

    def _codes(self, X: Any, lengths: Any) -> tuple[list[Codes], bool]:
        """Sequences in codes of the symbols of the fit, and whether there are several."""
        sequences = as_sequences(X, lengths)
        codes, _ = encode(sequences, self.classes_, unknown=self.handle_unknown)
        return codes, sequences.many

    def _beside(self, covariates: Any, rows: Any, n: int) -> Ints:
        """(n, covariates): codes of covariates, of which ``rows`` gives the columns in flat form.
        If the model needs no covariates, they are not looked at.
        """
        model = self._model()
        used = model.used_covariates
        columns = rows(covariates) if used and covariates is not None else {}
        return coded_covariates(model.covariates, used, columns, n, self.handle_unknown)

    def _coded(self, X: Any, lengths: Any, covariates: Any) -> tuple[Sequences, list[Codes], Ints]:
        """Sequences, their codes, and the codes (symbols, covariates) of covariates."""
        sequences = as_sequences(X, lengths)
        codes, _ = self._codes(sequences, None)
        if covariates is None:
            covariates = sequences.covariates
        rows = partial(beside_symbols, sequences=sequences)
        return sequences, codes, self._beside(covariates, rows, sum(sequences.lengths))

    def _beside_next(self, covariates: Any, sequences: int, steps: int) -> Sequence[Ints]:
        """For each sequence the codes (steps, covariates) of the covariates of what follows it."""
        n = sequences * steps
        rows = {
            "steps" if sequences == 1 else "sequences" if steps == 1 else "sequences and steps": n
        }
        if steps > 1 < sequences:
            rows["steps"] = steps

        def take(given: int) -> Ints:
            return np.tile(np.arange(given), n // given)

        beside = self._beside(covariates, partial(flat_columns, rows=rows, take=take), n)
        return np.split(beside, sequences)
