"""The figures of the report, which figures.toml describes."""

import tomllib
from pathlib import Path

from scb.paper.entries import PaperFigure

_TEXT = Path(__file__).with_name("figures.toml").read_text(encoding="utf-8")
FIGURES = {
    name: PaperFigure(**facts | {"see": " ".join(facts["see"].split())})
    for name, facts in tomllib.loads(_TEXT).items()
}
