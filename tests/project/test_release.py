"""What is said about a release in several places is the same everywhere, and the lock files fit the project."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import scb

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_stands_in_one_place_and_the_papers_about_it_agree():
    assert "version" in PROJECT["dynamic"]
    dated = re.findall(r"^## (.+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert dated[0] == "Unreleased"
    version, date = dated[1].split(" - ")
    citation = text("CITATION.cff")
    codemeta = json.loads(text("codemeta.json"))
    assert version == scb.__version__ == codemeta["version"] == re.search(r"^version: (.+)$", citation, re.M)[1]
    assert date == codemeta["datePublished"] == re.search(r'^date-released: "(.+)"$', citation, re.M)[1]
    assert codemeta["name"] == PROJECT["name"]
    assert codemeta["description"] == PROJECT["description"]
    assert codemeta["keywords"] == PROJECT["keywords"]


def test_the_paper_is_cited_in_the_same_way():
    paper = json.loads(text("codemeta.json"))["referencePublication"]
    preferred = text("CITATION.cff").partition("preferred-citation:")[2]
    assert f"  title: {paper['name']}\n" in preferred
    names = re.findall(r"given-names: (.+)\n +family-names: (.+)", preferred)
    assert names == [(person["givenName"], person["familyName"]) for person in paper["author"]]
    assert paper["name"] in text("README.md")


def test_classifiers_workflows_and_the_page_name_the_same_versions_of_python():
    prefix = "Programming Language :: Python :: 3."
    named = [line.removeprefix(prefix) for line in PROJECT["classifiers"] if line.startswith(prefix)]
    assert PROJECT["requires-python"] == f">=3.{named[0]}"
    matrices = re.findall(r"python: \[(.+)\]", text(".github/workflows/test.yml"))
    assert len(matrices) == 2
    for matrix in matrices:
        assert re.findall(r"3\.(\d+)", matrix) == named
    assert re.findall(r"^\| 3\.(\d+) \|", text("docs/howto/install.md"), re.MULTILINE) == named


@pytest.mark.parametrize(("group", "lock"), [("dev", ""), ("docs", "-docs"), ("release", "-release")])
def test_a_lock_file_has_what_the_project_and_its_group_ask_for(group, lock):
    pinned = {}
    for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", text(f"requirements{lock}.lock"), re.MULTILINE):
        pinned.setdefault(canonicalize_name(name), set()).add(version)
    asked = [*PYPROJECT["dependency-groups"][group]]
    if group != "release":
        asked += PROJECT["dependencies"] + [
            line for extra in ("tables", "report", "dask") for line in PROJECT["optional-dependencies"][extra]
        ]
    for line in asked:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name != PROJECT["name"]:
            assert name in pinned, line
            assert all(requirement.specifier.contains(version) for version in pinned[name]), line
    everywhere = set(re.findall(r"^[\w.-]+==[\w.]+", text("requirements.lock"), re.MULTILINE))
    for name, versions in pinned.items():
        kept = {version for line in everywhere for other, version in [line.split("==")] if canonicalize_name(other) == name}
        assert not kept or versions <= kept, name


def test_what_runs_before_a_commit_is_installed_for_development():
    programs = re.findall(r"entry: \.venv/bin/([\w-]+)", text(".pre-commit-config.yaml"))
    groups = {canonicalize_name(Requirement(line).name) for line in PYPROJECT["dependency-groups"]["dev"]}
    assert set(programs) == {"ruff", "typos", "pyright"} <= groups


def test_no_file_names_the_host_of_a_package_index():
    hosts = "|".join(("py" + "pi.org", "python" + "hosted.org"))
    found = subprocess.run(["git", "grep", "-nIE", hosts.replace(".", r"\.")], cwd=ROOT, capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (1, "")


def test_there_is_no_typo():
    program = Path(sys.executable).with_name("typos")
    done = subprocess.run([program, "--format", "brief"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_root_holds_nothing_that_an_example_has_left_there():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a clone")
    there = {path.partition("/")[0] for path in tracked.stdout.splitlines() if not path.startswith(".")}
    papers = {"CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"}
    tools = {
        "Makefile",
        "codemeta.json",
        "pyproject.toml",
        "requirements.lock",
        "requirements-docs.lock",
        "requirements-release.lock",
    }
    assert there == papers | tools | {"benchmarks", "docs", "examples", "src", "tests"}
