"""Flip one byte of one file, of any kind, and read it: the answer is what was written, or an error of ours."""

import random
import shutil
import warnings
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from scb.inputs import DamagedFileError, InputError
from torture.things import THINGS


@cache
def written(name: str) -> tuple[Path, Path, bytes, str]:
    """A folder with a thing, its file, the content, and what is read from it."""
    folder = Path(mkdtemp(prefix="scb-flips-"))
    thing = THINGS[name]
    thing.write(folder, 0)
    file = next(iter(sorted(folder.glob(thing.file))))
    return folder, file, file.read_bytes(), thing.read(folder)


def clean() -> None:
    """Remove what ``written`` made."""
    for name in THINGS:
        shutil.rmtree(written(name)[0], ignore_errors=True)
    written.cache_clear()


def places() -> list[tuple[str, int]]:
    """Every byte of every kind of file."""
    return [(name, place) for name in THINGS for place in range(len(written(name)[2]))]


def case(seed: int) -> str:
    """One flipped byte: "right" or "refused" are fine, anything else is a finding."""
    rng = random.Random(f"flips {seed}")
    name = rng.choice(list(THINGS))
    folder, file, content, truth = written(name)
    place = rng.randrange(len(content))
    return flip(name, folder, file, content, truth, place, rng.randrange(1, 256))


def flip(name: str, folder: Path, file: Path, content: bytes, truth: str, place: int, by: int) -> str:
    """The verdict on one byte xor ``by``; the file is whole again afterwards."""
    file.write_bytes(content[:place] + bytes([content[place] ^ by]) + content[place + 1 :])
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = THINGS[name].read(folder)
        if found == truth:
            return "right"
        return f"warned and wrong: {name} byte {place} xor {by}" if said else f"SILENTLY WRONG: {name} byte {place} xor {by}"
    except (DamagedFileError, InputError):
        return "refused"
    except Exception as error:
        return f"FOREIGN {type(error).__name__}: {name} byte {place} xor {by}: {error}"
    finally:
        file.write_bytes(content)
