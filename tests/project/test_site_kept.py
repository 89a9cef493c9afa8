"""Tables and words of pages, and the results that benchmarks and examples have kept for them."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
for folder in (ROOT / "docs" / "_ext", ROOT / "benchmarks"):
    sys.path.append(str(folder))

import pages  # noqa: E402

import result_numbers  # noqa: E402


def test_a_share_is_written_as_on_all_pages():
    assert result_numbers.written(0.5, ".0%") == "50 %"


def test_every_table_on_the_pages_of_the_full_run_is_made():
    for page, blocks in (
        ("paper/rates", pages.rates_page.BLOCKS),
        ("explanation/transformers-tables", pages.transformers_page.BLOCKS),
    ):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        assert set(re.findall(r"<!-- table (.+) -->", text)) == set(blocks)


@pytest.mark.parametrize("name", pages.TABLES)
def test_a_table_on_a_page_is_made_from_what_is_kept(name):
    shown = re.search(rf"<!-- table {name} -->\n(.*?)<!-- end -->", pages.page_of(name).read_text(encoding="utf-8"), re.S)
    assert shown is not None
    assert shown[1].splitlines() == pages.TABLES[name][1]()


FOUND = {
    "paradise_lost": {
        "first half": "full: 10; little: 10",
        "second half": "full: 10; little: 10",
        "lines in random order": "full: 10; little: 10",
        "words in random order": "none",
        "syllables in random order": "none",
    },
    "kalevala": {
        "first half": "first: 9; inner: 16",
        "second half": "first: 9; inner: 16",
        "lines in random order": "first: 17",
        "words in random order": "none",
        "syllables in random order": "none",
    },
    "seattle_rain": {
        "first half": "dry: 2",
        "second half": "dry: 2",
        "October to March": "none",
        "April to September": "dry: 2",
        "days in random order": "none",
        "MTD, first 80 %": "all: 1, 2, 7",
    },
}
"""What docs/explanation/examples.md says in words; if results change, the page has to be read again."""


@pytest.mark.parametrize("name", FOUND)
def test_the_page_of_the_examples_says_in_words_what_they_found(name):
    lines = (ROOT / "benchmarks" / "examples" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    found = [row for row in map(json.loads, lines) if row["what"] == "found in"]
    assert {row["sequence"]: row["lags"] for row in found} == FOUND[name]


def test_what_the_page_of_the_gpu_says_in_words():
    """It pays from 6·10⁴ tokens per step on; twelve times PyTorch at N = 20 alone; JAX is behind PyTorch from N = 100 on."""
    for row in pages.rows("gpu/steps.jsonl", "crossover"):
        assert row["B"] * row["T"] >= 6e4
        assert row["cuda"] < row["cpu"]
    rates: dict[int, dict[str, float]] = {}
    for row in pages.rows("gpu/steps.jsonl", "rival"):
        rates.setdefault(row["N"], {})[row["name"]] = row["rate"]
    torch = {N: max(found["PyTorch, compiled"], found["PyTorch, tuned"]) for N, found in rates.items()}
    assert [N for N in sorted(rates) if rates[N]["JAX, tuned"] > torch[N]] == [3, 10, 20]
    ours = {row["N"]: row["ours"] for row in pages.rows("gpu/steps.jsonl", "step") if row["T"] == 5000}
    assert [N for N in ours if ours[N] >= 12 * torch[N]] == [20]


def test_what_the_page_of_the_sweeps_says_in_words():
    half = {name: pages.rows(f"phases/{name}.jsonl", "half") for name in ("support", "symbols", "lambda")}
    at = {row["T"]: row["at"] for row in half["support"]}
    assert 1 < at[10_000] / at[30] < 2
    at = {row["lam"]: row["at"] for row in half["lambda"]}
    assert 0.15 < at[1e-4] / at[0.0] < 0.25
    assert at[0.0] > at[3e-6] > at[1e-5] > at[3e-5] > at[1e-4]
    assert at[1e-3] is None
    assert half["lambda"][-1]["best"] == 0


def test_rows_of_one_kind_are_put_in_the_place_of_earlier_ones(tmp_path):
    from study import keep

    path = tmp_path / "new" / "rows.jsonl"
    keep(path, "a", [{"what": "a", "x": 1}])
    keep(path, "b", [{"what": "b", "x": 2}, {"what": "b", "x": 3}])
    keep(path, "a", [{"what": "a", "x": 4}])
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(row["what"], row["x"]) for row in rows] == [("b", 2), ("b", 3), ("a", 4)]


def test_where_half_of_the_runs_succeed():
    from phases import crossing

    assert crossing(np.array([1.0, 10.0, 100.0]), np.array([0.0, 0.25, 0.75])) == pytest.approx(10**1.5)
    assert crossing(np.array([1.0, 10.0]), np.array([0.1, 0.4])) is None  # never
    assert crossing(np.array([1.0, 10.0]), np.array([0.6, 0.9])) is None  # always
