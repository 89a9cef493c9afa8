"""Tidy tables and their statistics; jobs return such tables, and figures and claims read them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Column name → array, all of one length
Table = dict[str, NDArray[Any]]


def concatenate(tables: Sequence[Table]) -> Table:
    """Join tables by putting their rows one after another.

    Parameters
    ----------
    tables : list of dict of (rows,) arrays
        Tables with the same columns.

    Returns
    -------
    dict of (rows,) arrays

    Examples
    --------
    >>> import numpy as np
    >>> from scb.jobs.table import concatenate
    >>> concatenate([{"T": np.array([1])}, {"T": np.array([2])}])
    {'T': array([1, 2])}
    """
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def pick(table: Table, **equal: Any) -> Table:
    """Select the rows in which columns have the given values.

    Parameters
    ----------
    table : dict of (rows,) arrays
        The columns by name.
    **equal : Any
        The value of each column.

    Returns
    -------
    dict of (rows,) arrays

    Examples
    --------
    >>> import numpy as np
    >>> from scb.jobs.table import pick
    >>> table = {"T": np.array([10, 10, 20]), "error": np.array([1.0, 3.0, 0.5])}
    >>> pick(table, T=10)["error"]
    array([1., 3.])
    """
    mask = np.ones(len(next(iter(table.values()))), dtype=bool)
    for name, value in equal.items():
        mask &= table[name] == value
    return where(table, mask)


def where(table: Table, chosen: NDArray[Any]) -> Table:
    """Return the rows that a mask or an array of indices selects.

    Parameters
    ----------
    table : dict of (rows,) arrays
        The columns by name.
    chosen : (rows,) array of bool, or (n,) array of int
        The mask or the indices.

    Returns
    -------
    dict of (rows,) arrays

    Examples
    --------
    >>> import numpy as np
    >>> from scb.jobs.table import where
    >>> table = {"T": np.array([10, 10, 20]), "error": np.array([1.0, 3.0, 0.5])}
    >>> where(table, table["error"] > 0.6)["T"]
    array([10, 10])
    """
    return {name: column[chosen] for name, column in table.items()}


def at(table: Table, step: int | None = None) -> Table:
    """Select one row from each replicate: the last row at or before a step.

    Parameters
    ----------
    table : dict of (rows,) arrays
        The columns by name, including ``replicate`` and ``step``.
    step : int, optional
        The step. By default, the last of all rows of the replicate is chosen.

    Returns
    -------
    dict of (rows,) arrays

    Examples
    --------
    >>> import numpy as np
    >>> from scb.jobs.table import at
    >>> runs = {"replicate": np.array([0, 0, 1]), "step": np.array([5, 9, 5])}
    >>> at(runs, 8)["step"], at(runs)["step"]
    (array([5, 5]), array([9, 5]))
    """
    chosen = []
    for replicate in np.unique(table["replicate"]):
        mine = np.flatnonzero(table["replicate"] == replicate)
        if step is not None:
            mine = mine[table["step"][mine] <= step]
        chosen.append(mine[np.argmax(table["step"][mine])])
    return where(table, np.array(chosen))


def by_value(
    table: Table, x: str, y: str, statistic: Callable[..., Any] = np.median
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute a statistic of one column for each value of another column.

    Parameters
    ----------
    table : dict of (rows,) arrays
        The columns by name.
    x, y : str
        The names of the column that is varied and of the column that is summarised.
    statistic : callable, default np.median
        A function from an array with one axis to a number.

    Returns
    -------
    tuple of (values,) arrays
        The values of x in ascending order, and the statistic of y at each value.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.jobs.table import by_value
    >>> table = {"T": np.array([10, 10, 20]), "error": np.array([1.0, 3.0, 0.5])}
    >>> by_value(table, "T", "error")
    (array([10, 20]), array([2. , 0.5]))
    """
    xs = np.unique(table[x])
    return xs, np.array([statistic(table[y][table[x] == value]) for value in xs])


def quartiles(table: Table, x: str, y: str) -> tuple[NDArray[Any], ...]:
    """Compute the three quartiles of one column for each value of another column.

    Parameters
    ----------
    table : dict of (rows,) arrays
        The columns by name.
    x, y : str
        The names of the column that is varied and of the column that is summarised.

    Returns
    -------
    tuple of (values,) arrays
        The values of x in ascending order, and the three quartiles of y at each value.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.jobs.table import quartiles
    >>> table = {"T": np.array([10, 10, 20]), "error": np.array([1.0, 3.0, 0.5])}
    >>> quartiles(table, "T", "error")[2]
    array([2. , 0.5])
    """
    xs, found = by_value(table, x, y, lambda ys: np.percentile(ys, (25, 50, 75)))
    return xs, *found.T


def values(table: Table, name: str) -> list[Any]:
    """List the distinct values of a column in the order in which they first appear.

    Parameters
    ----------
    table : dict of (rows,) arrays
        The columns by name.
    name : str
        The name of the column.

    Returns
    -------
    list

    Examples
    --------
    >>> import numpy as np
    >>> from scb.jobs.table import values
    >>> table = {"T": np.array([10, 10, 20]), "error": np.array([1.0, 3.0, 0.5])}
    >>> values(table, "T")
    [10, 20]
    """
    return list(dict.fromkeys(table[name].tolist()))


def groups(table: Table, *names: str) -> Iterator[tuple[Any, ...]]:
    """Divide the rows of a table by the values of one or more columns.

    Parameters
    ----------
    table : dict of (rows,) arrays
        The columns by name.
    *names : str
        The names of the columns.

    Returns
    -------
    iterator of tuple
        For each combination of values, in the order in which they first appear: the values, and
        the table of the rows that have them.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.jobs.table import groups
    >>> table = {"T": np.array([10, 10, 20]), "error": np.array([1.0, 3.0, 0.5])}
    >>> {T: float(rows["error"].max()) for T, rows in groups(table, "T")}
    {10: 3.0, 20: 0.5}
    """
    columns = (table[name].tolist() for name in names)
    for found in dict.fromkeys(zip(*columns, strict=True)):
        yield *found, pick(table, **dict(zip(names, found, strict=True)))


def replicates(table: Table) -> int:
    """Count the random tasks in a table.

    Parameters
    ----------
    table : dict of (rows,) arrays
        The columns by name, including ``replicate``.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> from scb.jobs.table import replicates
    >>> replicates({"replicate": np.array([0, 0, 1])})
    2
    """
    return len(np.unique(table["replicate"]))


def wilson(
    successes: NDArray[Any], trials: NDArray[Any], z: float = 1.96
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compute Wilson's interval for probabilities.

    Parameters
    ----------
    successes, trials : number or (n,) array
        The number of successes, and the number of trials.
    z : float, default 1.96
        The half width in standard errors; 1.96 gives a 95 % interval.

    Returns
    -------
    tuple of (n,) arrays
        The lower and the upper ends of the intervals; 0 and 1 where there were no trials.

    Examples
    --------
    >>> import numpy as np
    >>> from scb.jobs.table import wilson
    >>> low, high = wilson(np.array(45), np.array(50))
    >>> f"{low:.2f} to {high:.2f}"
    '0.79 to 0.96'
    """
    n = np.asarray(trials, dtype=float)
    scale = n + z * z
    middle = (successes + z * z / 2) / scale
    with np.errstate(divide="ignore", invalid="ignore"):
        half = (
            z / scale * np.sqrt(np.where(n > 0, successes * (n - successes) / n, 0.0) + z * z / 4)
        )
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)
