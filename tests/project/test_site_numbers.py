"""Numbers and tables of pages that come from what benchmarks have kept."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
for folder in (ROOT / "docs" / "_ext", ROOT / "benchmarks"):
    sys.path.append(str(folder))

import result_numbers  # noqa: E402


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder of results of its own."""
    monkeypatch.setattr(result_numbers, "ROOT", tmp_path)
    monkeypatch.setattr(result_numbers, "read", result_numbers.read.__wrapped__)
    (tmp_path / "benchmarks").mkdir()
    return tmp_path / "benchmarks"


def test_a_number_of_many_rows(kept):
    (kept / "found.jsonl").write_text('{"N": 2, "error": 3.5e-07, "tokens": 1200}\n{"N": 3, "error": 5.5e-07, "tokens": 1200}\n')
    assert result_numbers.evaluate("found.jsonl; max error; ; .1p") == "5.5·10⁻⁷"
    assert result_numbers.evaluate("found.jsonl; sum tokens; ; .1p") == "2.4·10³"
    assert result_numbers.evaluate("found.jsonl; value tokens") == "1,200"
    assert result_numbers.evaluate("found.jsonl; count") == "2"
    for words in ("found.jsonl; max nothing", "found.jsonl; value error"):
        with pytest.raises(ValueError, match=r"found\.jsonl"):
            result_numbers.evaluate(words)


def test_a_number_from_a_table_under_a_heading(kept):
    head = "| what | order | bits | above |\n|---|---|---|---|\n"
    one = f"{head}| tree, deep | 10 | 1,200.50 ms (3 MB) | -0.0350 ± 0.0114 |\n| tree, flat | 8 | 7 |  |\n"
    (kept / "found.md").write_text(f"# All\n\nWords.\n\n## First\n\n{one}\n## Second\n\n{head}| tree | 1 | 2 | 3 |\n")
    assert result_numbers.evaluate("found.md # First; value bits; what=tree, deep; .1f") == "1200.5"
    assert result_numbers.evaluate("found.md # First; value above; order=10, what=tree, deep; .3f") == "-0.035"
    assert result_numbers.evaluate("found.md # First; value above ±; order=10; .4f") == "0.0114"
    assert result_numbers.evaluate("found.md # Second; value bits; order=1; .0f") == "2"
    assert result_numbers.evaluate("found.md #; max bits; ; .0f") == "1200"  # the first of the page
    for words in ("found.md # Third; max bits", "found.md # First; value bits; order=9", "found.md # First; value bits"):
        with pytest.raises(ValueError, match=r"Third|found\.md"):
            result_numbers.evaluate(words)


def test_one_column_over_another(kept):
    (kept / "times.jsonl").write_text('{"what": "time", "cpu": 8.0, "gpu": 0.5}\n{"what": "other", "cpu": 1.0}\n')
    assert result_numbers.evaluate("times.jsonl; value cpu/gpu; what=time; .0f") == "16"
    with pytest.raises(ValueError, match="'tpu' is none of"):
        result_numbers.evaluate("times.jsonl; value cpu/tpu; what=time")


def test_rows_below_a_bound_and_quantiles(kept):
    (kept / "runs.jsonl").write_text(
        "".join(f'[{{"N": {3 + i % 2}, "seed": {i}}}, {{"alpha": {i / 8 - 0.5}}}]\n' for i in range(9))
    )
    assert result_numbers.evaluate("runs.jsonl; count; alpha<0") == "4"
    assert result_numbers.evaluate("runs.jsonl; count; alpha<=0") == "5"
    assert result_numbers.evaluate("runs.jsonl; count; N=4, alpha>=0.125") == "2"
    assert result_numbers.evaluate("runs.jsonl; count; N=3, alpha > 7") == "0"
    assert result_numbers.evaluate("runs.jsonl; q25 alpha; ; .2f") == "-0.25"
    for words in ("runs.jsonl; count; N=5, alpha<0", "runs.jsonl; mean alpha; alpha>7", "runs.jsonl; q5 alpha"):
        with pytest.raises(ValueError, match=r"runs\.jsonl"):
            result_numbers.evaluate(words)


def test_numbers_of_a_claim():
    assert result_numbers.evaluate("claim:fewer-wrong-signs; value mu; case=T = 5,000; share") == "7 of 200 (2–7 %)"
    assert result_numbers.evaluate("claim:fewer-wrong-signs; value mu.n; case=T = 5,000") == "200"
    assert result_numbers.evaluate("claim:star-recovers; value found; ensemble=strong; share").endswith("%)")
    for words, wrong in (
        ("claim:no-such-claim; value mu", "no claim"),
        ("claim:fewer-wrong-signs; value mu", "different values"),
    ):
        with pytest.raises(ValueError, match=wrong):
            result_numbers.evaluate(words)
