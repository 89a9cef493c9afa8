"""Tables of made-up runs, to feed to claims."""

import numpy as np

from scb.paper.rows import joined

RENAMED = {
    "larger": "proximal, larger λ",
    "largest": "proximal, largest λ",
    "slow": "SGD, small η₂'",
    "settled": "proximal, sign settled",
    "sgd_settled": "SGD, sign settled",
}


def runs(steps=(400, 700, 1000), replicates=40, facts=None, **methods):
    """A table of runs: method → column → value, or one value a step; ``facts`` are columns with one value."""
    rows = [
        (RENAMED.get(method, method), i, s, given) for method, given in methods.items() for i in range(replicates) for s in steps
    ]
    columns = {name for *_, given in rows for name in given}
    table = {name: np.array([np.broadcast_to(g[name], len(steps))[steps.index(s)] for *_, s, g in rows]) for name in columns}
    table |= {name: np.full(len(rows), value) for name, value in (facts or {}).items()}
    places = {name: np.array([row[i] for row in rows]) for i, name in enumerate(("method", "replicate", "step"))}
    return table | places


def mixed(good, bad, **methods):
    """A table of tasks with the right sign and of others; columns are (value with the right sign, value with the wrong one)."""
    one, other = ({m: {x: v[i] for x, v in given.items()} for m, given in methods.items()} for i in (0, 1))
    left = runs(replicates=good, **one)
    if bad == 0:
        return left
    right = runs(replicates=bad, **other)
    return joined(left, right | {"replicate": right["replicate"] + good})
