"""``python -m scb``: the command, for when its script is not on the path."""

from scb.cli import main

main()
