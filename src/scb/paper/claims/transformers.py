"""Our own claims about real transformers on the tasks of the paper."""

from functools import partial

import numpy as np

from scb.jobs.table import Table, pick, values
from scb.paper.claims.claim import claim
from scb.paper.numbers import Number, median, middle, minus, span, spread
from scb.paper.outcome import Outcome, all_of, at_least, at_most, opposite
from scb.paper.slopes import line_slope, log_log_slope
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
ONE = (
    "one layer, width 64, softmax, layer norm, MLP, Adam, cross-entropy, B = 256, best of 4 "
    "learning rates"
)
FRESH = "query, key and position embedding are fresh"

_claim = partial(claim, figure="F25", setting=ONE)


def _samples(
    table: Table, study: str, N: int, T: int, variant: str, column: str = "samples_10"
) -> np.ndarray:
    """A column of one cell at its best learning rate; empty if it was not run."""
    rows = pick(table, study=study, N=N, T=T, variant=variant)
    return (best_setting(rows, "rate") if len(rows["T"]) else rows)[column]


def _lengths(table: Table, N: int) -> list[int]:
    return sorted(values(pick(table, study="scaling", N=N), "T"))


def growth(table: Table, setting: str, until: str = "samples_10") -> Number:
    """The exponent in T of the median number of samples until a tenth is left, or of another
    column, at lengths at which the median task gets there."""
    lengths = sorted(values(table, "T"))
    samples = [median(best_setting(pick(table, T=T), setting, until)[until]) for T in lengths]
    found = np.isfinite(samples)
    return log_log_slope(np.array(lengths)[found], np.array(samples)[found])


@_claim(
    "transformer-exponent",
    says="A real transformer needs more samples the longer the context is, with an exponent in T "
    "far above that of Algorithm 1.",
    where="beyond the paper: softmax, embeddings, layer norm, MLP, Adam, cross-entropy",
    words="exponent of T: transformer {transformer:+.2f}, Algorithm 1 {algorithm:+.2f}, recover "
    "{recover:+.2f}",
)
def samples_grow_with_T(transformers: Table, transformer_rivals: Table) -> Outcome:
    """The median number of samples until 10 % of the excess loss is left grows like T^0.4 or faster
    for a transformer at N = 3 and 10, like T^0.35 or slower for Algorithm 1 and like T^0.15 or
    slower for recover, where the median task gets there.
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
        answer
        for found in cases.values()
        for answer in (
            at_least(found["transformer"], 0.4),
            at_most(found["algorithm"], 0.35),
            at_most(found["recover"], 0.15),
        )
    ]
    return Outcome.judged(all_of(good), cases=cases)


@_claim(
    "transformer-samples",
    says="A transformer trained on fresh samples needs at least 5 times as many samples as "
    "Algorithm 1, and 50 times as many as recover.",
    where="beyond the paper",
    setting=f"{ONE}, squared error",
    words="{transformer:2}, {times} times Algorithm 1, {times_recover} times recover; task by task "
    "{paired} times Algorithm 1, {paired_recover} times recover; where it gets there: "
    "{factor:to 2} times Algorithm 1, {factor_recover:to 2} times recover",
)
def far_from_the_limit(transformers: Table, transformer_rivals: Table) -> Outcome:
    """At N = 3 and 10 a transformer, trained on fresh samples, needs at least 5 times the samples
    of Algorithm 1 and 50 times those of recover in the median task of all T."""
    cases = {}
    good = []
    factors = {"algorithm": [], "recover": []}
    for N in (3, 10):
        paired = {name: [] for name in factors}
        for T in _lengths(transformers, N):
            others = pick(transformer_rivals, N=N, T=T)
            theirs = {
                "algorithm": best_setting(pick(others, rival="Algorithm 1, mu"), "setting"),
                "recover": pick(others, rival="recover"),
            }
            mine = _samples(transformers, "scaling", N, T, "standard", "square_10")
            times = {name: median(mine) / median(x["samples_10"]) for name, x in theirs.items()}
            for name, found in theirs.items():
                paired[name].append(_ratio(mine, found["samples_10"]))
                factors[name] += [times[name]] * bool(np.isfinite(times[name]))
            numbers = {"times": times["algorithm"], "times_recover": times["recover"]}
            cases[f"N = {N}, T = {T:,}"] = {"transformer": median(mine), **numbers}
        algorithm, recover = (middle(np.concatenate(ratios)) for ratios in paired.values())
        good += [at_least(algorithm, 5), at_least(recover, 50)]
        cases[f"N = {N}"] = {"paired": algorithm, "paired_recover": recover}
    ranges = {"factor": span(factors["algorithm"]), "factor_recover": span(factors["recover"])}
    return Outcome.judged(all_of(good), cases=cases, **ranges)


@_claim(
    "transformer-plateau",
    says="The training of a transformer begins with a plateau, as in Stage 1, and the plateau "
    "takes a larger share of the samples where T is larger.",
    where="Stage 1 of the paper, in a real transformer",
    words="{plateau:.2f}; from T = 128 on {long:.2f}; {slope:+.3f} for each unit of log T",
)
def a_plateau_that_grows(transformers: Table) -> Outcome:
    """Of the samples until half of the excess loss is gone, the share that passes before a tenth is
    gone is at least a half in the median task of all T from 128 on, and grows with log T over all
    T, for N = 3 and 10.
    """
    cases = {}
    good = []
    for N in (3, 10):
        lengths, shares = [], []
        for T in _lengths(transformers, N):
            tenth, half = (
                _samples(transformers, "scaling", N, T, "standard", column)
                for column in ("samples_90", "samples_50")
            )
            there = np.isfinite(half)
            if np.isfinite(median(half)):
                lengths.append(np.full(there.sum(), T))
                shares.append(tenth[there] / half[there])
                cases[f"N = {N}, T = {T:,}"] = {"plateau": spread(shares[-1])}
        T, found = np.concatenate(lengths), np.concatenate(shares)
        long, slope = middle(found[T >= 128]), line_slope(np.log(T), found)
        good += [at_least(long, 0.5), at_least(slope, 0)]
        cases[f"N = {N}"] = {"long": long, "slope": slope}
    return Outcome.judged(all_of(good), cases=cases)


@_claim(
    "kept-values",
    says="Values kept from another task save samples, and they save more the closer the tasks are.",
    where="Section 4, in a real transformer",
    setting=f"{ONE}; {FRESH}",
    words="{ratio:.2f} of {fresh:2} samples of a fresh start; {never} gets there; task by task, "
    "over all T: {paired:.2f}; same P, values kept: {saved_values:to .1f} times fewer samples; "
    "same P, values frozen: {saved_frozen:to .1f} times fewer",
)
def kept_values_save_samples(transformers: Table) -> Outcome:
    """In the median task of T = 32, 128 and 512, with the values of a task with the same P, 10 %
    are left after at most half of the samples of a fresh start, with those of a task of overlap
    0.3 after at most 0.85 of them; and values that are frozen help for the same P alone."""
    cases = {}
    paired = {name: [] for name in KEPT}
    saved = {name: [] for name in KEPT}
    for T in (32, 128, 512):
        fresh = _samples(transformers, "scaling", 10, T, "standard")
        for variant in KEPT:
            samples = _samples(transformers, "transfer", 10, T, variant)
            if samples.size:
                paired[variant].append(_ratio(samples, fresh))
                ratio = median(samples) / median(fresh)
                saved[variant].append(1 / ratio)
                told = {"ratio": ratio, "fresh": median(fresh)}
                cases[f"T = {T}, {variant}"] = told if np.isfinite(ratio) else {"never": "never"}
    found = {name: middle(np.concatenate(x)) for name, x in paired.items() if x}
    cases |= {name: {"paired": number} for name, number in found.items()}
    good = [at_most(found[f"{kind}, overlap 1"], 0.5) for kind in ("values", "frozen")]
    good.append(at_most(found["values, overlap 0.3"], 0.85))
    good.append(at_least(found["frozen, overlap 0.3"], 1))
    return Outcome.judged(
        all_of(good),
        cases=cases,
        never=None,
        saved_values=span(saved["values, overlap 1"]),
        saved_frozen=span(saved["frozen, overlap 1"]),
    )


def _ratio(samples: np.ndarray, others: np.ndarray) -> np.ndarray:
    """One number of samples over another, task by task; 1 where neither gets there."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(samples) & np.isinf(others), 1.0, samples / others)


@_claim(
    "attention-threshold",
    says="A proximal step inside the attention saves samples.",
    where="Section 2.3, in a real transformer",
    words="plain {plain:2}; weights shrunk by 0.5/L {half:2}, by 0.9/L {most:2}; logits "
    "thresholded "
    "at 1σ {logits:2}; task by task, over both T, plain over the best of three: {paired:.2f}",
    change="it helps where weights begin at 0.02, by a factor of up to {saved:.1f}, but not with "
    "PyTorch's initial weights",
    instead="it costs samples",
)
def thresholds_in_attention(transformers: Table) -> Outcome:
    """A softmax whose weights are shrunk, or whose logits are soft-thresholded, is at 10 % after at
    most 0.9 of the samples of a plain one in the median task of N = 10 and T = 128 and 512: the
    best of three, with PyTorch's initial weights and with those of GPT-2. With the change: with
    those of GPT-2, and not with PyTorch's.
    """
    cases = {}
    answers = {}
    best = {"": [], SMALL: []}
    for small, factors in best.items():
        name = "weights 0.02" if small else "PyTorch’s weights"
        paired = []
        for T in (128, 512):
            plain = _samples(transformers, f"scaling{small}", 10, T, "standard")
            tried = [_samples(transformers, f"proximal{small}", 10, T, x) for x in THRESHOLDS]
            paired.append(_ratio(plain, min(tried, key=median)))
            factors.append(median(plain) / min(map(median, tried)))
            found = dict(zip(("half", "most", "logits"), map(median, tried), strict=True))
            cases[f"{name}, T = {T}"] = {"plain": median(plain), **found}
        cases[name] = {"paired": middle(np.concatenate(paired))}
        answers[small] = at_least(cases[name]["paired"], 1 / 0.9)
    changed = all_of([answers[SMALL], opposite(answers[""])])
    return Outcome.judged(all_of(answers.values()), changed, cases=cases, saved=max(best[SMALL]))


@_claim(
    "centred-values",
    says="Centred values, as under the μ-projector, save samples.",
    where="the preconditioner of Section 2.3, in a real transformer",
    words="{plain} without, {centred} with; saved where both get there: {saved:to .0%}; task by "
    "task, with over without: {paired:.2f}, from T = 512 on {long:.2f}",
)
def centred_values(transformers: Table) -> Outcome:
    """With values from which their μ-mean over the tokens is taken, 10 % are left after at most 0.9
    of the samples that it takes without, in the median task of all T at which one of the two gets
    there, for each N and each kind of initial weights; and of T from 512 on after at most 0.8.
    """
    cases = {}
    good = []
    saved = []
    for study, N in (("", 10), ("", 3), (SMALL, 10)):
        cells = pick(transformers, study=f"proximal{study}", N=N, variant="values centred")
        paired, long = [], []
        end = ", weights 0.02" if study else ""
        for T in sorted(values(cells, "T")):
            plain, centred = (
                _samples(transformers, f"{kind}{study}", N, T, variant)
                for kind, variant in (("scaling", "standard"), ("proximal", "values centred"))
            )
            cases[f"N = {N}, T = {T:,}{end}"] = {"plain": spread(plain), "centred": spread(centred)}
            if np.isfinite(median(plain)) or np.isfinite(median(centred)):
                paired.append(_ratio(centred, plain))
                long += [paired[-1]] * (T >= 512)
                saved.append(1 - median(centred) / median(plain))
        found = {"paired": middle(np.concatenate(paired)), "long": middle(np.concatenate(long))}
        cases[f"N = {N}{end}"] = found
        good += [at_most(found["paired"], 0.9), at_most(found["long"], 0.8)]
    return Outcome.judged(all_of(good), cases=cases, saved=span([x for x in saved if x < 1]))


@_claim(
    "frozen-values",
    says="With values frozen from a task with the same P, the number of samples that a transformer "
    "needs does not grow with T.",
    where="Section 4, in a real transformer: transfer takes away the dependence of Stage 1 on T",
    setting=f"{ONE}; {FRESH}; values of a task with as many positions, or 128 for T > 512",
    words="exponent of T {fresh:+.2f} from a fresh start, {frozen:+.2f} with frozen values; 10 % "
    "left after {at_2048:2} at T = 2,048 and {at_8192:2} at T = 8,192",
    change="the samples grow with T, but with a smaller exponent than from a fresh start",
    instead="the samples grow with T as they do from a fresh start",
)
def frozen_values_and_T(transformers: Table) -> Outcome:
    """With frozen values of a task with the same P, the samples until half of the excess loss is
    left grow like T^0.15 or slower, for N = 3 and 10; with the change, slower than from a fresh
    start.
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
    flat = all_of(at_most(case["frozen"], 0.15) for case in cases.values())
    flatter = all_of(at_most(minus(case["frozen"], case["fresh"]), 0) for case in cases.values())
    return Outcome.judged(flat, flatter, cases=cases)
