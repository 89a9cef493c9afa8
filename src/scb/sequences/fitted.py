"""A fitted model of lags by its public names: what was found, as tables and pictures."""

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from scb.sequences.lag_model import SHARED, FitFacts, LagModel
from scb.sequences.pictures import plot_attention, plot_influence
from scb.sequences.summary import LagSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FittedLags(BaseEstimator):
    """The parts of a fitted model under the names that users see, and the model made of them again."""

    max_lag: int
    context: bool
    handle_unknown: str

    def _take(self, model: LagModel, facts: FitFacts, width: int | None) -> None:
        """Keep a model by its public names."""
        self.classes_ = model.classes
        self.attention_: csr_array = model.attention
        self._errors = model.errors
        self._rest_ratio = model.rest_ratio
        self._background = model.background
        self._evidence = model.evidence
        self.rest_ = model.rest
        self.incomplete_ = model.incomplete
        self.transition_: Any = model.matrices.get(SHARED, model.matrices)
        self.prior_ = model.prior
        self.frequencies_ = model.frequencies
        self.loglik_ = facts.loglik
        self.n_windows_ = facts.n_windows
        self.n_labels_ = facts.n_labels
        self.n_parameters_ = facts.n_parameters
        self.n_iter_ = facts.n_iter
        self.gap_ = facts.gap
        self.converged_ = facts.converged
        self.criterion_ = facts.criterion
        if width is not None:
            self.n_features_in_ = width

    def _model(self) -> LagModel:
        """The model behind the public names; an error if there is none yet."""
        check_is_fitted(self)
        return LagModel(
            classes=self.classes_,
            context=bool(self.context),
            attention=self.attention_,
            errors=self._errors,
            rest=self.rest_,
            rest_ratio=self._rest_ratio,
            matrices=self.transition_
            if isinstance(self.transition_, dict)
            else {SHARED: self.transition_},
            prior=self.prior_,
            frequencies=self.frequencies_,
            background=self._background,
            evidence=self._evidence,
        )

    def _facts(self) -> FitFacts:
        """How the fit went."""
        return FitFacts(
            **{name: getattr(self, f"{name}_") for name in FitFacts.__dataclass_fields__}
        )

    @property
    def lags_(self) -> dict[str, NDArray[Any]]:
        """The lags found: (lags,) arrays ``context``, ``lag``, ``weight`` and ``stderr``.

        In a model without context, the entries of ``context`` are None.
        """
        return self._model().table()

    @property
    def influence_(self) -> csr_array:
        """How much the symbol at each lag changes the prediction, like ``attention_``.

        It is a total variation distance, averaged over the symbols that occur. Unlike the weights,
        it does not depend on how a part that all matrices have in common is divided among them. For
        lag 1 it is 0 in a model with context, because the symbol at lag 1 is the context and cannot
        vary.
        """
        return self._model().influence()

    def summary(self) -> LagSummary:
        """Summarise the lags found and the evidence for them.

        Returns
        -------
        LagSummary
            A table that can be printed; ``to_pandas()`` converts it to a data frame, and
            ``columns`` has it as a dictionary.
        """
        return LagSummary(self._model(), self._facts())

    def plot_attention(self, ax: "Axes | None" = None) -> "Axes":
        """Plot ``attention_`` as a heat map with a row for each context and a column for each lag.

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
        """Plot ``influence_`` as a heat map with a row for each context and a column for each lag.

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
