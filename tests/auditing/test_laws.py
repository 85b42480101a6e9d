"""Exact audits: section 2.3 of the book, its definitions and its numbers."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from dpfast.auditing import histogram_distance, hockey_stick_divergence, privacy_loss, row_distance
from dpfast.errors import ParameterError

QUARTERS = {"yes": Fraction(3, 4), "no": Fraction(1, 4)}
SWAPPED = {"yes": Fraction(1, 4), "no": Fraction(3, 4)}


def coins(bit):
    """Warner's randomized response with two coins."""
    return QUARTERS if bit else SWAPPED


@pytest.mark.parametrize("function", [lambda x: x, lambda x: x % 2, lambda x: x > 2, lambda x: "ab"[x == 3]])
def test_a_deterministic_function_that_is_not_constant_fails(function):
    """2.3-3: some pair of neighbours has different outputs, and fails for every epsilon."""
    failed = [
        (x, x + 1)
        for x in range(5)
        if not dpf.audit_law(lambda x: {function(x): 1}, x, x + 1, epsilon=10**6, delta=0.999).passed
    ]
    assert failed == [(x, x + 1) for x in range(5) if function(x) != function(x + 1)] != []


def test_a_deterministic_function_fails_by_its_outputs_too():
    """2.3-3: and as fast as 100 samples can show."""
    found = dpf.audit(lambda x: x // 2, 1, 2, epsilon=1.0, samples=100)
    assert not found.passed
    assert math.inf > found.epsilon_lower > 1
    assert dpf.audit(lambda x: "constant", 1, 2, epsilon=0.0, samples=100).passed


@pytest.mark.parametrize(
    "law",
    [
        [Fraction(1, 2), Fraction(1, 3)],
        [0.5, 0.5 + 1e-9],
        [1.5, -0.5],
        [Fraction(3, 2), Fraction(-1, 2)],
        [math.nan, 1.0],
        [Decimal("0.3"), Decimal("0.6")],
        [],
        {},
    ],
)
def test_what_is_not_in_the_simplex_is_refused(law):
    """2.3-4: probabilities are at least 0, and their sum is 1."""
    with pytest.raises(ParameterError, match="law"):
        hockey_stick_divergence(law, law, 1.0)


@pytest.mark.parametrize(
    "law", [[1], [0, 1], [Fraction(1, 3)] * 3, [1 / 3] * 3, [Decimal("0.1")] * 10, [0.1] * 10, np.full(7, 1 / 7), (1,)]
)
def test_what_is_in_the_simplex_is_taken(law):
    """2.3-4: floats but for their rounding."""
    assert hockey_stick_divergence(law, law, 1.0) == 0.0
    assert hockey_stick_divergence(law, law, 0.0) < 1e-11


def test_distances_of_histograms_and_rows():
    """2.3-5: rows added and removed, and rows replaced."""
    assert histogram_distance([3, 0, 2], [3, 0, 2]) == 0
    assert histogram_distance(np.array([3, 0, 2], np.uint8), [3, 1, 2]) == 1
    assert histogram_distance([2**60, 0], [0, 2**60]) == 2**61
    assert row_distance("abc", "abd") == 1
    assert row_distance(np.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 5]])) == 1
    with pytest.raises(ParameterError, match="y must be of the length of x"):
        histogram_distance([1], [1, 2])
    with pytest.raises(ParameterError, match="y must be of as many rows as x"):
        row_distance([1], [1, 2])


def test_rows_replaced_are_rows_added_and_removed():
    """2.3-5: a row replaced moves a histogram by 2."""
    for x, y in itertools.product(itertools.product(range(3), repeat=3), repeat=2):
        counts = [np.bincount(rows, minlength=3) for rows in (x, y)]
        assert histogram_distance(*counts) <= 2 * row_distance(x, y)


def test_the_hockey_stick_of_randomized_response():
    """2.3-6: RR(3/4) has delta(ln 3) = 0 and delta(0) = 1/2, in both directions."""
    for p, q in ((QUARTERS, SWAPPED), (SWAPPED, QUARTERS)):
        assert hockey_stick_divergence(p, q, 0) == 0.5
        assert hockey_stick_divergence(p, q, 1.0986122886681098) == 0.0
        # 2**-53 below ln 3, which no float hits.
        assert 0 < hockey_stick_divergence(p, q, math.nextafter(1.0986122886681098, 0)) < 1e-15
    found = dpf.audit_law(coins, 0, 1, epsilon=math.log(3))
    assert (found.passed, found.proven) == (True, True)
    assert found.epsilon_lower <= math.log(3) <= found.epsilon_upper <= found.epsilon_lower + 1e-15


def test_both_directions_count():
    """2.3-6: P is within (0, 1/2) of Q, but not Q of P."""
    p, q = [Fraction(1, 2), Fraction(1, 2), 0], [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]
    assert hockey_stick_divergence(p, q, 0.7) == 0
    assert hockey_stick_divergence(q, p, 0.7) == 0.5
    for laws in ((p, q), (q, p)):
        assert not dpf.audit_law(lambda x, laws=laws: laws[x], 0, 1, epsilon=0.7, delta=0.4999).passed
        assert dpf.audit_law(lambda x, laws=laws: laws[x], 0, 1, epsilon=0.7, delta=0.5).proven


def brute_force_delta(p, q, epsilon):
    """The largest P(S) - exp(epsilon) Q(S) over all sets S."""
    places = range(len(p))
    sets = itertools.chain.from_iterable(itertools.combinations(places, size) for size in range(len(p) + 1))
    return max(sum(p[i] for i in s) - math.exp(epsilon) * sum(q[i] for i in s) for s in sets)


def test_random_laws_against_all_sets(seed):
    """2.3-6: the divergence is the supremum over events, and an audit's epsilon is its inverse."""
    generator = np.random.default_rng(seed)
    for _ in range(40):
        p, q = (generator.dirichlet(np.full(5, 0.4)) for _ in range(2))
        epsilon, delta = generator.exponential(), 0.1 * generator.random()
        assert hockey_stick_divergence(p, q, epsilon) == pytest.approx(brute_force_delta(p, q, epsilon), abs=1e-9)
        found = dpf.audit_law(lambda x, p=p, q=q: q if x else p, 0, 1, epsilon, delta)
        low, high = found.epsilon_lower, found.epsilon_upper
        both = [max(brute_force_delta(p, q, at), brute_force_delta(q, p, at)) for at in (low - 1e-9, high)]
        assert found.passed == (low <= epsilon)
        assert both[1] <= delta + 1e-12
        assert low == 0 or both[0] >= delta - 1e-12
        assert high - low < 1e-6


def test_the_privacy_loss():
    """2.3-7: ln(P / Q), infinite where one of them is 0."""
    losses = privacy_loss({"a": 0.75, "b": 0.25}, {"a": 0.25, "b": 0.5, "c": 0.25})
    assert losses == {"a": pytest.approx(math.log(3)), "b": pytest.approx(-math.log(2)), "c": -math.inf}
    assert privacy_loss([1, 0, 0], [0, 0, 1]) == {0: math.inf, 2: -math.inf}


def test_a_loss_above_epsilon_may_have_more_probability_than_delta():
    """2.3-7, E2: (1, 1e-5), sigma 3.7306316: the loss exceeds 1 with probability 1.612e-4. On a fine grid."""
    sigma = 3.7306316
    edges = np.linspace(-24, 25, 4901)
    laws = [np.diff([0.0, *(0.5 * math.erfc((m - t) / sigma / math.sqrt(2)) for t in edges), 1.0]) for m in (0, 1)]
    losses = privacy_loss(laws[1], laws[0])
    above = sum(laws[1][place] for place, loss in losses.items() if loss > 1)
    assert above == pytest.approx(1.612e-4, rel=0.02)
    found = dpf.audit_law(lambda x: laws[x], 0, 1, epsilon=1.0, delta=1.0001e-5)
    assert found.passed
    assert found.delta_lower == pytest.approx(1e-5, rel=2e-3)


def test_probabilities_as_floats_are_not_taken_too_exactly():
    """exp(epsilon) / (1 + exp(epsilon)), rounded, is not refuted; off by a billionth, it is."""
    for epsilon in (0.1, 1.0, 3.0, 20.0):
        yes = math.exp(epsilon) / (1 + math.exp(epsilon))
        no = 1 / (1 + math.exp(epsilon))
        assert dpf.audit_law(lambda x, p=yes, q=no: [p, q] if x else [q, p], 0, 1, epsilon).passed
        less = no * (1 - 1e-9)
        wrong = dpf.audit_law(lambda x, q=less: [1 - q, q] if x else [q, 1 - q], 0, 1, epsilon)
        assert not wrong.passed


def test_outputs_of_any_kind_are_named():
    found = dpf.audit_law(lambda x: {("a", None): 0.5, x: 0.5}, 0, 1, epsilon=1.0)
    assert (found.passed, found.epsilon_lower, found.event) == (False, math.inf, "output is 0")
    assert "refuted: epsilon 1 is not true; epsilon is at least inf" in found.explain()
    assert found.to_frame().height == 1
    with pytest.raises(ParameterError, match=r"law\(neighbour\) must be a law"):
        dpf.audit_law(lambda x: [1] if x == 0 else [2], 0, 1, 1.0)


def test_whatever_is_made_of_an_output_keeps_its_privacy(seed):
    """2.3-9: outputs that are merged, by a function or at random, have no larger divergence, at any epsilon."""
    generator = np.random.default_rng(seed)
    for _ in range(30):
        p, q = generator.dirichlet(np.full(6, 0.5), size=2)
        made = generator.dirichlet(np.full(3, 0.3), size=6)
        merged = np.eye(3)[generator.integers(0, 3, 6)]
        for epsilon in (0.0, 0.3, 1.0):
            before = hockey_stick_divergence(p, q, epsilon)
            for function in (made, merged):
                assert hockey_stick_divergence(p @ function, q @ function, epsilon) <= before + 1e-10
