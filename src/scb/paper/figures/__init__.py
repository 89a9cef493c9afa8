"""Figures: pure functions from a table (column name → array) to a matplotlib figure."""
