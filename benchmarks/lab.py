"""How fast the lab is in a real browser: loading, the paper's run with all panels drawing, frames, a pasted text.

    python benchmarks/lab.py [--repeats 3] [--picture docs/images/lab.png]

Wants Playwright (installed for development) and a Chromium. Timings are worth something on a quiet machine only;
the load is printed.
"""

import argparse
import os
import random
import shutil
import statistics
import time

from playwright.sync_api import Page, sync_playwright

from scb.lab import PAGE

PAPER = "task.N=3&task.T=5000&run=batchSize:64;steps:400/600/0"
PICTURE = "run=steps:400/1400/0;lam:0.0001;seed:6&run=recipe:sgd;steps:400/1400/0;seed:6"


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


def main() -> None:
    """Measure, print, and take the picture if one is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--picture", help="write a picture of the page to this file")
    asked = parser.parse_args()
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = opened.new_page(viewport={"width": 1440, "height": 1000})
        print(f"{opened.version}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {PAGE.stat().st_size:,} bytes")
        times = [loading(page) for _ in range(asked.repeats)]
        print(f"loading: {statistics.median(times):.0f} ms ({min(times):.0f} to {max(times):.0f})")
        for _ in range(asked.repeats):
            found = run(page, PAPER)
            print(
                f"the paper's run: {found['steps']:.0f} steps in {found['seconds']:.2f} s, {found['frames']:.0f} frames a second, "
                f"slowest {found['worst']:.0f} ms; load {os.getloadavg()[0]:.1f}"
            )
        print(f"a pasted text of 20,000 symbols: {pasted(page):.1f} s")
        if asked.picture:
            page.goto("about:blank")
            page.goto(f"{PAGE.as_uri()}#{PICTURE}&play=1")
            page.wait_for_function("scbLab.finished", timeout=120_000)
            page.wait_for_timeout(500)
            page.evaluate("document.querySelector('header nav').remove()")
            page.screenshot(path=asked.picture, clip={"x": 0, "y": 0, "width": 1440, "height": 925}, full_page=True)
        opened.close()


if __name__ == "__main__":
    main()
