"""The bridge to PyTorch: equal to scb where scb does the same, right distributions, and a probe that finds what is there."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import scb
from scb.geometry import line_A, line_V
from scb.task.sampling import sample, step_keys
from scb.training.schedules import MeasuredNoise
from scb.training.sources.sampled import Reference
from scb.training.starts import GivenStart
from truth.enumeration import WORLDS
from truth.statistics import assert_distribution

torch = pytest.importorskip("torch", reason="PyTorch is not installed: `make test-torch` installs it and runs these tests")
bridge = pytest.importorskip("scb.torch")

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from transformers_ensemble import Ensemble, excess  # noqa: E402

from scb.torch.data import Draws  # noqa: E402

TASK = scb.Task.random(3, 200, 2, seed=1)


def reference_batches(task, seed):
    """The samples that ``scb.train`` takes with ``source=Reference(task)``."""

    def batches(step, batch_size):
        batch = sample(task, batch_size, np.random.default_rng(step_keys(seed, range(step, step + 1))[0]))
        return torch.from_numpy(batch.tokens.astype(np.int64)), torch.from_numpy(batch.label.astype(np.int64))

    return batches


def shortened(recipe, steps, **changes):
    return replace(recipe, stages=tuple(replace(stage, steps=steps, **changes) for stage in recipe.stages))


# ------------------------------------------------------------------------------------------------------ Algorithm 1


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"projector": "mu"},
        {"centred": True, "lam": 1e-4},
        {"lam": MeasuredNoise(1.0)},
    ],
    ids=["as it is", "mu", "centred", "measured noise"],
)
@pytest.mark.parametrize(("name", "stages", "steps"), [("paper", 2, 105), ("tuned", 3, 70)])
def test_the_optimiser_takes_the_steps_of_train(name, stages, steps, changes):
    """All stages of a recipe, with their roundings, from a point at which there is something to round."""
    recipe = shortened(getattr(scb.recipes, name)(TASK), steps, stop=None, **changes)
    recipe = replace(recipe, start=GivenStart(line_V(TASK, 0.3), line_A(TASK, 0.3)))
    assert len(recipe.stages) == stages
    run = scb.train(TASK, recipe, seed=5, source=Reference(TASK))
    model = bridge.follow(recipe, reference_batches(TASK, seed=5))
    assert run.step >= 200
    np.testing.assert_allclose(model.V.detach().numpy(), run.V, atol=1e-9)
    np.testing.assert_allclose(model.A.detach().numpy(), run.A, atol=1e-9)
    assert run.history["alpha_A"][-1] > 0.5


def test_gradients_are_those_of_the_linear_transformer():
    batch = sample(TASK, 50, seed=3)
    rng = np.random.default_rng(1)
    V, A = rng.random((3, 3)), rng.random((200, 3))
    exact = scb.LinearTransformer(V, A).gradient(batch)
    model = bridge.LinearAttention(V, A)
    loss = model.loss(torch.from_numpy(batch.tokens.astype(np.int64)), torch.from_numpy(batch.label.astype(np.int64)))
    loss.backward()
    assert loss.item() == pytest.approx(exact.loss, rel=1e-12)
    np.testing.assert_allclose(model.V.grad, exact.V, atol=1e-13)
    np.testing.assert_allclose(model.A.grad, exact.A, atol=1e-13)


def test_the_optimiser_keeps_the_constraints_and_obeys_schedulers():
    recipe = scb.recipes.paper(TASK)
    model = bridge.LinearAttention(recipe.start.V, recipe.start.A)
    optimiser = bridge.Algorithm1(model.V, model.A, TASK.mu, eta_V=0.05, eta_A=0.05, lam=1e-4)
    halving = torch.optim.lr_scheduler.StepLR(optimiser, 1, gamma=0.5)
    for tokens, label in (next(batches) for batches in [bridge.SampleStream(TASK, 64)] for _ in range(3)):
        optimiser.zero_grad()
        optimiser.step(lambda tokens=tokens, label=label: backward(model.loss(tokens, label)))
        halving.step()
    V, A = model.V.detach().numpy(), model.A.detach().numpy()
    np.testing.assert_allclose(V.sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(V @ TASK.mu, TASK.mu, atol=1e-12)
    np.testing.assert_allclose(A.sum(axis=0), 1, atol=1e-12)
    assert [group["lr"] for group in optimiser.param_groups] == [0.05 / 8, 0.05 / 8]
    with pytest.raises(scb.InputError, match="eta_V = -1"):
        bridge.Algorithm1(model.V, model.A, TASK.mu, eta_V=-1, eta_A=0.0)
    with pytest.raises(scb.InputError, match="V has shape"):
        bridge.Algorithm1(model.A, model.A, TASK.mu, eta_V=0.0, eta_A=0.0)
    with pytest.raises(scb.InputError, match="not proximal"):
        bridge.follow(shortened(recipe, 1, rule="vanilla"), reference_batches(TASK, 1))


def backward(loss):
    loss.backward()
    return loss


# ------------------------------------------------------------------------------------------------------ data


@pytest.mark.parametrize("drawn", ["compiled", "by PyTorch", *(["cuda"] if torch.cuda.is_available() else [])])
@pytest.mark.parametrize("world", WORLDS[::3], ids=lambda w: f"N{w.task.N}T{w.task.T}")
def test_the_stream_follows_the_enumerated_distribution(world, drawn):
    """Drawn by PyTorch is what other devices do; its code is the same on the CPU."""
    if drawn == "by PyTorch":
        tokens, label = (part[0] for part in Draws([world.task], seed=7, device="cpu")(0, 200_000))
    else:
        device = "cuda" if drawn == "cuda" else "cpu"
        tokens, label = (part.cpu() for part in bridge.SampleStream(world.task, 200_000, seed=3, device=device).at(0))
    code = np.zeros(len(label), dtype=int)
    exact = np.zeros(len(world), dtype=int)
    columns = (*tokens.numpy().T, label.numpy())
    for column, truth in zip(columns, (*world.context.T, world.last, world.label), strict=True):
        code, exact = code * world.task.N + column, exact * world.task.N + truth
    assert_distribution(np.bincount(code, minlength=len(world))[exact], world.probability)


def test_workers_give_the_same_batches_in_the_same_order():
    alone = bridge.SampleStream(TASK, 8, seed=2)
    loader = iter(DataLoader(bridge.SampleStream(TASK, 8, seed=2), batch_size=None, num_workers=2))
    for _ in range(5):
        mine, theirs = next(alone), next(loader)
        assert torch.equal(mine[0], theirs[0])
        assert torch.equal(mine[1], theirs[1])
    del loader
    assert alone.state_dict() == {"step": 5}


def DataLoader(*arguments, **options):
    return torch.utils.data.DataLoader(*arguments, multiprocessing_context="spawn", **options)


def test_a_stream_goes_on_where_another_stopped():
    one = bridge.SampleStream(TASK, 8, seed=2)
    batches = [next(one) for _ in range(4)]
    other = bridge.SampleStream(TASK, 8, seed=2)
    other.load_state_dict({"step": 2})
    assert torch.equal(next(other)[0], batches[2][0])
    assert torch.equal(bridge.SampleStream(TASK, 8, seed=2, start=3).at(3)[0], batches[3][0])
    assert torch.equal(next(bridge.SampleStream(TASK, 8, seed=2, start=3))[1], batches[3][1])


def test_sequences_are_shifted_by_one():
    inputs, targets = next(bridge.SequenceStream(TASK, 300, batch_size=4, seed=1))
    assert inputs.shape == targets.shape == (4, 300)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    assert torch.equal(bridge.SequenceStream(TASK, 300, batch_size=4, seed=1).at(0)[0], inputs)
    assert not torch.equal(inputs[0], inputs[1])
    with pytest.raises(scb.InputError, match="length = 0"):
        bridge.SequenceStream(TASK, 0)


# ------------------------------------------------------------------------------------------------------ the transformer


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("attention", ["softmax", "linear", "shrunk", "thresholded"])
def test_the_last_position_alone_is_what_the_whole_says(attention, layers):
    """One layer goes through the table of all tokens at all positions, two do not; gradients agree as well."""
    torch.manual_seed(1)
    model = bridge.Transformer(5, 20, width=16, heads=2, layers=layers, attention=attention).double()
    for parameter in model.parameters():
        parameter.data *= 20  # far from the start, where all attention is uniform
    tokens = torch.randint(5, (3, 21))
    whole = model(tokens, last=False)
    assert whole.shape == (3, 21, 5)
    torch.testing.assert_close(model(tokens), whole[:, -1], atol=1e-9, rtol=1e-9)
    changed = tokens.clone()
    changed[:, 12:] = (changed[:, 12:] + 1) % 5
    torch.testing.assert_close(model(changed, last=False)[:, :12], whole[:, :12], atol=1e-9, rtol=1e-9)  # causal
    of_whole = torch.autograd.grad(whole[:, -1].square().sum(), list(model.parameters()))
    of_last = torch.autograd.grad(model(tokens).square().sum(), list(model.parameters()))
    for one, other in zip(of_whole, of_last, strict=True):
        torch.testing.assert_close(one, other, atol=1e-7, rtol=1e-7)


def test_logits_are_soft_thresholded_at_standard_deviations():
    """By hand; masked ones stay masked, and a threshold that none exceeds leaves uniform attention."""
    block = bridge.Transformer(5, 6, width=8, attention="thresholded", shrink=1.0).blocks[0]
    scores = np.random.default_rng(1).standard_normal(6)
    centred = scores - scores.mean()
    kept = np.sign(centred) * np.maximum(np.abs(centred) - centred.std(), 0)
    expected = np.exp(kept) / np.exp(kept).sum()
    masked = torch.tensor([*scores, -np.inf])
    np.testing.assert_allclose(block._weights(masked).numpy(), [*expected, 0.0], atol=1e-12)
    block.shrink = 10.0
    np.testing.assert_allclose(block._weights(masked).numpy(), [*[1 / 6] * 6, 0.0], atol=1e-12)


def test_initial_weights_are_those_that_were_asked_for():
    torch.manual_seed(1)
    assert bridge.Transformer(5, 500, init=0.02).position.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert bridge.Transformer(5, 500).position.weight.std().item() == pytest.approx(1, rel=0.05)


def test_bad_sizes_of_a_transformer_are_named():
    with pytest.raises(scb.InputError, match="multiple of the heads"):
        bridge.Transformer(5, 20, width=16, heads=3)
    with pytest.raises(scb.InputError, match="layers = 2"):
        bridge.Transformer(5, 20, layers=2, centre=np.full(5, 0.2))
    with pytest.raises(scb.InputError, match="attention = 'no'"):
        bridge.Transformer(5, 20, attention="no")


# ------------------------------------------------------------------------------------------------------ the probe


@pytest.mark.parametrize(("N", "T", "sparsity"), [(3, 100, 2), (10, 50, 3)])
def test_the_probe_finds_a_model_that_is_one(N, T, sparsity):
    task = scb.Task.random(N, T, sparsity, seed=2)
    found = bridge.probe(bridge.LinearAttention(task.P, task.Q), task, 8_000, output="distribution")
    assert found.distance_V < 1e-3
    assert found.distance_A < 1e-3
    assert found.mass > 0.999
    assert found.unexplained < 1e-6
    assert found.signal == pytest.approx(1, abs=1e-3)
    assert "attention on the true positions: 100.0%" in str(found)
    blind = bridge.probe(
        bridge.LinearAttention(task.P, task.Q), lambda n, seed: sample(task, n, seed).tokens, 8_000, output="distribution"
    )
    np.testing.assert_allclose(blind.V, found.V, atol=1e-6)
    assert np.isnan(blind.excess)


def test_the_probe_finds_a_model_half_way():
    """V and A half way along the lines of the population process."""
    found = bridge.probe(bridge.LinearAttention(line_V(TASK, 0.6), line_A(TASK, 0.5)), TASK, 8_000, output="distribution")
    assert found.signal == pytest.approx(0.3, abs=1e-3)
    assert found.alpha_A == pytest.approx(0.5, abs=0.01)
    assert found.unexplained < 1e-6


def test_the_probe_says_that_nothing_was_learned_and_what_is_of_another_form():
    torch.manual_seed(0)
    nothing = bridge.probe(bridge.Transformer(3, 200), TASK, 2_000)
    assert not nothing.found
    assert nothing.signal == 0
    assert "nothing found" in str(nothing)
    assert nothing.left > 0.9

    def product(tokens):
        """Depends on whether two tokens agree, which no sparse contextual bigram can say."""
        same = (tokens[:, 3] == tokens[:, 9]).double()
        return torch.stack([0.2 + 0.6 * same, 0.5 - 0.3 * same, 0.3 - 0.3 * same], dim=1)

    assert bridge.probe(product, TASK, 8_000, output="distribution").unexplained > 0.5
    with pytest.raises(scb.InputError, match="it must make"):
        bridge.probe(lambda tokens: tokens.double()[:, :, None], TASK, 100)


@pytest.mark.parametrize("N", [3])
def test_a_trained_transformer_attends_to_the_true_positions(N):
    """Adam on cross-entropy, T = 32, until a tenth of the excess loss is left: the probe sees the positions of the task."""
    task = scb.Task.random(N, 32, 2, seed=1)
    torch.manual_seed(1)
    model = bridge.Transformer(N, 32, width=32)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    batches = bridge.SampleStream(task, 256, seed=1)
    left = 1.0
    while left > 0.1 and batches.step < 2_000:
        for _ in range(100):
            tokens, label = next(batches)
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(tokens), label).backward()
            optimiser.step()
        found = bridge.probe(model, task, 4_000, seed=2)
        left = found.left
    assert left <= 0.1
    assert found.mass >= 0.8
    assert found.signal > 0.5


@pytest.mark.parametrize(("page", "heading"), [("howto/pytorch", "# "), ("howto/pytorch", "in five minutes")])
def test_the_code_of_a_page_runs(page, heading):
    """As it stands, with a hundredth of the steps."""
    section = (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text().partition(heading)[2]
    code = "\n".join(re.findall(r"```python\n(.*?)```", section, re.S))
    shorter, loops = re.subn(r"(range\(|step == )(\d+)00\b", r"\1\2", code)
    assert loops > 0
    exec(shorter, {})


def test_without_pytorch_one_line_says_what_to_do():
    code = "import sys; sys.modules['torch'] = None\nimport scb\ntry:\n    import scb.torch\nexcept ImportError as e:\n    print(e)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "scb.torch needs PyTorch, which is not installed: pip install '.[torch]' in the clone\n"


# ------------------------------------------------------------------------------------------------------ many models at once


@pytest.mark.parametrize(("optimiser", "loss"), [("adam", "cross-entropy"), ("sgd", "square")])
def test_models_of_an_ensemble_are_trained_as_if_each_were_alone(optimiser, loss):
    tasks = [scb.Task.random(3, 12, 2, seed=s) for s in (1, 2)]
    torch.manual_seed(1)
    models = [bridge.Transformer(3, 12, width=8).double() for _ in tasks]
    rates = [1e-3, 1e-2]
    ensemble = Ensemble(models, rates, optimiser=optimiser, loss=loss, frozen=("position",))
    draws = Draws(tasks, seed=1, device="cpu")
    optimisers = [
        torch.optim.Adam(m.parameters(), lr=r) if optimiser == "adam" else torch.optim.SGD(m.parameters(), lr=r, momentum=0.9)
        for m, r in zip(models, rates, strict=True)
    ]
    for model in models:
        model.position.weight.requires_grad_(False)
    for step in range(20):
        tokens, label = draws(step, 32)
        ensemble.step(tokens, label)
        for model, opt, x, o in zip(models, optimisers, tokens, label, strict=True):
            opt.zero_grad()
            logits = model(x)
            if loss == "square":
                e = torch.nn.functional.one_hot(o, 3)
                (0.5 * (logits.softmax(dim=1) - e).square().sum(dim=1).mean()).backward()
            else:
                torch.nn.functional.cross_entropy(logits, o).backward()
            opt.step()
    for name, stacked in ensemble.parameters.items():
        for model, mine in zip(models, stacked, strict=True):
            torch.testing.assert_close(mine.detach(), model.state_dict()[name], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("world", WORLDS[::3], ids=lambda w: f"N{w.task.N}T{w.task.T}")
def test_draws_of_many_tasks_follow_the_enumerated_distribution(world):
    draws = Draws([world.task, world.task], seed=2, device="cpu")
    tokens, label = draws(0, 100_000)
    code = np.zeros(label.numel(), dtype=int)
    exact = np.zeros(len(world), dtype=int)
    columns = (*tokens.reshape(-1, world.task.T + 1).numpy().T, label.reshape(-1).numpy())
    for column, truth in zip(columns, (*world.context.T, world.last, world.label), strict=True):
        code, exact = code * world.task.N + column, exact * world.task.N + truth
    assert_distribution(np.bincount(code, minlength=len(world))[exact], world.probability)
    rows = tokens[:, :50]
    distributions = draws.truth(rows)[0].numpy()
    for x, distribution in zip(rows[0].numpy(), distributions, strict=True):
        np.testing.assert_allclose(distribution, world.task.P[:, x[:-1]] @ world.task.Q[:, x[-1]], atol=1e-12)
    left, left_square = excess(draws.truth(rows), draws.truth(rows), torch.tensor(np.stack([world.task.mu] * 2)))
    assert left.abs().max() < 1e-12
    assert left_square.abs().max() < 1e-12
