"""The fit of an estimator to windows, with warnings, and the fit to a stream of symbols, of which
the estimator keeps the data that it is fitted to.
"""

import sys
import warnings
from typing import Any, Self

from sklearn.exceptions import ConvergenceWarning

from scb.inputs import InputError
from scb.mixture.data import Data, is_dask
from scb.sequences.choice import fit_chosen
from scb.sequences.kept import MEMORY, KeptSymbols
from scb.sequences.lag_fit import LagSettings
from scb.sequences.lag_model import LagModel
from scb.sequences.reasons import LagReasons
from scb.sequences.summary import fit_problems
from scb.sequences.symbols import as_sequences
from scb.sequences.tables import Classes


class StreamedLags(LagReasons):
    """An estimator that is fitted to windows, or to a stream of symbols piece by piece."""

    def partial_fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        lengths: Any = None,
        memory: int = MEMORY,
        fit: bool = True,
    ) -> Self:
        """Add the next piece of a stream to the data kept so far, and fit the model to all of them.

        A single sequence continues the previous one. Several sequences, or a single one inside a
        list ``[x]``, start new sequences. A stream of up to ``memory`` symbols is kept whole, and
        the result equals that of ``fit`` on the whole stream. From a longer stream, a random sample
        of blocks of neighbouring symbols is kept; every block, however old, has the same chance of
        being in the sample. The model and its standard errors are then based on the sample, which
        does not depend on how the stream was cut into pieces. ``save`` stores the sample with the
        model, so the stream can continue after ``load``.

        Parameters
        ----------
        X : sequences, optional
            The next piece, in any form that ``fit`` accepts except Dask collections. By default,
            the model is fitted to the data kept so far.
        y : ignored
            Present for compatibility with scikit-learn.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        memory : int, default 5,000,000
            The number of symbols to keep, which must be the same in all calls. A fit needs about 30
            bytes of memory per symbol.
        fit : bool, default True
            Whether to fit the model now. Every fit uses all the data kept, so with many small
            pieces it pays to fit rarely.

        Returns
        -------
        SparseContextualBigram
            The estimator itself.

        Examples
        --------
        >>> import scb
        >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
        >>> model = scb.SparseContextualBigram(max_lag=6)
        >>> for piece in (x[:1000], x[1000:2000], x[2000:]):
        ...     model = model.partial_fit(piece, fit=False)
        >>> whole = scb.SparseContextualBigram(max_lag=6).fit(x)
        >>> model.partial_fit().loglik_ == whole.loglik_, model.n_seen_
        (True, 3000)
        """
        settings = self._settings()
        if is_dask(X):
            raise InputError(
                "X is a collection of Dask: use fit, which processes all of it at once"
            )
        if self._kept is None:
            if hasattr(self, "_fitted"):
                raise InputError(
                    "this model was fitted by fit, which keeps no data to continue from: pass "
                    "all the data to partial_fit of a new model, or start a new fit from this "
                    "model with fit(X, init=model)"
                )
            self._kept = KeptSymbols(settings.max_lag, memory)
        if X is not None:
            self._kept.take(as_sequences(X, lengths), settings.max_lag, memory)
        if not fit:
            return self
        data = self._kept.windows(settings.has_states)
        return self._fit_windows(data, self._kept.classes, settings)

    def _fit_windows(
        self,
        data: Data,
        classes: Classes,
        settings: LagSettings,
        width: int | None = None,
        known: LagModel | None = None,
    ) -> Self:
        """Fit the model to windows, keep it, and warn of problems."""
        progress = _print_round if self.verbose else None
        model = fit_chosen(data, classes, settings, init=known, progress=progress)
        self._keep(model, width)
        for problem in fit_problems(model.facts):
            category = ConvergenceWarning if "converge" in problem else UserWarning
            warnings.warn(problem, category, stacklevel=3)
        return self

    @property
    def n_seen_(self) -> int:
        """The number of symbols that ``partial_fit`` has received so far, 0 if there were none."""
        return 0 if self._kept is None else self._kept.seen


def _print_round(turn: int, lags: int, loglik: float) -> None:
    print(f"round {turn}: {lags} lags, log-likelihood {loglik:,.1f}", file=sys.stderr, flush=True)
