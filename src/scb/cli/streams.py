"""Output streams that never raise when they are closed or full, so a long run is not lost to
``| head``.
"""

import io
import os
import sys
from typing import Any, TextIO


class Output(io.FileIO):
    """A file that keeps its first error and drops everything after it."""

    lost: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write the data, or drop them after an error."""
        if self.lost is None:
            try:
                return super().write(data)
            except OSError as error:
                self.lost = error
        return memoryview(data).nbytes

    def reported_loss(self) -> OSError | None:
        """Return the error, unless the reader has merely closed the output."""
        return None if isinstance(self.lost, BrokenPipeError) else self.lost


def replace_streams() -> Output | None:
    """Make stdout and stderr streams to which printing never fails; return what stdout writes to,
    unless it has been replaced.
    """
    output = None
    if sys.stdout is sys.__stdout__:
        sys.stdout, output = _lasting(sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr, _ = _lasting(sys.stderr)
    return output


def _lasting(stream: TextIO | None) -> tuple[TextIO, Output]:
    """A stream in the place of one that may be closed; a character that it cannot show becomes a
    question mark.
    """
    if not isinstance(stream, io.TextIOWrapper):
        output = Output(os.open(os.devnull, os.O_WRONLY), "w")
        return io.TextIOWrapper(
            io.BufferedWriter(output), encoding="utf-8", errors="replace"
        ), output
    output = Output(stream.fileno(), "w", closefd=False)
    lines = stream.line_buffering or stream.write_through
    encoding = stream.encoding
    if not isinstance(getattr(stream.buffer, "raw", stream.buffer), io.FileIO):
        # A console of Windows, which takes text from Python but bytes in an encoding of its own.
        encoding = os.device_encoding(stream.fileno()) or encoding
    return io.TextIOWrapper(
        io.BufferedWriter(output), encoding, errors="replace", line_buffering=lines
    ), output
