"""The same two texts, learned as they are read.

Bits of each letter of the whole text, as a compressor counts them.
"""

from datasets.texts import CASES as CASES
from datasets.texts import LICENCE as LICENCE
from datasets.texts import letters
from frame import Data, Problem

TITLE = "texts, learned while reading"
JUDGE = "adaptive"


def load(text: str) -> Problem:
    """The whole text."""
    codes, kinds = letters(text)
    return Problem(Data([codes], symbols=len(kinds), max_lag=20), kinds=kinds)
