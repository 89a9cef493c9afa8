"""Types of arrays: of real numbers, and of anything else that the library holds in them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
AnyArray = NDArray[Any]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Positions = NDArray[np.intp]
