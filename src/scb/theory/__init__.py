"""The paper's mathematics: closed forms, dynamics, noise, inequalities with their constants, the planner, the Cramér–Rao bound."""
