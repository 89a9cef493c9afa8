"""Sweeps: a grid over task and recipe parameters × seeds, run anywhere, each run exactly once."""
