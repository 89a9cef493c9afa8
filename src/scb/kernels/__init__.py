"""Compiled functions of arrays and scalars. A plain NumPy twin of each is in
``tests/truth/twins.py``.

``compiler`` compiles these functions, and ``threads`` runs one of them on several threads;
``random``, ``step`` and ``mixture`` hold them.
"""

from scb.lazy import lazily

__getattr__ = lazily(__name__)
