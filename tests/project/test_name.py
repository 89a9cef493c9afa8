"""We are distributed as sparse-contextual-bigrams and imported as scb; scb on the public index is another project."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import scb

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = "sparse-contextual-bigrams"
LOCKED = re.findall(r"^([\w-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
OTHERS = {*LOCKED, "torch", "hmmlearn", "mtdlearn"}
"""What else may be installed: what we depend on, and what benchmarks compare with."""

INSTALL = re.compile(r"pip install((?: +(?:-r|--target) +\S+| +-\S+)*)(?: +([^`\n#]+))?")
NAMED = re.compile(r"""["']?(?P<name>[\w.-]*[\w.])(?:\[(?P<extras>[\w,{}]+)\])?""")
ELSEWHERE = re.compile(r"""\bscb\[[\w,]+\]|dependencies = \[[^\]]*["']scb["'\[<>=~ ]|(?:version|distribution)\(["']scb["']\)""")


def strays(text):
    """The hints in a text that would install, ask for, or read the metadata of something that is not ours."""
    found = ELSEWHERE.findall(text)
    for options, rest in INSTALL.findall(text):
        command = f"pip install{options} {rest}".strip()
        named = NAMED.match(rest)
        if re.search(r"\bscb\b(?![./-])", rest):
            found.append(command)
        elif named and named["name"] in {".", OURS}:
            extras = (named["extras"] or "").split(",")
            found += [command for extra in extras if extra not in {"", "extra", "{extra}", *PROJECT["optional-dependencies"]}]
        elif named and named["name"] not in OTHERS:
            found.append(command)
    return found


def test_no_hint_names_a_package_that_is_not_ours():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    ends = (".py", ".md", ".toml", ".yml", ".cff", ".html", ".js", ".rst", ".lock", ".txt", "Makefile")
    paths = [ROOT / name for name in listed.stdout.splitlines() if name.endswith(ends) and name != "tests/project/test_name.py"]
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in paths if path.exists()}
    assert sum("pip install" in text for text in texts.values()) > 15
    assert {str(path): strays(text) for path, text in texts.items() if strays(text)} == {}


@pytest.mark.parametrize(
    "hint",
    [
        "needs Dask: pip install 'scb[dask]', or take --jobs 1",
        "`pip install scb`",
        "pip install -U scb",
        "python -m pip install --quiet scb==0.1",
        "pip install '.[tabels]'",
        "pip install contextual-bigrams",
        "for example scb[cuda12]",
        'dependencies = ["scb"]',
        'dependencies = ["numpy", "scb>=0.1"]',
        'version("scb")',
    ],
)
def test_such_hints_are_found(hint):
    assert strays(hint)


@pytest.mark.parametrize(
    "hint", ["pip install .", f"pip install '{OURS}[torch]'", "pip install -r requirements.lock", "pip install torch==2.13.0"]
)
def test_our_own_hints_pass(hint):
    assert not strays(hint)


def test_the_package_refers_to_itself_by_its_name():
    assert PROJECT["name"] == OURS
    asked = [line for extra in PROJECT["optional-dependencies"].values() for line in extra]
    assert sum(line.startswith(f"{OURS}[") for line in asked) == 3
    assert version(OURS) == scb.__version__


METADATA = "Metadata-Version: 2.1\nName: scb\nVersion: 0.1.2\nSummary: {}\n"


@pytest.mark.parametrize("folder", ["scb-0.1.2.dist-info", "scb.egg-info"])
@pytest.mark.parametrize(("summary", "lines"), [("A wrapper for an API", 1), (PROJECT["description"], 0)])
def test_the_first_import_says_that_another_scb_is_installed(tmp_path, folder, summary, lines):
    """A package of that name is told by one line; what an installation of ours under its old name left behind is not."""
    about = tmp_path / folder
    about.mkdir()
    (about / ("METADATA" if folder.endswith("dist-info") else "PKG-INFO")).write_text(METADATA.format(summary))
    code = f"import sys; sys.path.append({str(tmp_path)!r}); import scb; import scb.files"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == lines * [
        "scb: another package called scb (0.1.2) is installed, and one of the two overwrites the other:"
        " pip uninstall scb, then install sparse-contextual-bigrams again"
    ]


def test_without_such_metadata_nothing_is_loaded_for_the_look():
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); import scb; print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
