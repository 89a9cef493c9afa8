"""The pages of the reference: the command line as the commands have it, and file formats whose examples run."""

import doctest
import importlib.util
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from scb.cli import COMMANDS, main

DOCS = Path(__file__).parents[2] / "docs"


def made_by():
    """The module that makes the page of the command line."""
    spec = importlib.util.spec_from_file_location("docs_cli", DOCS / "_ext" / "cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cli = made_by()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_has_the_options_of_the_command(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    told = io.StringIO()
    with redirect_stdout(told):
        main([command, "--help"])
    lines = [line.strip("│ ") for line in told.getvalue().splitlines()]
    heads = [re.split(r"\s{2,}", line)[0] for line in lines if re.match(r"--\w", line)]
    helped = {option for head in heads for option in re.findall(r"--[\w-]+", head)} - {"--help"}
    written = {option for one in cli.options(command) for option in re.findall(r"--[\w-]+", one.written)}
    assert written == helped
    text = " ".join(" ".join(lines).split())
    for one in cli.options(command):
        assert " ".join(one.said.split()) in text


def test_every_command_has_a_section_in_the_page():
    page = cli.page()
    assert re.findall(r"^### scb (\w+)$", page, re.MULTILINE) == list(COMMANDS)
    assert page == cli.page()
    assert "`--max-lag INT`\n: Longest lag that may matter. Default: `20`." in page
    assert "scb plan N T SPARSITY [OPTIONS]" in page
    assert "`scb fit poem.txt --max-lag 40`" in page


def test_examples_of_the_file_formats_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = re.sub("^```.*$", "", (DOCS / "reference" / "formats.md").read_text(), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(page, {}, "formats.md", None, None)
    told: list[str] = []
    with np.printoptions(precision=8, linewidth=75, threshold=1000):
        result = doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    assert result.attempted > 30
    assert not result.failed, "".join(told)
