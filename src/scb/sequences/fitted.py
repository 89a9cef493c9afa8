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
            matrices=self.transition_ if isinstance(self.transition_, dict) else {SHARED: self.transition_},
            prior=self.prior_,
            frequencies=self.frequencies_,
            background=self._background,
            evidence=self._evidence,
        )

    def _facts(self) -> FitFacts:
        """How the fit went."""
        return FitFacts(**{name: getattr(self, f"{name}_") for name in FitFacts.__dataclass_fields__})

    @property
    def lags_(self) -> dict[str, NDArray[Any]]:
        """The table of lags in the support, (lags,) arrays: context (None in a model without context), lag, weight, stderr."""
        return self._model().table()

    @property
    def influence_(self) -> csr_array:
        """By how much the symbol at each lag moves the law of the next symbol, in total variation: sparse, as ``attention_``.

        It is a mean over the symbols that occur. Other than a weight, it does not depend on where the common part of the matrices
        stands. It is 0 for lag 1 where that is the context: there it cannot vary.
        """
        return self._model().influence()

    def summary(self) -> LagSummary:
        """What was found and how sure it is: a table for people when printed, ``to_pandas()``, and as a dict ``columns``.

        Returns
        -------
        LagSummary
        """
        return LagSummary(self._model(), self._facts())

    def plot_attention(self, ax: "Axes | None" = None) -> "Axes":
        """A heat map of ``attention_``: contexts down, lags across; white where a lag has no weight.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; a new figure unless given.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return plot_attention(self._model(), ax)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """A heat map of ``influence_`` with the evidence: in each cell how far the lag moves the law, and its worth in nats.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; a new figure unless given.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return plot_influence(self._model(), ax)
