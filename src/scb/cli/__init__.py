"""The command ``scb`` has one file per subcommand, which imports what it needs when it runs.

The exit status is 0 if the work was done, 1 if it ended without success (a run diverged, or the
output could not be printed), 2 if it could not be done as asked, and 130 after an interrupt.
"""

import shlex
import signal
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

from scb.cli.streams import replace_streams

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
transformer that is learning to find them.

{}

scb COMMAND --help             options and examples of a command
scb --version                  print the version
scb --print-completion SHELL   print a completion script for bash or zsh;
                               in bash: eval "$(scb --print-completion bash)"
"""
LEAST_MEMORY = 1 << 30
"""Bytes of address space: with less, compiled libraries crash or hang without a word."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. An error that a user can fix is one line on stderr, with exit status 2;
    a traceback is a bug.
    """
    output = replace_streams()
    status = _status(sys.argv[1:] if arguments is None else arguments, ends=arguments is None)
    sys.stdout.flush()
    if output is not None and (lost := output.reported_loss()):
        print(f"scb: the output could not be printed: {lost.strerror}", file=sys.stderr)
        status = status or 1
    if status:
        sys.exit(status)


def _status(given: list[str], ends: bool) -> int:
    """Run a command and return its exit status. ``ends`` says whether the process ends with it."""
    try:
        _call(given)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt as stop:
        if ends:
            # The process ends here: a second Ctrl-C changes nothing.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        advice = str(stop)
        if not advice and given[:1] and given[0] in KEEPING:
            advice = f"what is done is kept, go on with: {shlex.join(['scb', *given])}"
        print(f"scb: interrupted; {advice}" if advice else "scb: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        message = _sentence(error, given)
        if message is None:
            raise
        print(f"scb: {_visible(' '.join(message.split()))}", file=sys.stderr)
        return 2
    return 0


def _call(given: list[str]) -> None:
    if given == ["--version"]:
        from scb.provenance import versions

        print(f"scb {versions()['scb']}")
        return
    if given in ([], ["-h"], ["--help"]):
        print(
            OVERVIEW.format("\n".join(f"  {name:<11}{line}" for name, line in COMMANDS.items())),
            end="",
        )
        return
    if given[0] == "--print-completion":
        from scb.inputs import one_of

        given = [
            "--tyro-print-completion",
            one_of("--print-completion", " ".join(given[1:]), ("bash", "zsh")),
        ]
    _refuse_little_memory()
    # Imported here, like the commands: Ctrl-C may come while they load
    import tyro
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec

    functions = {
        name: _with_plain_help(getattr(import_module(f"scb.cli.{name}"), name)) for name in COMMANDS
    }
    paths = PrimitiveConstructorSpec(
        nargs=1,
        metavar="PATH",
        instance_from_str=_path,
        is_instance=lambda value: isinstance(value, Path),
        str_from_instance=lambda path: [str(path)],
    )
    registry = ConstructorRegistry()
    registry.primitive_rule(lambda asked: paths if asked.type is Path else None)
    with warnings.catch_warnings(), registry:
        warnings.showwarning = _warn
        # An option that is not wanted is left out: INT instead of {None}|INT
        plain = (tyro.conf.DisallowNone,)
        tyro.extras.subcommand_cli_from_dict(functions, prog="scb", args=given, config=plain)


def _refuse_little_memory() -> None:
    """MemoryError if a limit on address space is too low for the compiled libraries."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY and allowed < LEAST_MEMORY:
        raise MemoryError(
            f"'ulimit -v' allows {allowed >> 20:,} MB,"
            f" and at least {LEAST_MEMORY >> 20:,} are needed"
        )


def _sentence(error: Exception, given: list[str]) -> str | None:
    """What to say of an error that a user can fix; None for a bug."""
    # First, and without imports, for which memory may be lacking.
    if isinstance(error, MemoryError) or _for_want_of_memory(error):
        return f"out of memory ({error})" if str(error) else "out of memory"
    from scb.files import WriteError
    from scb.inputs import InputError

    if isinstance(error, WriteError) and given[0] in KEEPING:
        return f"{error}; what is done is kept, go on with: {shlex.join(['scb', *given])}"
    if isinstance(error, OSError):
        said = error.strerror or str(error) or type(error).__name__
        return f"{_shortened(str(error.filename))}: {said}" if error.filename is not None else said
    return str(error) if isinstance(error, InputError) else None


def _shortened(name: str) -> str:
    """The name of a file, without its middle if it is very long."""
    return name if len(name) <= 160 else f"{name[:78]} … {name[-78:]}"


def _for_want_of_memory(error: Exception) -> bool:
    """Whether an error comes from too little memory to load a library or start a thread."""
    if isinstance(error, ImportError):
        return "failed to map segment" in str(error) or "Cannot allocate memory" in str(error)
    return isinstance(error, RuntimeError) and "can't start new thread" in str(error)


def _with_plain_help(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with help that shows no default where there is none to show: None, or an empty
    one.
    """
    from tyro.conf import arg

    for name, parameter in signature(command).parameters.items():
        if parameter.default in (None, ()):
            command.__annotations__[name] = Annotated[
                parameter.annotation, arg(help_behavior_hint="")
            ]
    return command


def _path(words: list[str]) -> Path:
    """The path of an option; an empty word would be the current directory."""
    if not words[0]:
        # Not a ValueError, which tyro would print in its own way
        raise FileNotFoundError(
            "a path is empty: it must be the path of a file or directory ('.' is the current one)"
        )
    return Path(words[0])


def _visible(text: str) -> str:
    """The text with control codes written out; as ASCII if there is no memory to do so."""
    try:
        from scb.cli.terminal import visible
    except (ImportError, MemoryError):
        return ascii(text)[1:-1]
    return visible(text)


def _warn(
    message: Any,
    category: Any,
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    print(f"scb: warning: {_visible(str(message))}", file=sys.stderr)
