"""A fitted model of lags under its public names: its parameters, its summary, its plots and its
file; and its inputs, translated to the codes of its symbols and covariates.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from scb.arrays import Ints
from scb.inputs import InputError
from scb.sequences.covariates import beside_symbols, coded_covariates, flat_columns
from scb.sequences.kept import KeptSymbols
from scb.sequences.lag_fit import LagSettings
from scb.sequences.lag_model import SHARED, LagModel
from scb.sequences.model_file import SavedModel, load_model
from scb.sequences.pictures import plot_attention, plot_influence
from scb.sequences.summary import LagSummary, summarise
from scb.sequences.symbols import as_sequences, encode
from scb.sequences.tables import Arrays, Codes, Sequences

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FittedLags(BaseEstimator):
    """The parts of a fitted model under the names that users see."""

    max_lag: int
    context: Any
    handle_unknown: str
    verbose: bool
    loglik_: float
    n_windows_: int
    n_symbols_: int
    n_parameters_: int
    n_iter_: int
    gap_: float
    converged_: bool
    criterion_: dict[str, float]
    choices_: dict[str, float]
    sequence_bits_: float
    covariates_: dict[str, bool]
    _fitted: LagModel
    _kept: KeptSymbols | None = None  # of a stream, see ``partial_fit``

    def _keep(self, model: LagModel, width: int | None) -> Self:
        """Take a fitted model; ``width`` is the common length of its sequences."""
        self._fitted = model
        self.classes_ = model.classes
        self.attention_: csr_array = model.attention
        self.background_weight_ = model.background_weight
        self.incomplete_ = model.incomplete
        self.transition_: Any = model.matrices.get(SHARED, model.matrices)
        self.prior_ = model.prior
        self.frequencies_ = model.frequencies
        for name, value in asdict(model.facts).items():
            setattr(self, f"{name}_", value)
        if width is not None:
            self.n_features_in_ = width
        return self

    def _model(self) -> LagModel:
        """The fitted model; an error if there is none yet."""
        check_is_fitted(self)
        return self._fitted

    def _settings(self) -> LagSettings:
        """The parameters of the fit, checked."""
        return LagSettings(
            **{
                name: value
                for name, value in self.get_params(deep=False).items()
                if name in LagSettings.__dataclass_fields__
            }
        )

    @property
    def lags_(self) -> Arrays:
        """The lags found: (lags,) arrays ``context``, ``lag``, ``weight`` and ``stderr``.

        ``context`` holds the current symbol, after which the lag matters. In a model without
        context, the entries of ``context`` are None.
        """
        return self._model().lags()

    @property
    def influence_(self) -> csr_array:
        """How much the symbol at each lag changes the prediction, in the layout of ``attention_``.

        The influence is a total variation distance, averaged over the symbols that occur. Unlike
        the weights, the influence does not depend on how a part that all matrices have in common is
        divided among the matrices. In a model with context, the influence of lag 1 is 0, because
        the current symbol is given and cannot vary.
        """
        return self._model().influence()

    def summary(self) -> LagSummary:
        """Summarise the lags found and the evidence for them.

        Returns
        -------
        LagSummary
            A table that can be printed; ``to_pandas()`` converts it to a data frame, and
            ``columns`` holds it as a dictionary.
        """
        return summarise(self._model())

    def plot_attention(self, ax: "Axes | None" = None) -> "Axes":
        """Plot ``attention_`` as a heat map with a row per current symbol and a column per lag.

        Cells without weight are white.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw in. By default a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the plot.
        """
        return plot_attention(self._model(), ax)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Plot ``influence_`` as a heat map with a row per current symbol and a column per lag.

        Each cell shows the influence of the lag and its gain in log-likelihood, in nats.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw in. By default a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the plot.
        """
        return plot_influence(self._model(), ax)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save the model to a file that ``load`` can read without executing code.

        Parameters
        ----------
        path : str or path
            The file to write. A model that is already saved in this file is replaced.
        overwrite : bool, default False
            Whether to replace even a file that is not a model.
        """
        width = getattr(self, "n_features_in_", None)
        SavedModel(self._model(), self.get_params(), width, self._kept).write(path, overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that ``save`` wrote.

        A ``DamagedFileError`` is raised if the file has changed since it was written.

        Parameters
        ----------
        path : str or path
            The file to read.

        Returns
        -------
        SparseContextualBigram
        """
        saved = load_model(path)
        try:
            estimator = cls(**saved.parameters)
        except TypeError as error:
            raise InputError(f"{path} is damaged: {error!r}") from None
        estimator._kept = saved.kept
        return estimator._keep(saved.model, saved.width)

    # --------------------------------------------------------------------------------------- inputs

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
