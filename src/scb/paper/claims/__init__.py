"""Claims of the paper as checks: pure functions from tables to measured numbers and a verdict."""
