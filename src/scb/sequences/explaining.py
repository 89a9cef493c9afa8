"""Explanations of where each symbol comes from: the exact posterior of its sources under a fitted
model, the bits that each lag is worth, and a display of both as coloured text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from scb.arrays import Array, Ints
from scb.sequences.coding import labels_among
from scb.sequences.lag_model import LagModel
from scb.sequences.matrix_pictures import plot_timeline
from scb.sequences.paired import paired_error
from scb.sequences.summary import text_table
from scb.sequences.symbols import readable
from scb.sequences.tables import Arrays, Codes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours of the lags that are worth most; all others are grey
_COLOURS: tuple[str, ...] = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_OTHERS = "#777777"


@dataclass(frozen=True, repr=False)
class Explanation:
    """The source of each symbol in the sequences, as ``SparseContextualBigram.explain`` returns it.

    Printing an explanation shows how many bits each lag is worth. In a notebook, an explanation is
    shown as text coloured by source.

    Attributes
    ----------
    symbols : list
        The symbols, in the order of the sequences; missing symbols are None.
    posterior : sparse (symbols, 1 + max_lag) array
        The probability that a symbol comes from each lag: column ℓ is for lag ℓ, column 0 for the
        background, and covariates have further columns. Each row sums to 1, except that the rows
        for symbols that are not predicted are empty. A lag that reaches a missing symbol counts as
        background.
    lag_bits : sparse (symbols, 1 + max_lag) array
        How many more bits a symbol would cost if the symbol at the lag were missing.
    bits : (symbols,) array
        The bits that each symbol costs, −log₂ of its probability; NaN for symbols that are not
        predicted.
    background_bits : (symbols,) array
        The bits that each symbol would cost under the background alone.
    sources : list of str
        The names of the columns: "background", "lag 1", …, and the names of covariates.
    separator : str
        The text between symbols when they are written out.

    Examples
    --------
    >>> import scb
    >>> x = scb.generate(scb.Task.random(N=3, T=5, sparsity=1, seed=0), 3000, seed=0)
    >>> reasons = scb.SparseContextualBigram(max_lag=6).fit(x).explain(x)
    >>> print(reasons)
    2,999 symbols of 0.4377 bits on average, 1.1292 fewer than under the background alone
    <BLANKLINE>
    source  share    bits             95 %
     lag 6  0.671  0.7607  0.6976 - 0.8238
     lag 4  0.328  0.3685  0.3397 - 0.3973
    >>> reasons.posterior.shape, reasons.posterior.sum(axis=1)[:3].round(12)
    ((3000, 7), array([0., 1., 1.]))
    >>> reasons.columns["lag"], reasons.to_html(most=100).count("<span")
    (array([6, 4]), 102)
    >>> reasons.plot().get_ylabel()
    'bits explained'
    """

    symbols: list[Any]
    posterior: csr_array
    lag_bits: csr_array
    bits: Array
    background_bits: Array
    sources: list[str]
    separator: str = " "

    @cached_property
    def columns(self) -> Arrays:
        """The value of each lag, in (lags,) arrays ``lag``, ``share``, ``bits``, ``low``, ``high``.

        ``share`` is the mean posterior probability of the lag over all predicted symbols. ``bits``
        is how many more bits a symbol costs on average if the symbol at the lag is missing; ``low``
        and ``high`` are the ends of the 95 % interval of this number. The most valuable lag is
        first.
        """
        there = ~np.isnan(self.bits)
        rows = []
        for lag in np.unique(self.lag_bits.indices).tolist():
            each = self.lag_bits[:, [lag]].toarray().ravel()[there]
            mean = float(each.mean())
            error = 1.96 * paired_error(each)
            share = float(self.posterior[:, [lag]].sum()) / there.sum()
            rows.append((lag, share, mean, mean - error, mean + error))
        rows.sort(key=lambda row: -row[2])
        names = ("lag", "share", "bits", "low", "high")
        return {name: np.array([row[i] for row in rows]) for i, name in enumerate(names)}

    def __str__(self) -> str:
        there = ~np.isnan(self.bits)
        bits = self.bits[there].mean()
        fewer = (self.background_bits - self.bits)[there].mean()
        about = (
            f"{there.sum():,} symbols of {bits:.4f} bits on average, {fewer:.4f} fewer than under"
            " the background alone"
        )
        worth = self.columns
        if not worth["lag"].size:
            return f"{about}: no lag is found"
        cells = {
            "source": [self.sources[lag] for lag in worth["lag"]],
            "share": [f"{x:.3f}" for x in worth["share"]],
            "bits": [f"{x:.4f}" for x in worth["bits"]],
            "95 %": [
                f"{low:.4f} - {high:.4f}"
                for low, high in zip(worth["low"], worth["high"], strict=True)
            ],
        }
        return "\n".join([about, "", *text_table(cells)])

    __repr__ = __str__

    def to_html(self, *, first: int = 0, most: int = 2000) -> str:
        """Write symbols as text, coloured by source.

        The colour of a symbol is that of its most probable lag; the more probable the lag, the
        stronger the colour. Symbols that come from the background have no colour. A tooltip shows
        each symbol's sources and bits.

        Parameters
        ----------
        first : int, default 0
            The first symbol to show.
        most : int, default 2000
            The number of symbols to show.

        Returns
        -------
        str
            A self-contained piece of HTML, with symbols escaped.
        """
        worth = self.columns
        colours = dict(zip(worth["lag"].tolist(), _COLOURS, strict=False))
        legend = [
            f'<span style="background:{_tinted(colour, 0.6)};padding:0 .3em">'
            f"{escape(self.sources[lag])}</span> {bits:.3f} bits"
            for (lag, colour), bits in zip(colours.items(), worth["bits"].tolist(), strict=False)
        ]
        if len(worth["lag"]) > len(colours):
            legend.append("other lags grey")
        shown = range(first, min(first + most, len(self.symbols)))
        text = self.separator.join(self._span(i, colours) for i in shown)
        style = "white-space:pre-wrap;overflow-wrap:anywhere;font-family:monospace;line-height:1.7"
        return f'<p>{" &nbsp; ".join(legend)}</p><div style="{style}">{text}</div>'

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Plot how many bits the lags explain at each point along the sequences.

        The grey area shows how many bits the model saves over the background alone. The lines show
        how many bits the most valuable lags save, in the same colours as in the text.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw in. By default a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the plot.
        """
        colours = dict(zip(self.columns["lag"].tolist(), _COLOURS, strict=False))
        predicted = ~np.isnan(self.bits)
        by_lag = {
            lag: np.where(predicted, self.lag_bits[:, [lag]].toarray().ravel(), np.nan)
            for lag in colours
        }
        named = {self.sources[lag]: values for lag, values in by_lag.items()}
        return plot_timeline(self.background_bits - self.bits, named, [*colours.values()], ax)

    def _span(self, i: int, colours: dict[int, str]) -> str:
        """A symbol, coloured and with its sources in a title."""
        symbol = self.symbols[i]
        written = str(symbol) if self.separator == "" else readable(symbol)
        row = slice(self.posterior.indptr[i], self.posterior.indptr[i + 1])
        sources = self.posterior.indices[row]
        shares = np.asarray(self.posterior.data[row], float)
        if symbol is None or not sources.size:
            return f'<span style="opacity:.5">{escape("·" if symbol is None else written)}</span>'
        order = np.argsort(-shares, kind="stable")
        parts = [f"{self.sources[sources[j]]} {shares[j]:.0%}" for j in order]
        title = f"{readable(symbol)}: {', '.join(parts)}; {self.bits[i]:.2f} bits"
        best = int(sources[order[0]])
        colour = (
            "" if best == 0 else _tinted(colours.get(best, _OTHERS), 0.7 * float(shares[order[0]]))
        )
        style = f' style="background:{colour}"' if colour else ""
        return f'<span title="{escape(title)}"{style}>{escape(written)}</span>'

    def _repr_html_(self) -> str:
        return self.to_html()


def _tinted(colour: str, strength: float) -> str:
    """A colour, the weaker the more transparent, so that text stays readable on light and dark
    backgrounds.
    """
    return f"{colour}{round(255 * strength):02x}"


def explain(
    model: LagModel,
    codes: Sequence[Codes],
    separator: str = " ",
    predicted: bool = False,
    beside: Ints | None = None,
) -> Explanation:
    """Explain the symbols of sequences, or the most likely symbols in their places. ``beside``
    (symbols, covariates) holds the codes of covariates.
    """
    rows = model.rows_of(model.windows(codes, beside))
    there = labels_among(codes)
    shown = np.concatenate(codes)
    if predicted:
        rows = replace(rows, label=rows.distributions(model.mixture).argmax(axis=1))
        shown[there] = rows.label
    symbols = np.array([*model.classes.tolist(), None], dtype=object)[shown].tolist()
    terms = rows.slot_terms(model.mixture)
    f = terms.sum(axis=1)
    given = rows.under_background(model.mixture)
    lags = model.lags_of(rows)
    without = f[:, None] - terms + model.mixture.q[rows.last] * given[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(lags > 0, np.log2(f[:, None] / without), 0.0)
        bits = {"bits": -np.log2(f), "background_bits": -np.log2(given)}
        shares = terms / f[:, None]
    places = np.flatnonzero(there)
    at_symbols = {name: np.full(there.size, np.nan) for name in bits}
    for name, values in bits.items():
        at_symbols[name][places] = values
    shape = there.size, 1 + model.shape.T
    at = np.repeat(places, terms.shape[1]), lags.ravel()
    return Explanation(
        symbols=symbols,
        posterior=_sparse(shares, at, shape),
        lag_bits=_sparse(worth, at, shape),
        sources=["background", *map(model.source_name, range(1, shape[1]))],
        separator=separator,
        **at_symbols,
    )


def _sparse(values: Array, at: tuple[Any, Any], shape: tuple[int, int]) -> csr_array:
    """Values at rows and columns, summed where they meet, without zeros."""
    table = csr_array((values.ravel(), at), shape=shape)
    table.eliminate_zeros()
    return table
