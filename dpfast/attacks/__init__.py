"""Attacks on mechanisms with too little noise, and what no mechanism can do.

An attack takes any mechanism, ours or not, as a function from exact answers to noisy ones, and says how much of the
private records it found. Queries are random and public; nothing is charged, as the data are those of the attacker's
experiment. See also `dpfast attack` on the command line.

- `reconstruction`, `differencing`: every record, from random counts, and from counts that differ in one record.
- `membership`, `membership_scores`: who was among those that were averaged.
- `reconstruct_from_answers`, `reconstruct_from_subset_sums`: the attacks on answers that are there already.
- `least_epsilon`, `least_records`, `least_error`: bounds that hold for every mechanism of pure epsilon.

>>> import dpfast as dpf
>>> records = [1, 0, 1, 1, 0, 0, 1, 0] * 10
>>> dpf.attacks.reconstruction(lambda counts: dpf.laplace(counts, 0.5), records).recovered
1.0
"""

from __future__ import annotations

from dpfast.attacks.linear_queries import random_queries, reconstruct_from_answers
from dpfast.attacks.lower_bounds import least_epsilon, least_error, least_records
from dpfast.attacks.membership import Membership, membership, membership_scores
from dpfast.attacks.reconstruction import Reconstruction, differencing, reconstruction
from dpfast.attacks.subset_sums import reconstruct_from_subset_sums, subset_sums

__all__ = [
    "Membership",
    "Reconstruction",
    "differencing",
    "least_epsilon",
    "least_error",
    "least_records",
    "membership",
    "membership_scores",
    "random_queries",
    "reconstruct_from_answers",
    "reconstruct_from_subset_sums",
    "reconstruction",
    "subset_sums",
]
