"""Types of the arrays that the fitter uses, in addition to ``Array`` for real numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Positions = NDArray[np.intp]
