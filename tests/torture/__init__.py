"""Attacks on scb, each case made from a seed, which ``make torture`` runs long.

On files: kills, I/O faults, flipped bytes, crafted files, foreign files in the way. On commands and
calls: odd arguments, signals, interrupts, short sequences. On the machine: no locks, other users.
"""
