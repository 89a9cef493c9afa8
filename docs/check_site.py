"""Check the built site as a reader would use it: links and old addresses lead somewhere, five questions are two clicks away.

No mark-up is left over, and titles can be scanned.

    python docs/check_site.py docs/_build/html

Addresses outside of the site are not asked for: the check works offline.
"""

import re
import sys
from collections import deque
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

QUESTIONS = {  # picked before the pages were written → the page that answers, and words that must stand there
    "How do I change λ in Stage 2?": ("howto/change-lambda.html", "lam="),
    "What does a NaN standard error mean?": ("howto/nan-standard-error.html", "the data do not determine this number"),
    "Which figure shows that ℓ1 is needed?": ("paper/figures/F16.html", "Without the proximal step"),
    "How do I fit 300 sequences from a Parquet file?": ("howto/fit-a-parquet-file.html", "visits.parquet"),
    "How do I add a recipe?": ("howto/add-in-your-own-package.html", "scb.recipes"),
}
CLICKS = 2
ADDRESSES = Path(__file__).with_name("addresses.txt").read_text().split()  # given out once: each must answer for good
LEFT_OVER = re.compile(  # what nobody wrote to be read: mark-up, and names that a tuple gives to its fields
    r"\{[\w-]+\}`.{0,40}|\]\(\S+?\)|\*\*\w[^*]{0,40}\*\*|<!--.{0,20}|Alias for field number"
)
CODE = {"code", "pre", "script", "style"}


class Page(HTMLParser):
    """Links, anchors and text of one page; without menus, ``article`` has the links of its text, and ``prose`` what is not code."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.article: list[str] = []
        self.anchors: set[str] = set()
        self.text: list[str] = []
        self.prose: list[str] = []
        self.code = 0  # how many elements with code it is inside of
        self.inside = False
        self.moved = False
        self.title = ""  # the text of its first heading
        self.heading = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.update(filter(None, (given.get("id"), given.get("name") if tag == "a" else None)))
        self.inside = self.inside or tag == "article"
        self.code += tag in CODE
        self.heading = tag == "h1" and not self.title
        self.moved = self.moved or given.get("http-equiv") == "refresh"
        for name in ("href", "src"):
            if given.get(name) and tag not in {"link", "script"}:
                self.links.append(str(given[name]))
                if self.inside and tag == "a":
                    self.article.append(str(given[name]))

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "article"
        self.code -= tag in CODE

    def handle_data(self, data: str) -> None:
        self.title += data if self.heading else ""
        self.text.append(data)
        if self.inside and not self.code:
            self.prose.append(data)


def target(page: Path, link: str, root: Path) -> tuple[Path, str] | None:
    """File and anchor that a link of a page leads to; None if it leaves the site."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if file.is_dir():
        file /= "index.html"
    return file, unquote(parts.fragment)


def broken_links(pages: dict[Path, Page], root: Path) -> list[str]:
    """One line for each link that leads nowhere."""
    found = []
    for path, page in pages.items():
        for link in page.links:
            place = target(path, link, root)
            if place is None:
                continue
            file, anchor = place
            if not file.exists():
                found.append(f"{path.relative_to(root)}: {link} does not exist")
            elif anchor and file in pages and file.name != "lab.html" and anchor not in pages[file].anchors:
                found.append(f"{path.relative_to(root)}: {link} has no such anchor")
    return found


def left_over(pages: dict[Path, Page], root: Path) -> list[str]:
    """One line for each piece of mark-up that readers see."""
    found = [(path, match) for path, page in pages.items() for text in page.prose for match in LEFT_OVER.findall(text)]
    return [f"{path.relative_to(root)}: {match!r} is left over" for path, match in found]


def lab_apart(pages: dict[Path, Page], root: Path) -> list[str]:
    """One line for each page without a way to the lab, and one if the lab has no way back."""
    found = []
    for path, page in pages.items():
        wanted = "index.html" if path == root / "lab.html" else "lab.html"
        if path.name != "404.html" and not page.moved and not any(link.partition("#")[0].endswith(wanted) for link in page.links):
            found.append(f"{path.relative_to(root)}: no link to {wanted}")
    return found


def clicks_from(start: Path, pages: dict[Path, Page], root: Path) -> dict[Path, int]:
    """How many clicks each page is away, by the links in the text of pages."""
    away = {start: 0}
    queue = deque([start])
    while queue:
        path = queue.popleft()
        for link in pages[path].article:
            place = target(path, link, root)
            if place and place[0] in pages and place[0] not in away:
                away[place[0]] = away[path] + 1
                queue.append(place[0])
    return away


def problems(root: Path, addresses: Sequence[str] = ADDRESSES) -> list[str]:
    """All that is wrong with a built site, and the addresses that no longer answer."""
    root = root.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.html")) if "_static" not in path.parts}
    found = broken_links(pages, root) + left_over(pages, root) + lab_apart(pages, root)
    found += [f"{name}: this address was given out, and no longer answers" for name in addresses if root / name not in pages]
    found += [
        f"{path.relative_to(root)}: its title begins as others do"
        for path, page in pages.items()
        if page.title.startswith("How do I")
    ]
    away = clicks_from(root / "index.html", pages, root)
    for question, (name, words) in QUESTIONS.items():
        path = root / name
        if away.get(path, CLICKS + 1) > CLICKS:
            found.append(f"{question} {name} is more than {CLICKS} clicks away")
        elif words not in " ".join("".join(pages[path].text).split()):
            found.append(f"{question} {name} does not have the words {words!r}")
        else:
            print(f"{away[path]} click(s): {question}")
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values()):,} links")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong))
    sys.exit(bool(wrong))
