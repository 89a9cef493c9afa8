"""Nothing is lost, and nothing is wrong without a word: what a hostile tester found, each with the smallest case that shows it."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numba.core.event import install_recorder

import scb
from commands import ENVIRONMENT, forked
from scb.files import SLOT, read_json, remove_abandoned, seal, write_atomically
from scb.inputs import DamagedFileError, InputError, InputTypeError
from scb.jobs.table_file import read_table, write_table
from scb.sequences.model_file import load_model
from scb.task import Task
from scb.task.sampling import Batch, generate, sample
from scb.training.loop import train
from scb.training.recipes import paper, softmax
from scb.training.recipes.recipe import Recipe
from scb.training.run import Run
from scb.training.settings import TrainingSettings, parse_option
from scb.training.stages import Stage
from scb.training.starts import GivenStart, UniformAttention

SCB = Path(sys.executable).with_name("scb")
TASK = Task.random(3, 40, 2, seed=1)


def command(*arguments):
    return subprocess.run([forked(), *arguments], capture_output=True, env=ENVIRONMENT)


def short(task, **options):
    return paper(task, steps=(20, 10, 0), **options)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    scb.SparseContextualBigram(5).fit(generate(Task.random(3, 5, 2), 300)).save(path)
    return path


# ------------------------------------------------------------------------------ 1: resume


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda: (Task.random(3, 60, 2, seed=1), short, 0, {}), "task, recipe"),
        (lambda: (Task.random(3, 40, 2, seed=2), short, 0, {}), "task, recipe"),
        (lambda: (TASK, lambda task: softmax(task, steps=30), 0, {}), "recipe"),
        (lambda: (TASK, lambda task: short(task, lam=1e-4), 0, {}), "recipe"),
        (lambda: (TASK, short, 1, {}), "seed"),
        (lambda: (TASK, short, 0, {"every": 5}), "every"),
        (lambda: (TASK, short, 0, {"source": scb.training.sources.sampled.Reference(TASK)}), "source"),
    ],
)
@pytest.mark.parametrize("finished", [True, False])
def test_a_resume_that_does_not_fit_names_what_differs(tmp_path, change, named, finished):
    first = train(TASK, short(TASK), 0, checkpoint=tmp_path)
    if not finished:
        train(TASK, short(TASK), 0, callbacks=[lambda run: run.step < 20 and run.save(tmp_path)])
    before = (tmp_path / "run.safetensors").read_bytes()
    task, recipe, seed, more = change()
    with pytest.raises(InputError, match=f"a different {named}: resume it with the same"):
        train(task, recipe(task), seed, checkpoint=tmp_path, resume=True, **more)
    assert (tmp_path / "run.safetensors").read_bytes() == before
    again = train(Task.random(3, 40, 2, seed=1), short(TASK), 0, checkpoint=tmp_path, resume=True)
    assert np.array_equal(again.A, first.A)
    assert np.array_equal(again.V, first.V)


# ------------------------------------------------------------------------------ 2: two writers


def test_two_writers_do_not_meet(tmp_path, monkeypatch):
    """The second one writes while the first one is about to rename; both end, and the last to rename wins."""
    rename = os.replace

    def write_between(source, target):
        monkeypatch.setattr(os, "replace", rename)
        write_atomically(tmp_path / "a", b"second")
        rename(source, target)

    monkeypatch.setattr(os, "replace", write_between)
    write_atomically(tmp_path / "a", b"first")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_killed_writer_left_is_removed_by_the_next_and_by_nobody_while_it_lives(tmp_path, monkeypatch):
    """The temporary file of a writer is locked for as long as it lives."""
    (tmp_path / ".a.00000000.scb.partial").write_text("half")
    (tmp_path / ".b.00000000.scb.partial").write_text("half")
    rename = os.replace

    def clean_between(source, target):
        remove_abandoned(tmp_path)
        assert Path(source).exists()
        rename(source, target)

    monkeypatch.setattr(os, "replace", clean_between)
    write_atomically(tmp_path / "a", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_a_writer_whose_new_file_was_taken_for_an_abandoned_one_makes_another(tmp_path, monkeypatch):
    make = os.open
    made = []

    def removed(path, flags, *mode):
        handle = make(path, flags, *mode)
        if flags & os.O_CREAT:
            made.append(path)
            if len(made) == 1:
                remove_abandoned(tmp_path)  # before it is locked
        return handle

    monkeypatch.setattr(os, "open", removed)
    write_atomically(tmp_path / "a", b"whole")
    assert len(made) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


# ------------------------------------------------------------------------------ 3: options


@pytest.mark.parametrize(("text", "value"), [("False", False), ("false", False), ("True", True), ("true", True)])
def test_options_are_typed_by_the_signature(text, value):
    for recipe, name in (("paper", "known"), ("sgd", "preconditioned")):
        settings = TrainingSettings(T=40, recipe=recipe, options=dict([parse_option(f"{name}={text}")]))
        assert settings.options == {name: value}
    _, built = TrainingSettings(T=40, recipe="sgd", options={"preconditioned": value}).build()
    assert built.stages[0].rule == ("proximal" if value else "vanilla")


@pytest.mark.parametrize("option", ["lam=abc", "lam=nan", "lam=true", "known=no", "known=0", "steps=[1, 2]", "eta=[1]", "x=1\ny=2"])
def test_options_of_another_type_are_refused_by_name(option):
    with pytest.raises(InputError, match=option.partition("=")[0]):
        TrainingSettings(recipe="paper", options=dict([parse_option(option)]))


# ------------------------------------------------------------------------------ 4: damage


def flipped(path, places):
    """Run a test with each of these bytes of a file flipped in turn; the file is whole again afterwards."""
    whole = path.read_bytes()
    for place in places:
        damaged = bytearray(whole)
        damaged[place % len(whole)] ^= 1 << place % 8
        path.write_bytes(damaged)
        yield
    path.write_bytes(whole)


def test_every_flipped_byte_of_a_run_is_seen(tmp_path):
    train(TASK, short(TASK), 0, checkpoint=tmp_path)
    path = tmp_path / "run.safetensors"
    for _ in flipped(path, range(0, path.stat().st_size, 37)):
        with pytest.raises(DamagedFileError, match=re.escape(str(path))):
            Run.load(tmp_path)
        with pytest.raises(DamagedFileError):
            train(TASK, short(TASK), 0, checkpoint=tmp_path, resume=True)


def test_every_flipped_byte_of_a_table_is_seen(tmp_path):
    path = tmp_path / "a.parquet"
    write_table(path, {"key": np.array(["a", "b"]), "x": np.array([0.5, 1.5]), "n": np.array([1, 2])}, {"seconds": 1.0})
    for _ in flipped(path, range(path.stat().st_size)):
        with pytest.raises(DamagedFileError):
            read_table(path)


def test_a_damaged_table_of_the_cache_is_made_again(tmp_path):
    arguments = ("reproduce", "--quick", "--only", "F12", "--seeds", "1", "--jobs", "1", "--out", tmp_path)
    assert command(*arguments).returncode == 0
    table = next((tmp_path / "tables").glob("*.parquet")).read_bytes()
    path = next((tmp_path / "cache").rglob("*.parquet"))
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 4]) + whole[101:])
    result = command(*arguments)
    assert result.returncode == 0, result.stderr
    assert re.sub(r"\s+", "", f"{path} is damaged: it is made again") in re.sub(r"\s+", "", result.stderr.decode())
    assert b"1 new runs" in result.stdout
    assert next((tmp_path / "tables").glob("*.parquet")).read_bytes() == table


def test_files_without_a_digest_are_refused(tmp_path):
    np.savez(tmp_path / "task.npz", P=TASK.P, positions=TASK.positions, weights=TASK.weights, T=np.array(TASK.T))
    with pytest.raises(DamagedFileError, match=r"task.npz is damaged, or not written by scb: it carries no digest"):
        Task.load(tmp_path / "task.npz")
    (tmp_path / "config.json").write_text(json.dumps({"T": 50}))
    with pytest.raises(DamagedFileError, match=r"config.json is damaged, or not written by scb"):
        TrainingSettings.load(tmp_path)


# ------------------------------------------------------------------------------ 5: masks and complex numbers


def test_masked_and_complex_arrays_are_refused():
    Q = np.ma.array(TASK.Q, mask=False)
    assert Task(np.ma.array(TASK.P), Q) == TASK
    Q.mask[0, 0] = True
    batch = sample(TASK, 20)
    context = np.ma.array(batch.context, mask=False)
    context.mask[0, 0] = True
    tokens = np.ma.array(generate(TASK, 60), mask=False)
    tokens.mask[3] = True
    for make in (
        lambda: Task(TASK.P, Q),
        lambda: Task(TASK.P + 0.5j, TASK.Q),
        lambda: Task(TASK.P.astype(object), TASK.Q),
        lambda: Task.sparse(TASK.P, TASK.positions, TASK.weights + 1j, TASK.T),
        lambda: Batch(context, batch.last, batch.label),
        lambda: scb.recover(tokens, max_lag=5),
        lambda: scb.recover(tokens.data + 1j, max_lag=5),
        lambda: scb.LinearTransformer(TASK.P + 1j, TASK.Q),
        lambda: scb.recipes.transfer(TASK, TASK.P + 1j),
    ):
        with pytest.raises(ValueError, match=r"masked|complex|dtype"):
            make()


def test_masked_symbols_are_missing():
    symbols = generate(Task.random(3, 5, 2), 300)
    masked = np.ma.array(symbols, mask=np.arange(300) % 50 == 7)
    plain = [None if i % 50 == 7 else int(x) for i, x in enumerate(symbols)]
    one, other = scb.SparseContextualBigram(4).fit(masked), scb.SparseContextualBigram(4).fit(plain)
    assert one.n_windows_ == other.n_windows_ < 299
    assert one.loglik_ == other.loglik_


# ------------------------------------------------------------------------------ 6: crafted files


def crafted(path, change):
    """The file of a model with one thing changed, and a digest that is right: only its content can give it away."""
    from safetensors.numpy import load, save

    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["scb"])
    arrays = {name: array.copy() for name, array in load(content).items()}
    change(header["facts"], arrays)
    header["digest"] = scb.files.SLOT
    return seal(save(arrays, {"scb": json.dumps(header)}))


def nan_weight(facts, arrays):
    arrays["attention"][0] = np.nan


def negative_weight(facts, arrays):
    arrays["attention"][0] *= -1


def short_prior(facts, arrays):
    arrays["prior"] = arrays["prior"][:-1]


def improper(facts, arrays):
    arrays["transition.0"] *= 2


def small_max_lag(facts, arrays):
    facts["parameters"]["max_lag"] = int(arrays["columns"].max())


def wrong_bounds(facts, arrays):
    arrays["bounds"][1] = 10**6


def doubled_class(facts, arrays):
    facts["classes"][0] = facts["classes"][1]


def text_for_number(facts, arrays):
    facts["fit"]["loglik_"] = "much"


@pytest.mark.parametrize(
    "change",
    [nan_weight, negative_weight, short_prior, improper, small_max_lag, wrong_bounds, doubled_class, text_for_number],
)
def test_crafted_models_are_refused_before_a_kernel_sees_them(model, tmp_path, change):
    (tmp_path / "m").write_bytes(crafted(model, lambda facts, arrays: None))
    load_model(tmp_path / "m")
    (tmp_path / "m").write_bytes(crafted(model, change))
    with pytest.raises(DamagedFileError, match="is damaged"):
        scb.SparseContextualBigram.load(tmp_path / "m")


# ------------------------------------------------------------------------------ 7: files that are something else


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{", b"\xff\xfe", b"[" * 100_000, b"hello" * 100])
def test_files_of_any_content_are_one_clear_error(tmp_path, content):
    for name, read in (
        ("config.json", lambda: TrainingSettings.load(tmp_path)),
        ("run.safetensors", lambda: Run.load(tmp_path)),
        ("task.npz", lambda: Task.load(tmp_path / "task.npz")),
        ("model.safetensors", lambda: load_model(tmp_path / "model.safetensors")),
        ("facts.json", lambda: read_json(tmp_path / "facts.json")),
        ("table.parquet", lambda: read_table(tmp_path / "table.parquet")),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DamagedFileError, match=name):
            read()


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "task.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("P.npy", "w") as file:
        np.lib.format.write_array(file, np.zeros(10**6))
        archive.comment = SLOT.encode()
    path = tmp_path / "task.npz"
    path.write_bytes(seal(path.read_bytes()))
    with pytest.raises(DamagedFileError, match="compressed"):
        Task.load(path)


# ------------------------------------------------------------------------------ 8: data are no markup


def test_symbols_are_shown_as_they_are(tmp_path):
    rng = np.random.default_rng(0)
    symbols = rng.choice(["[/b]", "[bold]", "$x_$", "a:smile:"], 400)
    (tmp_path / "[x].txt").write_text(" ".join(symbols))
    out = tmp_path / "[dim]"
    result = command("fit", tmp_path / "[x].txt", "--by", "word", "--max-lag", "3", "--lags", "1", "--out", out)
    assert result.returncode == 0, result.stderr.decode()
    for text in ("[/b]", "[bold]", "$x_$", "a:smile:", "[x].txt"):
        assert text in result.stdout.decode()
    assert (out / "attention.png").stat().st_size > 1000


# ------------------------------------------------------------------------------ 9: no kernel is compiled anew


def test_an_integer_for_a_number_compiles_nothing():
    train(TASK, short(TASK))
    stage = Stage("1", np.int64(2), eta_V=1, eta_A=np.float32(1), lam=0)
    with install_recorder("numba:compile") as recorder:
        train(TASK, paper(TASK, eta=(1, 0, 0), lam=0, batch_size=np.int32(4), steps=(2, 2, 0)))
        train(TASK, Recipe("mine", UniformAttention(TASK.P, TASK.T), TASK.mu, (stage,)))
    assert not recorder.buffer
    assert [type(x) for x in (stage.steps, stage.eta_V, stage.eta_A, stage.lam)] == [int, float, float, float]


# ------------------------------------------------------------------------------ 10: recipes that do not fit


@pytest.mark.parametrize(
    "options", [{"every": -1}, {"every": 0}, {"every": 2.5}, {"checkpoint_every": 0}, {"seed": -1}, {"seed": "x"}]
)
def test_train_refuses_what_would_never_end(options):
    with pytest.raises(InputError, match=next(iter(options))):
        train(TASK, short(TASK), **options)


@pytest.mark.parametrize(
    "make",
    [
        lambda mu: Recipe("x", GivenStart(TASK.P, np.full((39, 3), 1 / 39)), TASK.mu, (Stage("1", 2, 0.1, 0.1),)),
        lambda mu: Recipe("x", UniformAttention(np.eye(4), 40), np.full(4, 0.25), (Stage("1", 2, 0.1, 0.1),)),
        lambda mu: Recipe("x", UniformAttention(TASK.P, 40), 2 * mu, (Stage("1", 2, 0.1, 0.1),)),
        lambda mu: Recipe("x", UniformAttention(TASK.P, 40), mu * np.nan, (Stage("1", 2, 0.1, 0.1),)),
        lambda mu: Recipe("x", UniformAttention(TASK.P * np.nan, 40), mu, (Stage("1", 2, 0.1, 0.1),)),
        lambda mu: Recipe("x", UniformAttention(TASK.P, 40), mu, (Stage("1", 2, 0.1, 0.1, rule="other"),)),
    ],
)
def test_a_recipe_must_fit_its_task(make):
    with pytest.raises(InputError):
        train(TASK, make(TASK.mu))


# ------------------------------------------------------------------------------ low


@pytest.mark.parametrize(
    "make",
    [
        lambda: Task.random(3, 2.5, 1),
        lambda: Task.random(3, True, 1),
        lambda: Task.random("3", 5, 1),
        lambda: Task.random(3, 5, 1, seed=-1),
        lambda: sample(TASK, 2.5),
        lambda: generate(TASK, "many"),
        lambda: TASK.related(float("nan")),
        lambda: scb.plan(3, 100, 2, overlap=float("nan")),
        lambda: scb.plan(3, 100, 2, eta=0),
        lambda: scb.plan(3, 100.5, 2),
        lambda: scb.SparseContextualBigram(3).fit(["a", "a\0"] * 20),
        lambda: scb.SparseContextualBigram(3).fit(list("abab"), lengths=True),
        lambda: scb.SparseContextualBigram(3).fit(list("abab"), lengths=["x"]),
        lambda: scb.SparseContextualBigram(2).fit(list("abac" * 9)).sample(3, random_state="x"),
        lambda: scb.SparseContextualBigram(2).fit(list("abac" * 9)).forecast(list("ab"), 2, n_samples=True),
        lambda: scb.SparseContextualBigram(2).fit(list("abac" * 9)).stability(list("abac" * 9), n_halves=None),
        lambda: scb.compare({"one": 1}, list("abac")),
        lambda: scb.compare(3, list("abac")),
        lambda: TASK.check(C=None),
        lambda: Stage("1", 2, 0.1, 0.1, lam=object),
        lambda: Batch(np.array("x"), np.array([0]), np.array([0])),
        lambda: Batch(np.array(3), np.array([0]), np.array([0])),
        lambda: Batch(np.zeros((1, 2), dtype=int), np.array(["a"]), np.array([0])),
        lambda: train(TASK, 3),
        lambda: train(TASK, short(TASK), device=np.arange(3)),
        lambda: scb.measure(TASK, TASK.P, TASK.Q[:-1]),
        lambda: scb.star(TASK, 3),
        lambda: scb.stream(TASK, seed="x"),
        lambda: scb.stream(TASK, dtype="x"),
        lambda: scb.Run.load(-1),
        lambda: Task.load(3),
        lambda: scb.read_sequences(3),
        lambda: scb.read_sequences(__file__, top="x"),
        lambda: scb.read_sequences(__file__, sep="\ud800"),
        lambda: Recipe("x", GivenStart(TASK.P, TASK.Q), TASK.mu, (), samples="many"),
        lambda: Recipe("x", GivenStart(TASK.P, TASK.Q), TASK.mu, ("1",)),
    ],
)
def test_odd_values_are_refused(make):
    with pytest.raises(InputError, match=r": it must|: they must|NUL"):
        make()


def test_numbers_of_numpy_can_be_saved(tmp_path, model):
    estimator = scb.SparseContextualBigram(np.int64(4), smoothing=np.float32(1)).fit(generate(Task.random(3, 4, 2), 200))
    estimator.save(tmp_path / "m")
    assert scb.SparseContextualBigram.load(tmp_path / "m").max_lag == 4
    TrainingSettings(N=np.int64(3), T=np.int32(50)).save(tmp_path)
    assert TrainingSettings.load(tmp_path) == TrainingSettings(T=50)


def test_tokens_of_the_other_byte_order():
    tokens = generate(Task.random(3, 5, 2), 200)
    for kind in (">u2", ">i4"):
        assert np.array_equal(scb.recover(tokens.astype(kind), max_lag=5).A, scb.recover(tokens, max_lag=5).A)


def test_the_same_run_gives_the_same_bytes(tmp_path):
    """Over processes with other hashes: nothing in the file depends on the order of a set."""
    code = (
        "import sys, scb; from pathlib import Path; task = scb.Task.random(3, 20, 2)\n"
        "scb.train(task, scb.recipes.paper(task, steps=(2, 0, 0)), checkpoint=Path(sys.argv[1]))"
    )
    found = set()
    for seed in ("1", "2", "3"):
        subprocess.run([sys.executable, "-c", code, tmp_path / seed], env=ENVIRONMENT | {"PYTHONHASHSEED": seed}, check=True)
        found.add((tmp_path / seed / "run.safetensors").read_bytes())
    assert len(found) == 1


def test_a_full_disk_is_told(model):
    with open("/dev/full", "w") as full:
        result = subprocess.run([SCB, "sample", model], stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert result.returncode == 1
    assert result.stderr.count(b"\n") == 1
    assert b"No space left" in result.stderr


def test_locales_without_utf_8(model, tmp_path):
    def command(*arguments, env):
        return subprocess.run([SCB, *arguments], capture_output=True, env=ENVIRONMENT | env)

    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert command("plan", "3", "100", "2", env=plain).returncode == 0
    trained = command("train", "--recipe", "paper", "--T", "40", "--set", "steps=[2,2,0]", "--out", tmp_path / "run", env=plain)
    assert trained.returncode == 0, trained.stderr
    (tmp_path / "text.txt").write_text("λμ λμμ " * 60, encoding="utf-8")
    fitted = command("fit", tmp_path / "text.txt", "--max-lag", "2", "--out", tmp_path / "fit", env=plain)
    assert fitted.returncode == 0, fitted.stderr
    drawn = command("sample", tmp_path / "fit", env=plain)
    assert (drawn.returncode, drawn.stderr.count(b"\n")) == (2, 1)
    assert b"PYTHONUTF8=1" in drawn.stderr
    assert "λ" in command("sample", tmp_path / "fit", env=plain | {"PYTHONUTF8": "1"}).stdout.decode()


def test_ctrl_c_while_commands_load():
    code = "import signal, sys, threading\nsys.argv = ['scb', 'plan', '3', '100', '2']\nfrom scb.cli import main\n"
    code += "import importlib\nload = importlib.import_module\nimport scb.cli\n"
    code += "def interrupted(name):\n    signal.raise_signal(signal.SIGINT)\nscb.cli.import_module = interrupted\nmain()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, env=ENVIRONMENT)
    assert (result.returncode, result.stderr) == (130, b"scb: interrupted\n")


# ------------------------------------------------------------------------------ one class of error


def test_what_a_user_can_mend_is_of_one_class():
    """Foreign errors are bugs, and look like bugs: the command shows their tracebacks."""
    for path in sorted(Path(scb.__file__).parent.rglob("*.py")):
        if path.name != "build.py" and "kernels" not in path.parts:  # what developers run, and what is compiled
            assert not re.findall(r"raise (?:Value|Type)Error\(", path.read_text()), path


def test_types_are_values_too():
    assert issubclass(InputTypeError, InputError)
    assert issubclass(InputError, ValueError)
    assert issubclass(DamagedFileError, InputError)
