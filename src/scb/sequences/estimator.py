"""``SparseContextualBigram``: which lags matter in sequences of symbols, and when. A thin scikit-learn class over ``recovery``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from scb.geometry import Array
from scb.mixture.data import Data
from scb.mixture.likelihood import Rows
from scb.mixture.selection import Progress
from scb.mixture.sequences import Known, LagFit, fit_lags, windows
from scb.sequences.symbols import as_sequences, encode, is_dask

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from scipy.sparse import csr_array

FORMAT = "scb.SparseContextualBigram"
_CERTAIN = 1e-3  # nats: what a converged fit may still gain


class SparseContextualBigram(BaseEstimator):
    """A model of sequences in which the current symbol chooses the lags that the next symbol depends on.

    The next symbol has the law Σ_ℓ a[k, ℓ]·P_ℓ[:, x_ℓ], where x_ℓ is the symbol ℓ steps before it and k = x_1 the current symbol,
    the context. Few of the weights a[k, ℓ] are positive; finding which is what the estimator is for. Lags count back from the
    symbol to be predicted: lag 1 is the current symbol.

    Parameters
    ----------
    max_lag : the longest lag that may matter
    transition : "shared", one matrix P for all lags, or "per_lag", a matrix for each
    context : whether the current symbol chooses the weights; without, this is the Mixture Transition Distribution of Raftery
    lags : "auto", those that the extended BIC asks for in each context; a number, so many in each context; or the lags themselves,
        the same in each context
    smoothing : labels added to each column of a matrix, spread as the law of all labels is (after ``init``, as its column is); 0 is
        plain maximum likelihood, under which a symbol can be impossible
    verbose : whether to say on stderr how far the search is

    Attributes
    ----------
    classes_ : (N,), the symbols, sorted
    transition_ : P (N, N), ``P[i, j]`` is the probability of classes_[i] where the source is classes_[j]; with "per_lag", a dict
        from lag to such a matrix
    attention_ : sparse (contexts, max_lag), the weight of lag ℓ in column ℓ − 1; one row for all without context. A row without
        entries: no lag was found, the law of the next symbol is ``prior_``
    influence_ : sparse, as attention_: by how much the symbol at a lag moves the law of the next symbol, in total variation, on
        average over the symbols that occur. Other than a weight, it does not depend on where the common part of the matrices
        stands. 0 for lag 1 where that is the context: there it cannot vary
    lags_ : table (a dict of columns) of context, lag, weight, stderr; the lags in the support, and only these
    prior_, frequencies_ : (N,), the law of the labels, and of all symbols
    loglik_ : log-likelihood of the labels in the data, in nats, at these parameters
    n_windows_, n_parameters_, n_iter_ : labels in the fit, parameters that they can tell apart, steps of the last fit
    converged_, gap_ : whether the last fit reached its certificate, and what the log-likelihood could still gain at most
    """

    def __init__(
        self,
        max_lag: int = 10,
        *,
        transition: Literal["shared", "per_lag"] = "shared",
        context: bool = True,
        lags: str | int | Sequence[int] = "auto",
        smoothing: float = 1.0,
        verbose: bool = False,
    ) -> None:
        self.max_lag = max_lag
        self.transition = transition
        self.context = context
        self.lags = lags
        self.smoothing = smoothing
        self.verbose = verbose

    # ------------------------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, *, lengths: Any = None, init: SparseContextualBigram | None = None) -> Self:
        """Find the lags and estimate the model.

        Parameters
        ----------
        X : one sequence of symbols, or many: see ``scb.sequences.symbols``. A window that a missing symbol cuts is left out. Or a Dask
            array, bag or list of delayed sequences, which stay where they are: see ``scb.mixture.distributed``
        y : ignored
        lengths : where X is many sequences one after the other, their lengths
        init : a fitted model whose matrices are known to begin with; what is left is a concave problem, which takes fewer data
        """
        progress = _say if self.verbose else None
        if is_dask(X):
            return self._fit_dask(X, lengths, init, progress)
        sequences = as_sequences(X, lengths)
        if y is not None and len(y) not in (len(X), len(sequences.lengths)):
            raise ValueError("y is ignored, and this one is not as long as X; are these lengths? Then say lengths=")
        if sequences.many and len(set(sequences.lengths)) == 1:
            self.n_features_in_ = sequences.lengths[0]
        return self.fit_codes(*encode(sequences), init=init, progress=progress)

    def _fit_dask(self, X: Any, lengths: Any, init: SparseContextualBigram | None, progress: Progress | None) -> Self:
        from scb.mixture.distributed import partitioned_windows

        self._check_parameters()
        if lengths is not None:
            raise ValueError("lengths are for one long X in memory; give a bag of sequences, or delayed ones")
        found = partitioned_windows(X, self.max_lag, self.context)
        if found.width is not None:
            self.n_features_in_ = found.width
        return self._fit_data(found.data, found.classes, init, progress)

    def fit_codes(
        self,
        codes: Sequence[NDArray[np.int64]],
        classes: NDArray[Any],
        *,
        init: SparseContextualBigram | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """``fit`` on sequences of codes: places in ``classes``, −1 where a symbol is missing. Not all classes need to occur."""
        self._check_parameters()
        return self._fit_data(windows(codes, len(classes), self.max_lag, self.context), classes, init, progress)

    def _fit_data(
        self, data: Any, classes: NDArray[Any], init: SparseContextualBigram | None, progress: Progress | None
    ) -> Self:
        known = None if init is None else self._known(init, classes, data)
        found = fit_lags(data, per_lag=self.transition == "per_lag", lags=self.lags, known=known, progress=progress)
        self.classes_ = classes
        self._take(found, data, known)
        return self

    def _check_parameters(self) -> None:
        max_lag = self.max_lag
        if not isinstance(max_lag, int | np.integer) or isinstance(max_lag, bool) or max_lag < 1:
            raise ValueError(f"max_lag = {max_lag!r}: it must be an integer of at least 1")
        if self.transition not in ("shared", "per_lag"):
            raise ValueError(f"transition = {self.transition!r}: it must be 'shared' or 'per_lag'")
        if not isinstance(self.context, bool | np.bool_):
            raise ValueError(f"context = {self.context!r}: it must be True or False")
        if not isinstance(self.smoothing, int | float | np.number) or not 0 <= self.smoothing < np.inf:
            raise ValueError(f"smoothing = {self.smoothing!r}: it must be a number of at least 0")
        lags = self.lags
        if isinstance(lags, str):
            if lags != "auto":
                raise ValueError(f"lags = {lags!r}: it must be 'auto', a number of lags, or the lags themselves")
        elif isinstance(lags, int | np.integer):
            if not 1 <= lags <= max_lag:
                raise ValueError(f"lags = {lags}: there must be between 1 and max_lag = {max_lag} of them")
        else:
            values = np.asarray(lags)
            if values.ndim != 1 or values.size == 0 or values.dtype.kind not in "iu":
                raise ValueError(f"lags = {lags!r}: it must be 'auto', a number of lags, or the lags themselves")
            if values.min() < 1 or values.max() > max_lag:
                raise ValueError(f"lags = {lags!r}: each must lie between 1 and max_lag = {max_lag}")

    def _known(self, init: SparseContextualBigram, classes: NDArray[Any], data: Data) -> Known:
        """The matrices of another model for our classes; a symbol that it does not know has the law of the labels."""
        check_is_fitted(init)
        if init.transition != self.transition:
            raise ValueError(
                f"init has transition={init.transition!r}, this model {self.transition!r}: they must agree"
            )
        shared = [i for i, x in enumerate(classes.tolist()) if x in set(init.classes_.tolist())]
        if not shared:
            raise ValueError("init has no symbol in common with X: its matrices say nothing here")
        theirs = [init.classes_.tolist().index(classes[i]) for i in shared]

        def translated(P: Array) -> Array:
            out = np.repeat(data.label_law[:, None], len(classes), axis=1)
            mass = P[np.ix_(theirs, theirs)].sum(axis=0)
            part = np.zeros((len(classes), len(shared)))
            part[shared] = P[np.ix_(theirs, theirs)]
            out[:, shared] = part + (1 - mass) * data.label_law[:, None]
            return out / out.sum(axis=0)

        if self.transition == "shared":
            return Known(translated(init.transition_), None)
        used = {lag: P for lag, P in sorted(init.transition_.items(), reverse=True) if lag <= self.max_lag}
        P = np.column_stack([translated(P) for P in used.values()]) if used else np.zeros((len(classes), 0))
        return Known(P, [self.max_lag - lag for lag in used])

    def _take(self, found: LagFit, data: Data, known: Known | None) -> None:
        """Smooth what was found, and keep it by its public names."""
        N, s, law = data.N, float(self.smoothing), data.label_law
        base = np.repeat(law[:, None], found.P.shape[1], axis=1)
        if known is not None:
            base = _columns_of(known, found, base, N)
        counts = found.counts
        P = np.where(counts + s > 0, (found.P * counts + s * base) / np.where(counts + s > 0, counts + s, 1.0), base)
        self.prior_, self.frequencies_ = (law * data.n + s * data.mu) / (data.n + s), data.mu
        self._set(P, found.matrices, [self.max_lag - p for p in found.support], found.weights, found.stderr)
        self.n_windows_, self.n_parameters_, self.n_iter_ = data.n, found.parameters, found.steps
        self.gap_, self.converged_ = found.gap, bool(found.gap <= _CERTAIN)
        self.loglik_ = self._loglik(data)

    def _set(
        self,
        P: Array,
        matrices: list[int] | None,
        lags: list[NDArray[np.intp]],
        weights: list[Array],
        stderr: list[Array],
    ) -> None:
        from scipy.sparse import csr_array

        N, columns = len(self.classes_), [lag - 1 for lag in lags]
        bounds = np.cumsum([0] + [len(c) for c in columns])
        flat = [np.concatenate(x) if x else np.zeros(0) for x in (weights, stderr)]
        index = np.concatenate(columns).astype(np.int64)
        self.attention_: csr_array = csr_array((flat[0], index, bounds), shape=(len(lags), self.max_lag))
        self._stderr = csr_array((flat[1], index, bounds), shape=(len(lags), self.max_lag))
        self.attention_.sort_indices()
        self._stderr.sort_indices()
        if matrices is None:
            self.transition_: Any = P
        else:
            order = {self.max_lag - t: np.ascontiguousarray(P[:, b * N : (b + 1) * N]) for b, t in enumerate(matrices)}
            self.transition_ = dict(sorted(order.items()))

    @property
    def lags_(self) -> dict[str, NDArray[Any]]:
        """The table of lags in the support; the context is None in a model without context."""
        check_is_fitted(self)
        rows = np.repeat(np.arange(len(self.attention_.indptr) - 1), np.diff(self.attention_.indptr))
        none = np.full(rows.size, None, dtype=object)
        return {
            "context": self.classes_[rows] if self.context else none,
            "lag": self.attention_.indices.astype(np.int64) + 1,
            "weight": self.attention_.data.copy(),
            "stderr": self._stderr.data.copy(),
        }

    @property
    def influence_(self) -> csr_array:
        """How far each lag in the support moves the law of the next symbol."""
        check_is_fitted(self)
        a = self.attention_.copy()
        per_lag = isinstance(self.transition_, dict)
        for i, lag in enumerate((a.indices + 1).tolist()):
            P = self.transition_[lag] if per_lag else self.transition_
            distance = np.abs(P - (P @ self.frequencies_)[:, None]).sum(axis=0) / 2
            a.data[i] *= 0.0 if self.context and lag == 1 else float(distance @ self.frequencies_)
        return a

    # ------------------------------------------------------------------------------------------------- using it

    def _slots(self) -> tuple[Array, NDArray[np.int64], NDArray[np.int64], Array]:
        """By context and slot: weights (K, s), lags (K, s) with 0 for the background, matrices (K, s); and P (N, C + 1)."""
        a = self.attention_
        K, s = len(a.indptr) - 1, 1 + int(np.diff(a.indptr).max(initial=0))
        weights, lags, matrix = np.zeros((K, s)), np.zeros((K, s), np.int64), np.zeros((K, s), np.int64)
        per_lag = isinstance(self.transition_, dict)
        block = {lag: b for b, lag in enumerate(self.transition_)} if per_lag else {}
        for k in range(K):
            mine = slice(a.indptr[k], a.indptr[k + 1])
            here = a.indices[mine] + 1
            weights[k, 0] = float(here.size == 0)
            weights[k, 1 : 1 + here.size], lags[k, 1 : 1 + here.size] = a.data[mine], here
            matrix[k, 1 : 1 + here.size] = [block[lag] for lag in here.tolist()] if per_lag else 0
        matrices = list(self.transition_.values()) if per_lag else [self.transition_]
        if not matrices:  # nothing was found: one that nobody asks
            matrices = [np.repeat(self.prior_[:, None], len(self.classes_), axis=1)]
        return weights, lags, matrix, np.column_stack([*matrices, self.prior_])

    def _rows(self, data: Data) -> tuple[Rows, Array, Array]:
        """The windows at the model's lags; and P (N, C + 1) and weights (K, s)."""
        weights, lags, matrix, P = self._slots()
        return data.rows(np.where(lags > 0, self.max_lag - lags, -1), matrix), P, weights

    def _loglik(self, data: Data) -> float:
        rows, P, weights = self._rows(data)
        with np.errstate(divide="ignore"):
            return rows.evaluate(P, weights).loglik

    def _windows(self, X: Any, lengths: Any) -> Data:
        check_is_fitted(self)
        codes, _ = encode(as_sequences(X, lengths), self.classes_)
        return windows(codes, len(self.classes_), self.max_lag, self.context)

    def score(self, X: Any, y: Any = None, *, lengths: Any = None) -> float:
        """Mean log-likelihood of a symbol given the max_lag before it, in nats; higher is better."""
        data = self._windows(X, lengths)
        return self._loglik(data) / data.n

    def score_codes(self, codes: Sequence[NDArray[np.int64]]) -> float:
        """``score`` of sequences of codes."""
        check_is_fitted(self)
        data = windows(codes, len(self.classes_), self.max_lag, self.context)
        return self._loglik(data) / data.n

    def perplexity(self, X: Any, *, lengths: Any = None) -> float:
        """exp(−score): among how many equally likely symbols the model hesitates."""
        return float(np.exp(-self.score(X, lengths=lengths)))

    def bic(self, X: Any, *, lengths: Any = None) -> float:
        """Bayesian information criterion on X; lower is better."""
        data = self._windows(X, lengths)
        return float(np.log(data.n)) * self.n_parameters_ - 2 * self._loglik(data)

    def aic(self, X: Any, *, lengths: Any = None) -> float:
        """Akaike's information criterion on X; lower is better."""
        return 2 * self.n_parameters_ - 2 * self._loglik(self._windows(X, lengths))

    def predict_proba(self, X: Any, *, lengths: Any = None) -> Array:
        """The law of the symbol that comes next: after each symbol of one sequence, or after the end of each of many.

        A lag that reaches back beyond the start, or to a missing symbol, contributes the law of all labels; so does everything
        where the current symbol is missing and chooses the lags.
        """
        check_is_fitted(self)
        sequences = as_sequences(X, lengths)
        codes, _ = encode(sequences, self.classes_)
        if sequences.many:
            return np.concatenate([self._laws(x[-self.max_lag :])[-1:] if x.size else self._laws(x) for x in codes])
        return np.concatenate([self._laws(x)[: x.size] for x in codes])

    def _laws(self, codes: NDArray[np.int64]) -> Array:
        """(n, N): after each symbol of a sequence; after none, the law of all labels."""
        weights, lags, matrix, P = self._slots()
        N, n = len(self.classes_), max(codes.size, 1)
        codes = codes if codes.size else np.array([-1])
        context = codes if self.context else np.zeros(n, np.int64)
        laws = np.zeros((n, N))
        for j in range(weights.shape[1]):
            lag, first = lags[context, j], N * matrix[context, j]
            at = np.arange(n) + 1 - lag
            source = np.where((lag > 0) & (at >= 0), codes[np.clip(at, 0, n - 1)], -1)
            column = np.where(source >= 0, first + source, P.shape[1] - 1)
            laws += weights[context, j][:, None] * P.T[column]
        laws[context < 0] = self.prior_
        return laws

    def predict(self, X: Any, *, lengths: Any = None) -> NDArray[Any]:
        """The most likely next symbol, for each row of ``predict_proba``."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X, lengths=lengths).argmax(axis=1)]

    def sample(self, length: int, *, start: Any = None, random_state: int | np.random.Generator = 0) -> NDArray[Any]:
        """Draw a sequence from the model.

        Parameters
        ----------
        length : how many symbols
        start : symbols to go on from, which are not part of the answer; without, independent draws from ``prior_``, and the first
            10·max_lag symbols that follow are thrown away
        random_state : a seed or a generator
        """
        from scb.kernels.sequence import continue_lags
        from scb.task.sampling import closed_cumulative, token_dtype

        check_is_fitted(self)
        if not isinstance(length, int | np.integer) or length < 0:
            raise ValueError(f"length = {length!r}: it must be an integer of at least 0")
        rng, N = np.random.default_rng(random_state), len(self.classes_)
        if start is None:
            before = rng.choice(N, size=self.max_lag, p=self.prior_ / self.prior_.sum())
            skipped = 10 * self.max_lag
        else:
            (before,), _ = encode(as_sequences(start), self.classes_)
            skipped = 0
            if before.size < self.max_lag or (before < 0).any():
                raise ValueError(f"start must hold at least max_lag = {self.max_lag} symbols, none of them missing")
        weights, lags, matrix, P = self._slots()
        tokens = np.empty(before.size + skipped + length, dtype=token_dtype(N))
        tokens[: before.size] = before
        first = np.where(lags > 0, N * matrix, P.shape[1] - 1)
        u = rng.random((skipped + length, 2))
        cumulative = closed_cumulative(weights.T), closed_cumulative(P)
        continue_lags(tokens, before.size, cumulative[0], lags.T, cumulative[1], first.T, u)
        return self.classes_[tokens[before.size + skipped :]]

    def plot_attention(self, ax: Axes | None = None) -> Axes:
        """A heat map of ``attention_``: contexts down, lags across; white where a lag has no weight."""
        from matplotlib import colormaps
        from matplotlib.colors import ListedColormap
        from matplotlib.figure import Figure

        check_is_fitted(self)
        attention = self.attention_.toarray()
        K, L = attention.shape
        if ax is None:
            size = (min(12.0, 1.8 + 0.32 * max(L, 6)), min(10.0, 1.3 + 0.3 * K))
            ax = Figure(figsize=size, layout="constrained").subplots()
        blues = ListedColormap(colormaps["Blues"](np.linspace(0.15, 1, 256)))
        shown = np.where(attention > 0, attention, np.nan)
        image = ax.imshow(shown, cmap=blues, vmin=0, vmax=1, aspect="auto", extent=(0.5, L + 0.5, K - 0.5, -0.5))
        ax.set(xlabel="lag: symbols before the one that is predicted", ylabel="current symbol" if self.context else "")
        contexts = [str(x) for x in self.classes_.tolist()] if self.context else ["all"]
        every = -(-K // 40)
        ax.set_yticks(range(0, K, every), contexts[::every])
        step = next(step for step in (1, 2, 5, 10, 20, 50, 100, L) if step >= min(L, L / 15))
        ax.set_xticks(sorted({1, *range(step, L + 1, step)}))
        if K * L <= 400:
            for k, j in np.argwhere(attention > 0):
                text = f"{attention[k, j]:.2f}".lstrip("0")
                colour = "white" if attention[k, j] > 0.55 else "black"
                ax.text(j + 1, k, text, color=colour, fontsize=6.5, ha="center", va="center")
        ax.figure.colorbar(image, ax=ax, label="weight", shrink=0.9)
        return ax

    # ------------------------------------------------------------------------------------------------- keeping it

    def save(self, path: str | Path) -> None:
        """Write the model to one file: arrays, and everything else as JSON in its header (safetensors; nothing is executed)."""
        from safetensors.numpy import save

        from scb.files import write_atomically
        from scb.provenance import versions

        check_is_fitted(self)
        classes = self.classes_
        arrays = {"attention": self.attention_.data, "stderr": self._stderr.data, "prior": self.prior_}
        arrays |= {"frequencies": self.frequencies_}
        arrays |= {
            "columns": self.attention_.indices.astype(np.int64),
            "bounds": self.attention_.indptr.astype(np.int64),
        }
        matrices = self.transition_ if isinstance(self.transition_, dict) else {0: self.transition_}
        arrays |= {f"transition.{lag}": np.ascontiguousarray(P) for lag, P in matrices.items()}
        lags = self.lags if isinstance(self.lags, str) else np.asarray(self.lags).tolist()
        facts: dict[str, Any] = {
            "parameters": self.get_params() | {"lags": lags, "max_lag": int(self.max_lag)},
            "classes": classes.tolist(),
            "kind": classes.dtype.str,
            "fit": {name: getattr(self, name) for name in _FACTS},
            "n_features_in": getattr(self, "n_features_in_", None),
        }
        header = {"format": FORMAT, "versions": versions()} | facts
        write_atomically(Path(path), save(arrays, {"scb": json.dumps(header)}))  # one entry: their order is not fixed

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote."""
        from safetensors import SafetensorError, safe_open
        from scipy.sparse import csr_array

        if not Path(path).is_file():
            raise FileNotFoundError(f"{path} is not there, or not a file")
        try:
            with safe_open(path, framework="numpy") as file:
                header = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(f"{path} is damaged, or not a saved model ({error})") from None
        if FORMAT not in header.get("scb", ""):
            raise ValueError(f"{path} holds no {cls.__name__}: it was written by something else")
        try:
            facts = json.loads(header["scb"])
            model = cls(**facts["parameters"])
            model.classes_ = np.array(facts["classes"], dtype=facts["kind"])
            shape = (len(arrays["bounds"]) - 1, model.max_lag)
            where = arrays["columns"], arrays["bounds"]
            model.attention_ = csr_array((arrays["attention"], *where), shape=shape)
            model._stderr = csr_array((arrays["stderr"], *where), shape=shape)
            model.prior_, model.frequencies_ = arrays["prior"], arrays["frequencies"]
            found = {int(n.split(".")[1]): P for n, P in sorted(arrays.items()) if n.startswith("transition.")}
            model.transition_ = dict(sorted(found.items())) if model.transition == "per_lag" else found[0]
            for name in _FACTS:
                setattr(model, name, facts["fit"][name])
            if facts["n_features_in"] is not None:
                model.n_features_in_ = facts["n_features_in"]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error!r}") from None
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


_FACTS = ("loglik_", "n_windows_", "n_parameters_", "n_iter_", "gap_", "converged_")


def _say(turn: int, lags: int, loglik: float) -> None:
    print(f"round {turn}: {lags} lags, log-likelihood {loglik:,.1f}", file=sys.stderr, flush=True)


def _columns_of(known: Known, found: LagFit, otherwise: Array, N: int) -> Array:
    """The known matrices in the places of those that were found."""
    if known.matrices is None or found.matrices is None:
        return known.P
    base = otherwise.copy()
    for b, t in enumerate(found.matrices):
        if t in known.matrices:
            at = known.matrices.index(t) * N
            base[:, b * N : (b + 1) * N] = known.P[:, at : at + N]
    return base
