"""``python -m scb`` runs the command ``scb`` even if its script is not on the path."""

from scb.cli import main

main()
