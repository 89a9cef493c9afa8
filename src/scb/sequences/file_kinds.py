"""What a file of sequences is: its kind by its ending, gzip, and standard input."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Literal

from scb.files import open_regular
from scb.inputs import InputError

Kind = Literal["csv", "tsv", "parquet", "jsonl", "json", "fasta", "text"]
# Ending → kind; a file with any other ending is text
ENDINGS: dict[str, Kind] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".fasta": "fasta",
    ".fa": "fasta",
    ".fna": "fasta",
    ".faa": "fasta",
}
# The kinds that are tables
TABLES = ("csv", "tsv", "parquet", "jsonl", "json")
# In the place of a path: standard input
STDIN = "-"


def kind_of(path: Path) -> Kind:
    """The kind of a file by its ending; a further .gz means only that the file is compressed."""
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return ENDINGS.get(name.suffix.lower(), "text")


@contextmanager
def opened_bytes(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed if the file is gzip, regardless of its name."""
    with BytesIO(sys.stdin.buffer.read()) if str(path) == STDIN else open_regular(path) as file:
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        yield BytesIO(_decompressed(path, file)) if compressed else file


def _decompressed(path: Path, file: BinaryIO) -> bytes:
    try:
        return gzip.decompress(file.read())
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{path} cannot be decompressed: {error}") from None
