"""How fast the lab is in a real browser: loading, the paper's run with all panels drawing, frames, a pasted text.

Also: the same run by the compiled engine on one thread, in turns with the browser; how close the page's run is to that of the
command that it shows; and what it finds in the Kalevala.

    python benchmarks/lab.py [--repeats 5] [--picture docs/images/lab.png]

Wants Playwright (installed for development) and a Chromium. The rows go to benchmarks/lab.jsonl, with the load of the machine;
docs/explanation/lab.md and docs/howto/lab.md take their numbers from there.
"""

import argparse
import os
import random
import shlex
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
from playwright.sync_api import Page, sync_playwright
from study import keep

import scb
from scb.cli import main as command_line
from scb.lab import write_page
from scb.provenance import machine

KEPT = Path(__file__).with_suffix(".jsonl")
PAGE = write_page()
PAPER = "task.N=3&task.T=5000&run=batchSize:64;steps:400/600/0"
PICTURE = "scene=noise"


def loading(page: Page) -> float:
    """Milliseconds from navigation until the first picture is drawn."""
    page.goto("about:blank")
    begin = time.perf_counter()
    page.goto(f"{PAGE.as_uri()}#step=0")
    page.wait_for_function("scbLab.runs[0]?.V")
    return 1000 * (time.perf_counter() - begin)


def run(page: Page, hash_: str) -> dict[str, float]:
    """Seconds that a run takes from its start to its end, and the frames of the page meanwhile."""
    page.goto("about:blank")
    page.goto(f"{PAGE.as_uri()}#{hash_}&step=0")
    page.wait_for_function("scbLab.runs[0]?.V")
    return page.evaluate(
        """() => new Promise((resolve) => {
          let drawn = 0, last = performance.now(), worst = 0;
          const begin = last;
          const look = (now) => {
            drawn++; worst = Math.max(worst, now - last); last = now;
            if (!scbLab.finished) return requestAnimationFrame(look);
            const seconds = (performance.now() - begin) / 1000;
            resolve({ seconds, frames: drawn / seconds, worst, steps: scbLab.state.step });
          };
          document.getElementById("play").click();
          requestAnimationFrame(() => requestAnimationFrame(look));
        })"""
    )


def heads(page: Page) -> dict[str, float]:
    """Frames per second in the scene of two heads, over five seconds of its playing."""
    page.goto("about:blank")
    page.goto(f"{PAGE.as_uri()}#scene=heads")
    page.wait_for_function("scbLab.state.step > 20")
    return page.evaluate(
        """() => new Promise((resolve) => {
          let [drawn, last, worst] = [0, performance.now(), 0];
          const [begin, step] = [last, scbLab.state.step];
          const look = (now) => {
            drawn++; worst = Math.max(worst, now - last); last = now;
            if (now - begin < 5000) return requestAnimationFrame(look);
            const seconds = (now - begin) / 1000;
            resolve({ frames: drawn / seconds, worst, steps: (scbLab.state.step - step) / seconds });
          };
          requestAnimationFrame(look);
        })"""
    )


def compiled() -> float:
    """Seconds of the same run by the compiled engine on one thread."""
    numba.set_num_threads(1)
    task = scb.Task.random(N=3, T=5000, sparsity=2, seed=0)
    begin = time.perf_counter()
    scb.train(task, scb.recipes.paper(task, steps=(400, 600, 0)), seed=0)
    return time.perf_counter() - begin


def pasted(page: Page) -> float:
    """Seconds from the click on "Train on it" to the end, for a text of 20,000 letters of four kinds."""
    text = "".join(random.Random(0).choices("abcd", k=20_000))
    page.goto("about:blank")
    page.goto(f"{PAGE.as_uri()}#step=0")
    page.wait_for_function("scbLab.runs[0]?.V")
    page.click("#own summary")
    page.fill("#own-text", text)
    begin = time.perf_counter()
    page.click("#own-train")
    page.wait_for_function("scbLab.task?.length === 20000 && scbLab.finished", timeout=120_000)
    return time.perf_counter() - begin


def agreement(page: Page) -> float:
    """The largest difference in V between the run of the page and the one that its own command makes."""
    page.goto("about:blank")
    page.goto(f"{PAGE.as_uri()}#{PAPER}&play=1")
    page.wait_for_function("scbLab.finished", timeout=120_000)
    words = shlex.split(page.locator("#python").input_value())
    with tempfile.TemporaryDirectory() as folder:
        command_line([*words[1:], "--out", f"{folder}/run"])
        truth = scb.Run.load(f"{folder}/run").V
    return float(np.abs(np.reshape(page.evaluate("[...scbLab.runs[0].V]"), truth.shape) - truth).max())


def kalevala(page: Page) -> list[dict[str, Any]]:
    """The largest weights of attention in the scene that has the Kalevala's first syllables."""
    page.goto("about:blank")
    page.goto(f"{PAGE.as_uri()}#scene=text")
    page.wait_for_function("scbLab.finished", timeout=240_000)
    names = page.evaluate("scbLab.task.names")
    return [{"context": names[entry["token"]], **entry} for entry in page.evaluate("scbLab.runs[0].lags")]


def main() -> None:
    """Measure, print, keep, and take the picture if one is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--picture", help="write a picture of the page to this file")
    asked = parser.parse_args()
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

    def note(what: str, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            print(what, row, flush=True)
        keep(KEPT, what, [{"what": what} | row for row in rows])

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = opened.new_page(viewport={"width": 1440, "height": 1000})
        note("page", [{"browser": f"Chromium {opened.version}", "machine": machine(), "bytes": PAGE.stat().st_size}])
        note("loading", [{"milliseconds": loading(page), "load": os.getloadavg()[0]} for _ in range(asked.repeats)])
        compiled()  # loads the kernels
        turns = [run(page, PAPER) | {"compiled": compiled(), "load": os.getloadavg()[0]} for _ in range(asked.repeats)]
        note("run", turns)
        note("heads", [heads(page) | {"load": os.getloadavg()[0]} for _ in range(asked.repeats)])
        note("pasted", [{"seconds": pasted(page), "load": os.getloadavg()[0]}])
        note("agreement", [{"V": agreement(page)}])
        note("kalevala", kalevala(page))
        if asked.picture:
            page.goto("about:blank")
            page.goto(f"{PAGE.as_uri()}#{PICTURE}")
            page.click("#end")
            page.wait_for_function("scbLab.finished", timeout=120_000)
            page.wait_for_timeout(500)
            page.screenshot(path=asked.picture, clip={"x": 0, "y": 0, "width": 1440, "height": 800}, full_page=True)
        opened.close()


if __name__ == "__main__":
    main()
