"""The quotes of the claims against the source of the paper, if it is at hand: as SCB_PAPER=…/paper.tex, or in shared/ beside us."""

import os
import re
from pathlib import Path

import pytest

from scb.paper.registry import CLAIMS

ROOT = Path(__file__).parents[2]
PLACES = (Path(os.environ.get("SCB_PAPER", "paper.tex")), ROOT / "shared" / "paper.tex", ROOT.parent / "shared" / "paper.tex")
SOURCE = next((path for path in PLACES if path.exists()), None)
SYMBOLS = {
    r"\alpha": "α", r"\tau": "τ", r"\eta": "η", r"\lambda": "λ", r"\delta": "δ", r"\theta": "θ", r"\sigma": "σ", r"\Theta": "Θ",
    r"\eps": "ε", r"\epsilon": "ε", r"\mu": "μ", r"\bmu": "μ", r"\bDelta": "Δ", r"\Delta": "Δ", r"\cT": "𝒯", r"\ell": "ℓ",
    r"\V": "V", r"\A": "A", r"\a": "a", r"\q": "q", r"\e": "e", r"\h": "h", r"\bP": "P", r"\bQ": "Q", r"\One": "1", r"\Id": "I",
    r"\trans": "ᵀ", r"\poly": "poly", r"\diag": "diag", r"\log": "log", r"\approx": "≈", r"\le": "≤", r"\leq": "≤", r"\ge": "≥",
    r"\gets": "←", r"\|": "‖", r"\bepsNoise": "ε_noise", r"\Tmp": "Tmp", r"\gg": "≫", r"\hat": "^", r"\Omega": "Ω", r"\min": "min",
    r"\sim": "∼", r"\in": "∈", r"\notin": "∉", r"\sqrt": "√", r"\hh": "ĥ",
}  # fmt: skip
SUBSCRIPTS = str.maketrans({"₁": "_1", "₂": "_2", "²": "^2", "³": "^3", "⁴": "^4", "⁵": "^5", "−": "-", "–": "-", "’": "'"})


def plain(tex):
    """The words and symbols of TeX without its layout, and without spaces."""
    tex = re.sub(r"(?<!\\)%.*", "", tex)
    tex = re.sub(r"\\footnote\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}", "", tex)
    tex = re.sub(r"\\(?:label|eqref|ref|cite[pt]?)\{[^{}]*\}", "", tex)
    tex = re.sub(r"\\[{}]", " ", tex).replace(r"\tilde{O}", "Õ")
    tex = re.sub(r"\\norm\{([^{}]*)\}", r"\\|\1\\|", tex)
    tex = re.sub(r"\\ps\{([^{}]*)\}", r"^(\1)", tex)
    for _ in range(3):  # from the inside to the outside
        tex = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", tex)
    tex = re.sub(r"\\(?:textbf|textit|left|right|qty|qquad|quad)(?![A-Za-z])", "", tex)
    tex = re.sub(r"\\([A-Za-z]+|\|)", lambda found: SYMBOLS.get(found.group(), found.group()), tex)
    return re.sub(r"[\s~]|\\[,;]|\\?[${}]", "", tex).translate(SUBSCRIPTS)


def pieces(quote):
    """The pieces of a quote between ellipses, written as ``plain`` writes the paper."""
    found = [re.sub(r"[\s{}]", "", piece).translate(SUBSCRIPTS) for piece in quote.split("…")]
    return [piece for piece in found if piece]


@pytest.mark.skipif(SOURCE is None, reason="the source of the paper is not here")
@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if not claim.ours], ids=lambda claim: claim.says)
def test_the_paper_says_so_word_for_word(claim):
    assert SOURCE is not None
    paper = plain(SOURCE.read_text())
    start = 0
    for piece in pieces(claim.quote):
        start = paper.find(piece, start)
        assert start >= 0, f"not in the paper: {piece}"


def test_a_wrong_word_is_noticed():
    paper = plain(r"both $\norm{\bP-\V}_\mu$ and\footnote{no {matter}} $\|\A-\bQ\|_\mu$ ``decrease'' by $\frac{1}{T}$ % aside")
    assert pieces("both ‖P−V‖_μ and ‖A−Q‖_μ")[0] in paper
    assert pieces("both ‖P−V‖_μ … 1/T")[1] in paper
    assert pieces("both ‖P−A‖_μ")[0] not in paper
