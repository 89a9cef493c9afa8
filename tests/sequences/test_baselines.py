"""n-grams, context tree weighting and PPM against textbook numbers, plain counting in Python, and enumeration of all trees."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from scb.mixture.data import Here
from scb.sequences.baselines.counts import Histories, HistoryCounts, deepest, histories_in, history_codes
from scb.sequences.baselines.crossfit import HeldLabels, best_context_tree, best_ngram, best_recent, blocks_of
from scb.sequences.baselines.ctw import ContextTree
from scb.sequences.baselines.ngram import NGram, discounts
from scb.sequences.baselines.ppm import PPM
from scb.sequences.baselines.scoring import baseline_scorers, scored

GAP = -1


def context(symbols, N):
    """The code of a context, whose oldest symbol comes first."""
    return sum((x + 1) * (N + 1) ** j for j, x in enumerate(reversed(symbols)))


def every_label(x, N, depth):
    """All symbols of a sequence, the first one with nothing before it."""
    return Histories(history_codes(np.array(x), N, depth)[:-1], np.array(x))


def histories(sequences, depth):
    """Label and context (oldest first; None: a start or a gap stopped it) of each symbol that has one right before it, by hand."""
    for x in sequences:
        for i in range(1, len(x)):
            if x[i] < 0 or x[i - 1] < 0:
                continue
            before = []
            for j in range(i - 1, i - 1 - depth, -1):
                if j < 0 or x[j] < 0:
                    before.append(None)
                    break
                before.append(x[j])
            yield x[i], tuple(reversed(before))


# ------------------------------------------------------------------------------------------------- counts


def some_sequences(seed, N, gaps=True):
    rng = np.random.default_rng(seed)
    sequences = [rng.integers(N, size=n) for n in (60, 1, 40, 2)]
    if gaps:
        sequences[0][[10, 30, 31]] = GAP
    return sequences


def test_counts_equal_counting_by_hand():
    sequences = some_sequences(0, 3)
    counts = HistoryCounts.count(histories_in(sequences, 3, 2), 3, 2)
    expected = Counter((tuple(s for s in c if s is not None), o) for o, c in histories(sequences, 2))
    assert dict(zip(counts.codes.tolist(), counts.counts.tolist(), strict=True)) == {
        context(c, 3) * 3 + o: times for (c, o), times in expected.items()
    }
    left = defaultdict(set)
    for o, c in histories(sequences, 2):
        left[c[-1], o].add(c[0])  # the symbol before the last one, or None
    tree = counts.tree
    nodes = np.arange(*tree.firsts[1:3])  # of one symbol
    for code, kinds in zip(tree.histories[nodes], tree.dense(tree.kinds, nodes), strict=True):
        assert kinds.tolist() == [len(left[int(code) - 1, o]) for o in range(3)]


def test_counts_add_up_and_come_apart():
    labels = histories_in(some_sequences(1, 4), 4, 3)
    first, last = blocks_of(labels, 0, labels.label.size, 2)
    whole, a, b = (HistoryCounts.count(part, 4, 3) for part in (labels, first, last))
    for one, other in ((a + b, whole), (whole - b, a)):
        left = one.counts > 0
        np.testing.assert_array_equal(one.codes[left], other.codes)
        np.testing.assert_array_equal(one.counts[left], other.counts)
        left = one.tree.counts > 0
        for x, y in ((one.tree.counts, other.tree.counts), (one.tree.kinds, other.tree.kinds)):
            np.testing.assert_array_equal(x[left], y)
        np.testing.assert_array_equal(one.tree.multiplicities, other.tree.multiplicities)
    np.testing.assert_array_equal(whole.shortened(1).codes, HistoryCounts.count(labels, 4, 1).codes)


def test_contexts_that_do_not_fit_into_an_integer_are_refused():
    assert deepest(4000, 10) == 4
    with pytest.raises(ValueError, match=r"depth = 9: with 200 different symbols, histories can have between 0 and 7"):
        NGram.fit([np.arange(200)], 200, 10)


# ------------------------------------------------------------------------------------------------- n-grams


def test_discounts_are_those_of_chen_and_goodman():
    numbers = np.array([40, 20, 10, 6])  # of counts equal to 1, 2, 3, 4
    # Y = 40/(40 + 2·20) = 1/2; D₁ = 1 − 2·Y·20/40, D₂ = 2 − 3·Y·10/20, D₃₊ = 3 − 4·Y·6/10
    np.testing.assert_allclose(discounts(numbers), [0, 0.5, 1.25, 1.8])
    np.testing.assert_allclose(discounts(np.zeros(4)), [0, 0.5, 1.0, 1.5])


def test_kneser_ney_by_hand():
    """0 1 0 1 0 1 2 0: symbol 1 comes three times, but only ever after 0; 0 comes three times, after 1 and after 2."""
    model = NGram.fit([np.array([0, 1, 0, 1, 0, 1, 2, 0])], 3, 2)
    # Numbers of different symbols before: 0 has 2 (1 and 2), 1 has 1, 2 has 1. Too few for estimates: D = ½, 1, 1½.
    # Unigram: shares (2 − 1)/4, ½/4, ½/4, and 2/4 is left for 1/3 each.
    unigram = np.array([1 / 4, 1 / 8, 1 / 8]) + 1 / 2 / 3
    np.testing.assert_allclose(model.distributions(np.array([0]))[0], unigram)
    # Pairs: one of them three times, one twice, two once. Y = 2/(2 + 2·1) = ½, D₁ = ½, D₂ = 2 − 3·½·1/1 = ½; D₃₊ = 3 takes all: 1½.
    # After 0: three times 1. (3 − 1½)/3, and the other half by the unigram. After 1: 0 twice and 2 once, (2 − ½)/3 and (1 − ½)/3.
    np.testing.assert_allclose(model.distributions(np.array([1]))[0], [0, 1 / 2, 0] + unigram / 2)
    np.testing.assert_allclose(model.distributions(np.array([2]))[0], [1 / 2, 0, 1 / 6] + unigram / 3)


def plain_ngram(sequences, order, smoothing, N):
    """p(o | history), oldest symbol first, by dictionaries and recursion."""
    tables = [defaultdict(Counter) for _ in range(order)]
    kinds = [defaultdict(lambda: defaultdict(set)) for _ in range(order)]
    for o, c in histories(sequences, order - 1):
        c = c if c and c[0] is None else (None, *c)
        for d in range(min(order, len(c))):
            own = c[len(c) - d :]
            tables[d][own][o] += 1
            kinds[d][own][o].add(c[-d - 1])
    if smoothing == "kneser-ney":
        for d in range(order - 1):
            tables[d] = {c: Counter({o: len(seen) for o, seen in row.items()}) for c, row in kinds[d].items()}

    def p(o, history):
        if history is None:
            return 1 / N
        d = len(history)
        shorter = p(o, history[1:] if history else None)
        row = tables[d].get(history)
        if not row:
            return shorter
        total = sum(row.values())
        if smoothing == "witten-bell":
            return (row[o] + len(row) * shorter) / (total + len(row))
        numbers = Counter(v for r in tables[d].values() for v in r.values())
        D = discounts(np.array([numbers[times] for times in (1, 2, 3, 4)]))
        off = sum(D[min(v, 3)] for v in row.values())
        return (row[o] - D[min(row[o], 3)] + off * shorter) / total

    return p


@pytest.mark.parametrize("smoothing", ["kneser-ney", "absolute", "witten-bell"])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_an_ngram_equals_plain_counting(order, smoothing):
    train = some_sequences(order, 4)
    test = some_sequences(order + 10, 5)
    model = NGram.fit(train, 5, order, smoothing)
    p = plain_ngram(train, order, smoothing, 5)
    expected = [p(o, tuple(s for s in c if s is not None)) for o, c in histories(test, order - 1)]
    labels = histories_in(test, 5, order - 1)
    np.testing.assert_allclose(model.likelihoods(labels), expected, rtol=1e-12)
    distributions = model.distributions(labels.history)
    np.testing.assert_allclose(distributions[np.arange(len(distributions)), labels.label], expected, rtol=1e-12)
    np.testing.assert_allclose(distributions.sum(axis=1), 1, rtol=1e-12)


# ------------------------------------------------------------------------------------------------- context trees


def test_the_context_tree_of_willems_shtarkov_and_tjalkens():
    """Their example: 0110100 after 010, depth 3, has probability 95/32768."""
    labels = every_label([0, 1, 0, 0, 1, 1, 0, 1, 0, 0], 2, 3)
    counts = HistoryCounts.count(labels.part(slice(3, None)), 2, 3)
    assert np.exp(ContextTree(counts).loglik) == pytest.approx(95 / 32768, rel=1e-12)


def dirichlet(counts, N):
    """The probability of labels, each as likely as its count so far plus a half."""
    p, total = Fraction(1), Fraction(N, 2)
    for times in counts.values():
        for already in range(times):
            p *= (already + Fraction(1, 2)) / total
            total += 1
    return p


def trees(node, depth, N):
    """All trees below a node: probability and leaves. A node that a start ends has no children."""
    if len(node) == depth or (node and node[0] is None):
        yield Fraction(1), [node]
        return
    yield Fraction(1, 2), [node]
    for below in product(*(list(trees((s, *node), depth, N)) for s in (*range(N), None))):
        weight, leaves = Fraction(1, 2), []
        for p, more in below:
            weight *= p
            leaves += more
        yield weight, leaves


def test_context_tree_weighting_is_the_mean_over_all_trees():
    N, depth, sequences = 2, 2, [[0, 1, 1, 0, 1, GAP, 1, 1, 0], [1, 0], [0, 0, 0, 1]]

    def probability(pairs):
        total = Fraction(0)
        for weight, leaves in trees((), depth, N):
            for leaf in leaves:
                weight *= dirichlet(Counter(o for o, c in pairs if c[len(c) - len(leaf) :] == leaf), N)
            total += weight
        return total

    seen = list(histories(sequences, depth))
    tree = ContextTree(HistoryCounts.count(histories_in([np.array(x) for x in sequences], N, depth), N, depth))
    whole = probability(seen)
    assert np.exp(tree.loglik) == pytest.approx(float(whole), rel=1e-12)
    for before in ((0, 0), (1, 0), (0, 1), (1, 1), (None, 0), (None, 1)):
        model = tree.distributions(np.array([context([s for s in before if s is not None], N)]))[0]
        expected = [float(probability([*seen, (o, before)]) / whole) for o in range(N)]
        np.testing.assert_allclose(model, expected, rtol=1e-12)


def test_a_context_tree_finds_what_matters_where():
    """After 0 the next symbol is fair; after 1 it is the one three before. Bits a symbol come close to what is possible."""
    rng = np.random.default_rng(0)
    x = rng.integers(2, size=20_000)
    for i in range(3, x.size):
        if x[i - 1] == 1:
            x[i] = x[i - 3] ^ (rng.random() < 0.05)
    tree = ContextTree.fit([x[:16_000]], 2, 8)
    labels = histories_in([x[16_000:]], 2, 8)
    after = labels.history % 3 == 2
    kept = labels.label == labels.history // 9 % 3 - 1
    oracle = -np.log2(np.where(kept, 0.95, 0.05))[after].mean()
    bits = -np.log2(tree.likelihoods(labels))
    assert oracle - 0.005 < bits[after].mean() < oracle + 0.01
    assert bits[~after].mean() == pytest.approx(1, abs=0.01)


# ------------------------------------------------------------------------------------------------- PPM


def test_ppm_on_abracadabra():
    """The example of Cleary and Teahan (1997): order 2, method C, after abracadabra; an alphabet of 26 letters."""
    letters = [ord(c) - ord("a") for c in "abracadabra"]
    model = PPM(HistoryCounts.count(every_label(letters, 26, 2), 26, 2), method="C", update_exclusion=False)
    model = model.distributions(np.array([context(letters[-2:], 26)]))[0]
    assert model[ord("c") - ord("a")] == pytest.approx(1 / 2)
    assert model[ord("d") - ord("a")] == pytest.approx(1 / 2 * 1 / 6)
    assert model[ord("t") - ord("a")] == pytest.approx(1 / 2 * 3 / 6 * 5 / 12 / (26 - 5))
    assert model.sum() == pytest.approx(1)


def test_method_d_by_hand():
    """After 0 came 1 twice and 2 once: (2 − ½)/3, (1 − ½)/3, and a third escapes. Labels: 1, 0, 1, 0, 2, in the empty context."""
    model = PPM(HistoryCounts.count(histories_in([np.array([0, 1, 0, 1, 0, 2])], 4, 1), 4, 1), update_exclusion=False)
    model = model.distributions(np.array([context([0], 4)]))[0]
    # The empty context, without 1 and 2: 0 twice, (2 − ½)/2, and ½/2 escapes to 3, the one that is left.
    np.testing.assert_allclose(model, [1 / 3 * 3 / 4, 1 / 2, 1 / 6, 1 / 3 * 1 / 4])


@pytest.mark.parametrize("method", ["C", "D"])
@pytest.mark.parametrize("update_exclusion", [True, False])
def test_ppm_is_a_distribution_and_needs_no_symbol_to_be_seen(method, update_exclusion):
    counts = HistoryCounts.count(histories_in(some_sequences(3, 3), 5, 3), 5, 3)
    model = PPM(counts, method, update_exclusion)
    labels = histories_in(some_sequences(4, 5), 5, 3)
    distributions = model.distributions(labels.history)
    np.testing.assert_allclose(distributions.sum(axis=1), 1, rtol=1e-12)
    assert distributions.min() > 0
    np.testing.assert_allclose(model.likelihoods(labels), distributions[np.arange(len(distributions)), labels.label])


# ------------------------------------------------------------------------------------------------- cross-fitting


def by_folds(fit, labels, first=0, n=None):
    """The probability of each label by the fold that has not seen it; they are those from ``first`` on, of n."""
    parts = blocks_of(labels, first, n or labels.label.size, len(fit.blocks))
    return np.concatenate([fold.likelihoods(part) for fold, part in zip(fit.folds, parts, strict=True)])


def test_each_block_is_predicted_from_the_others():
    sequences = some_sequences(5, 3)
    fitted = best_ngram(HeldLabels.here(sequences, 3, 8), blocks=4)
    depth = fitted.model.counts.depth
    labels = histories_in(sequences, 3, depth)
    bounds = np.linspace(0, labels.label.size, 5).astype(int)
    place = np.arange(labels.label.size)
    expected = []
    for a, b in pairwise(bounds):
        outside = (place < a) | (place >= b)
        other = NGram(HistoryCounts.count(labels.part(outside), 3, depth), fitted.model.smoothing)
        expected.append(other.likelihoods(labels.part(slice(a, b))))
    np.testing.assert_allclose(by_folds(fitted, labels), np.concatenate(expected), rtol=1e-12)
    assert fitted.score == pytest.approx(np.log(np.concatenate(expected)).mean())


@pytest.mark.parametrize("choose", [best_ngram, best_context_tree])
def test_it_does_not_matter_where_the_labels_lie(choose):
    labels = histories_in(some_sequences(6, 3), 3, 5)
    cuts = [0, 7, 7, 60, labels.label.size]
    pieces = [labels.part(slice(a, b)) for a, b in pairwise(cuts)]
    one = choose(HeldLabels(Here(), [labels], [labels.label.size], 3, 5))
    many = choose(HeldLabels(Here(), pieces, [piece.label.size for piece in pieces], 3, 5))
    assert one.model.name == many.model.name
    assert one.score == pytest.approx(many.score, rel=1e-12)
    whole = by_folds(one, labels)
    part = by_folds(many, pieces[2], first=7, n=labels.label.size)
    np.testing.assert_allclose(part, whole[7:60], rtol=1e-12)


def test_the_best_order_is_found():
    rng = np.random.default_rng(1)
    x = rng.integers(3, size=30_000)
    for i in range(3, x.size):
        if rng.random() < 0.8:
            x[i] = (x[i - 3] + x[i - 1]) % 3
    labels = HeldLabels.here([x[:24_000]], 3, 16)
    found = best_ngram(labels)
    assert found.model.counts.depth == 3
    now = np.arange(24_001, 30_000)
    right = x[now] == (x[now - 3] + x[now - 1]) % 3
    oracle = np.where(right, np.log(0.8 + 0.2 / 3), np.log(0.2 / 3)).mean()
    for one in (found, best_context_tree(labels)):
        assert (
            oracle - 0.01
            < np.log(one.model.likelihoods(histories_in([x[24_000:]], 3, one.model.counts.depth))).mean()
            < oracle + 0.003
        )


@pytest.mark.parametrize("N", [2, 30])
def test_noise_is_not_predicted(N):
    x = np.random.default_rng(N).integers(N, size=1000 * N)
    labels = HeldLabels.here([x], N, 16)
    for found in (best_ngram(labels), best_context_tree(labels)):
        assert -np.log(N) - 0.01 < found.score <= -np.log(N) + 0.002


def test_the_better_of_the_two_is_taken():
    x = np.random.default_rng(0).integers(3, size=2000)
    labels = HeldLabels.here([x], 3, 16)
    best = best_recent(labels)
    assert best.score == max(best_ngram(labels).score, best_context_tree(labels).score)


def test_too_few_symbols_are_named():
    with pytest.raises(ValueError, match="there are 1 symbols: at least 2"):
        best_ngram(HeldLabels.here([np.array([0, 1])], 2, 3))


# ------------------------------------------------------------------------------------------------- the contest


def test_every_baseline_is_scored_on_the_same_symbols():
    rng = np.random.default_rng(2)
    x = rng.integers(2, size=6000)
    for i in range(4, x.size):
        if rng.random() < 0.7:
            x[i] = x[i - 1] ^ x[i - 4]
    x[100] = GAP
    said = []
    scores, failures = scored(baseline_scorers([x[:4000]], [x[3990:]], 2, skipped=10), said.append)
    assert said == ["unigram", "bigram", "n-gram", "context tree", "PPM"]
    assert failures == []
    assert list(scores)[:2] == ["unigram", "bigram"]
    assert {v.size for v in scores.values()} == {2000}
    model = NGram.fit([x[:4000]], 2, 2, "witten-bell")
    by_hand = model.distributions(x[3999:5999] + 1)[np.arange(2000), x[4000:]]
    np.testing.assert_allclose(scores["bigram"], np.log(by_hand))
    assert all(v.mean() > scores["bigram"].mean() for name, v in scores.items() if name not in ("unigram", "bigram"))
