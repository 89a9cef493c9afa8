"""Criteria first: every criterion was frozen as it stands, and changing one without freezing it anew is noticed."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from scb.inputs import InputError
from scb.paper import frozen as freezer
from scb.paper.frozen import digest, freeze, frozen
from scb.paper.registry import CLAIMS


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_criterion_is_the_frozen_one(claim):
    """If this fails: commit the claim, then run python -m scb.paper.frozen."""
    assert claim.id in frozen()
    assert frozen()[claim.id].digest == digest(claim)
    assert frozen()[claim.id].tables in ("seen", "not seen")


def test_nothing_else_is_frozen():
    assert set(frozen()) == {claim.id for claim in CLAIMS}


def history(*arguments):
    """What git says of the repository that these tests stand in; None if it cannot say it."""
    done = subprocess.run(["git", "-C", str(freezer.HERE), *arguments], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


@pytest.mark.parametrize("commit", sorted({row.commit for row in frozen().values()}))
def test_the_commit_has_the_criterion(commit):
    """Where the history is at hand: every criterion stands word for word in the commit that it is said to be of."""
    files = history("ls-tree", "--name-only", commit, "claims/")
    if files is None:
        pytest.skip("the history is not here")
    sources = [history("show", f"{commit}:./{name}") for name in files.split()]
    words = " ".join("".join(source or "" for source in sources).split())
    mine = [claim for claim in CLAIMS if frozen()[claim.id].commit == commit]
    assert [claim.id for claim in mine if claim.criterion not in words] == []


def test_a_changed_word_changes_the_digest_and_a_line_break_does_not():
    claim = CLAIMS[0]

    def with_words(words):
        def judge():
            raise NotImplementedError

        judge.__doc__ = words
        return replace(claim, judge=judge)

    assert digest(with_words(claim.criterion.replace(" ", "\n    "))) == digest(claim)
    assert digest(with_words(claim.criterion.replace("0.05", "0.06"))) != digest(claim)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository of its own, with the claims and the file of what is frozen."""

    def git(*arguments):
        subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x@y", *arguments], cwd=tmp_path, check=True, capture_output=True
        )

    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "one.py").write_text("")
    (tmp_path / "frozen.csv").write_text(freezer.FILE.read_text())
    git("init")
    git("add", ".")
    git("commit", "-m", "claims")
    monkeypatch.setattr(freezer, "HERE", tmp_path)
    monkeypatch.setattr(freezer, "FILE", tmp_path / "frozen.csv")
    freezer.frozen.cache_clear()
    yield tmp_path
    freezer.frozen.cache_clear()


def test_freezing_takes_what_has_changed_and_nothing_else(repository):
    assert freeze() == []
    file = repository / "frozen.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[1].replace(digest_of(lines[1]), "0" * 16), *lines[3:]]))
    freezer.frozen.cache_clear()
    first, second = (line.split(",")[0] for line in lines[1:3])
    assert freeze() == [first, second]
    assert frozen()[first].tables == "seen"  # a criterion that is changed later may have been changed for its tables
    assert freeze() == []


def digest_of(line: str) -> str:
    return line.split(",")[1]


def test_claims_that_are_not_committed_are_not_frozen(repository: Path):
    (repository / "claims" / "one.py").write_text("CHANGED = True\n")
    with pytest.raises(InputError, match="commit the claims first"):
        freeze()
