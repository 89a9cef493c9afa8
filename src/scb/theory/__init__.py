"""The paper's mathematics: closed forms, the dynamics, the noise, the planner, and the Cramér–Rao bound."""
