"""An estimate of how long a slow fit will take, from a fit to a small part of the data."""

import warnings
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from scb.mixture.data import Data, Here

_LONG = 60.0  # seconds
# A part of the data is fitted first where samples times symbols are more than this
_LARGE = 5e6
_PART = 32  # one sample in so many


def warn_if_long(data: Data, fits: Sequence[Callable[[Data], Any]]) -> bool:
    """Whether the fits to all the data will take longer than a minute; if so, a warning is issued.

    The time grows at least as fast as the number of samples.
    """
    n = data.n_samples
    if n * data.N < _LARGE or not isinstance(data.executor, Here):
        return False
    part = data.thinned(n // _PART)
    began = perf_counter()
    for fit in fits:
        fit(part)
    seconds = (perf_counter() - began) * n / part.n_samples
    if seconds < _LONG:
        return False
    warnings.warn(
        f"this fit will take about {seconds / 60:.0f} minutes or longer: an interrupt (Ctrl-C) "
        "ends the search, and the model then has the lags found so far",
        stacklevel=4,
    )
    return True
