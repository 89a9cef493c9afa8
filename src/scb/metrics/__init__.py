"""The quantities by which a run is judged: distances, similarities, signals, and the normalised
"star" quantities.
"""

from scb.geometry.gauge import HeadMatch, match_heads
from scb.metrics.distances import distance_A, distance_V, similarity_A, similarity_V, star
from scb.metrics.measuring import COLUMNS as COLUMNS
from scb.metrics.measuring import column_sums as column_sums
from scb.metrics.measuring import measure
from scb.metrics.measuring import measure_all as measure_all

__all__ = [
    "HeadMatch",
    "distance_A",
    "distance_V",
    "match_heads",
    "measure",
    "similarity_A",
    "similarity_V",
    "star",
]
