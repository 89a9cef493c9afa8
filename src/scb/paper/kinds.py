"""The experiments of the paper as kinds of sweep: parameters are the fields of its job, and a row is the last one of its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property, partial
from typing import get_type_hints

import numpy as np

from scb.jobs.grid import Kind, Point
from scb.jobs.job import Rows
from scb.jobs.parameters import Parameters, checked
from scb.paper.experiments.experiment import ExperimentJob


@dataclass(frozen=True)
class ExperimentPoint(Point):
    """One job of an experiment at a point of a grid. It draws the samples that the experiment itself would draw."""

    experiment: type[ExperimentJob]

    @cached_property
    def job(self) -> ExperimentJob:
        """The job of the experiment; one that is not random has no replicates."""
        given = {name: tuple(v) if isinstance(v, list) else v for name, v in self.parameters.items()}
        if "replicate" in self.experiment.__dataclass_fields__:
            given["replicate"] = self.replicate
        return self.experiment(**given)

    @property
    def seed(self) -> int:
        """The seed of the experiment's job."""
        return self.job.seed

    @property
    def modules(self) -> tuple[str, ...]:
        """This module, and the one of the experiment."""
        return (__name__, self.experiment.__module__)

    def run(self) -> Rows:
        """The last row of what the job gives."""
        return {name: np.atleast_1d(values)[-1].item() for name, values in self.job.run().items()}


def experiment_kinds(experiments: Mapping[str, type[ExperimentJob]]) -> dict[str, Kind]:
    """A kind of sweep for each experiment; without [success], every run that is through is one."""
    return {
        name: Kind(
            name=name,
            metrics=None,
            success={},
            complete=partial(_complete, name, experiment),
            point=partial(ExperimentPoint, experiment=experiment),
        )
        for name, experiment in experiments.items()
    }


def _complete(name: str, experiment: type[ExperimentJob], given: Parameters) -> Parameters:
    """All fields of the job but the replicate, which the sweep counts."""
    hints = get_type_hints(experiment)
    parameters = [field for field in fields(experiment) if field.name != "replicate"]
    defaults = {field.name: field.default for field in parameters if field.default is not MISSING}
    found = checked(defaults | given, {field.name: hints[field.name] for field in parameters}, f"kind = {name!r}")
    for field in parameters:
        if field.name not in found:
            raise ValueError(f"kind = {name!r} needs {field.name!r}: it must be in [fixed] or in [grid]")
    return found
