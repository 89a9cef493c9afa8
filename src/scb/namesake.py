"""A warning if the other package called scb is installed, because the two packages share one folder
and one import name.

Our package is distributed as sparse-contextual-bigrams and imported as scb; the other package is
distributed as scb.
"""

import os
import sys


def warn_of_namesake() -> None:
    """Write a line to stderr if a package that is distributed as scb is installed too.

    Such a package is rare, so directories are merely listed, and metadata are read only where a
    name matches.
    """
    if any(_has_metadata(folder) for folder in sys.path):
        from importlib.metadata import distributions

        for found in distributions(name="scb"):
            # Before its name changed, this package was distributed as scb, and what an old
            # installation left behind is no other.
            if "Sparse Contextual Bigrams" not in (found.metadata["Summary"] or ""):
                print(
                    f"scb: another package called scb ({found.version}) is installed, and one of"
                    " the two overwrites the other:"
                    " pip uninstall scb, then install sparse-contextual-bigrams again",
                    file=sys.stderr,
                )
                return


def _has_metadata(folder: str) -> bool:
    """Whether a folder of the path has metadata of a distribution called scb; an archive or a
    missing folder has none.
    """
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return False
    return any(
        name.lower().startswith(("scb-", "scb.")) and name.endswith("-info") for name in names
    )
