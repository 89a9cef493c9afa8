"""Claims about real transformers on the tasks of the paper; all of them ours."""

import numpy as np

from scb.jobs.table import Table, pick, values, where
from scb.paper.claims.claim import Claim, Outcome, verdict
from scb.paper.slopes import Slope, log_log_slope
from scb.paper.tuned import best_setting, chosen_decoders, median, middle_and_quartiles, transferred

SMALL = ", init 0.02"  # ends the name of a study whose models begin with GPT-2's small weights
THRESHOLDS = ("weights shrunk by 0.5/L", "weights shrunk by 0.9/L", "logits thresholded at 1σ")


def _samples(table: Table, study: str, N: int, T: int, variant: str) -> Table:
    """The rows of one cell at its best learning rate; no rows if it was not run."""
    rows = pick(table, study=study, N=N, T=T, variant=variant)
    return best_setting(rows, "rate") if len(rows["T"]) else rows


def _told(x: np.ndarray) -> str:
    """Median and quartiles of samples; "never" where half of the tasks do not get there."""
    low, middle, high = middle_and_quartiles(x)
    return "never" if np.isinf(middle) else f"{_count(middle)} [{_count(low)}, {_count(high)}]"


def _count(x: float) -> str:
    """A number of samples to two digits."""
    return "never" if np.isinf(x) else f"{float(f'{x:.2g}'):,.0f}"


def growth(table: Table, setting: str, until: str = "samples_10") -> Slope:
    """The exponent in T of the samples until a tenth is left, or of another column, where the median task gets there."""
    T: list[float] = []
    samples: list[float] = []
    for length in sorted(values(table, "T")):
        best = best_setting(pick(table, T=length), setting, until)[until]
        if np.isfinite(median(best)):
            T += [length] * len(best)
            samples += best.tolist()
    return log_log_slope(np.array(T), np.array(samples))


def samples_grow_with_T(transformers: Table, transformer_rivals: Table) -> Outcome:
    """The samples until 10 % of the excess loss is left grow like T^0.4 or faster for a transformer at N = 3 and 10 (the 95 %
    interval is above), like T^0.35 or slower for Algorithm 1 and like T^0.15 or slower for recover (the intervals are below).
    """
    parts = []
    good = []
    for N in (3, 10):
        contenders = {
            "transformer": (pick(transformers, study="scaling", N=N, variant="standard"), "rate"),
            "Algorithm 1": (pick(transformer_rivals, N=N, rival="Algorithm 1, mu"), "setting"),
            "recover": (pick(transformer_rivals, N=N, rival="recover"), "setting"),
        }
        found = {name: growth(*contender) for name, contender in contenders.items()}
        good.append(found["transformer"].low > 0.4 and found["Algorithm 1"].high < 0.35 and found["recover"].high < 0.15)
        parts.append(f"N = {N}, exponent of T: " + ", ".join(f"{name} {slope}" for name, slope in found.items()))
    return Outcome("\n".join(parts), verdict(all(good)))


def far_from_the_limit(transformers: Table, transformer_rivals: Table) -> Outcome:
    """At every N and T with N ≤ 10 a transformer, trained on fresh samples, needs at least 5 times the samples of Algorithm 1 and
    50 times those of recover, in the median.
    """
    parts = []
    ratios = []
    for N in (3, 10):
        for T in sorted(values(pick(transformers, study="scaling", N=N), "T")):
            mine = median(_samples(transformers, "scaling", N, T, "standard")["square_10"])
            ours = median(best_setting(pick(transformer_rivals, N=N, T=T, rival="Algorithm 1, mu"), "setting")["samples_10"])
            least = median(pick(transformer_rivals, N=N, T=T, rival="recover")["samples_10"])
            ratios.append((mine / ours, mine / least))
            parts.append(f"N = {N}, T = {T:,}: {_count(mine)}; Algorithm 1 {_count(ours)}; recover {_count(least)}")
    low = np.min(ratios, axis=0)
    high = np.max([pair for pair in ratios if np.isfinite(pair[0])], axis=0)
    told = f"{_count(low[0])} to {_count(high[0])} times Algorithm 1, {_count(low[1])} to {_count(high[1])} times recover"
    parts.append(f"where it gets there: {told}")
    return Outcome("\n".join(parts), verdict(low[0] >= 5 and low[1] >= 50))


def a_plateau_that_grows(transformers: Table) -> Outcome:
    """Of the samples until half of the excess loss is gone, the share that passes before a tenth is gone is at least a half from T
    = 128 on, and larger at the largest T that is learned than at the smallest, for N = 3 and 10.
    """
    parts = []
    good = []
    for N in (3, 10):
        shares = {}
        for T in sorted(values(pick(transformers, study="scaling", N=N), "T")):
            rows = _samples(transformers, "scaling", N, T, "standard")
            if np.isfinite(median(rows["samples_50"])):
                shares[T] = median(rows["samples_90"]) / median(rows["samples_50"])
        lengths = list(shares)
        good.append(all(shares[T] >= 0.5 for T in lengths if T >= 128) and shares[lengths[-1]] > shares[lengths[0]])
        parts.append(f"N = {N}: " + ", ".join(f"{share:.2f} at T = {T:,}" for T, share in shares.items()))
    return Outcome("\n".join(parts), verdict(all(good)))


def kept_values_save_samples(transformers: Table) -> Outcome:
    """With the values of a task with the same P, 10 % are left after at most half of the samples of a fresh start, at T = 32, 128
    and 512; with those of a task of overlap 0.3 after at most 0.85 of them; and values that are frozen help for the same P alone.
    """
    parts = []
    good = []
    saved: dict[str, list[float]] = {}
    for T in (32, 128, 512):
        fresh = median(_samples(transformers, "scaling", 10, T, "standard")["samples_10"])
        ratios = {}
        for variant in (
            "values, overlap 1",
            "frozen, overlap 1",
            "values, overlap 0.6",
            "values, overlap 0.3",
            "frozen, overlap 0.3",
        ):
            rows = _samples(transformers, "transfer", 10, T, variant)
            if len(rows["T"]):
                ratios[variant] = median(rows["samples_10"]) / fresh
        good.append(ratios["values, overlap 1"] <= 0.5 and ratios["values, overlap 0.3"] <= 0.85)
        good.append(ratios["frozen, overlap 1"] <= 0.5 and ratios.get("frozen, overlap 0.3", np.inf) > 1)
        for name, ratio in ratios.items():
            saved.setdefault(name, []).append(1 / ratio)
        told = ", ".join(f"{name}: {ratio:.2f}" if np.isfinite(ratio) else f"{name}: never" for name, ratio in ratios.items())
        parts.append(f"T = {T}, over {_count(fresh)} samples of a fresh start: {told}")
    factors = {name: saved[f"{name}, overlap 1"] for name in ("values", "frozen")}
    parts.append("; ".join(f"{name}, same P: {min(x):.1f} to {max(x):.1f} times fewer samples" for name, x in factors.items()))
    return Outcome("\n".join(parts), verdict(all(good)))


def frozen_values_and_T(transformers: Table) -> Outcome:
    """With frozen values of a task with the same P, the samples until half of the excess loss is left grow like T^0.15 or slower,
    for N = 3 and 10 (the 95 % interval is below).
    """
    parts = []
    flat = []
    flatter = []
    for N in (3, 10):
        fresh = growth(pick(transformers, study="scaling", N=N, variant="standard"), "rate", "samples_50")
        kept = pick(transferred(transformers, "frozen", "1"), N=N)
        frozen = growth(kept, "rate", "samples_50")
        flat.append(frozen.high < 0.15)
        flatter.append(frozen.high < fresh.low)
        long = [median(best_setting(pick(kept, T=T), "rate")["samples_10"]) for T in (2048, 8192)]
        told = f"exponent of T {fresh} from a fresh start, {frozen} with frozen values"
        parts.append(f"N = {N}: {told}; 10 % left after {_count(long[0])} at T = 2,048 and {_count(long[1])} at T = 8,192")
    return Outcome.judged(
        "\n".join(parts),
        literal=all(flat),
        changed=all(flatter),
        change="they grow, with a smaller exponent than from a fresh start",
        instead="they grow as they do from a fresh start",
    )


def thresholds_in_attention(transformers: Table) -> Outcome:
    """A softmax whose weights are shrunk, or whose logits are soft-thresholded, is at 10 % after at most 0.9 of the samples of a
    plain one, at N = 10 and T = 128 and 512: the best of three, with PyTorch's initial weights and with those of GPT-2.
    """
    parts = []
    saved: dict[str, list[float]] = {"": [], SMALL: []}
    for small, factors in saved.items():
        for T in (128, 512):
            plain = median(_samples(transformers, f"scaling{small}", 10, T, "standard")["samples_10"])
            found = {name: median(_samples(transformers, f"proximal{small}", 10, T, name)["samples_10"]) for name in THRESHOLDS}
            factors.append(plain / min(found.values()))
            told = ", ".join(f"{name} {_count(x)}" for name, x in found.items())
            parts.append(f"{'weights 0.02' if small else 'PyTorch’s weights'}, T = {T}: plain {_count(plain)}; {told}")
    return Outcome.judged(
        "\n".join(parts),
        literal=min(saved[""] + saved[SMALL]) >= 1 / 0.9,
        changed=max(saved[SMALL]) >= 1 / 0.9 and max(saved[""]) < 1 / 0.9,
        change=f"it helps where weights begin at 0.02, up to {max(saved[SMALL]):.1f} times, and does not with PyTorch's",
        instead="it costs samples",
    )


def centred_values(transformers: Table) -> Outcome:
    """With values from which their μ-mean over the tokens is taken, 10 % are left after fewer samples than without, at every N and
    T at which one of the two gets there; and from T = 512 on after at most 0.8 of them.
    """
    parts = []
    good = []
    saved = []
    for study, N in (("", 10), ("", 3), (SMALL, 10)):
        cells = pick(transformers, study=f"proximal{study}", N=N, variant="values centred")
        for T in sorted(values(cells, "T")):
            plain = _samples(transformers, f"scaling{study}", N, T, "standard")["samples_10"]
            centred = _samples(transformers, f"proximal{study}", N, T, "values centred")["samples_10"]
            if np.isfinite(median(plain)) or np.isfinite(median(centred)):
                good.append(median(centred) < median(plain) * (0.8 if T >= 512 else 1.0))
                saved.append(1 - median(centred) / median(plain))
            weights = ", weights 0.02" if study else ""
            parts.append(f"N = {N}, T = {T:,}{weights}: {_told(plain)} without, {_told(centred)} with")
    parts.append(f"saved where both get there: {min(saved):.0%} to {max(x for x in saved if x < 1):.0%}")
    return Outcome("\n".join(parts), verdict(all(good)))


def attention_finds_the_positions(transformer_stages: Table) -> Outcome:
    """At least 7 runs of 8 get to 10 % of the excess loss. At the first look at which one is there, at least 0.8 of the attention
    that probe sees lies on the true positions, and at most 10 % of what the model says lacks the form of the task.
    """
    parts = []
    good = {}
    for start in values(transformer_stages, "start"):
        runs = [pick(transformer_stages, start=start, replicate=i) for i in np.unique(transformer_stages["replicate"])]
        first = [where(run, run["left"] <= 0.1) for run in runs if (run["left"] <= 0.1).any()]
        mass = np.array([run["mass"][0] for run in first])
        form = np.array([run["unexplained"][0] for run in first])
        good[start] = 8 * len(first) >= 7 * len(runs) and bool(mass.min() >= 0.8 and form.max() <= 0.1)
        told = (
            f"; on the true positions {mass.min():.3f} to {mass.max():.3f}, of another form at most {form.max():.1%}"
            if first
            else ""
        )
        parts.append(f"{start}: {len(first)} of {len(runs)} runs get there{told}")
    return Outcome.judged(
        "\n".join(parts),
        literal=all(good.values()),
        changed=good["fresh"],
        change="from a fresh start; with kept values the loss is there a little before the attention is",
        instead="attention lies elsewhere",
    )


def attention_before_values(transformer_stages: Table) -> Outcome:
    """From a fresh start, α_A reaches 0.8 before α_V does in at least 7 tasks of 8."""

    def reached(start: str, signal: str) -> np.ndarray:
        runs = [pick(transformer_stages, start=start, replicate=i) for i in np.unique(transformer_stages["replicate"])]
        return np.array([min(run["samples"][run[signal] >= 0.8], default=np.inf) for run in runs], dtype=float)

    A = reached("fresh", "alpha_A")
    V = reached("fresh", "alpha_V")
    told = f"α_A reaches 0.8 after {_told(A)} samples, α_V after {_told(V)}; first in {np.sum(A < V)} of {len(A)} tasks"
    kept = f"α_A after {_told(reached('values kept', 'alpha_A'))}, α_V after {_told(reached('values kept', 'alpha_V'))}"
    return Outcome(told, verdict(8 * np.sum(A < V) >= 7 * len(A)), control=f"with kept values: {kept}")


def decoders_need_more_tokens(decoders: Table) -> Outcome:
    """On one sequence, SparseContextualBigram leaves at most 10 % of the excess loss from a quarter of the tokens, or fewer, that
    the best decoder needs for that, in the median.
    """
    needs = {}
    parts = []
    for model in values(decoders, "model"):
        chosen = chosen_decoders(pick(decoders, model=model))
        shares = {n: median(pick(chosen, length=n)["share"]) for n in sorted(values(chosen, "length"))}
        needs[model] = min((n for n, share in shares.items() if share <= 0.1), default=np.inf)
        parts.append(f"{model}: " + ", ".join(f"{share:.1%} left from {n:,}" for n, share in shares.items()))
    best = min(n for model, n in needs.items() if model.startswith("decoder"))
    return Outcome("\n".join(parts), verdict(4 * needs["SparseContextualBigram"] <= best))


ONE = "one layer, width 64, softmax, layer norm, MLP, Adam, cross-entropy, B = 256, best of 4 learning rates"
CLAIMS = (
    Claim(
        figure="F25",
        says="A real transformer needs more samples the longer the context, and its exponent is far above that of Algorithm 1.",
        quote="",
        where="beyond the paper: softmax, embeddings, layer norm, MLP, Adam, cross-entropy",
        setting=ONE,
        judge=samples_grow_with_T,
    ),
    Claim(
        figure="F25",
        says="Trained on fresh samples, it needs at least 5 times those of Algorithm 1, and 50 times those of recover.",
        quote="",
        where="beyond the paper",
        setting=f"{ONE}, squared error",
        judge=far_from_the_limit,
    ),
    Claim(
        figure="F25",
        says="It begins with a plateau, as Stage 1 does, and the plateau takes a larger share where T is larger.",
        quote="",
        where="Stage 1 of the paper, in a real transformer",
        setting=ONE,
        judge=a_plateau_that_grows,
    ),
    Claim(
        figure="F25",
        says="Values that are kept from another task save samples, and the more the closer the tasks are.",
        quote="",
        where="Section 4, in a real transformer",
        setting=f"{ONE}; query, key and position embedding are fresh",
        judge=kept_values_save_samples,
    ),
    Claim(
        figure="F25",
        says="A proximal step inside the attention saves samples.",
        quote="",
        where="Section 2.3, in a real transformer",
        setting=ONE,
        judge=thresholds_in_attention,
    ),
    Claim(
        figure="F25",
        says="Values that are centred, as the μ-orthogonal projector has them, save samples.",
        quote="",
        where="the preconditioner of Section 2.3, in a real transformer",
        setting=ONE,
        judge=centred_values,
    ),
    Claim(
        figure="F26",
        says="A transformer that has learned a task attends to its positions: a black box shows it.",
        quote="",
        where="beyond the paper; probe sees predictions alone",
        setting="Adam at 0.001, at most 307,200 samples",
        judge=attention_finds_the_positions,
    ),
    Claim(
        figure="F26",
        says="From a fresh start attention is there before the values are.",
        quote="",
        where="Stages 1 to 3 of the paper, in a real transformer",
        setting="Adam at 0.001, at most 307,200 samples",
        judge=attention_before_values,
    ),
    Claim(
        figure="F26",
        says="On one sequence, the estimator needs a fraction of the tokens that a decoder needs.",
        quote="",
        where="Section 2.1, the extension to sequences",
        setting="sparsity 2, lags up to 33",
        judge=decoders_need_more_tokens,
    ),
    Claim(
        figure="F25",
        says="With frozen values of a task with the same P, the samples that a transformer needs do not grow with T.",
        quote="",
        where="Section 4, in a real transformer: transfer takes away the dependence of Stage 1 on T",
        setting=f"{ONE}; query, key and position embedding are fresh; values of a task with as many positions, or 128 for T > 512",
        judge=frozen_values_and_T,
    ),
)
