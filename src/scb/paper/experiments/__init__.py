"""Experiments: a frozen config, cut into jobs that do not depend on each other, gives a tidy table
(column name → array)."""
