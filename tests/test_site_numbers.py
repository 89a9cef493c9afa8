"""Numbers and tables of pages that come from what benchmarks have kept."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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


def test_a_number_from_a_text(kept):
    (kept / "found.txt").write_text("N = 2: error 3.5e-07, 1,200 tokens\nN = 3: error 5.5e-07, 1,200 tokens\n")
    assert result_numbers.evaluate(r"found.txt | max | error ([\d.e-]+) | .1p") == "5.5·10⁻⁷"
    assert result_numbers.evaluate(r"found.txt | sum | ([\d,]+) tokens | .1p") == "2.4·10³"
    assert result_numbers.evaluate(r"found.txt | value | ([\d,]+) tokens") == "1,200"
    assert result_numbers.evaluate(r"found.txt | count | error ([\d.e-]+)") == "2"
    for words in (r"found.txt | max | nothing ([\d.]+)", r"found.txt | value | error ([\d.e-]+)"):
        with pytest.raises(ValueError, match=r"found\.txt"):
            result_numbers.evaluate(words)


def test_one_column_over_another(kept):
    (kept / "times.jsonl").write_text('{"what": "time", "cpu": 8.0, "gpu": 0.5}\n{"what": "other", "cpu": 1.0}\n')
    assert result_numbers.evaluate("times.jsonl | value cpu/gpu | what=time | .0f") == "16"
    with pytest.raises(ValueError, match="'tpu' is none of"):
        result_numbers.evaluate("times.jsonl | value cpu/tpu | what=time")
