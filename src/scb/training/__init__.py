"""Training: sources of gradients, updates, stages, recipes, engines, and the one loop."""
