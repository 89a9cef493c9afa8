"""The bridge to PyTorch: fresh samples for any loop, Algorithm 1 as an optimiser, a standard transformer, and ``probe``.

It wants PyTorch, which scb itself does not: ``pip install 'scb[torch]'``.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("scb.torch wants PyTorch, which is not installed: pip install 'scb[torch]'") from error

from scb.torch.data import Sequences, Stream
from scb.torch.linear import Algorithm1, LinearAttention, follow
from scb.torch.probing import Probe, probe
from scb.torch.transformer import Transformer

__all__ = ["Algorithm1", "LinearAttention", "Probe", "Sequences", "Stream", "Transformer", "follow", "probe"]
