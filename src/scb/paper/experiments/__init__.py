"""Experiments: a frozen configuration, divided into independent jobs, produces a tidy table (column
name → array)."""
