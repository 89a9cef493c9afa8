"""Examples on pages of the documentation whose output is shown beside them: that is what they print."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def blocks(page: Path, language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.S | re.M)
    return [text for name, text in found if name == language]


def printed(code: str) -> str:
    with redirect_stdout(io.StringIO()) as out:
        exec(code, {})
    return out.getvalue()


def test_the_five_lines_on_the_page_of_commands_print_the_run_below_them():
    page = DOCS / "howto" / "commands.md"
    (code,) = blocks(page, "python")
    assert printed(code) in blocks(page, "text")


@pytest.mark.parametrize(
    "name", ["read-the-summary", "read-your-data", "explain", "weights-and-groups", "explain-a-model", "covariates"]
)
def test_the_example_of_a_page_prints_what_is_shown(name):
    page = DOCS / "howto" / f"{name}.md"
    (code,) = blocks(page, "python")
    assert printed(code) in blocks(page, "text")


def test_the_code_on_the_page_of_the_estimator_runs():
    assert "weight" in printed("\n".join(blocks(DOCS / "explanation" / "estimator.md", "python")))
