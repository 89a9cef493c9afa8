"""The page that ``scb fit`` leaves: it stands alone, escapes symbols, and says what the model says."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.sparse import csr_array

import scb
from scb.sequences.answer import answer_of
from scb.sequences.baselines.background import RecentBackground
from scb.sequences.coding import windows_of_codes
from scb.sequences.comparison import OWN, paired_error, scores_of
from scb.sequences.explaining import explain
from scb.sequences.lag_model import LagModel
from scb.sequences.report import effects, lag_table, write_page
from scb.sequences.symbols import readable


def model(context=True):
    """Two symbols; after the first one, lag 3 copies with weight ½, and lag 1 has the rest."""
    attention = csr_array(np.array([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0]] if context else [[0.5, 0.0, 0.5]]))
    matrices = {1: np.array([[0.5, 0.8], [0.5, 0.2]]), 3: np.array([[0.9, 0.1], [0.1, 0.9]])}
    return LagModel(
        classes=np.array(["<script>", " b\n"]),
        context=context,
        attention=attention,
        errors=attention * 0.1,
        background_weight=np.zeros(len(attention.indptr) - 1),
        background_ratio=np.zeros(len(attention.indptr) - 1),
        matrices=matrices,
        prior=np.array([0.5, 0.5]),
        frequencies=np.array([0.5, 0.5]),
        unseen=np.zeros(2),
    )


def reasons(of):
    return explain(of, [np.array([0, 1, 1, 0, 1, 0])])


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.parametrize("context", [True, False])
def test_the_page_stands_alone_and_escapes_symbols(tmp_path, context):
    rng = np.random.default_rng(0)
    own = np.log(rng.uniform(0.5, 1, size=400))
    path = tmp_path / "new" / "report.html"
    write_page(
        path,
        model(context),
        title="<i>poem</i>.txt",
        data=["3 & 4 symbols"],
        scores=scores_of({OWN: own, "bigram": own - 0.1}),
        held_out=own.size,
        command="scb fit '<poem>.txt'",
        settings={"max_lag": 3},
        reasons=reasons(model(context)),
        warnings=["the fit did not converge"],
    )
    text = path.read_text()
    page = Page(text)
    assert page.open == []
    assert not {"script", "i"} & {tag for tag, _ in page.tags}
    assert all(attrs["src"].startswith("data:image/png;base64,") for tag, attrs in page.tags if tag == "img")
    assert not re.search(r"(src|href)=\"(?!data:)", text)
    assert "https://" not in text
    words = " ".join(" ".join(page.words).split())
    for expected in ("<script>", "<i>poem</i>.txt", "3 & 4 symbols", "scb fit '<poem>.txt'", "the fit did not converge"):
        assert expected in words
    assert "400 held-out symbols" in words
    assert "+0.1443 ± 0.0000" in words  # 0.1/ln 2


def test_the_page_without_lags_and_without_baselines(tmp_path):
    nothing = LagModel(
        classes=np.array(["a", "b"]),
        context=True,
        attention=csr_array((2, 3)),
        errors=csr_array((2, 3)),
        background_weight=np.ones(2),
        background_ratio=np.zeros(2),
        matrices={},
        prior=np.array([0.5, 0.5]),
        frequencies=np.array([0.5, 0.5]),
        unseen=np.zeros(2),
    )
    write_page(
        tmp_path / "r.html", nothing, title="noise", data=[], scores=[], held_out=0, command="scb fit", settings={}, warnings=[]
    )
    words = " ".join(Page((tmp_path / "r.html").read_text()).words)
    assert "No earlier symbol decides the next one, as far as these data can tell." in words
    assert "Nothing was held out" in words


def test_effects_are_differences_of_laws():
    """With b at lag 3, the weight ½ makes b more likely by ½·(0.9 − 0.5) = 20 points."""
    strongest, other, *rest = effects(model())
    assert {(strongest.source, strongest.up), (other.source, other.up)} == {("<script>", "<script>"), ("' b\\n'", "' b\\n'")}
    for one in (strongest, other):
        assert (one.current, one.lag) == ("<script>", 3)
        assert one.rise == pytest.approx(20)
        assert one.fall == pytest.approx(20)
    assert rest == []  # lag 1 is the context, which cannot vary
    assert {one.lag for one in effects(model(context=False))} == {1, 3}


def test_effects_of_a_covariate():
    """A covariate with other values than there are symbols decides the next symbol, and its values are named."""
    hour = np.random.default_rng(0).integers(0, 4, 800)
    shown = np.array(["a", "b", "c"])[hour % 3]
    fit = scb.SparseContextualBigram(max_lag=2, transition="per_lag", context=False, background="labels")
    rows = effects(fit.fit(shown, covariates={"hour": hour})._model())
    assert {row.lag for row in rows} == {"hour"}
    assert all(row.up == "abc"[int(row.source) % 3] for row in rows)


def test_answers_in_words():
    assert answer_of(model()) == "After ‘<script>’, the next symbol depends on lags 1 and 3; after ‘' b\\n'’, on lag 1."
    assert answer_of(model(context=False)) == "The next symbol depends on lags 1 and 3."


def test_long_tables_are_cut_and_say_so(tmp_path):
    """Two symbols with 35 lags each: of 70 rows, 60 are on the page."""
    attention = csr_array(np.full((2, 35), 1 / 35))
    many = {lag: np.full((2, 2), 0.5) for lag in range(1, 36)}
    long = replace(model(), attention=attention, errors=attention, matrices=many, evidence={"nats": np.full(70, np.nan)})
    meanings, rows = lag_table(long)
    assert len(rows) == 70
    assert rows[2] == ["<script>", "3", "0.029", "–", "–"]
    assert next(iter(meanings)) == "now"
    about = {"title": "", "data": [], "command": "", "settings": {}, "warnings": [], "reasons": reasons(long)}
    write_page(tmp_path / "r.html", long, scores=[], held_out=0, **about)
    page = Page((tmp_path / "r.html").read_text())
    assert "10 more are in lags.csv" in " ".join(" ".join(page.words).split())
    assert [tag for tag, _ in page.tags].count("tr") == 61
    alone, _ = lag_table(model(context=False))
    assert next(iter(alone)) == "lag"


def test_symbols_that_cannot_be_seen_are_written_out():
    assert [readable(x) for x in ("a b", " a", "\n", "", 3, True)] == ["a b", "' a'", "'\\n'", "''", "3", "True"]


def test_errors_of_paired_differences():
    """Of independent differences it is s/√n; of ones that come in runs it is larger, as it must be."""
    rng = np.random.default_rng(0)
    free = rng.normal(size=20_000)
    assert paired_error(free) == pytest.approx(1 / np.sqrt(20_000), rel=0.25)
    runs = np.repeat(rng.normal(size=1000), 20)
    assert paired_error(runs) == pytest.approx(1 / np.sqrt(1000), rel=0.25)
    first, second = scores_of({OWN: free, "worse": free - 0.2})
    assert (first.name, first.best, second.own) == (OWN, True, False)
    assert second.difference == pytest.approx(0.2 / np.log(2))
    assert second.error == pytest.approx(0, abs=1e-12)


def test_the_background_is_named(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(2, size=500)
    distribution = RecentBackground.fit(windows_of_codes([x], 2, 3, context=True))
    with_distribution = replace(model(), background=distribution, background_weight=np.array([0.25, 0.5]))
    about = {"title": "noise", "data": [], "command": "scb fit", "settings": {}, "warnings": [], "reasons": reasons(model())}
    write_page(tmp_path / "r.html", with_distribution, scores=[], held_out=0, **about)
    words = " ".join(" ".join(Page((tmp_path / "r.html").read_text()).words).split())
    assert f"that the recent past ({distribution.name}) does not say already" in words
    assert f"The background, {distribution.name}, has weight 0.25 to 0.50, depending on the current symbol" in words
