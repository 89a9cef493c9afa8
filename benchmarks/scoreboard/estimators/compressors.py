"""Compressors that everybody has, and two that pip installs (pyppmd and zpaq)."""

import bz2
import lzma
import platform

from frame import Compressor


class Bzip2(Compressor):
    """bzip2 -9."""

    name, version = "bzip2", f"Python {platform.python_version()}"

    def size(self, text: bytes) -> int:
        """The bytes of the compressed text."""
        return len(bz2.compress(text, 9))


class Xz(Compressor):
    """xz -9e."""

    name, version = "xz", f"Python {platform.python_version()}"

    def size(self, text: bytes) -> int:
        """The bytes of the compressed text."""
        return len(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


class Ppmd(Compressor):
    """PPMd, variant H, order 6."""

    name, version = "PPMd", "pyppmd 1.3"

    def size(self, text: bytes) -> int:
        """The bytes of the compressed text."""
        import pyppmd  # pyright: ignore[reportMissingImports]

        return len(pyppmd.compress(text, max_order=6, mem_size=64 << 20, variant="H"))


class Zpaq(Compressor):
    """zpaq, method 5: a mixture of context models."""

    name, version = "zpaq", "zpaq 0.3"

    def size(self, text: bytes) -> int:
        """The bytes of the compressed text."""
        import zpaq  # pyright: ignore[reportMissingImports]

        return len(zpaq.compress(text, 5, threads=1, hints=False))


ESTIMATORS = (Bzip2, Xz, Ppmd, Zpaq)
