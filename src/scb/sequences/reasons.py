"""What a fitted model of lags says about sequences apart from predictions: where each symbol comes
from, and whether groups differ.
"""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from scb.arrays import Array
from scb.inputs import InputError
from scb.sequences.coding import windows_of_symbols
from scb.sequences.explaining import Explanation, explain
from scb.sequences.group_test import GroupTest, compare_groups
from scb.sequences.matrix_pictures import plot_matrices
from scb.sequences.predictor import LagPredictor
from scb.sequences.stability import found_again
from scb.task.task import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class LagReasons(LagPredictor):
    """Explanations and tests of a fitted estimator."""

    def explain(
        self, X: Any, *, lengths: Any = None, covariates: Any = None, predicted: bool = False
    ) -> Explanation:
        """Find where each symbol in X comes from: the posterior probabilities of its sources.

        The model draws a symbol from one of a few sources, each of which is a lag or the
        background. Given the symbol, each source has an exact posterior probability: its share of
        the symbol's probability. The bits of a lag are the additional bits that the symbol would
        cost if the symbol at that lag were missing. In a notebook, the result is shown as text
        coloured by source.

        Parameters
        ----------
        X : sequences
            One sequence of symbols or several, in any form that ``fit`` accepts except Dask
            collections.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols or sequences of X, as in ``fit``; required if the model uses
            covariates.
        predicted : bool, default False
            Whether to explain the most likely symbol at each place instead of the actual one.

        Returns
        -------
        Explanation
            The posterior and the bits of every symbol, one sequence after another, and the bits
            that each lag is worth, with intervals.

        Examples
        --------
        >>> import scb
        >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
        >>> reasons = scb.SparseContextualBigram(max_lag=6).fit(x).explain(x[:9])
        >>> reasons.posterior.toarray()[7].round(2)
        array([0., 0., 0., 0., 0., 0., 1.])
        """
        sequences, codes, beside = self._coded(X, lengths, covariates)
        return explain(self._model(), codes, sequences.separator, predicted, beside)

    def compare_groups(
        self,
        X: Any,
        groups: Any,
        *,
        lengths: Any = None,
        covariates: Any = None,
        n_permutations: int = 999,
        random_state: int | np.random.Generator = 0,
    ) -> GroupTest:
        """Test whether groups of sequences share their lags, weights and matrices.

        The group labels are permuted among the sequences, so the level of the test is exact if the
        sequences of all groups come from one distribution. The model should be fitted to all groups
        together.

        Parameters
        ----------
        X : sequences
            Several sequences, in any form that ``fit`` accepts except Dask collections.
        groups : (sequences,) sequence
            The group of each sequence.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        covariates : table, dict or (rows, columns) array, optional
            Covariates of the symbols or sequences of X, as in ``fit``; required if the model uses
            covariates.
        n_permutations : int, default 999
            The number of permutations. No p value is below 1/(1 + n_permutations).
        random_state : int or numpy.random.Generator, default 0
            The source of randomness.

        Returns
        -------
        GroupTest
            The p values of the tests for differences, and how well each group is predicted.

        Examples
        --------
        >>> import scb
        >>> task = scb.Task.random(N=3, T=5, sparsity=1, seed=0)
        >>> x = [scb.generate(task, 60, seed=i).tolist() for i in range(60)]
        >>> model = scb.SparseContextualBigram(max_lag=6).fit(x)
        >>> test = model.compare_groups(x, [i % 2 for i in range(60)], n_permutations=99)
        >>> test.scores["group"], test.parts["p"].min() > 0.05
        (array([0, 1]), np.True_)
        """
        _, codes, beside = self._coded(X, lengths, covariates)
        rng = generator(random_state)
        return compare_groups(self._model(), codes, list(groups), n_permutations, rng, beside)

    def stability(
        self,
        X: Any,
        *,
        lengths: Any = None,
        covariates: Any = None,
        n_halves: int = 20,
        random_state: int = 0,
    ) -> Array:
        """Estimate the fraction of random halves of X in which each lag is found again.

        Halves consist of blocks of neighbouring symbols and come in disjoint pairs. After this
        call, ``summary`` shows the result too.

        Parameters
        ----------
        X : sequences
            The data of the fit.
        lengths : list of int, optional
            The lengths of the sequences, if X holds several sequences one after another.
        covariates : table, dict or (rows, columns) array, optional
            The covariates of the fit; required if the model uses covariates.
        n_halves : int, default 20
            The number of halves to fit, which must be even.
        random_state : int, default 0
            The seed with which the halves are drawn.

        Returns
        -------
        (rows of ``lags_``,) array
            The fraction of halves in which the lag was found.

        Examples
        --------
        >>> import scb
        >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
        >>> scb.SparseContextualBigram(max_lag=6).fit(x).stability(x, n_halves=4)
        array([1., 1., 1.])
        """
        model = self._model()
        if model.used_covariates:
            _, codes, beside = self._coded(X, lengths, covariates)
            data = model.windows(codes, beside)
        else:
            data, classes, _ = windows_of_symbols(X, lengths, model.max_lag, model.context)
            if not np.array_equal(classes, self.classes_):
                raise InputError(
                    "X does not hold the same symbols as in fit: pass the data of the fit"
                )
        progress = _print_half if self.verbose else None
        again = found_again(model, data, self._settings(), n_halves, random_state, progress)
        self._fitted = replace(model, evidence={**model.evidence, "found": again})
        return again

    def plot_matrices(self) -> "Figure":
        """Plot heat maps of how the symbol at each lag changes the distribution of the next symbol.

        There is a heat map for each transition matrix. A cell shows by how many percentage points
        the symbol at the lag makes a next symbol more or less likely than on average. Symbols with
        similar effects are placed next to each other.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Examples
        --------
        >>> import scb
        >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
        >>> figure = scb.SparseContextualBigram(max_lag=6).fit(x).plot_matrices()
        >>> figure.axes[0].get_title(), figure.axes[0].get_xlabel()
        ('all lags', 'symbol at the lag')
        """
        return plot_matrices(self._model())


def _print_half(turn: int, halves: int) -> None:
    print(f"half {turn} of {halves}", file=sys.stderr, flush=True)
