"""Experiments: a frozen configuration, and ``run(config)`` → a tidy table (column name → array)."""
