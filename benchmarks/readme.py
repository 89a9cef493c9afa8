"""Write into README.md what its example prints and how the paper's claims came out, and ours.

    python benchmarks/readme.py

tests/project/test_readme.py compares both. The claims are those of docs/paper/claims.csv, which ``scb reproduce`` writes.
"""

import re
import sys
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

from scb.paper.report import tally

sys.path.append(str(Path(__file__).parents[1] / "docs" / "_ext"))
from claim_outcomes import read_outcomes

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
CLAIMS = re.compile(r"^  The paper's \d+ claims: .*\n  Our own \d+ claims: .*$", re.MULTILINE)


@cache
def printed(code: str) -> str:
    """What a piece of Python prints."""
    out = StringIO()
    with redirect_stdout(out):
        exec(code, {})
    return out.getvalue()


def claims() -> str:
    """How many of the paper's claims hold, and how, and how many of ours: a line each."""
    return "\n".join(f"  {line}." for line in tally(read_outcomes(ROOT / "docs" / "paper")))


def filled(text: str) -> str:
    """README with today's numbers."""
    text = CLAIMS.sub(lambda found: claims(), text)
    return EXAMPLE.sub(lambda found: f"```python\n{found[1]}```\n\n```text\n{printed(found[1])}```", text)


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
