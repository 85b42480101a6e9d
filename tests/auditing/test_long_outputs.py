"""Outputs of more numbers than have events of their own."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import dpfast as dpf

LENGTH = 600


#: Outputs of many numbers, of which one far behind the 512th tells, or a little all of them.
LONG = {
    "one number": lambda x, drawn: [*drawn[:-5], drawn[-5] + 4 * x, *drawn[-4:]],
    "a rare type": lambda x, drawn: [*drawn[:-1], float(drawn[-1]) if x else drawn[-1]],
    "a NaN": lambda x, drawn: [*map(float, drawn[:-1]), math.nan if x else 0.0],
    "a text": lambda x, drawn: [*map(str, drawn[:-1]), "ab"[x]],
    "a length": lambda x, drawn: drawn[: LENGTH - x],
}


@pytest.mark.parametrize("name", LONG)
def test_long_outputs_are_seen_to_their_end(name, seed):
    """Rows of lists. False-failure rate of one number: 4e-13, of the others none; and 1e-12 each of what is private.

    Numbers are from 0 to 3, and 4 more on the neighbour: "at most 3" and "at least 4" have no exception. One of them
    is found unless 50 outputs that teach have no 3, and those of the neighbour no 4: 0.75**100. That its mean does not
    move most is 13 deviations away.
    """
    generator = random.Random(seed)

    def counts():
        return [generator.randrange(4) for _ in range(LENGTH)]

    found = dpf.audit(lambda x: LONG[name](x, counts()), 0, 1, 1.0, samples=200)
    assert not found.passed
    assert found.happened_elsewhere == 0
    assert dpf.audit(lambda x: LONG[name](0, counts()), 0, 1, 0.5, samples=200, confidence=1 - 1e-12).passed


@pytest.mark.parametrize("kind", ["bits", "signs of zero", "a shift", "a smaller shift", "all a little"])
def test_long_arrays_are_seen_to_their_end(kind, seed):
    """What tells stands at place 2,995, or everywhere; more than 10 deviations away from passing."""
    generator = np.random.default_rng(seed)

    def mechanism(x, n):
        drawn = generator.normal(size=(n, 5 * LENGTH))
        if kind == "bits":
            drawn[:, -5] = np.round(drawn[:, -5], 1) if not x else np.ldexp(np.round(np.ldexp(drawn[:, -5], 10)), -10)
        elif kind == "signs of zero":
            drawn[:, -5] = -0.0 if x else 0.0
        elif kind == "a shift":
            drawn[:, -5] += 8 * x
        elif kind == "a smaller shift":  # the score of all, were it chosen by outputs that taught it, would hide it
            drawn[:, -5] += 3 * x
        else:
            drawn += 0.2 * x * np.where(np.arange(5 * LENGTH) % 2, 1, -1)
        return drawn

    found = dpf.audit(mechanism, 0, 1, 1.0, samples=1000, batched=True)
    assert not found.passed


def test_columns_take_bounded_memory():
    from dpfast.auditing.places import most_places

    assert most_places(2_000) == 512
    for outputs in (200_000, 2_000_000):
        assert 18 * outputs * most_places(outputs) <= max(2**29, 18 * 16 * outputs)
