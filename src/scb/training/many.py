"""Training of many runs at once."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba

from scb.inputs import InputError, integer
from scb.kernels.compiler import plain_interrupts
from scb.kernels.threads import thread_count
from scb.model import LinearTransformer
from scb.task import Task
from scb.training.arguments import Device, check_judge, check_kinds
from scb.training.cuda import Cuda
from scb.training.evaluations import Evaluations
from scb.training.fingerprint import made_by
from scb.training.loop import advanced, asked, choose_engine, first, judged, train
from scb.training.recipes.recipe import Recipe
from scb.training.run import Run


@plain_interrupts()
def train_many(
    tasks: Task | Sequence[Task],
    recipes: Recipe | Sequence[Recipe],
    seeds: int | Sequence[int] = 0,
    *,
    device: Device = "cpu",
    every: int = 10,
    judge: bool | None = None,
    judge_samples: int | None = None,
) -> list[Run]:
    """Train on several tasks, or with several recipes or seeds, side by side.

    Each run equals, to the last bit, the run that ``scb.train`` returns for its task, recipe and
    seed. On a GPU, runs with equal batch sizes take their steps together, which saves time when
    steps are small. On a CPU, each thread trains one run at a time.

    Parameters
    ----------
    tasks : Task or list of Task
        The task of each run. On a GPU, all tasks must have the same N, T and sparsity.
    recipes : Recipe or list of Recipe
        The recipe of each run.
    seeds : int or list of int, default 0
        The seed of each run. A single task, recipe or seed is used for all runs.
    device : {"cpu", "cuda"}, default "cpu"
        The device on which to compute.
    every : int, default 10
        The number of steps between two evaluations.
    judge : bool, optional
        Whether to test the results on held-out samples, as in ``scb.train``.
    judge_samples : int, optional
        The number of held-out samples, as in ``scb.train``.

    Returns
    -------
    list of Run

    Examples
    --------
    >>> import scb
    >>> tasks = [scb.Task.random(N=3, T=40, sparsity=2, seed=seed) for seed in range(3)]
    >>> recipes = [scb.recipes.tuned(task) for task in tasks]
    >>> runs = scb.train_many(tasks, recipes)
    >>> [run.verdict for run in runs]
    ['learned', 'learned', 'learned']
    >>> alone = scb.train(tasks[2], recipes[2])
    >>> bool((alone.A == runs[2].A).all())
    True
    """
    every = integer("every", every, low=1)
    judge_samples = check_judge(judge, judge_samples)
    wanted = []
    for task, recipe, seed in _rows(tasks=tasks, recipes=recipes, seeds=seeds):
        check_kinds(task, recipe, None, device)
        if recipe.transformer is not LinearTransformer:
            choose_engine(task, recipe, device, None)  # raises an error where it cannot be used
        wanted.append((task, recipe, integer("seed", seed, low=0)))
    options = {"every": every, "judge": judge, "judge_samples": judge_samples}
    if device == "cpu":
        return _on_threads(wanted, options)
    shapes = sorted({(task.N, task.T, task.sparsity) for task, _, _ in wanted})
    if len(shapes) > 1:
        raise InputError(
            f"tasks have (N, T, sparsity) = {shapes[0]} and {shapes[1]}: on a GPU all must be equal"
        )
    return _on_gpu(wanted, every, judge, judge_samples) if wanted else []


def _rows(**values: Any) -> list[tuple[Any, ...]]:
    """One of each value for every run; a single one is that of all."""
    lists = {
        name: list(value)
        for name, value in values.items()
        if isinstance(value, Iterable) and not isinstance(value, str)
    }
    lengths = {len(some) for some in lists.values()} or {1}
    if len(lengths) > 1:
        counted = ", ".join(f"{len(some)} {name}" for name, some in lists.items())
        raise InputError(
            f"there are {counted}: there must be one for each run, or a single one for all"
        )
    (runs,) = lengths
    columns = (lists.get(name, [value] * runs) for name, value in values.items())
    return list(zip(*columns, strict=True))


def _on_threads(wanted: list[tuple[Any, ...]], options: dict[str, Any]) -> list[Run]:
    """The runs on the processor: as many at a time as there are threads, with one thread each."""
    threads = thread_count()
    workers = min(threads, len(wanted))
    if workers < 2:
        return [train(*one, **options) for one in wanted]

    def begin() -> None:
        numba.set_num_threads(max(1, threads // workers))

    with ThreadPoolExecutor(workers, initializer=begin) as pool:
        try:
            return list(pool.map(lambda one: train(*one, **options), wanted))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _on_gpu(
    wanted: list[tuple[Any, ...]], every: int, judge: bool | None, judge_samples: int | None
) -> list[Run]:
    """The runs on a GPU, step by step together."""
    engine = Cuda(*(task for task, _, _ in wanted))
    evaluations = [Evaluations(task) for task, _, _ in wanted]
    about = {"every": every, "source": None, "start": None, "device": "cuda"}
    runs = [
        first(recipe, seed, None, made_by(task, recipe, seed, **about), noted)
        for (task, recipe, seed), noted in zip(wanted, evaluations, strict=True)
    ]
    while live := [i for i, run in enumerate(runs) if not run.finished]:
        requests = {}
        for i in live:
            recipe = wanted[i][1]
            far = engine.far(recipe.stages[runs[i].stage], every)
            runs[i], requests[i] = asked(runs[i], recipe, every, far)
        taken = engine.take_together(requests, every)
        for i in live:
            task, recipe, _ = wanted[i]
            evaluations[i].note_on_the_way(runs[i], requests[i].stage.batch_size, taken[i].looks)
            run = advanced(runs[i], recipe, requests[i].steps, taken[i])
            run = judged(task, run, recipe, None, judge, judge_samples)
            evaluations[i].noted(run, taken[i], every)
            runs[i] = evaluations[i].written(run) if run.finished else run
    return runs
