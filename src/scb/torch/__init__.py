"""The bridge to PyTorch: fresh samples for any loop, Algorithm 1 as an optimiser, a standard
transformer, and ``probe``.

The bridge needs PyTorch, which scb itself does not need; ``pip install '.[torch]'`` in the clone
installs it.
"""

from scb.extras import install as _install

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"scb.torch needs PyTorch, which is not installed: {_install('torch')}"
    ) from error

from scb.torch.data import SampleStream, SequenceStream
from scb.torch.linear import Algorithm1, LinearAttention, follow
from scb.torch.probe_report import Probe
from scb.torch.probing import probe
from scb.torch.transformer import Transformer

__all__ = [
    "Algorithm1",
    "LinearAttention",
    "Probe",
    "SampleStream",
    "SequenceStream",
    "Transformer",
    "follow",
    "probe",
]
