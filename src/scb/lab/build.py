"""Bundle the lab into one HTML text.

Each ES module becomes a function that is called once and returns its exports, so the names of two
modules cannot clash. Modules may use only ``import { a, b } from "./x.mjs";`` and ``export`` before
a declaration. Circular imports are refused.
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
MODULES = HERE / "modules"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z0-9_]+)\.mjs";\n', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?=(?:async function|function|const|class) ([A-Za-z_$][\w$]*))", re.MULTILINE
)


def bundle(entry: str, modules: Path = MODULES) -> str:
    """Return one script that contains a module of a folder and everything that it imports."""
    done: list[str] = []
    parts: list[str] = []

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"modules import in a circle: {' → '.join((*above, name))}")
        if name in done:
            return
        text = (modules / f"{name}.mjs").read_text(encoding="utf-8")
        for _, needed in _IMPORT.findall(text):
            add(needed, (*above, name))
        done.append(name)
        exports = ", ".join(_EXPORT.findall(text))
        body = _EXPORT.sub(
            "", _IMPORT.sub(lambda match: f"const {{{match[1]}}} = ${match[2]};\n", text)
        )
        for word in ("import ", "export "):
            if re.search(rf"^{word}", body, re.MULTILINE):
                raise ValueError(f"{name}.mjs has an {word.strip()} that the bundler does not know")
        parts.append(f"const ${name} = (() => {{\n{body}return {{ {exports} }};\n}})();\n")

    add(entry, ())
    return '"use strict";\n' + "\n".join(parts)


def build() -> str:
    """Return the whole page as one HTML text."""
    page = (HERE / "page.html").read_text(encoding="utf-8")
    parts = {
        "style": (HERE / "style.css").read_text(encoding="utf-8"),
        "worker": bundle("worker"),
        "page": bundle("page"),
    }
    for name, text in parts.items():
        if "</script" in text:
            raise ValueError(f"the {name} holds '</script', which would end the script in the page")
        page = page.replace("{{" + name + "}}", text.strip())
    return page
