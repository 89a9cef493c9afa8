"""The paper's mathematics: closed forms, the population projection, the dynamics, and the bounds."""
