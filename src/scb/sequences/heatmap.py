"""The attention of a lag model as a picture."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from scb.sequences.lag_model import LagModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW_CELLS = 400  # up to so many, weights are written into them
_MANY_CONTEXTS = 40  # labels along the side, at most


def attention_map(model: LagModel, ax: "Axes | None" = None) -> "Axes":
    """A heat map of the weights: contexts down, lags across; white where a lag has no weight."""
    attention = model.attention.toarray()
    contexts, lags = attention.shape
    if ax is None:
        size = min(12.0, 1.8 + 0.32 * max(lags, 6)), min(10.0, 1.3 + 0.3 * contexts)
        ax = Figure(figsize=size, layout="constrained").subplots()
    blues = ListedColormap(colormaps["Blues"](np.linspace(0.15, 1, 256)))
    shown = np.where(attention > 0, attention, np.nan)
    extent = (0.5, lags + 0.5, contexts - 0.5, -0.5)
    image = ax.imshow(shown, cmap=blues, vmin=0, vmax=1, aspect="auto", extent=extent)
    ax.set(xlabel="lag: symbols before the one that is predicted", ylabel="current symbol" if model.context else "")
    names = [str(x) for x in model.classes.tolist()] if model.context else ["all"]
    every = -(-contexts // _MANY_CONTEXTS)
    ax.set_yticks(range(0, contexts, every), names[::every])
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, lags) if step >= min(lags, lags / 15))
    ax.set_xticks(sorted({1, *range(step, lags + 1, step)}))
    if contexts * lags <= _FEW_CELLS:
        for k, j in np.argwhere(attention > 0):
            text = f"{attention[k, j]:.2f}".lstrip("0")
            colour = "white" if attention[k, j] > 0.55 else "black"
            ax.text(j + 1, k, text, color=colour, fontsize=6.5, ha="center", va="center")
    ax.figure.colorbar(image, ax=ax, label="weight", shrink=0.9)
    return ax
