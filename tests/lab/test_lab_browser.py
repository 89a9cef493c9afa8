"""The lab in a real browser: scenes, links, exports, own text, keys, and clicks at random; by reading the page's state."""

import csv
import io
import os
import random
import re
import shlex
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import scb
from labtools import ask, numbers
from scb.cli import main
from scb.lab import scenes, write_page
from scb.training.settings import TrainingSettings

pytestmark = pytest.mark.slow
PAGE = write_page()

playwright = pytest.importorskip("playwright.sync_api")
NO_BROWSER = "NO BROWSER was found for the lab's tests: install Chromium, or name one in the variable CHROMIUM"
LIMIT = 60_000  # milliseconds that a run may take on a busy machine


def find_browser() -> str | None:
    """An installed Chromium: the one that CHROMIUM names, or the first on the path."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("CHROMIUM") or next((path for name in names if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser():
    path = find_browser()
    if path is None:
        pytest.skip(NO_BROWSER)
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser):
    """A function that opens the page at a hash; at the end, nothing may have gone wrong in it, nor been asked of a network."""
    opened, wrong = [], []

    def go(hash_="", **options):
        context = browser.new_context(
            **({"viewport": {"width": 1440, "height": 1000}, "reduced_motion": "no-preference"} | options)
        )
        page = context.new_page()
        page.on("console", lambda message: message.type in ("error", "warning") and wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: request.url.startswith("http") and wrong.append(f"asked for {request.url}"))
        page.goto(f"{PAGE.as_uri()}#{hash_}")
        page.wait_for_function("scbLab.runs[scbLab.state.view]?.V", timeout=LIMIT)
        opened.append(context)
        return page

    yield go
    for context in opened:
        context.close()
    assert wrong == []


def to_the_end(page):
    page.wait_for_function("scbLab.finished", timeout=LIMIT)


def last(page, name, run=0):
    return page.evaluate(f"scbLab.runs[{run}].history.{name}.at(-1)")


def at_step(page, name, step, run=0):
    return page.evaluate(f"scbLab.runs[{run}].history.{name}[scbLab.runs[{run}].history.step.findIndex((s) => s >= {step})]")


def check_task(page):
    assert last(page, "dist_A") < 0.05
    assert last(page, "dist_V") < 0.05


def check_plateau(page):
    loss = page.evaluate("scbLab.runs[0].history.loss")
    assert at_step(page, "alpha_A", 300) < 0.05  # flat at first: the loss has hardly moved, ...
    assert loss[0] - at_step(page, "loss", 300) < 0.02 * (loss[0] - loss[-1])
    assert last(page, "alpha_A") > 0.9  # ... and then both take off
    assert last(page, "alpha_V") > 0.9
    assert at_step(page, "alpha_V", 1000) == pytest.approx(at_step(page, "alpha_A", 1000), rel=0.1)  # along the diagonal


def check_mirror(page):
    assert last(page, "alpha_A") < -0.8
    assert last(page, "alpha_V") < -0.8
    assert "mirror image" in page.locator("#notice").inner_text()
    loss = last(page, "loss")
    page.click("#flip")
    page.wait_for_function("scbLab.runs[0].history.alpha_A.at(-1) > 0.8")
    assert last(page, "alpha_V") > 0.8
    assert last(page, "loss") == pytest.approx(loss, abs=2e-3)  # the same function up to O(1/T)
    assert page.locator("#notice").is_hidden()


def check_noise(page):
    assert last(page, "delta_A", 0) > 2 * last(page, "delta_A", 1)
    assert abs(last(page, "alpha_A", 1) - 1) < 0.1


def check_lambda(page):
    small, right, large = (last(page, "dist_A", run) for run in range(3))
    assert right < 0.5 * small
    assert right < 0.5 * large
    assert abs(last(page, "alpha_A", 2)) < 1e-6  # back to uniform
    assert abs(at_step(page, "alpha_A", 460, 2)) < 1e-3


def check_projector(page):
    assert last(page, "alpha_A", 0) < -0.8  # the mirror
    assert last(page, "alpha_A", 1) > 0.8  # the truth, on the same samples
    assert at_step(page, "delta_V", 300, 0) > 3 * at_step(page, "delta_V", 300, 1)


def check_transfer(page):
    before = at_step(page, "dist_A", 690)
    assert before < 0.05
    assert page.evaluate("scbLab.task.phaseStart") == 700
    assert last(page, "dist_A") < 0.05
    rows = page.evaluate("(({ step, alpha_A, sim_A }) => step.map((s, i) => [s, alpha_A[i], sim_A[i]]))(scbLab.runs[0].history)")
    fresh = [row for row in rows if row[0] >= 700][1:]
    assert fresh[0][0] == 700  # the new task, before its first step: uniform attention
    assert abs(fresh[0][1]) < 1e-9
    assert fresh[1][1] > 0.2  # one step is enough for the signal


def check_heads(page):
    step, one, two, overlap = (
        page.evaluate(f"scbLab.runs[0].history.{name}") for name in ("step", "sigma_1", "sigma_2", "overlap")
    )
    truth = page.evaluate("scbLab.task.singular")
    half = [
        next(s for s, value in zip(step, values, strict=True) if value > level / 2)
        for values, level in zip((one, two), truth, strict=True)
    ]
    assert half[1] > 1.3 * half[0]  # one after the other
    at = step.index(1400)
    assert two[at] > 0.9 * truth[1]  # the function is learned, ...
    assert overlap[at] < 0.8  # ... and the heads are not
    assert overlap[-1] > 0.95  # until ℓ1 turns them


def check_softmax(page):
    assert last(page, "dist_A", 0) < 0.1 < last(page, "dist_A", 1) < 0.25
    assert last(page, "loss", 1) == pytest.approx(last(page, "loss", 0), abs=0.01)
    assert min(page.evaluate("[...scbLab.runs[1].attention.A]")) >= 0
    assert min(page.evaluate("[...scbLab.runs[0].attention.A]")) < 0


def check_lost(page):
    assert abs(last(page, "alpha_A")) < 0.3
    assert abs(last(page, "alpha_V")) < 0.3
    assert last(page, "delta_A") > 1


def check_text(page):
    assert page.evaluate("scbLab.task.length") == 20_000
    lags = page.evaluate("scbLab.runs[0].lags")
    names = page.evaluate("scbLab.task.names")
    after_inner = [entry["lag"] for entry in lags if names[entry["token"]] == "inner"]
    assert after_inner[:2] == [8, 16]
    assert "lag 8" in page.locator("#lags").inner_text()


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


def test_every_scene_has_a_check():
    assert tuple(CHECKS) == scenes()


@pytest.mark.parametrize("scene", scenes())
def test_a_scene_runs_to_its_end_and_shows_what_it_says(open_page, scene):
    page = open_page(f"scene={scene}")
    page.select_option("#speed", "full")
    assert page.locator("#text p").count() == 2
    page.click("#end")
    to_the_end(page)
    assert page.locator("#status").inner_text().startswith("Finished: ")
    CHECKS[scene](page)


def test_the_first_scene_follows_one_sample_through_the_model(open_page):
    page = open_page("scene=task")
    assert page.locator("[aria-current=step]").inner_text() == "1 One sample"
    said = [page.locator("#panel-sample .said").inner_text()]
    while page.locator("#walk-next").is_enabled():
        page.focus("#walk-next")
        page.keyboard.press("Enter")
        said.append(page.locator("#panel-sample .said").inner_text())
    assert len(said) == len(set(said)) == 7
    one = page.evaluate("scbLab.task.samples[0]")
    found = one["context"][one["position"]]
    assert f"Position {one['position']} holds token {found}" in said[2]
    assert f"The next token came out as {one['label']}." in said[2]
    page.click("#walk-other")
    assert page.locator("#panel-sample .said").inner_text().startswith("1 of 7.")


def test_a_notice_leaves_the_page_where_it_is(open_page):
    page = open_page("task.T=60&step=0")
    page.click("#own summary")
    before = page.locator("#panels").bounding_box()
    page.fill("#own-text", "a")
    page.click("#own-train")
    assert (
        "the text has 1 symbol, but at least 50 are needed: with fewer symbols, every lag seems to matter by chance"
        in page.locator("#notice").inner_text()
    )
    assert page.locator("#panels").bounding_box() == before
    page.click("#notice [aria-label=Close]")
    assert page.locator("#notice").is_hidden()


@pytest.mark.parametrize("address", ["task.T=1", "task.T=999999999", "task.K_P=5", "task.N=1000"])
def test_an_address_that_cannot_be_had_shows_the_usual_task_and_says_so(open_page, address):
    page = open_page(f"{address}&step=0")
    page.wait_for_function("scbLab.task.T === 5000 && scbLab.task.N === 3")
    assert page.locator("canvas").count() == page.locator("figure").count() == 9
    assert re.search("must lie between|is not a whole number from 2 to", page.locator("#notice").inner_text())


def test_a_link_restores_the_page_to_the_step(open_page):
    link = "task.N=4&task.T=300&task.seed=2&run=lam:0.0002;seed:3&run=recipe:sgd;projector:mu&view=1&event=150:flip:1&step=230"
    first = open_page(link)
    first.wait_for_function("scbLab.state.step === 230 && !scbLab.playing", timeout=LIMIT)
    first.keyboard.press(".")
    first.wait_for_function("scbLab.state.step === 231")
    first.click("#transfer")
    first.wait_for_function("scbLab.finished", timeout=LIMIT)
    second = open_page(first.evaluate("scbLab.link()").removeprefix("#"))
    second.wait_for_function(f"scbLab.state.step === {first.evaluate('scbLab.state.step')} && !scbLab.playing", timeout=LIMIT)
    runs = "scbLab.runs.map(({ history, step }) => [history, step])"
    whole = f"[scbLab.state, {runs}, [...scbLab.runs[1].V], [...scbLab.runs[1].attention.onTruth]]"
    assert first.evaluate(whole) == second.evaluate(whole)


def test_exports_are_right(open_page, tmp_path):
    """The CSV equals the history of the run that the command makes in Python, and a PNG is a picture of its panel."""
    page = open_page("task.N=3&task.T=200&run=lam:0.0003;seed:2;steps:80/60/20;eta:0.05/0.05/0.05;batchSize:32&play=1")
    to_the_end(page)
    command = page.locator("#python").input_value()
    words = shlex.split(command)
    assert words[:2] == ["scb", "train"]
    main([*words[1:], "--out", str(tmp_path / "run")])
    truth = scb.Run.load(tmp_path / "run").history
    assert TrainingSettings.load(tmp_path / "run").options["lam"] == 0.0003
    with page.expect_download() as found:
        page.click("#csv")
    rows = list(csv.DictReader(io.StringIO(Path(found.value.path()).read_text())))
    for name, values in truth.items():
        mine = numbers([float(row[name]) if row[name] else None for row in rows])
        np.testing.assert_allclose(mine, values, rtol=0, atol=1e-11, err_msg=name)
    with page.expect_download() as found:
        page.click("[aria-label^='PNG of Attention']")
    picture = Path(found.value.path()).read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(picture[at : at + 4]) for at in (16, 20))
    assert (width, height) == tuple(
        page.evaluate("(({ width, height }) => [width, height + 30])(document.getElementById('canvas-attention'))")
    )
    assert page.locator("button", has_text="PNG").count() == page.locator("canvas").count()


def test_a_text_of_20000_symbols_is_pasted_and_trained(open_page):
    rng = random.Random(0)
    letters = [rng.choice("abcd") for _ in range(6)]
    while len(letters) < 20_000:  # after any letter, the one five back is likely to come again
        letters.append(letters[-5] if rng.random() < 0.7 else rng.choice("abcd"))
    page = open_page("task.T=100&step=0")
    page.click("#own summary")
    page.fill("#own-text", "".join(letters))
    page.click("#own-train")
    page.wait_for_function("scbLab.task?.length === 20000 && scbLab.runs[0]?.step > 0")
    to_the_end(page)
    strongest = page.evaluate("scbLab.runs[0].lags.slice(0, 4)")
    assert {entry["lag"] for entry in strongest} == {5}
    assert {entry["token"] for entry in strongest} == {0, 1, 2, 3}


def test_what_cannot_be_read_is_said(open_page):
    page = open_page("task.N=one&colour=red&run=lam:-1&step=0")
    words = page.locator("#notice").inner_text()
    assert "N: one is not a number" in words
    assert "colour is not a known name" in words
    assert "lam: -1 is negative" in words
    page.fill("#task-T", "many")
    page.press("#task-T", "Enter")
    assert page.evaluate("scbLab.state.task.T") == 5000
    page.click("#own summary")
    page.fill("#own-text", "a" * 60)
    page.click("#own-train")
    assert "one symbol only" in page.locator("#notice").inner_text()


def test_the_keyboard_is_enough(open_page):
    page = open_page("task.T=60&speed=1&step=0")
    page.keyboard.press(".")
    page.wait_for_function("scbLab.state.step === 1")
    page.keyboard.press(" ")
    page.wait_for_function("scbLab.playing")
    page.keyboard.press(" ")
    page.wait_for_function("!scbLab.playing")
    page.focus("#task-N")
    page.keyboard.press("Control+A")
    page.keyboard.type("5")
    page.keyboard.press("Tab")
    page.wait_for_function("scbLab.task?.N === 5")
    page.focus("#panel-plane [data-help]")
    assert "α_V" in page.locator("#tip").inner_text()
    page.keyboard.press("]")
    page.wait_for_function("scbLab.state.scene === 'task'")


def test_one_reads_on_hover_what_a_thing_is(open_page):
    page = open_page("task.T=60&step=40")
    page.wait_for_function("scbLab.state.step === 40 && !scbLab.playing", timeout=LIMIT)
    said = {}
    for name in ("attention", "matrices", "plane", "dist_A", "delta_V", "loss"):
        page.locator(f"#canvas-{name}").hover()
        said[name] = page.locator("#tip").inner_text()
    assert "token 1" in said["attention"]
    assert re.search(r"[VP]\[\d, \d\] = ", said["matrices"])
    assert "population process" in said["plane"]
    assert all("At step" in said[name] and "blue: " in said[name] for name in ("dist_A", "delta_V", "loss"))
    page.locator("label[for=run-lam]").hover()
    assert "proximal) step" in page.locator("#tip").inner_text()
    silent = """() => [...document.querySelectorAll("[data-help]")].filter((node) => {
      const tip = document.getElementById("tip");
      tip.hidden = true;
      node.dispatchEvent(new Event("pointerover", { bubbles: true }));
      return tip.hidden;
    }).map((node) => node.dataset.help)"""
    assert page.evaluate(silent) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_400_pixels(open_page, scheme):
    page = open_page(
        "task.N=20&task.T=20000&step=1", viewport={"width": 400, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    page.wait_for_function("scbLab.state.step === 1 && !scbLab.playing", timeout=LIMIT)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.evaluate("[...document.querySelectorAll('canvas')].every((c) => c.clientWidth > 300 && c.clientHeight > 100)")


def test_one_can_go_back_and_forth(open_page):
    page = open_page("task.T=60&run=steps:60/60/0&play=1")
    to_the_end(page)
    pictures = "document.getElementById('canvas-attention').toDataURL()"
    end = page.evaluate(pictures)
    page.focus("#scrub")
    page.keyboard.press("Home")
    page.wait_for_function("document.getElementById('status').textContent.startsWith('Step 0')")
    assert page.evaluate(pictures) != end
    page.keyboard.press("PageUp")
    assert 0 < page.evaluate("scbLab.tape.cursor") < 120
    page.click("#play")  # plays the tape from there
    page.wait_for_function("scbLab.tape.cursor === null && !scbLab.tape.replaying", timeout=LIMIT)
    page.wait_for_function("document.getElementById('status').textContent.startsWith('Finished')")
    assert page.evaluate(pictures) == end
    assert page.locator("#play").inner_text() == "↻ Replay"
    assert page.locator("#said").inner_text().startswith("Finished: ")  # said once to those who listen


def test_a_slider_answers_while_it_is_dragged_and_keeps_the_focus(open_page):
    page = open_page("task.T=60&run=steps:60/60/0&step=50")
    page.wait_for_function("scbLab.state.step === 50 && !scbLab.playing", timeout=LIMIT)
    page.evaluate("document.getElementById('run-lam-slider').marked = true")
    box = page.locator("#run-lam-slider").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + box["height"] / 2)
    page.mouse.down()
    seen = []
    for share in (0.4, 0.6, 0.8):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        lam = page.evaluate("scbLab.state.runs[0].lam")
        page.wait_for_function(
            "scbLab.state.step === 50 && scbLab.runs[0]?.step === 50", timeout=LIMIT
        )  # done again, to the same step
        seen.append((lam, page.locator("#run-lam").input_value()))
    page.mouse.up()
    assert seen[0] < seen[1] < seen[2]
    assert [float(shown) for _, shown in seen] == [lam for lam, _ in seen]
    assert page.evaluate("document.activeElement.id === 'run-lam-slider' && document.activeElement.marked")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("scbLab.state.runs[0].lam") < seen[2][0]
    assert page.evaluate("document.activeElement.marked")


def test_values_can_be_read_without_a_mouse(open_page):
    page = open_page("task.T=60&step=40")
    page.wait_for_function("scbLab.state.step === 40 && !scbLab.playing", timeout=LIMIT)
    for name, words in {"attention": "attends to", "matrices": "V[0, 0] =", "plane": "α_V =", "loss": "At step 0"}.items():
        page.focus(f"#canvas-{name}")
        page.keyboard.press("ArrowRight")
        assert words in page.locator("#said").inner_text()
        first = page.locator("#said").inner_text()
        page.keyboard.press("ArrowRight")
        assert name == "plane" or page.locator("#said").inner_text() != first
    nameless = """[...document.querySelectorAll("button, input, select, textarea, canvas, svg, summary")].filter((node) =>
      !(node.getAttribute("aria-label") || node.labels?.[0]?.textContent.trim() || node.textContent.trim()))"""
    page.evaluate("document.querySelectorAll('details').forEach((node) => (node.open = true))")
    assert page.evaluate(f"{nameless}.map((node) => node.outerHTML)") == []


def test_the_text_says_why_each_symbol(open_page):
    page = open_page("scene=text")
    page.click("#end")
    to_the_end(page)
    page.wait_for_function("document.querySelectorAll('#reasons span').length === 400")
    assert "lag 8" in page.locator(".keys").inner_text()
    page.focus("#reasons")
    page.keyboard.press("ArrowRight")
    assert re.search(r"predicted with probability [\d.]+, \d+ % of it from lag \d+", page.locator("#said").inner_text())


def test_heads_can_be_turned_by_hand(open_page):
    page = open_page("scene=heads&step=1200&play=0&" + scene_link("heads"))
    page.wait_for_function("scbLab.state.step === 1200 && !scbLab.playing", timeout=LIMIT)
    assert last(page, "overlap") < 0.8
    page.click("#turn")
    page.wait_for_function("scbLab.runs[0].history.overlap.at(-1) > 0.95")
    assert "event=1200:turn:0" in page.evaluate("scbLab.link()")


def scene_link(name):
    """The settings of a scene, without what lets it run."""
    link = next(scene["link"] for scene in ask("scenes") if scene["id"] == name)
    return link.replace("play=1", "play=0").replace(f"&scene={name}", "")


def test_panels_can_be_shown_in_another_page(browser, tmp_path):
    write_page(tmp_path / "lab.html")
    frame = "lab.html#scene=mirror&embed=plane:half,attention:half,run.seed&play=1"
    heights = "addEventListener('message', ({ data }) => (globalThis.height = data.scbLab.height))"
    (tmp_path / "host.html").write_text(
        f"<script>{heights}</script><div style='height: 3000px'></div><iframe src='{frame}' width=700 height=400></iframe>"
    )
    context = browser.new_context(viewport={"width": 800, "height": 600})
    page = context.new_page()
    page.goto((tmp_path / "host.html").as_uri())
    inside = page.frames[1]
    # A frame out of sight gets no animation frames, on which wait_for_function would wait.
    inside.wait_for_function("scbLab.runs[0]?.V", timeout=LIMIT, polling=100)
    assert inside.evaluate("scbLab.state.step") == 0  # it is not in sight yet
    assert not inside.evaluate("scbLab.playing")
    page.evaluate("scrollTo(0, 3000)")
    inside.wait_for_function("scbLab.state.step > 0", timeout=LIMIT, polling=100)
    visible = "[...document.querySelectorAll('figure, .field')].filter((node) => node.checkVisibility())"
    assert inside.evaluate(f"{visible}.map((node) => node.id || node.textContent)") == ["panel-plane", "panel-attention", "seed"]
    assert not inside.locator("header").is_visible()
    assert inside.locator("#whole").get_attribute("href").find("embed") < 0
    assert page.evaluate("height") > 300
    context.close()


@pytest.mark.parametrize("scene", scenes())
def test_on_a_telephone_the_first_picture_is_on_the_first_screen(open_page, scene):
    page = open_page(f"scene={scene}", viewport={"width": 400, "height": 800})
    page.wait_for_function("document.querySelector('.panel')")
    picture = page.locator(".panel svg, .panel canvas").first.bounding_box()
    assert picture["y"] + min(picture["height"], 200) <= 800
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def wander(page, rng):
    """Ten clicks and entries at random; what is redrawn under the pointer is missed, as it would be by hand."""
    page.set_default_timeout(1000)
    for _ in range(10):
        with suppress(playwright.Error):
            act(page, rng, rng.random())


def act(page, rng, kind):
    page.evaluate("document.querySelectorAll('details').forEach((node) => (node.open = true))")
    if kind < 0.55:
        buttons = page.locator("button:visible:enabled")
        buttons.nth(rng.randrange(buttons.count())).click(no_wait_after=True, force=True)
    elif kind < 0.8:
        fields = page.locator(".field input[type=text]:visible")
        field = fields.nth(rng.randrange(fields.count()))
        field.fill(rng.choice(["0", "1", "7", "-3", "1e-3", "banana", "", "40", "0.5", "123"]))
        field.press("Enter")
    elif kind < 0.9:
        page.keyboard.press(rng.choice([" ", ".", "r", "]", "[", "Tab"]))
    else:
        page.fill("#own-text", rng.choice(["", "abracadabra " * 30, "x", "1\n2\n" * 40]))
        page.locator("#own-train").click()


@pytest.mark.parametrize("seed", range(20))
def test_clicks_and_typing_at_random_leave_no_error(open_page, seed):
    page = open_page("task.T=80&run=steps:40/40/0&step=0")
    wander(page, random.Random(seed))
    page.wait_for_timeout(100)
    assert page.evaluate("document.getElementById('notice').textContent").find("worker failed") < 0
    assert page.evaluate("typeof scbLab.state.step") == "number"
