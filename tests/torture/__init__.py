"""Attacks on scb, each case made from a seed: kills, I/O faults, flipped bytes, odd arguments. ``make torture`` runs them long."""
