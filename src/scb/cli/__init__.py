"""The command ``scb``: one file a command; each imports what it needs when it runs."""

import io
import os
import shlex
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Annotated, Any

from scb.inputs import InputError, one_of
from scb.provenance import versions

KEEPING = ("reproduce", "sweep")  # the same command goes on where an interrupt has ended it
COMMANDS = {
    "fit": "find which earlier symbols decide the next one in your sequences",
    "train": "train the paper's transformer on a random task",
    "reproduce": "redraw the paper's figures and judge its claims",
    "lab": "watch a transformer learn, in the browser",
    "show": "print a saved run or a fitted model again",
    "sample": "draw a sequence from a fitted model",
    "sweep": "run a grid of settings and seeds, here or on a cluster",
    "plan": "print the batch sizes and steps that the paper's lemmas require",
    "bench": "time a training step against NumPy, PyTorch and JAX",
}
"""Command → what it does, in a line of the overview; its own help says the rest."""
OVERVIEW = """usage: scb COMMAND [OPTIONS]

Find which earlier symbols decide the next one, in your sequences or inside a
transformer that is learning to.

{}

scb COMMAND --help             options and examples of a command
scb --version                  print the version
scb --print-completion SHELL   print a completion script for bash or zsh;
                               to use it: eval "$(scb --print-completion bash)"
"""


def main(arguments: list[str] | None = None) -> None:
    """Entry point; errors that a user can mend are one line on stderr, with exit status 2. A traceback is a bug."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a λ that the terminal cannot show must not end a run
        if given == ["--version"]:
            print(f"scb {versions()['scb']}")
            return
        if given in ([], ["-h"], ["--help"]):
            print(OVERVIEW.format("\n".join(f"  {name:<11}{line}" for name, line in COMMANDS.items())), end="")
            return
        if given[0] == "--print-completion":
            given = ["--tyro-print-completion", one_of("--print-completion", " ".join(given[1:]), ("bash", "zsh"))]
        import tyro  # here, as the commands are: Ctrl-C may come while they load

        functions = {name: _with_plain_help(getattr(import_module(f"scb.cli.{name}"), name)) for name in COMMANDS}
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            plain = (tyro.conf.DisallowNone,)  # an option that is not wanted is left out: INT instead of {None}|INT
            tyro.extras.subcommand_cli_from_dict(functions, prog="scb", args=given, config=plain)
        sys.stdout.flush()  # here, where a full disk can still be told
    except BrokenPipeError:  # whoever read it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (InputError, OSError) as error:
        _end(str(error) or type(error).__name__)
    except MemoryError as error:
        _end(f"out of memory ({error})" if str(error) else "out of memory")
    except KeyboardInterrupt as stop:
        advice = str(stop)
        if not advice and given[:1] and given[0] in KEEPING:
            advice = f"what is done is kept, go on with: {shlex.join(['scb', *given])}"
        print(f"scb: interrupted; {advice}" if advice else "scb: interrupted", file=sys.stderr)
        sys.exit(130)


def _with_plain_help(command: Callable[..., None]) -> Callable[..., None]:
    """The command, whose help shows no default where there is nothing to show: None, or nothing at all."""
    from tyro.conf import arg

    for name, parameter in signature(command).parameters.items():
        if parameter.default in (None, ()):
            command.__annotations__[name] = Annotated[parameter.annotation, arg(help_behavior_hint="")]
    return command


def _end(message: str) -> None:
    """Say in one line what is wrong, and leave with status 2; what is left in stdout cannot be written any more if it is full."""
    print(f"scb: {' '.join(message.split())}", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(2)


def _warn(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: str | None = None) -> None:
    print(f"scb: warning: {message}", file=sys.stderr)
