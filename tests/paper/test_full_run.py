"""What the default run leaves out: which tables, figures and claims those are, and the tables of the full run that docs ship."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from scb.cli.reproduce import reproduce
from scb.jobs.shipped import copy_shipped, read_shipped, shipped, write_shipped
from scb.paper.registry import ELSEWHERE, FIGURES, TABLES, claims_for, drawable, needed, tables
from scb.paper.report import draw_figure, judge, write_report

SHIPPED = Path(__file__).parents[2] / "docs" / "tables"
HEAVY = [name for name, experiment in TABLES.items() if experiment.shipped]
HERE = shipped(SHIPPED, (*TABLES, *ELSEWHERE))


def test_the_default_run_leaves_out_what_needs_the_full_run():
    made = tables()
    assert set(TABLES) - set(made) == set(HEAVY)
    assert set(tables(full=True, gpu=True)) == set(TABLES)
    drawn = drawable(FIGURES, made)
    assert all(not set(FIGURES[figure].needs) & {*HEAVY, *ELSEWHERE} for figure in drawn)
    assert drawable(FIGURES, (*TABLES, *ELSEWHERE)) == list(FIGURES)
    assert set(needed(FIGURES)) == {*TABLES, *ELSEWHERE}  # no table is made that nobody looks at


def test_a_claim_without_its_table_is_not_judged():
    assert claims_for(["F1"])
    assert judge(["F1"], {}) == []


def test_shipped_tables_come_back_as_they_were(tmp_path):
    table = {
        "T": np.array([5, 7]),
        "x": np.array([0.1, np.inf]),
        "y": np.array([1 / 3, np.nan]),
        "good": np.array([True, False]),
        "word": np.array(["a, b", "c"]),
    }
    path = write_shipped(tmp_path, "two words", table, {"command": "scb reproduce --full"})
    assert path.name == "two-words.csv"
    assert shipped(tmp_path, ["two words", "three"]) == ["two words"]
    back, facts = read_shipped(tmp_path, "two words")
    assert facts["command"] == "scb reproduce --full"
    assert list(back) == list(table)
    for name, values in table.items():
        assert_array_equal(back[name], values, strict=True)
    path.write_text(path.read_text().replace('"x": "float64"', '"z": "float64"'))
    with pytest.raises(ValueError, match=r"two-words\.csv is damaged"):
        read_shipped(tmp_path, "two words")


def test_docs_ship_tables_of_the_full_run_alone():
    assert set(HERE) <= {*HEAVY, *ELSEWHERE}
    assert len(list(SHIPPED.glob("*.csv"))) == len(HERE)


@pytest.mark.parametrize("name", [name for name in HERE if name in TABLES])
def test_a_shipped_table_is_that_of_the_experiment_as_it_is_now(name):
    """Its rows come from the jobs of today: their seeds are hashes of all that a job depends on, but for the code."""
    table, facts = read_shipped(SHIPPED, name)
    experiment = tables(full=True, gpu=True)[name]
    jobs = experiment.jobs()
    assert set(table["seed"].tolist()) == {job.seed for job in jobs}
    assert list(jobs[0].columns) == list(table)[: len(jobs[0].columns)]
    assert facts["command"].startswith(experiment.command)


def test_figures_of_shipped_tables_can_be_drawn():
    """That their claims can be judged, tests/project/test_site.py finds out."""
    found = {name: read_shipped(SHIPPED, name)[0] for name in HERE}
    for figure in drawable(FIGURES, found):
        assert FIGURES[figure].draw(found).axes


def test_a_figure_of_the_full_run_is_not_drawn_without_it(tmp_path):
    heavy = [figure for figure in FIGURES if figure not in drawable(FIGURES, tables())]
    if not heavy:
        pytest.skip("no figure takes the full run")
    with pytest.raises(ValueError, match="needs tables of the full run: add --full, or --shipped docs/tables"):
        reproduce(tmp_path, only=heavy[0])
    with pytest.raises(ValueError, match="needs tables that are made with PyTorch: add --shipped docs/tables"):
        reproduce(tmp_path, only="F25", full=True)
    assert not any(tmp_path.iterdir())


def test_a_directory_of_shipped_tables_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ValueError, match=r"shipped = .*nowhere: there is no such directory"):
        reproduce(tmp_path, shipped=tmp_path / "nowhere")


def test_the_report_links_to_shipped_tables_as_text(tmp_path):
    """Copied beside the report, as they are; a table that is nowhere has no link."""
    copy_shipped(SHIPPED, tmp_path / "tables", ["noise wins"])
    found = {name: read_shipped(tmp_path / "tables", name)[0] for name in FIGURES["F13"].needs}
    draw_figure("F13", found, tmp_path / "figures", ("png",))
    facts = {"machine": "", "versions": {"scb": ""}, "date": "", "quick": True, "jobs": 0, "fresh": 0, "wall": "", "compute": ""}
    facts |= {"tables": {}, "shipped": {}, "left_out": {"scb reproduce --full": [3]}}
    for linked in (True, False):
        write_report(tmp_path / "report.html", [], ["F13"], tmp_path / "figures", facts)
        page = (tmp_path / "report.html").read_text()
        assert ('noise wins (<a href="tables/noise-wins.csv">data</a>)' in page) is linked
        (tmp_path / "tables" / "noise-wins.csv").unlink(missing_ok=True)
    assert page.count("data:image/png;base64,") == 2  # for wide screens and for narrow ones
    assert (tmp_path / "figures" / "F13-narrow.png").exists()
