"""``scb sample`` draws symbols from a fitted model."""

import sys
from pathlib import Path

import tyro

from scb.cli.terminal import visible
from scb.inputs import InputError


def sample(
    model: tyro.conf.Positional[Path],
    length: int = 400,
    seed: int = 0,
    separator: str | None = None,
) -> None:
    """Draw a sequence from a fitted model and print it.

    - One symbol per line: scb sample runs/fit --separator '\\n' --length 100000 > new.txt

    Args:
        model: Directory that 'scb fit' wrote, or a saved model.
        length: Number of symbols to draw.
        seed: Seed of the random numbers.
        separator: Text between two symbols. By default, there is none between the characters of a
            text, and a space between other symbols.
    """
    from scb.sequences.fit_folder import read_fit

    fit = read_fit(model)
    between = fit.separator
    if separator is not None:
        between = separator.replace("\\n", "\n").replace("\\t", "\t")
    symbols = fit.model.sample(length, random_state=seed).tolist()
    text = between.join(str(symbol) for symbol in symbols) + "\n"
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError as error:
        # Other commands show a ? in its place; here it would be another symbol
        raise InputError(
            f"{text[error.start]!r} cannot be written as {error.encoding}: set PYTHONUTF8=1"
        ) from None
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
