"""Claims of the paper as checks: pure functions from tables to what was measured and a verdict."""
