"""The page of the command line, made from the commands: their docstrings, their arguments and their types."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import tyro

from scb.cli import COMMANDS

INTRODUCTION = """\
# The command line

`scb COMMAND --help` prints the same texts in a terminal. An option may come before or after the arguments, and the words of its
name may be joined by `-` or `_`.

A command prints its progress to stderr and its results to stdout. For other programs, `--json` prints the results as
[one JSON object](json.md).

## Exit statuses

| status | meaning |
|---|---|
| 0 | The work was done, even if a run has not learned its task. |
| 1 | The work ended without success: a run diverged, or the output could not be printed. |
| 2 | The work could not be done as asked. One line on stderr says what to change. |
| 130 | The work was interrupted by Ctrl-C. If a command can continue it, a line on stderr gives this command. |

## Completion in the shell

The Tab key completes commands and options once the shell knows how. In bash, this line enables completion in the current shell:

```sh
eval "$(scb --print-completion bash)"
```

To enable completion in every new shell, write the script to the folder where bash looks for it (this needs the system's package
`bash-completion`):

```sh
mkdir -p ~/.local/share/bash-completion/completions
scb --print-completion bash > ~/.local/share/bash-completion/completions/scb
```

In zsh, write the script to a folder of `fpath`, and name that folder in `~/.zshrc` before the line with `compinit`:

```sh
mkdir -p ~/.zfunc
scb --print-completion zsh > ~/.zfunc/_scb
```

```sh
fpath+=~/.zfunc
autoload -Uz compinit && compinit
```

Write the script again after each update of scb.

## Commands
"""


class Option(NamedTuple):
    """One argument of a command, as a user writes it."""

    written: str  # "--max-lag INT", "FILE"
    said: str  # its explanation
    default: str  # "" where there is none to show
    positional: bool


def page() -> str:
    """The page, in Markdown: a table of the commands, and a section for each."""
    rows = [f"| [`scb {name}`](#scb-{name}) | {_description(_command(name))[0]} |" for name in COMMANDS]
    table = "\n".join(["| command | what it does |", "|---|---|", *rows])
    return "\n".join([INTRODUCTION, table, "", *map(_section, COMMANDS)])


def options(name: str) -> list[Option]:
    """The arguments of a command, in their order."""
    command = _command(name)
    said = _arguments(command)
    hints = get_type_hints(command, include_extras=True)
    return [_option(one, hints[one.name], said[one.name]) for one in inspect.signature(command).parameters.values()]


def _command(name: str) -> Any:
    return getattr(import_module(f"scb.cli.{name}"), name)


def _section(name: str) -> str:
    found = options(name)
    before = [one.written for one in found if one.positional]
    usage = " ".join(["scb", name, *before, "[OPTIONS]"])
    paragraphs = "\n\n".join(map(_marked, _description(_command(name))))
    listed = "\n\n".join(f"`{one.written}`\n: {_with_code(one.said)}{one.default}" for one in found)
    return f"### scb {name}\n\n```text\n{usage}\n```\n\n{paragraphs}\n\n{listed}\n"


def _description(command: Any) -> list[str]:
    """The paragraphs of a docstring before its arguments, each on one line; a formula, which is indented, stays as it is."""
    text = (inspect.getdoc(command) or "").partition("\nArgs:")[0]
    paragraphs = [paragraph.rstrip() for paragraph in text.split("\n\n") if paragraph.strip()]
    return [one if one.startswith("  ") else " ".join(one.split()) for one in paragraphs]


def _marked(paragraph: str) -> str:
    """A paragraph as Markdown: commands in it and formulas are code."""
    if paragraph.startswith("  "):
        return f"```text\n{paragraph.strip()}\n```"
    lead, colon, commands = paragraph.partition(": ")
    parts = re.split(r"(; or |; | \(|, which)", commands)
    if not any(part.startswith("scb ") for part in parts):
        return _with_code(paragraph)
    return lead + colon + "".join(f"`{part.strip()}`" if part.startswith("scb ") else part for part in parts)


def _with_code(text: str) -> str:
    """The text with what stands between single quotes, and options, as code."""
    quoted = re.sub(r"(?<!\w)'([^']+)'(?!\w)", r"`\1`", text)
    parts = re.split(r"(`[^`]*`)", quoted)
    return "".join(part if part.startswith("`") else re.sub(r"--[a-z][\w-]*", r"`\g<0>`", part) for part in parts)


def _arguments(command: Any) -> dict[str, str]:
    """Name → explanation, from the part "Args:" of a docstring."""
    text = (inspect.getdoc(command) or "").partition("\nArgs:\n")[2]
    found: dict[str, str] = {}
    for line in text.splitlines():
        named = re.match(r"    (\w+): (.*)", line)
        if named:
            found[named[1]] = named[2]
        elif line.strip():
            found[next(reversed(found))] += " " + line.strip()
    return found


def _option(parameter: inspect.Parameter, hint: Any, said: str) -> Option:
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    kind = get_args(hint)[0] if marks else hint
    renamed = next((mark.name for mark in marks if getattr(mark, "name", None)), parameter.name.replace("_", "-"))
    metavar = next((mark.metavar for mark in marks if getattr(mark, "metavar", None)), None) or _metavar(kind, parameter.name)
    default = parameter.default
    shown = ""
    if default not in (inspect.Parameter.empty, None, (), ""):
        shown = f" Default: `{' '.join(default) if isinstance(default, tuple) else default}`."
    if tyro.conf.Positional in marks:
        return Option(metavar, said, shown, positional=True)
    if bool in (kind, *get_args(kind)):
        shown = {True: " Default: yes.", False: " Default: no.", None: ""}[default]
        return Option(f"--{renamed}, --no-{renamed}", said, shown, positional=False)
    return Option(f"--{renamed} {metavar}", said, shown, positional=False)


def _metavar(kind: Any, name: str) -> str:
    """What stands for a value of a type."""
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if NoneType in get_args(kind):
        return _metavar(get_args(kind)[0], name)
    if get_origin(kind) is tuple:
        one = _metavar(get_args(kind)[0], name)
        return f"{one} [{one} ...]"
    return {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}.get(kind, name.upper())
