"""Amplification by shuffling: never below the truth, tight for its own pair, and far below the closed form."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.local.shuffling import _clones, _delta


def binomial(n, k, p):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k) if 0 <= k <= n else 0.0


def exact_delta(local, rows, epsilon, *, binary):
    """The divergence of the theorem's pair, summed over all its outcomes."""
    e = math.exp(local)
    share, own = (2 / (e + 1) if binary else 1 / e), e / (e + 1)
    total = 0.0
    for c in range(rows):
        weight = binomial(rows - 1, c, share)
        for x in range(c + 2):
            up, stay = binomial(c, x - 1, 0.5), binomial(c, x, 0.5)
            p, q = own * up + (1 - own) * stay, (1 - own) * up + own * stay
            total += weight * max(p - math.exp(epsilon) * q, 0.0)
    return total


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("local", [0.1, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("rows", [1, 2, 7, 60, 300])
def test_the_sum_is_that_of_the_pair_rounded_up(local, rows, binary):
    """Soundness rule 10: never below the divergence, and close to it."""
    for share in (0.05, 0.3, 0.7, 0.95):
        exact = exact_delta(local, rows, share * local, binary=binary)
        bound = _delta(local, rows, share * local, binary)
        assert exact <= bound
        assert bound <= exact * 1.02 + 1e-15


def closed_form(local, rows, delta):
    """Theorem 3.1 of Feldman, McMillan, Talwar (2021)."""
    e = math.exp(local)
    inner = 8 * math.sqrt(e * math.log(4 / delta)) / math.sqrt(rows) + 8 * e / rows
    return math.log(1 + (e - 1) / (e + 1) * inner)


GOLD = {0.5: 0.0097646, 1.0: 0.0234968, 2.0: 0.0626167, 4.0: 0.2009852}


@pytest.mark.parametrize("local", GOLD)
def test_the_closed_form_of_2021_is_an_upper_bound(local):
    """Reference 8: n = 10**6, delta = 1e-6."""
    assert closed_form(local, 10**6, 1e-6) == pytest.approx(GOLD[local], rel=1e-5)
    central = dpf.shuffled_epsilon(local, 10**6, 1e-6)
    assert GOLD[local] / 10 < central < GOLD[local] / 3
    assert 1 < central / dpf.shuffled_epsilon(local, 10**6, 1e-6, binary=True) < 1.5


def histograms(rows, law):
    """The law of the histogram of ``rows`` independent outcomes."""
    found = {}
    for counts in itertools.product(range(rows + 1), repeat=len(law) - 1):
        if sum(counts) <= rows:
            full = (*counts, rows - sum(counts))
            found[full] = math.factorial(rows) * math.prod(
                p**k / math.factorial(k) for p, k in zip(law, full, strict=True)
            )
    return found


def with_one_more(found, law):
    result = {}
    for counts, chance in found.items():
        for place, p in enumerate(law):
            further = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
            result[further] = result.get(further, 0.0) + chance * p
    return result


@pytest.mark.parametrize("seed", range(6))
def test_no_shuffled_randomizer_is_less_private(seed):
    """Random randomizers of three values and three reports, all other rows alike: exact histograms."""
    generator = np.random.default_rng(seed)
    local, rows = (0.5, 1.0, 2.0)[seed % 3], 9
    for _ in range(20):
        laws = (
            generator.choice([1.0, math.exp(local)], (3, 3))
            if seed % 2
            else math.exp(local) ** generator.random((3, 3))
        )
        laws /= laws.sum(axis=1, keepdims=True)
        true = max(
            math.log(max(a / b, b / a)) for x, y in itertools.combinations(laws, 2) for a, b in zip(x, y, strict=True)
        )
        if true < 1e-9:
            continue
        for other in laws:
            base = histograms(rows - 1, other)
            p, q = with_one_more(base, laws[0]), with_one_more(base, laws[1])
            for share in (0.1, 0.4, 0.8):
                exact = sum(max(p[k] - math.exp(share * true) * q[k], 0.0) for k in p)
                assert exact <= _delta(true, rows, share * true, False) * (1 + 1e-9)


@pytest.mark.parametrize("local", [0.3, 1.0, 3.0])
def test_warners_response_is_not_less_private_and_nearly_as_the_binary_bound_says(local):
    """All numbers of ones among the others; the bound for two categories is reached within a factor."""
    e, rows = math.exp(local), 40
    p = e / (e + 1)
    for epsilon in (0.2 * local, 0.5 * local):
        largest = 0.0
        for ones in range(rows):
            own = [binomial(ones, k, p) for k in range(rows)]
            rest = [binomial(rows - 1 - ones, k, 1 - p) for k in range(rows)]
            base = np.convolve(own, rest)[:rows]
            one = p * np.append(0, base) + (1 - p) * np.append(base, 0)
            none = (1 - p) * np.append(0, base) + p * np.append(base, 0)
            for first, second in ((one, none), (none, one)):
                largest = max(largest, np.maximum(first - math.exp(epsilon) * second, 0).sum())
        bound = _delta(local, rows, epsilon, True)
        assert largest <= bound * (1 + 1e-12)
        assert bound < 3 * largest


def test_a_smaller_divergence_than_the_pairs_is_caught():
    """With twice the clones the bound falls below the exact divergence of Warner's response at all ones."""
    local, rows, epsilon = 1.0, 40, 0.2
    assert _delta(local, 2 * rows, epsilon, True) < exact_delta(local, rows, epsilon, binary=True)


@pytest.mark.parametrize(("rows", "share"), [(10, 0.3), (1000, 0.01), (5000, 0.5), (100_000, 0.2)])
def test_bounds_on_the_number_of_clones(rows, share):
    clones = _clones(rows, share)
    total = 0.0
    logs = math.lgamma(rows + 1)
    cumulative = []
    for c in range(rows + 1):
        log = logs - math.lgamma(c + 1) - math.lgamma(rows - c + 1)
        total += math.exp(log + c * math.log(share) + (rows - c) * math.log1p(-share))
        cumulative.append(total)
    assert clones.starts[0] == 0
    for start, below in zip(clones.starts[1:], clones.below, strict=False):
        assert cumulative[start - 1] <= below * (1 + 1e-7)
    assert clones.below[-1] == 1


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(("central", "rows", "delta"), [(0.1, 10**6, 1e-6), (1.0, 10**4, 1e-8), (0.5, 3, 1e-6)])
def test_the_inverse(central, rows, delta, binary):
    local = dpf.local_epsilon(central, rows, delta, binary=binary)
    assert local >= central
    assert dpf.shuffled_epsilon(local, rows, delta, binary=binary) <= central
    assert dpf.shuffled_epsilon(local * 1.001, rows, delta, binary=binary) > central * 0.999
    if rows > 10:
        assert local > 2 * central


def test_shuffled_delta_belongs_to_shuffled_epsilon():
    central = dpf.shuffled_epsilon(1.0, 5000, 1e-7)
    assert dpf.shuffled_delta(1.0, 5000, central) <= 1e-7 < dpf.shuffled_delta(1.0, 5000, 0.99 * central)


def test_epsilons_rise_with_the_local_one_and_fall_with_rows():
    by_local = [dpf.shuffled_epsilon(local, 10_000, 1e-6) for local in (0.01, 0.1, 1.0, 3.0, 8.0, 99.0, 1000.0)]
    assert by_local == sorted(by_local)
    by_rows = [dpf.shuffled_epsilon(1.0, rows, 1e-6) for rows in (1, 10, 100, 10**4, 10**7, 10**9)]
    assert by_rows == sorted(by_rows, reverse=True)
    assert by_rows[0] <= 1.0


@pytest.mark.parametrize("epsilon", [1e-18, 1e-9, 1e-3, 99.0, 101.0, 1e6])
def test_extreme_epsilons(epsilon):
    for rows, delta in itertools.product((1, 2, 10**6), (1e-18, 1e-6, 0.5)):
        assert 0 <= dpf.shuffled_epsilon(epsilon, rows, delta) <= epsilon * (1 + 1e-12)


def test_no_delta_is_refused():
    with pytest.raises(ParameterError, match="delta must"):
        dpf.shuffled_epsilon(1.0, 10, 0)
