"""This package holds the geometry of the paper: the μ inner product, columns that sum to one, the
lines of the population process, and the matrix that several heads factor.
"""

from scb.geometry.columns import project, threshold_normalize, threshold_project
from scb.geometry.gauge import rotate_heads
from scb.geometry.heads import function_distance, function_singular_values
from scb.geometry.lines import (
    Projection,
    deviations,
    line_A,
    line_V,
    population_projection,
    trivial_V,
    uniform_start,
)
from scb.geometry.products import (
    Projector,
    centred_square,
    keep_mu,
    mu_inner,
    mu_norm,
    projector_row,
)

__all__ = [
    "Projection",
    "Projector",
    "centred_square",
    "deviations",
    "function_distance",
    "function_singular_values",
    "keep_mu",
    "line_A",
    "line_V",
    "mu_inner",
    "mu_norm",
    "population_projection",
    "project",
    "projector_row",
    "rotate_heads",
    "threshold_normalize",
    "threshold_project",
    "trivial_V",
    "uniform_start",
]
