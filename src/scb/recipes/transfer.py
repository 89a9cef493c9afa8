"""Transfer: a pretrained transition matrix replaces Stage 1."""
