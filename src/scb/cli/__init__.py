"""The command ``scb``: one file a command; each imports what it needs when it runs."""

import sys
from importlib import import_module

import tyro

COMMANDS = ("reproduce", "train", "fit", "show", "sample", "sweep", "plan", "bench", "lab")


def main(arguments: list[str] | None = None) -> None:
    """Entry point; errors that a user can mend are one line on stderr, with exit status 2."""
    functions = {name: getattr(import_module(f"scb.cli.{name}"), name) for name in COMMANDS}
    about = "The laboratory for Sparse Contextual Bigrams. 'scb COMMAND --help' explains each command."
    try:
        tyro.extras.subcommand_cli_from_dict(functions, prog="scb", description=about, args=arguments)
    except (ValueError, OSError) as error:
        print(f"scb: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("scb: interrupted", file=sys.stderr)
        sys.exit(130)
