"""Write into README.md what its example prints and how the paper's claims came out.

    python benchmarks/readme.py

tests/project/test_readme.py compares both. The claims are counted by docs/paper/claims.md, which ``scb reproduce`` writes.
"""

import re
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
CLAIMS = re.compile(r"Of the paper's \d+ claims, .*\.")


@cache
def printed(code: str) -> str:
    """What a piece of Python prints."""
    out = StringIO()
    with redirect_stdout(out):
        exec(code, {})
    return out.getvalue()


def claims() -> str:
    """How many of the paper's claims hold, and how, in a sentence."""
    page = (ROOT / "docs" / "paper" / "claims.md").read_text(encoding="utf-8")
    found = re.search(r"^- The paper's (\d+ claims): (\d+) hold, (.*)\.$", page, re.MULTILINE)
    if found is None:
        raise ValueError("docs/paper/claims.md does not count the paper's claims: scb reproduce writes it")
    count, literal, others = found.groups()
    others = others.replace("in some ensembles", "only for some kinds of random task")
    return f"Of the paper's {count}, {literal} hold as printed, {others}."


def filled(text: str) -> str:
    """README with today's numbers."""
    text = CLAIMS.sub(claims(), text)
    return EXAMPLE.sub(lambda found: f"```python\n{found[1]}```\n\n```text\n{printed(found[1])}```", text)


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
