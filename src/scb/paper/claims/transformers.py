"""Claims about real transformers on the tasks of the paper; all of them ours."""

from functools import partial

import numpy as np

from scb.jobs.table import Table, pick, values
from scb.paper.claims.claim import Claim
from scb.paper.numbers import Number, median, span, spread
from scb.paper.outcome import Outcome
from scb.paper.slopes import log_log_slope
from scb.paper.tuned import best_setting, transferred

SMALL = ", init 0.02"
"""Ends the name of a study whose models begin with GPT-2's small weights."""
THRESHOLDS = (
    "weights shrunk by 0.5/L",
    "weights shrunk by 0.9/L",
    "logits thresholded at 1σ",
)
KEPT = (
    "values, overlap 1",
    "frozen, overlap 1",
    "values, overlap 0.6",
    "values, overlap 0.3",
    "frozen, overlap 0.3",
)
ONE = "one layer, width 64, softmax, layer norm, MLP, Adam, cross-entropy, B = 256, best of 4 learning rates"
FRESH = "query, key and position embedding are fresh"

_claim = partial(partial, Claim, figure="F25", setting=ONE)


def _samples(
    table: Table, study: str, N: int, T: int, variant: str, column: str = "samples_10"
) -> np.ndarray:
    """A column of one cell at its best learning rate; empty if it was not run."""
    rows = pick(table, study=study, N=N, T=T, variant=variant)
    return (best_setting(rows, "rate") if len(rows["T"]) else rows)[column]


def _lengths(table: Table, N: int) -> list[int]:
    return sorted(values(pick(table, study="scaling", N=N), "T"))


def growth(table: Table, setting: str, until: str = "samples_10") -> Number:
    """The exponent in T of the samples until a tenth is left, or of another column, where the
    median task gets there."""
    T: list[float] = []
    samples: list[float] = []
    for length in sorted(values(table, "T")):
        best = best_setting(pick(table, T=length), setting, until)[until]
        if np.isfinite(median(best)):
            T += [length] * len(best)
            samples += best.tolist()
    return log_log_slope(np.array(T), np.array(samples))


@_claim(
    "transformer-exponent",
    says="A real transformer needs more samples the longer the context, and its exponent is far above that of Algorithm 1.",
    where="beyond the paper: softmax, embeddings, layer norm, MLP, Adam, cross-entropy",
    words="exponent of T: transformer {transformer:+.2f}, Algorithm 1 {algorithm:+.2f}, recover {recover:+.2f}",
)
def samples_grow_with_T(transformers: Table, transformer_rivals: Table) -> Outcome:
    """The samples until 10 % of the excess loss is left grow like T^0.4 or faster for a transformer
    at N = 3 and 10 (the 95 % interval is above), like T^0.35 or slower for Algorithm 1 and like
    T^0.15 or slower for recover (the intervals are below).
    """
    cases = {}
    for N in (3, 10):
        mine = pick(transformers, study="scaling", N=N, variant="standard")
        others = {"algorithm": "Algorithm 1, mu", "recover": "recover"}
        cases[f"N = {N}"] = {"transformer": growth(mine, "rate")} | {
            name: growth(pick(transformer_rivals, N=N, rival=baseline), "setting")
            for name, baseline in others.items()
        }
    good = [
        found["transformer"].low > 0.4
        and found["algorithm"].high < 0.35
        and found["recover"].high < 0.15
        for found in cases.values()
    ]
    return Outcome.judged(all(good), cases=cases)


@_claim(
    "transformer-samples",
    says="Trained on fresh samples, it needs at least 5 times those of Algorithm 1, and 50 times those of recover.",
    where="beyond the paper",
    setting=f"{ONE}, squared error",
    words="{transformer:2}, Algorithm 1 {algorithm:2}, recover {recover:2}; where it gets there: "
    "{factor:to 2} times Algorithm 1, {factor_recover:to 2} times recover",
)
def far_from_the_limit(transformers: Table, transformer_rivals: Table) -> Outcome:
    """At every N and T with N ≤ 10 a transformer, trained on fresh samples, needs at least 5 times
    the samples of Algorithm 1 and 50 times those of recover, in the median.
    """
    cases = {}
    for N in (3, 10):
        for T in _lengths(transformers, N):
            others = pick(transformer_rivals, N=N, T=T)
            algorithm = best_setting(pick(others, rival="Algorithm 1, mu"), "setting")
            cases[f"N = {N}, T = {T:,}"] = {
                "transformer": median(
                    _samples(transformers, "scaling", N, T, "standard", "square_10")
                ),
                "algorithm": median(algorithm["samples_10"]),
                "recover": median(pick(others, rival="recover")["samples_10"]),
            }
    factors = {}
    low = {}
    for name in ("algorithm", "recover"):
        ratios = np.array([case["transformer"] / case[name] for case in cases.values()])
        low[name] = ratios.min()
        factors[name] = span(ratios[np.isfinite(ratios)])
    return Outcome.judged(
        low["algorithm"] >= 5 and low["recover"] >= 50,
        cases=cases,
        factor=factors["algorithm"],
        factor_recover=factors["recover"],
    )


@_claim(
    "transformer-plateau",
    says="It begins with a plateau, as Stage 1 does, and the plateau takes a larger share where T is larger.",
    where="Stage 1 of the paper, in a real transformer",
    words="{plateau:.2f}",
)
def a_plateau_that_grows(transformers: Table) -> Outcome:
    """Of the samples until half of the excess loss is gone, the share that passes before a tenth is
    gone is at least a half from T = 128 on, and larger at the largest T that is learned than at the
    smallest, for N = 3 and 10.
    """
    cases = {}
    good = []
    for N in (3, 10):
        shares = {}
        for T in _lengths(transformers, N):
            tenth, half = (
                median(_samples(transformers, "scaling", N, T, "standard", column))
                for column in ("samples_90", "samples_50")
            )
            if np.isfinite(half):
                shares[T] = tenth / half
        first, *_, last = shares.values()
        good.append(last > first and all(x >= 0.5 for T, x in shares.items() if T >= 128))
        cases |= {f"N = {N}, T = {T:,}": {"plateau": x} for T, x in shares.items()}
    return Outcome.judged(all(good), cases=cases)


@_claim(
    "kept-values",
    says="Values that are kept from another task save samples, and the more the closer the tasks are.",
    where="Section 4, in a real transformer",
    setting=f"{ONE}; {FRESH}",
    words="{ratio:.2f} of {fresh:2} samples of a fresh start; {never} gets there; same P, "
    "values kept: "
    "{saved_values:to .1f} times fewer samples; same P, values frozen: {saved_frozen:to .1f} "
    "times fewer",
)
def kept_values_save_samples(transformers: Table) -> Outcome:
    """With the values of a task with the same P, 10 % are left after at most half of the samples of
    a fresh start, at T = 32, 128 and 512; with those of a task of overlap 0.3 after at most 0.85 of
    them; and values that are frozen help for the same P alone.
    """
    cases = {}
    good = []
    saved: dict[str, list[float]] = {name: [] for name in KEPT}
    for T in (32, 128, 512):
        fresh = median(_samples(transformers, "scaling", 10, T, "standard"))
        ratios = {}
        for variant in KEPT:
            samples = _samples(transformers, "transfer", 10, T, variant)
            if samples.size:
                ratios[variant] = median(samples) / fresh
                saved[variant].append(1 / ratios[variant])
                there = np.isfinite(ratios[variant])
                told = {"ratio": ratios[variant], "fresh": fresh} if there else {"never": "never"}
                cases[f"T = {T}, {variant}"] = told
        good.append(ratios["values, overlap 1"] <= 0.5 and ratios["values, overlap 0.3"] <= 0.85)
        good.append(ratios["frozen, overlap 1"] <= 0.5)
        good.append(ratios.get("frozen, overlap 0.3", np.inf) > 1)
    return Outcome.judged(
        all(good),
        cases=cases,
        never=None,
        saved_values=span(saved["values, overlap 1"]),
        saved_frozen=span(saved["frozen, overlap 1"]),
    )


@_claim(
    "attention-threshold",
    says="A proximal step inside the attention saves samples.",
    where="Section 2.3, in a real transformer",
    words="plain {plain:2}; weights shrunk by 0.5/L {half:2}, by 0.9/L {most:2}; logits thresholded at 1σ {logits:2}",
    change="it helps where weights begin at 0.02, up to {saved:.1f} times, and does not with PyTorch's",
    instead="it costs samples",
)
def thresholds_in_attention(transformers: Table) -> Outcome:
    """A softmax whose weights are shrunk, or whose logits are soft-thresholded, is at 10 % after at
    most 0.9 of the samples of a plain one, at N = 10 and T = 128 and 512: the best of three, with
    PyTorch's initial weights and with those of GPT-2.
    """
    cases = {}
    saved: dict[str, list[float]] = {"": [], SMALL: []}
    for small, factors in saved.items():
        for T in (128, 512):
            plain = median(_samples(transformers, f"scaling{small}", 10, T, "standard"))
            found = [
                median(_samples(transformers, f"proximal{small}", 10, T, name))
                for name in THRESHOLDS
            ]
            factors.append(plain / min(found))
            label = f"{'weights 0.02' if small else 'PyTorch’s weights'}, T = {T}"
            names = ("half", "most", "logits")
            cases[label] = {"plain": plain, **dict(zip(names, found, strict=True))}
    return Outcome.judged(
        min(saved[""] + saved[SMALL]) >= 1 / 0.9,
        max(saved[SMALL]) >= 1 / 0.9 and max(saved[""]) < 1 / 0.9,
        cases=cases,
        saved=max(saved[SMALL]),
    )


@_claim(
    "centred-values",
    says="Values that are centred, as the μ-projector has them, save samples.",
    where="the preconditioner of Section 2.3, in a real transformer",
    words="{plain} without, {centred} with; saved where both get there: {saved:to .0%}",
)
def centred_values(transformers: Table) -> Outcome:
    """With values from which their μ-mean over the tokens is taken, 10 % are left after fewer
    samples than without, at every N and T at which one of the two gets there; and from T = 512 on
    after at most 0.8 of them.
    """
    cases = {}
    good = []
    saved = []
    for study, N in (("", 10), ("", 3), (SMALL, 10)):
        cells = pick(transformers, study=f"proximal{study}", N=N, variant="values centred")
        for T in sorted(values(cells, "T")):
            plain, centred = (
                spread(_samples(transformers, f"{kind}{study}", N, T, variant))
                for kind, variant in (("scaling", "standard"), ("proximal", "values centred"))
            )
            if np.isfinite(plain.estimate) or np.isfinite(centred.estimate):
                least = 0.8 if T >= 512 else 1.0
                good.append(centred.estimate < plain.estimate * least)
                saved.append(1 - centred.estimate / plain.estimate)
            label = f"N = {N}, T = {T:,}{', weights 0.02' if study else ''}"
            cases[label] = {"plain": plain, "centred": centred}
    return Outcome.judged(all(good), cases=cases, saved=span([x for x in saved if x < 1]))


@_claim(
    "frozen-values",
    says="With frozen values of a task with the same P, the samples that a transformer needs do not grow with T.",
    where="Section 4, in a real transformer: transfer takes away the dependence of Stage 1 on T",
    setting=f"{ONE}; {FRESH}; values of a task with as many positions, or 128 for T > 512",
    words="exponent of T {fresh:+.2f} from a fresh start, {frozen:+.2f} with frozen values; 10 % "
    "left after {at_2048:2} at T = 2,048 and {at_8192:2} at T = 8,192",
    change="they grow, with a smaller exponent than from a fresh start",
    instead="they grow as they do from a fresh start",
)
def frozen_values_and_T(transformers: Table) -> Outcome:
    """With frozen values of a task with the same P, the samples until half of the excess loss is
    left grow like T^0.15 or slower, for N = 3 and 10 (the 95 % interval is below).
    """
    cases = {}
    for N in (3, 10):
        standard = pick(transformers, study="scaling", N=N, variant="standard")
        kept = pick(transferred(transformers, "frozen", "1"), N=N)
        cases[f"N = {N}"] = {
            "fresh": growth(standard, "rate", "samples_50"),
            "frozen": growth(kept, "rate", "samples_50"),
            **{
                f"at_{T}": median(best_setting(pick(kept, T=T), "rate")["samples_10"])
                for T in (2048, 8192)
            },
        }
    flat = all(case["frozen"].high < 0.15 for case in cases.values())
    flatter = all(case["frozen"].high < case["fresh"].low for case in cases.values())
    return Outcome.judged(flat, flatter, cases=cases)
