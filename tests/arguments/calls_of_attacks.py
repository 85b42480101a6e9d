"""Right calls of attacks, and of what no mechanism can do."""

from __future__ import annotations

import numpy as np

from dpfast import attacks

from .calls import Call
from .calls_of_releases import of

BITS = [0, 1, 1, 0]
TABLE = [[0, 1], [1, 1], [1, 0]]
QUERIES = np.array([[1, 0], [0, 1], [1, 1], [1, -1]])


def honest(counts):
    return counts


CALLS: list[Call] = [
    of("attacks.subset_sums", attacks.subset_sums, records=BITS),
    of("attacks.reconstruct_from_subset_sums", attacks.reconstruct_from_subset_sums, answers=[0, 1, 1, 2]),
    of("attacks.random_queries", attacks.random_queries, count=3, records=4),
    of(
        "attacks.reconstruct_from_answers",
        attacks.reconstruct_from_answers,
        queries=QUERIES,
        answers=[1, 0, 1, 1],
        method="search",
        tolerance=0.5,
    ),
    of("attacks.reconstruction", attacks.reconstruction, mechanism=honest, records=BITS),
    of("attacks.differencing", attacks.differencing, mechanism=honest, records=BITS),
    of("attacks.membership_scores", attacks.membership_scores, released=[0, 1], population=[0.5, 0.5], people=TABLE),
    of("attacks.membership", attacks.membership, mechanism=honest, members=TABLE, outsiders=TABLE),
    of("attacks.least_epsilon", attacks.least_epsilon, bits=3, distance=5.0),
    of("attacks.least_records", attacks.least_records, attributes=3, epsilon=1.0),
    of("attacks.least_error", attacks.least_error, queries=3, attributes=4, epsilon=0.01),
]
