"""Right calls of audits."""

from __future__ import annotations

import numpy as np

import dpfast as dpf
from dpfast import auditing
from dpfast.testing import SeededRandom

from .calls import Call
from .calls_of_mechanisms import call


def noisy(x: int, size: int) -> np.ndarray:
    return dpf.laplace(np.full(size, x), 2.0)


def coins(bit: int) -> list[float]:
    return [0.25 + bit / 2, 0.75 - bit / 2]


def histogram(people: list[int]) -> np.ndarray:
    return dpf.laplace(np.bincount(people, minlength=40), 1.0)


def own_cell(counts: np.ndarray, person: int) -> float:
    return float(counts[person])


CALLS: list[Call] = [
    call(dpf.audit, mechanism=noisy, x=0, neighbour=1, epsilon=0.5, samples=200, batched=True),
    call(dpf.audit_law, law=coins, x=0, neighbour=1, epsilon=1.1),
    call(
        dpf.audit_one_run,
        mechanism=histogram,
        canaries=list(range(40)),
        score=own_cell,
        epsilon=1.0,
        guesses=20,
        random=SeededRandom(1),
    ),
    call(auditing.hockey_stick_divergence, p=[0.25, 0.75], q=[0.75, 0.25], epsilon=1.0),
    call(auditing.privacy_loss, p=[0.25, 0.75], q=[0.75, 0.25]),
    call(auditing.histogram_distance, x=[1, 2], y=[2, 2]),
    call(auditing.row_distance, x=["a", "b"], y=["a", "c"]),
    call(auditing.lower_limit, happened=3, trials=10, miss=0.05),
    call(auditing.upper_limit, happened=3, trials=10, miss=0.05),
    call(auditing.one_run_p_value, canaries=100, guesses=50, correct=40, epsilon=1.0),
    call(auditing.one_run_epsilon, canaries=100, guesses=50, correct=40),
]
