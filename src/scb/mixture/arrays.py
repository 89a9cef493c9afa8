"""Types of the arrays that the fitter passes around, besides ``Array`` of real numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Positions = NDArray[np.intp]
