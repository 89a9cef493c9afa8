"""Does the algorithm work on every seed? Many runs on many random tasks, and how often each thing holds.

    python benchmarks/algorithm.py [paper tuned projector noise softmax simulation model] [--jobs 2] [--tables]

Results are kept in benchmarks/algorithm/, a file for each part; what is there is not run again. Tables and numbers of
docs/explanation/algorithm.md come from there. All of it takes about half an hour on one core.
"""

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from study import Case, Row, Section, group, main, rounded, so_many, table_of

KEPT = Path(__file__).with_suffix("")
TASKS = 5
SEEDS = 20
CLOSE = 0.05  # the distance of a layer that counts as learned
RECIPES = {
    "literal": "`paper`, `resolve_sign=False`",
    "paper": "`paper`",
    "larger": "`paper`, λ = 1e-4",
    "sgd": "`sgd`",
    "slower": "`sgd`, η₂ = 0.001",
}
PROJECTORS = {"euclidean": "the paper's projector", "mu": "the μ-projector"}


def last(run: Any, *columns: str) -> Row:
    """The last value of some columns of a history."""
    return rounded(**{name: float(run.history[name][-1]) for name in columns})


# --------------------------------------------------------------------------------------------------------- the runs


def paper(case: Case) -> Row:
    """One recipe with the settings of the paper's experiment."""
    import scb

    task = scb.Task.random(3, 5000, 2, case["task"])
    options: dict[str, Any] = {"literal": {"resolve_sign": False}, "larger": {"lam": 1e-4}, "slower": {"eta": (0.01, 0.001)}}
    make = scb.recipes.sgd if case["recipe"] in ("sgd", "slower") else scb.recipes.paper
    run = scb.train(task, make(task, **options.get(case["recipe"], {})), case["seed"], judge=False)
    return last(run, "alpha_A", "dist_A", "dist_A_star", "dist_V")


def tuned(case: Case) -> Row:
    """The tuned recipe at its end and before normalisation, and SGD with as many samples as it had taken by then.

    Where μ, K_P and K_Q are estimated, the end alone.
    """
    import scb

    task = scb.Task.random(case["N"], 5000, 2, case["task"])
    recipe = scb.recipes.tuned(task, known=case["known"], seed=case["seed"])
    run = scb.train(task, recipe, case["seed"], judge=False)
    row = last(run, "dist_A", "dist_V", "samples")
    if not case["known"]:
        return row
    end = np.flatnonzero(run.history["stage"] == 2)[-1]
    first = int(np.max(run.history["step"][run.history["stage"] == 1]))
    # The same stages with λ = 0, and no thresholding between them.
    steps = (first, int(run.history["step"][end]) - first)
    plain = scb.recipes.sgd(task, eta=(0.02, 0.02), steps=steps, batch_size=recipe.stages[0].batch_size)
    baseline = last(scb.train(task, plain, case["seed"], judge=False), "samples", "dist_A", "dist_A_star", "dist_V")
    before = rounded(samples_before=run.history["samples"][end], dist_A_before=run.history["dist_A"][end])
    return row | before | {f"sgd_{name}": value for name, value in baseline.items()}


def projector(case: Case) -> Row:
    """A recipe with one of the two projectors, on a task with T = 1,000."""
    import scb
    from scb.paper.experiments.transfer import family_task

    task = family_task(case["family"], case["N"], 1000, 2, case["task"])
    if case["recipe"] == "tuned":
        recipe = scb.recipes.tuned(task, projector=case["projector"])
    else:
        recipe = scb.recipes.transfer(task, task.related(0.6, case["task"]).P, projector=case["projector"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it has not learned its task: the distances say it too
        run = scb.train(task, recipe, case["task"])
    return last(run, "dist_A", "dist_V", "samples")


def noise(case: Case) -> Row:
    """E‖h_V‖_μ² at the start for a batch of 64, exact and as the mean over 500 gradients of samples."""
    import scb
    from scb.geometry import mu_norm, uniform_start
    from scb.task.sampling import step_keys
    from scb.theory.noise import GradientNoise
    from scb.training.sources.population import Population
    from scb.training.sources.sampled import Fresh
    from scb.training.updates import precondition_V

    task = scb.Task.random(case["N"], 5000, 2, seed=0)
    V, A = uniform_start(task.mu, task.T)
    exact = GradientNoise(task, V, A, case["projector"]).square_V() / 64
    fresh = Fresh(task)
    mean = Population(task)(V, A, 0, np.uint64(0)).V
    drawn = [fresh(V, A, 64, key).V - mean for key in step_keys(5, range(500))]
    squares = np.array([mu_norm(precondition_V(h, task.mu, case["projector"]), task.mu) ** 2 for h in drawn])
    return rounded(exact=exact, measured=squares.mean(), error=squares.std() / np.sqrt(squares.size))


def softmax(case: Case) -> Row:
    """Softmax and linear attention on one task: similarity with Q, and losses."""
    import scb
    from scb.metrics import similarity_A

    task = scb.Task.random(10, 50, 2, case["task"])
    one = scb.train(task, scb.recipes.softmax(task), case["seed"], every=100, judge=False)
    two = scb.train(task, scb.recipes.tuned(task), case["seed"], judge=False)
    losses = float(one.history["loss"][-1]), float(two.history["loss"][-1])
    return rounded(softmax=similarity_A(task, one.A), linear=similarity_A(task, two.A), gap=abs(losses[0] / losses[1] - 1))


def simulation(case: Case) -> Row:
    """Seconds of one core for 1,000 simulated steps at N = 500, T = 100,000, with batches of 200,000."""
    import scb
    from scb.paper.experiments.simulation import GaussianJob
    from scb.training.simulation import simulate

    task = scb.Task.random(500, 100_000, 2, seed=case["seed"])
    recipe = GaussianJob(N=500, method=case["method"], batch_size=200_000).recipe(task)
    start = time.process_time()
    simulate(task, recipe, case["seed"])
    return rounded(seconds=time.process_time() - start)


def model(case: Case) -> Row:
    """E‖h_V‖_μ² in the Gaussian model of ``simulate``, divided by the exact one, on the line from the start (α = 0) to (P, Q)."""
    import scb
    from scb.geometry import line_A, line_V, population_projection
    from scb.theory.gaussian import noise_scales, residual_square
    from scb.theory.noise import GradientNoise
    from scb.training.collapsed import leaking_direction

    N = case["N"]
    task = scb.Task.random(N, 2000, 2, seed=case["task"])
    V, A = line_V(task, case["alpha"]), line_A(task, case["alpha"])
    p = population_projection(task, V, A)
    leak = leaking_direction(task.mu)[1] ** 2 * residual_square(task, p) if case["projector"] == "euclidean" else 0.0
    drawn = (N - 1) ** 2 * noise_scales(task, p, 1)[0] ** 2 + leak
    return rounded(ratio=drawn / GradientNoise(task, V, A, case["projector"]).square_V())


# ------------------------------------------------------------------------------------------------------- the tables


def paper_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """What five recipes reach, and how often each is ahead of SGD on the same task with the same seed."""
    found = group(sorted(rows, key=lambda one: (one[0]["task"], one[0]["seed"])), "recipe")
    baseline = np.array([row["dist_A"] for row in found[("sgd",)]])
    started = np.array([row["alpha_A"] > 0.3 for row in found[("sgd",)]])
    lines = []
    for name, words in RECIPES.items():
        alpha, dist_A, star, dist_V = np.array([list(row.values()) for row in found[(name,)]]).T
        ahead = dist_A < baseline
        shown = [so_many(ahead.sum(), ahead.size), so_many(ahead[started].sum(), started.sum())]
        lines.append(
            [
                words,
                so_many((alpha < 0).sum(), alpha.size),
                so_many((star <= CLOSE).sum(), star.size),
                f"{np.median(dist_A):.3f}",
                f"{np.median(dist_V):.3f}",
                *(["", ""] if name == "sgd" else shown),
            ]
        )
    ahead = "‖A − Q‖_μ below that of `sgd`"
    headings = "recipe|α_A is negative|‖A* − Q‖_μ ≤ 0.05|median ‖A − Q‖_μ|median ‖V − P‖_μ"
    return table_of(f"{headings}|{ahead}|the same, where α_A of `sgd` exceeds 0.3", lines)


def tuned_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """How often the truth is found, and with how many samples."""
    lines = []
    for (N, known), some in sorted(group(rows, "N", "known").items(), key=lambda one: (-one[0][1], one[0][0])):
        dist_A, dist_V, samples = np.array([[row["dist_A"], row["dist_V"], row["samples"]] for row in some]).T
        good = np.maximum(dist_A, dist_V) <= CLOSE
        lines.append(
            [
                N,
                "known" if known else "estimated",
                so_many(good.sum(), good.size),
                f"{dist_A.max():.3f}",
                f"{dist_V.max():.3f}",
                f"{np.median(samples):,.0f}",
            ]
        )
    return table_of("N|μ, K_P and K_Q|learned|largest ‖A − Q‖_μ|largest ‖V − P‖_μ|samples, median", lines)


def baseline_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """How SGD fares with the samples that ``tuned`` takes before it normalises A."""
    lines = []
    for (N, known), some in group(rows, "N", "known").items():
        if known:
            ours, theirs, star, dist_V, mine = np.array(
                [[row[n] for n in ("dist_A_before", "sgd_dist_A", "sgd_dist_A_star", "sgd_dist_V", "dist_V")] for row in some]
            ).T
            cells = [f"{np.median(ours):.3f}", f"{np.median(theirs):.3f}", so_many((theirs > ours).sum(), ours.size)]
            cells += [so_many((star <= CLOSE).sum(), star.size), f"{np.median(mine):.3f}", f"{np.median(dist_V):.3f}"]
            lines.append([N, *cells])
    headings = "N|‖A − Q‖_μ before normalisation: `tuned`|SGD|SGD is worse in|SGD normalised: ‖A* − Q‖_μ ≤ 0.05"
    return table_of(f"{headings}|‖V − P‖_μ at the end: `tuned`|SGD", lines)


def projector_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """Both projectors, one below the other."""
    words = {"strong": "", "zipf": ", μ like 1/n"}
    lines = []
    for (N, recipe, family, name), some in sorted(group(rows, "N", "recipe", "family", "projector").items()):
        dist_A, dist_V, samples = np.array([[row["dist_A"], row["dist_V"], row["samples"]] for row in some]).T
        good = np.maximum(dist_A, dist_V) <= CLOSE
        cells = [f"{np.median(dist_V):.4f}", f"{np.median(samples):,.0f}", so_many(good.sum(), good.size)]
        lines.append([f"`{recipe}`", f"N = {N}{words[family]}", PROJECTORS[name], *cells])
    return table_of("recipe|tasks|projector|median ‖V − P‖_μ|samples, median|learned", lines)


def noise_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """The exact noise and the measured one."""
    lines = []
    for case, row in sorted(rows, key=lambda one: (one[0]["N"], one[0]["projector"])):
        measured = f"{row['measured']:.2e} ± {row['error']:.0e}"
        lines.append([case["N"], PROJECTORS[case["projector"]], f"{row['exact']:.2e}", measured])
    return table_of("N|projector|E‖h_V‖_μ², exact|mean over 500 batches", lines)


def model_table(rows: list[tuple[Case, Row]]) -> list[str]:
    """The Gaussian model's noise divided by the exact one."""
    lines = []
    for (N, name, alpha), some in group(rows, "N", "projector", "alpha").items():
        ratios = [row["ratio"] for row in some]
        lines.append([N, PROJECTORS[name], alpha, f"{min(ratios):.3f} to {max(ratios):.3f}"])
    return table_of("N|projector|α|model / exact", lines)


# -------------------------------------------------------------------------------------------------------- the cases

PAIRS = [{"task": task, "seed": seed} for seed in range(SEEDS) for task in range(TASKS)]
SIZES: dict[str, Any] = {  # N, known: so many seeds a task
    "tuned": ((3, True, SEEDS), (3, False, SEEDS), (10, True, 4), (20, True, 4)),
    "projector": ((3, "strong", 20), (10, "zipf", 20)),
}
SECTIONS = {
    "paper": Section([{"recipe": name} | one for one in PAIRS for name in RECIPES], paper, {"paper recipes": paper_table}),
    "tuned": Section(
        [{"N": N, "known": known} | one for N, known, seeds in SIZES["tuned"] for one in PAIRS[: seeds * TASKS]],
        tuned,
        {"tuned": tuned_table, "tuned and SGD": baseline_table},
    ),
    "projector": Section(
        [
            {"recipe": recipe, "projector": name, "N": N, "family": family, "task": task}
            for N, family, tasks in SIZES["projector"]
            for task in range(tasks)
            for recipe in ("tuned", "transfer")
            for name in PROJECTORS
        ],
        projector,
        {"projectors": projector_table},
    ),
    "noise": Section(
        [{"N": N, "projector": name} for N in (3, 10) for name in PROJECTORS], noise, {"noise at the start": noise_table}
    ),
    "softmax": Section(PAIRS, softmax),
    "simulation": Section([{"method": method, "seed": seed} for seed in range(5) for method in ("SGD", "proximal")], simulation),
    "model": Section(
        [
            {"N": N, "projector": name, "alpha": alpha, "task": task}
            for N in (3, 10)
            for name in PROJECTORS
            for alpha in (0.0, 0.5, 1.0)
            for task in range(TASKS)
        ],
        model,
        {"model of the noise": model_table},
    ),
}

if __name__ == "__main__":
    main(__doc__, KEPT, "explanation/algorithm.md", SECTIONS)
