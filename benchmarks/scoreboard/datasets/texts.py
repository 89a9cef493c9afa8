"""Two texts of the Canterbury corpus, the last fifth held out: bits of each letter of it.

They are in Brotli's source distribution, which is read and not built. A letter is a byte.
"""

from functools import cache

import numpy as np

from chains import in_archive
from frame import Data, Problem

TITLE = "texts, last fifth held out"
LICENCE = "the texts are in the public domain (Carroll; Milton). Nothing is shipped"
JUDGE = "bits"
TEXTS = ("alice29", "plrabn12")
CASES = [{"text": text} for text in TEXTS]


@cache
def letters(text: str) -> tuple[np.ndarray, np.ndarray]:
    """A text as codes, and the letters that they stand for."""
    kinds, codes = np.unique(
        np.frombuffer(in_archive("brotli-*.tar.gz", rf"{text}\.txt")[0], np.uint8),
        return_inverse=True,
    )
    return codes, kinds


def load(text: str) -> Problem:
    """The first four fifths are learned from."""
    codes, kinds = letters(text)
    cut = len(codes) * 4 // 5
    return Problem(
        Data([codes[:cut]], symbols=len(kinds), max_lag=20), test=[codes[cut:]], kinds=kinds
    )
