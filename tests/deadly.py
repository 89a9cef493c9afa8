"""A job that ends its process; in a module of its own, which processes that are started anew can import."""

import os
import signal
from dataclasses import dataclass
from typing import ClassVar

from scb.jobs.job import Job


@dataclass(frozen=True)
class Deadly(Job):
    """Ends its process, if it is the third one."""

    label: ClassVar = {"experiment": "deadly"}
    seconds: ClassVar = 5.0  # so that every job is a batch
    replicate: int

    def run(self):
        if self.replicate == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"value": self.replicate}
