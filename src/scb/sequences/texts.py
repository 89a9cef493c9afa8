"""Sequences from text: characters, words, lines, symbols between separators, and FASTA."""

import warnings
from typing import Literal

from scb.inputs import InputError
from scb.sequences.tables import Sequences, chained, one_sequence

By = Literal["char", "word", "line"]
_NAMES = {"char": "characters", "word": "words", "line": "lines"}


def read_text(text: str, by: By, sep: str | None) -> Sequences:
    """Read a text as one sequence, or as one per line if symbols are separated."""
    if sep is not None:
        return _separated(text, unescaped(sep) if sep else "")
    flat = {"char": lambda: list(text), "word": text.split, "line": text.splitlines}[by]()
    if not flat:
        raise InputError("it is empty")
    said = f"text as one sequence of {_NAMES[by]}"
    if by != "char":
        return one_sequence(flat, said=said)
    _warn_of_lines(text)
    said += " (the options by and sep change that)"
    return one_sequence(flat, said=said, separator="")


def _separated(text: str, sep: str) -> Sequences:
    """A sequence in each line that is not blank."""
    whole = [line for line in text.splitlines() if line.strip()]
    if sep:
        lines = [[cell.strip() or None for cell in line.split(sep)] for line in whole]
        said = f"symbols between {sep!r}"
    else:
        lines = [list(line) for line in whole]
        said = "characters"
    if not lines:
        raise InputError("it is empty")
    said += f"; each of the {len(lines):,} lines is a sequence"
    return chained(lines, many=len(lines) > 1, said=said, separator=" " if sep else "")


def read_fasta(text: str) -> Sequences:
    """The sequences of a FASTA file: the characters between one line with > and a name and the
    next.
    """
    names: list[str] = []
    sequences: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith(">"):
            names.append(line[1:].strip().partition(" ")[0])
            sequences.append([])
        elif line.strip() and not line.startswith(";"):
            if not names:
                raise InputError("it does not begin with > and a name, as FASTA does")
            sequences[-1] += line.strip()
    if not any(sequences):
        raise InputError("it holds no sequence")
    said = f"FASTA, {len(names):,} sequences of characters"
    return chained(sequences, said=said, names=names, separator="")


def unescaped(sep: str) -> str:
    """A separator with its escapes replaced: a shell passes \\t as two characters."""
    try:
        text = sep.encode("latin-1", "backslashreplace").decode("unicode_escape")
        text.encode()  # fails for half of a surrogate pair
    except UnicodeError:
        raise InputError(
            f"sep = {sep!r}: it must be characters, or an escape such as \\t"
        ) from None
    if not text:
        raise InputError("sep is empty: it must be at least one character")
    return text


def _warn_of_lines(text: str) -> None:
    """Warn of a text that is read by character and looks as if it were made of other symbols."""
    lines = [line for line in text.splitlines() if line.strip()]
    kinds = set(lines)
    if text.startswith(">"):
        advice = "it begins with > as FASTA does: kind='fasta' (--kind fasta) reads it as FASTA"
    elif len(lines) >= 10 and 2 * len(kinds) <= len(lines) and not any(" " in x for x in kinds):
        advice = (
            f"its {len(lines):,} lines are of only {len(kinds):,} kinds: by='line' (--by line) "
            "reads each line as a symbol"
        )
    elif len(lines) >= 2 and "," in text and len({x.count(",") for x in lines}) == 1:
        advice = (
            "all of its lines have the same number of commas: sep=',' (--sep ,) reads the "
            "symbols between commas, and kind='csv' (--kind csv) reads columns"
        )
    elif len(lines) >= 2 and len({len(x) for x in lines}) == 1:
        advice = "its lines have the same length: sep='' (--sep \"\") reads each line as a sequence"
    else:
        return
    warnings.warn(f"the text is read as characters, but {advice}", stacklevel=2)
