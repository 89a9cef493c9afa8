"""``python -m scb``: the command, where its script is not on the path."""

from scb.cli import main

main()
