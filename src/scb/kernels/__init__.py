"""Compiled functions of arrays and scalars; ``reference`` holds a plain NumPy twin of each."""
