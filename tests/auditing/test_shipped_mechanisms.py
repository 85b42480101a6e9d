"""Every mechanism that is shipped passes an audit of what it claims.

A false alarm has probability at most 1e-9 each. A few samples show gross mistakes alone: the laws of mechanisms are
tested exactly elsewhere. What a little too small a scale does is seen by night.
"""

from __future__ import annotations

import numpy as np
import pytest

import dpfast as dpf

from .shipped import NO_MECHANISM, SHIPPED
from .shipped_rooms import ROOMS

ALL = [*SHIPPED, *ROOMS]

EACH = pytest.mark.parametrize("shipped", ALL, ids=lambda one: f"{one.name} {one.what}".strip())


def found(shipped, samples):
    result = dpf.audit(
        shipped.mechanism,
        shipped.x,
        shipped.neighbour,
        shipped.epsilon,
        shipped.delta,
        samples=samples,
        batched=shipped.batched,
        confidence=1 - 1e-9,
    )
    print(f"{shipped.name} {shipped.what}: {result.epsilon_lower:.4f} of {shipped.epsilon}")
    print(result.explain())
    return result


@pytest.mark.statistical
@EACH
def test_it_passes(shipped):
    """False-failure rate 1e-9 each."""
    result = found(shipped, shipped.quick)
    assert result.passed
    assert result.raised == 0


@pytest.mark.parametrize(("samples", "epsilon", "delta"), sorted({(one.quick, one.epsilon, one.delta) for one in ALL}))
def test_no_noise_at_all_is_refuted(samples, epsilon, delta):
    """The mutant: an output that tells the inputs apart every time. Of epsilon 1, 138 samples do it, of .25, 76."""
    assert not dpf.audit(lambda x: x, 0, 1, epsilon, delta, samples=samples, confidence=1 - 1e-9).passed


@pytest.mark.long
@pytest.mark.statistical
@EACH
def test_it_passes_with_many_samples(shipped):
    """False-failure rate 1e-9 each. All of tests/auditing takes 18 minutes with these, the longest of them 2."""
    assert found(shipped, shipped.long).passed


@pytest.mark.parametrize("shipped", [one for one in SHIPPED if one.batched][:8], ids=lambda one: one.what)
def test_half_of_what_is_claimed_is_refuted(shipped):
    """What is claimed is no larger than it must be; a failure has a probability below 1e-9, at 20 deviations."""
    less = dpf.audit(
        shipped.mechanism,
        shipped.x,
        shipped.neighbour,
        shipped.epsilon / 2,
        shipped.delta,
        samples=40_000,
        batched=True,
    )
    assert not less.passed


def test_every_public_mechanism_is_audited():
    """A new one needs a row in tests/auditing/shipped.py or shipped_rooms.py."""
    assert {one.name for one in ALL} == set(dpf.__all__) - NO_MECHANISM


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.95, 1.0])
def test_a_scale_that_is_five_percent_too_small(scale):
    """The mutant is caught; it lies 10 deviations away. The right one is refuted with probability 1e-9."""
    result = dpf.audit(
        lambda x, n: dpf.laplace(np.full(n, x), scale), 0, 1, 1.0, samples=1_000_000, batched=True, confidence=1 - 1e-9
    )
    assert result.passed == (scale == 1.0)
