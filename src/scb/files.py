"""Files that are written whole: after a crash there is the old content or the new, never half of one."""

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file at once: whoever reads it, after a crash too, sees the old content or the new."""
    partial = path.with_name(f"{path.name}.partial")
    with open(partial, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
