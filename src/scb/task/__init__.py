"""The task, which consists of P, μ and a sparse Q; the paper's assumptions, random chains, and
samples.
"""

from scb.lazy import lazily
from scb.task.task import ENSEMBLES, Ensemble, Seed, Task, generator

__all__ = ["ENSEMBLES", "Ensemble", "Seed", "Task", "generator"]

__getattr__ = lazily(__name__)
