"""Runs and recoveries as people see them: printed, in a notebook, as data frames and curves; and progress while they run."""

import io
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import scb
from scb import notebook
from scb.extras import INSTALL, MissingExtraError, wanted_for


@pytest.fixture(scope="module")
def task():
    return scb.Task.random(N=3, T=60, sparsity=2, seed=0)


@pytest.fixture(scope="module")
def run(task):
    return scb.train(task, scb.recipes.paper(task, steps=(20, 10, 5)), seed=3)


class Cells(HTMLParser):
    """The texts of the cells of a page, and its tags; every tag must be closed."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.cells, self.open = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag != "img":
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_a_run_prints_as_a_few_lines_with_the_end_of_each_stage(run):
    lines = str(run).splitlines()
    assert len(lines) <= 9  # the table, and what is wrong
    assert max(map(len, lines)) <= 80
    assert lines[0] == "paper: N = 3, T = 60, seed 3; 35 steps, 2,240 samples"
    assert lines[2].split()[:3] == ["1", "20", "1,280"]
    assert lines[3].split()[:3] == ["2", "30", "1,920"]
    assert lines[4].split()[4] == f"{run.history['alpha_A'][-1]:.3f}"
    assert str(run) == str(run.summary()) == repr(run.summary())
    assert len(repr(run)) < 80


def test_the_summary_says_how_it_ended(task, run):
    assert "too slow: " in str(run)
    wild = scb.train(task, scb.recipes.sgd(task, eta=50, preconditioned=False))
    assert f"diverged at step {wild.diverged}: smaller step sizes" in str(wild)
    assert str(replace(run, finished=False).summary()).endswith("not finished")
    assert str(replace(run, verdict="learned").summary()).endswith("\nverdict: learned")


def test_frames_hold_the_history_and_the_ends_of_the_stages(run):
    frame = run.to_pandas()
    assert list(frame.columns) == list(run.history)
    for name, column in run.history.items():
        np.testing.assert_array_equal(frame[name], column)
    assert frame["step"].dtype == np.int64
    ends = run.summary().to_pandas()
    assert ends["step"].tolist() == [20, 30, 35]
    assert ends["loss"].tolist() == frame.set_index("step").loc[[20, 30, 35], "loss"].tolist()


def test_curves_show_the_history(run):
    figure = run.plot()
    line = figure.axes[0].get_lines()[1]
    np.testing.assert_array_equal(line.get_xdata(), run.history["step"])
    np.testing.assert_array_equal(line.get_ydata(), run.history["dist_A"])
    assert figure._repr_png_().startswith(b"\x89PNG")  # what a notebook shows


def test_html_of_a_run_is_escaped_and_has_a_picture(run):
    page = replace(run, recipe="<script>", verdict="a < b")._repr_html_()
    found = Cells(page)
    assert set(found.tags) == {"p", "table", "tr", "th", "td", "img"}
    assert "&lt;script&gt;" in page
    assert "a &lt; b" in page
    assert found.cells[0] == "stage"
    assert found.cells[-1] == f"{run.history['loss'][-1]:.4f}"


def test_a_recovery_prints_its_report_and_shows_its_tables(task):
    fit = scb.recover(scb.sample(task, 3000, seed=1))
    assert str(fit) == fit.report()
    assert len(repr(fit)) < 80
    cells = Cells(fit._repr_html_()).cells
    for k, positions in enumerate(fit.support):
        for t in positions:
            at = [i for i in range(0, len(cells), 5) if cells[i : i + 2] == [str(k), str(t)]]
            assert cells[at[0] + 2] == f"{fit.A[t, k]:.3f}"
    assert cells[-1] == f"{fit.V[-1, -1]:.3f}"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_and_in_a_pipe(task, monkeypatch):
    recipe = scb.recipes.paper(task, steps=(20, 10, 5))
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        scb.train(task, recipe, callbacks=[scb.ProgressBar(recipe.steps)])
        monkeypatch.undo()
        assert bool(stream.getvalue()) is shown
        if shown:
            last = stream.getvalue().split("\r")[-1]
            assert "stage 3  step 35  α_V" in last
            assert last.endswith("\n")


def test_progress_in_a_notebook_is_one_output_that_changes(task, monkeypatch):
    """A stand-in for IPython's display; the kernel of a notebook was tried by hand."""
    pages = []

    class Output:
        def update(self, page):
            pages.append(page)

    def display(page, display_id):
        pages.append(page)
        return Output()

    bar = scb.ProgressBar(35)
    monkeypatch.setattr("scb.training.progress.in_notebook", lambda: True)
    monkeypatch.setitem(sys.modules, "IPython", type(sys)("IPython"))
    shown = type(sys)("IPython.display")
    shown.HTML, shown.display = str, display
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    scb.train(task, scb.recipes.paper(task, steps=(20, 10, 5)), callbacks=[bar])
    assert pages[-1].startswith('<progress value="1.0000">')
    assert "step 35  α_V" in pages[-1]


def test_this_is_no_notebook():
    assert not notebook.in_notebook()


def test_a_missing_extra_is_one_line_with_the_command():
    for package, command in INSTALL.items():
        said = re.escape(f"a thing needs {package}: {command}")
        with pytest.raises(MissingExtraError, match=said), wanted_for("a thing"):
            raise ModuleNotFoundError("gone", name=f"{package}.part")
    with pytest.raises(ModuleNotFoundError, match="gone"), wanted_for("a thing"):
        raise ModuleNotFoundError("gone", name="scb.typo")


def test_submodules_are_reachable_after_import_scb():
    code = (
        "import scb; print(scb.theory.gaussian.noise_quantile(9) > 0, scb.mixture.samples_in.__name__,"
        " hasattr(scb.training, 'nowhere'))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "True scb.mixture.samples_in False\n"
