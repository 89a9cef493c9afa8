"""The names that the reference lists, by heading: read from the package alone, so that tests can ask without Sphinx."""

import ast
import inspect
import pkgutil
import pydoc
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from typing import Any, get_args

import scb
from scb import geometry, metrics, theory
from scb.training import recipes

SCB = scb.__path__[0]
OWN = (  # what one takes to write a source, a rule, a recipe, a sweep or a claim of one's own
    "scb.model.batch_gradient",
    "scb.training.sources.GradientSource",
    "scb.training.sources.sampled.Reference",
    "scb.training.sources.sampled.Fresh",
    "scb.training.updates.precondition_V",
    "scb.training.updates.precondition_A",
    "scb.training.updates.soft_threshold",
    "scb.training.stages.proximal_step",
    "scb.training.starts.UniformAttention",
    "scb.training.starts.GivenStart",
    "scb.training.starts.random_start",
    "scb.training.roundings.ResolveSign",
    "scb.jobs.job.Job",
    "scb.jobs.job.random_task",
    "scb.jobs.job.seed_of",
    *(
        f"scb.jobs.table.{name}"
        for name in (
            "pick",
            "where",
            "at",
            "values",
            "groups",
            "by_value",
            "quartiles",
            "replicates",
            "wilson",
            "concatenate",
        )
    ),
    "scb.jobs.table_file.write_table",
    "scb.training.roundings.ThresholdProject",
    "scb.training.roundings.ThresholdNormalize",
    "scb.training.simulation.simulate",
    "scb.training.sources.sampled.Dataset",
    "scb.task.sampling.step_keys",
    "scb.task.chains.random_transition",
    "scb.geometry.lines.signal_V",
    "scb.jobs.shipped.write_shipped",
    "scb.jobs.shipped.read_shipped",
    "scb.files.write_atomically",
    *(
        f"scb.drawing.{name}"
        for name in (
            "panels",
            "grid",
            "narrow",
            "label_outer",
            "look",
            "star_marker",
            "band",
            "mark",
            "caption",
            "save",
        )
    ),
    "scb.folders.opened",
    "scb.sequences.fit_folder.write_fit",
    "scb.sequences.fit_folder.write_tables",
    "scb.sequences.fit_folder.read_fit",
    "scb.picture.strip_picture",
    "scb.provenance.versions",
    "scb.provenance.machine",
    "scb.paper.claims.claim.Claim",
    "scb.paper.outcome.Outcome",
    "scb.paper.outcome.Verdict",
    "scb.paper.outcome.at_least",
    "scb.paper.outcome.at_most",
    "scb.paper.numbers.Number",
    "scb.paper.numbers.share",
    "scb.paper.numbers.spread",
    "scb.paper.numbers.span",
    "scb.paper.numbers.middle",
    "scb.paper.numbers.average",
)
COMMANDS = (  # what the commands are made of
    "scb.extras.MissingExtraError",
    "scb.extras.require",
    "scb.files.WriteError",
    "scb.files.prepare_file",
    "scb.inputs.integer",
    "scb.inputs.one_of",
    "scb.jobs.forecast.Forecast",
    "scb.jobs.forecast.crowding",
    "scb.jobs.shipped.copy_shipped",
    "scb.jobs.shipped.shipped",
    "scb.jobs.store.Cache",
    "scb.jobs.workers.workers",
    "scb.paper.kinds.experiment_kinds",
    "scb.paper.reproduction.choose_figures",
    "scb.paper.reproduction.make_figures",
    "scb.paper.results.write_results",
    "scb.sweeps.grid.Kind",
    "scb.sweeps.grid.Sweep",
    "scb.sweeps.grid.in_words",
    "scb.sweeps.kinds.kind_of",
    "scb.sweeps.phase.phase",
    "scb.sweeps.phase.phases",
    "scb.sweeps.run.run_sweep",
    "scb.sweeps.run.sweep_state",
    "scb.lab.scenes",
    "scb.lab.write_page",
    "scb.training.benchmark.compare",
    "scb.training.directory.prepared",
    "scb.training.directory.train_in",
    "scb.training.run_summary.curves",
    "scb.training.settings.TrainingSettings",
    "scb.training.settings.load_run",
    "scb.training.settings.parse_option",
    "scb.training.verdict.by_truth",
    "scb.training.warm_up.compile_kernels",
)
WITHIN = ("scb.mixture.recovered.StandardErrors",)  # parts of what is returned, with parts of their own


def api_groups() -> dict[str, list[str]]:
    """Heading → full names."""
    groups = {
        "scb": full_names("scb", scb.__all__),
        "scb.recipes": [name for name in full_names(recipes.__name__, recipes.__all__) if last(name) not in scb.__all__],
        "scb.metrics": [name for name in full_names(metrics.__name__, metrics.__all__) if last(name) not in scb.__all__],
        "scb.geometry": full_names(geometry.__name__, geometry.__all__),
    }
    for _, module, _ in pkgutil.iter_modules(theory.__path__, f"{theory.__name__}."):
        groups[module] = [name for name in defined(module) if last(name) not in scb.__all__]
    groups["For parts of your own"] = list(OWN)
    groups["For commands of your own"] = list(COMMANDS)
    groups["What these return"] = sorted([*returned([name for group in groups.values() for name in group]), *WITHIN])
    groups["scb.torch"] = torch_names()
    return groups


def last(name: str) -> str:
    """What stands after the last dot."""
    return name.rpartition(".")[2]


def full_names(module: str, names: list[str]) -> list[str]:
    """Of the names that a module lists, its functions and classes."""
    values = {name: getattr(import_module(module), name) for name in names}
    return [f"{module}.{name}" for name, value in values.items() if inspect.isroutine(value) or inspect.isclass(value)]


def defined(module: str) -> list[str]:
    """Public functions and classes that a module defines, in the order of its file."""
    tree = ast.parse(inspect.getsource(import_module(module)))
    found = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [f"{module}.{name}" for name in found if not name.startswith("_")]


def torch_names() -> list[str]:
    """What ``scb.torch`` lists; read from its file, for PyTorch may not be installed."""
    with open(f"{SCB}/torch/__init__.py", encoding="utf-8") as file:
        tree = ast.parse(file.read())
    names = next(node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    return [f"scb.torch.{name}" for name in ast.literal_eval(names)]


def returned(names: list[str]) -> list[str]:
    """Classes of scb that functions, methods and properties say that they return, and that are not listed themselves.

    What the methods of these return is listed as well.
    """
    listed = [pydoc.locate(name) for name in names]
    found: list[type] = []
    waiting = list(listed)
    while waiting:
        thing = waiting.pop()
        annotations = [inspect.signature(function).return_annotation for function in functions_of(thing)]
        annotations += getattr(thing, "__orig_bases__", ())  # the values of a dict[str, Assumption]
        for given in chain.from_iterable(map(classes_in, annotations)):
            if given.__module__.startswith("scb.") and not given.__name__.startswith("_") and given not in [*listed, *found]:
                found.append(given)
                waiting.append(given)
    return sorted(f"{given.__module__}.{given.__name__}" for given in found)


def classes_in(annotation: Any) -> list[type]:
    """The classes that an annotation names: of ``list[Stage] | None``, list and Stage."""
    inner = chain.from_iterable(map(classes_in, get_args(annotation)))
    return [*([annotation] if inspect.isclass(annotation) else []), *inner]


def functions_of(thing: Any) -> Iterator[Any]:
    """A function itself; of a class its public methods and the functions behind its properties."""
    if inspect.isfunction(thing):
        yield thing
    elif inspect.isclass(thing):
        for name, member in inspect.getmembers_static(thing):
            for attribute in ("__func__", "fget", "func"):
                member = getattr(member, attribute, member)
            if inspect.isfunction(member) and not name.startswith("_"):
                yield member
