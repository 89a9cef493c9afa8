import numba
import numpy as np
import pytest

from scb import Task, sample
from scb.kernels.random import draw_tokens, first_above, token_sampler, token_scratch
from scb.kernels.step.batch import TILE, draw_mini_batch
from scb.kernels.step.fused import mini_batch_gradient
from scb.model import batch_gradient
from scb.task.sampling import step_keys
from scb.training.sources.population import Population
from scb.training.sources.sampled import Dataset, Fresh, Reference
from truth import twins as reference
from truth.enumeration import WORLDS, constrained_point, free_point
from truth.statistics import assert_distribution

SAMPLED = {"reference": Reference, "fresh": Fresh}
KEY = np.uint64(99)


def error(gradient, truth):
    return np.sqrt(np.square(gradient.V - truth.V).sum() + np.square(gradient.A - truth.A).sum())


@pytest.mark.parametrize("kind", SAMPLED)
@pytest.mark.parametrize("N", [3, 12])
def test_sampled_gradients_approach_the_population_at_root_n(kind, N):
    """The measured slope of log error in log n is −0.5 ± 0.1, and the loss approaches too."""
    task = Task.random(N, 20, 2, seed=1)
    V, A = free_point(task, np.random.default_rng(3))
    truth = Population(task)(V, A, 0, KEY)
    sizes = np.array([100, 400, 1600, 6400, 25600])
    errors = [
        np.mean([error(SAMPLED[kind](task)(V, A, int(n), key), truth) for key in step_keys(int(n), range(12))]) for n in sizes
    ]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4
    big = SAMPLED[kind](task)(V, A, 100_000, KEY)
    assert big.loss == pytest.approx(truth.loss, rel=0.02)
    assert big.samples == 100_000


@pytest.mark.parametrize("world", WORLDS[::4], ids=lambda w: f"N{w.task.N}T{w.task.T}")
def test_population_equals_enumeration(world):
    V, A = free_point(world.task, np.random.default_rng(2))
    gradient = Population(world.task)(V, A, 64, KEY)
    gV, gA = world.gradients(V, A)
    np.testing.assert_allclose(gradient.V, world.mean(gV), atol=1e-10)
    np.testing.assert_allclose(gradient.A, world.mean(gA), atol=1e-10)
    np.testing.assert_allclose(gradient.loss, world.mean(world.losses(V, A)), atol=1e-10)


def test_dataset_draws_without_repetition_and_averages_to_the_whole():
    task = Task.random(3, 10, 2, seed=1)
    data = sample(task, 30, seed=1)
    V, A = free_point(task, np.random.default_rng(2))
    whole = Dataset(data)(V, A, 30, KEY)
    np.testing.assert_array_equal(whole.A, batch_gradient(V, A, data).A)
    assert Dataset(data)(V, A, 1000, KEY).samples == 30
    almost = [Dataset(data)(V, A, 29, key) for key in step_keys(0, range(200))]
    # a batch of 29 of 30 without repetition leaves one sample out, so the gradient takes one of 30 values only
    assert len({round(float(g.V[0, 0]), 12) for g in almost}) <= 30
    few = np.mean([Dataset(data)(V, A, 5, key).V for key in step_keys(0, range(4000))], axis=0)
    np.testing.assert_allclose(few, whole.V, atol=0.05)
    with pytest.raises(ValueError, match="data is empty"):
        Dataset(sample(task, 0))


def task_distribution(task, bits=16):
    return Fresh(task).sampler._replace(tokens=token_sampler(task.mu, bits))


@pytest.mark.parametrize("bits", [16, 5])
@pytest.mark.parametrize(("N", "T"), [(2, 60), (3, 1500), (8, 1024), (10, 61), (40, 1100), (300, 50)])
def test_fresh_kernel_equals_its_twin_on_the_same_tokens(N, T, bits):
    """With 5 bits, 3 % of the tokens and more are settled by the exact path."""
    task = Task.random(N, T, 3, seed=1)
    V, A = free_point(task, np.random.default_rng(0))
    A /= T
    sampler, offset = task_distribution(task, bits), np.random.default_rng(1).normal(size=N) / T
    gA = np.zeros((T, N), order="F")
    loss, gV = mini_batch_gradient(KEY, sampler, 45, V, np.asfortranarray(A - offset), offset, gA)
    for got, expected in zip((loss, gV, gA), reference.mini_batch_gradient(KEY, sampler, 45, V, A), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("N", "B"), [(3, 64), (10, 64), (40, 64), (200, 64), (3, 1), (5, 1000)])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_batch_is_laid_out_without_gap_or_overlap(N, B, in_place):
    mu = Fresh(Task.random(N, 5000, 2)).sampler.labels.mu
    batch = draw_mini_batch(np.uint64(5), mu, B, 5000, in_place)
    lasts, keys, uniforms = reference.draw_mini_batch(np.uint64(5), mu, B)
    for got, expected in ((batch.lasts, lasts), (batch.keys, keys), (batch.uniforms, uniforms)):
        np.testing.assert_array_equal(got, expected)
    for bounds in (batch.shares, batch.tiles, batch.segments):
        assert bounds[0] == 0
        assert bounds[-1] == B
        assert (np.diff(bounds) >= 0).all()
    assert (np.diff(batch.tiles) <= TILE).all()
    assert set(batch.shares) <= set(batch.tiles) <= set(range(B + 1))
    for begin, end in zip(batch.segments[:-1], batch.segments[1:], strict=True):
        assert len(set(lasts[begin:end])) == 1
    used = batch.accumulator[batch.accumulator >= 0]
    np.testing.assert_array_equal(used, np.arange(used.size))
    for segment in np.flatnonzero(batch.accumulator < 0):  # these have their column for themselves, in one tile
        begin, end = batch.segments[segment : segment + 2]
        assert (lasts == lasts[begin]).sum() == end - begin
        assert np.searchsorted(batch.tiles, begin, "right") == np.searchsorted(batch.tiles, end - 1, "right")


def test_first_above_equals_its_twin():
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 100):
        ascending = np.sort(rng.integers(0, 20, size))
        for value in range(-1, 21):
            assert first_above(ascending, value) == np.searchsorted(ascending, value, side="right")


@pytest.mark.parametrize("bits", [16, 8, 3])
@pytest.mark.parametrize("N", [2, 3, 9, 30, 300])
def test_drawn_tokens_have_the_distribution_and_equal_their_twin(N, bits):
    mu = np.random.default_rng(N).dirichlet(np.full(N, 2.0))
    sampler = token_sampler(mu, bits)
    tokens = np.empty(200_001, np.uint16)
    draw_tokens(np.uint64(12345), sampler, token_scratch(), tokens)
    np.testing.assert_array_equal(tokens, reference.draw_tokens(np.uint64(12345), sampler, len(tokens)))
    assert_distribution(np.bincount(tokens, minlength=N), mu)
    pairs = np.bincount(tokens[:-1:2].astype(int) * N + tokens[1::2], minlength=N * N)
    if N <= 30:
        assert_distribution(pairs, np.outer(mu, mu))


def test_a_distribution_on_the_grid_of_16_bits_is_not_biased():
    """A dyadic μ puts thresholds exactly on the grid; and tiny probabilities share a cell."""
    for mu in (np.array([0.5, 0.25, 0.25]), np.r_[0.5, np.full(64, 2.0**-18), 0.5 - 64 * 2.0**-18]):
        tokens = np.empty(4_000_000, np.uint8)
        draw_tokens(np.uint64(7), token_sampler(mu), token_scratch(), tokens)
        assert_distribution(np.bincount(tokens, minlength=len(mu)), mu)


def test_fresh_has_the_covariance_of_the_reference():
    """Beyond the mean: the variance of single entries of the gradient agrees, so the noise is the same."""
    task = Task.random(3, 15, 2, seed=1)
    V, A = constrained_point(task, np.random.default_rng(1))
    variances = []
    for kind in (Reference, Fresh):
        draws = [kind(task)(V, A, 8, key) for key in step_keys(7, range(6000))]
        variances.append(
            np.concatenate([np.var([g.V.ravel() for g in draws], axis=0), np.var([g.A.ravel() for g in draws], axis=0)])
        )
    np.testing.assert_allclose(variances[0], variances[1], rtol=0.15)


def test_sources_are_reproducible():
    task = Task.random(5, 50, 2)
    V, A = constrained_point(task, np.random.default_rng(1))
    for source in (Reference(task), Fresh(task), Dataset(sample(task, 100))):
        one, two, other = (source(V, A, 16, np.uint64(key)) for key in (1, 1, 2))
        np.testing.assert_array_equal(one.A, two.A)
        assert not np.array_equal(one.A, other.A)


def test_fresh_does_not_depend_on_the_number_of_threads():
    task = Task.random(5, 3000, 2)
    V, A = constrained_point(task, np.random.default_rng(1))
    answers = []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        answers.append(Fresh(task)(V, A, 300, KEY))
    numba.set_num_threads(1)
    assert answers[0].loss == answers[1].loss
    np.testing.assert_array_equal(answers[0].V, answers[1].V)
    np.testing.assert_array_equal(answers[0].A, answers[1].A)
