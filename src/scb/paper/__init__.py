"""The executable paper: experiments, figures, claims, and the report."""
