"""One budget, several queries: shares never add up to more, and the optimal ones are."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import dpfast as dpf
from dpfast.accounting.budget import Budget
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.errors import ParameterError
from dpfast.queries import Measure
from dpfast.releases.measure_noise import laplace_block
from dpfast.releases.measurements import Block
from dpfast.releases.splitting import Split, Stake, portions, read_split, weights_of

from .charge_checks import FRAME, SPLITS, a_plan, apart

weight = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6) | st.integers(1, 10**30).map(Fraction)


@settings(deadline=None)
@given(st.integers(0, 10**24), st.lists(weight, min_size=1, max_size=12))
def test_portions_add_up_to_the_total_and_are_near_their_weights(total, weights):
    shares = portions(total, weights)
    assert sum(shares) == total
    for share, each in zip(shares, weights, strict=True):
        floor = math.floor(total * each / sum(weights))
        # Equal weights differ by a unit at most, and the smallest gets none of what is left.
        assert floor <= share <= floor + (each > min(weights) or len(set(weights)) < len(weights))


def error_of(costs, free, shares, power):
    """Return the sum of all variances, each a cost by a power of its share; a free measure has a sum of shares."""
    shares = np.asarray(shares)
    paid = (np.asarray(costs) / shares**power).sum()
    return paid + sum(cost / shares[places].sum() ** power for places, cost in free)


positive = st.floats(1e-3, 1e3)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.tuples(positive, positive, positive), min_size=1, max_size=3), min_size=1, max_size=6),
    st.lists(positive, max_size=3),
    st.sampled_from(["scales", "squares"]),
)
def test_the_optimal_split_is_the_minimum(given, free_costs, adds):
    """All derivatives are equal, and the sum of variances is convex: there is no other minimum. SciPy finds it too."""
    weights, paying, costs = {}, [], []
    for place, some in enumerate(given):
        stakes = []
        for number, (weight, size, importance) in enumerate(some):
            name = f"{place} {number}"
            weights[name] = Fraction(weight)
            stakes.append(Stake(name, Fraction(1), Fraction(size) ** 2, Fraction(importance)))
        paying.append(stakes)
        costs.append(math.fsum(weight * size**2 * importance for weight, size, importance in some))
    # Each free measure stands beside some that pay, no two beside the same.
    free, expected = [], []
    for number, cost in enumerate(free_costs[: len(paying)]):
        places = list(range(number, len(paying), len(free_costs)))
        weights[f"free {number}"] = Fraction(1)
        free.append((places, [Stake(f"free {number}", Fraction(1), Fraction(cost), Fraction(1))]))
        expected.append((places, cost))
    found = weights_of(Split("optimal", weights), paying, free, adds=adds)
    shares = np.array([float(share / sum(found)) for share in found])
    power = 2 if adds == "scales" else 1
    derivatives = np.array(costs) / shares ** (power + 1)
    for places, cost in expected:
        derivatives[places] += cost / shares[places].sum() ** (power + 1)
    assert derivatives == pytest.approx(derivatives.max(), rel=1e-9)

    def error(logs):
        others = np.exp(logs - logs.max())
        return math.log(error_of(costs, expected, others / others.sum(), power))

    least = minimize(error, np.zeros(len(costs)), method="BFGS").fun
    assert error(np.log(shares)) <= least + 1e-9


def test_the_closed_forms():
    """Derivatives of w 2 D**2 / e**2 and of w D**2 / (2 rho) are equal at e ~ (w D**2)**(1/3) and rho ~ sqrt(w) D."""
    a, b, c = ([Stake(name, Fraction(1), Fraction(size**2))] for name, size in (("a", 1), ("b", 600), ("c", 7)))
    c = [Stake("c", Fraction(1), Fraction(7**2), Fraction(3))]
    for adds, power in (("scales", 1 / 3), ("squares", 1 / 2)):
        weights = [float(w) for w in weights_of(Split("optimal"), [a, b, c], adds=adds)]
        expected = [1, (600**2) ** power, (3 * 7**2) ** power]
        assert weights == pytest.approx([x / max(expected) for x in expected], rel=1e-12)
        weighed = weights_of(Split("optimal", {"b": Fraction(1, 600**2)}), [a, b, c], adds=adds)
        assert weighed[0] == pytest.approx(weighed[1], rel=1e-12)
        # Two who need the same count as one who needs it twice as much.
        both = weights_of(Split("optimal"), [a + c, b], adds=adds)
        assert both[0] / both[1] == pytest.approx(((1 + 3 * 7**2) / 600**2) ** power, rel=1e-12)


def test_huge_sensitivities_do_not_overflow():
    huge, tiny = ([Stake("a", sensitivity_squared=Fraction(10) ** power)] for power in (620, -600))
    most, least = weights_of(Split("optimal"), [huge, tiny], adds="scales")
    assert most == 1
    assert least == 0
    most, least = weights_of(Split("optimal"), [huge, tiny], [([0, 1], tiny)], adds="scales")
    assert (most, least) == (1, 0)


def shares_of(plan):
    """Return the epsilon that each measure uses, by its kind and column."""
    return {
        (part.measure.kind, part.measure.column, part.measure.upper - part.measure.lower): part.sensitivity.l1
        / part.scale
        for part in plan._blueprint.parts
    }


def test_even_is_the_default_and_a_mean_halves_its_share():
    plan = apart(epsilon=0.3)
    assert plan.to_frame()["epsilon"].to_list() == [0.1, 0.1, 0.05, 0.05]
    assert apart(epsilon=0.3, split="even").explain() == plan.explain()


def test_what_several_queries_need_gets_the_shares_of_all():
    """Rows are values and missing values together: each is given half of n's, the latter for all beside them."""
    plan = a_plan(epsilon=0.4, mechanism="laplace")
    values, missing, s, i, m = (part.sensitivity.l1 / part.scale for part in plan._blueprint.parts)
    free = 0.05 / 3
    assert (values, s, m) == pytest.approx((0.05 + 0.05 + free, 0.1 + free, 0.05 + free))
    assert missing == pytest.approx(values + s + m)
    assert i == pytest.approx(0.1)
    assert plan.to_frame()["charge"].to_list() == [0, 0, 0, 1, 0]
    # Two queries of the same number: both shares.
    plan = dpf.plan(
        FRAME, n=dpf.count(), again=dpf.count(), s=dpf.sum("v", bounds=(0, 1)), privacy_unit="row", epsilon=0.3
    )
    assert plan.to_frame()["epsilon"].to_list() == [0.2, 0.1]
    assert plan.to_frame()["query"].to_list() == ["n", "s"]


def test_shares_by_weight_and_the_selection_of_keys():
    weights = {"s": 3, "i": 2, "m": 2}
    plan = apart(epsilon=0.7, split=weights)
    assert plan.to_frame()["epsilon"].to_list() == [0.3, 0.2, 0.1, 0.1]
    # The selection gets what it would of an even split, or what it is given.
    weights = {"n": 1, **weights}
    optimal = {"keys": None, "mechanism": "laplace", "key_selection": "optimal"}
    plan = a_plan(epsilon=1, split=weights, **optimal)
    # The unit that rounding leaves goes to the largest share.
    assert 0 <= plan._blueprint.key_share.epsilon_units - 2 * 10**17 <= 1
    assert plan.to_frame().unique("charge")["epsilon"].sum() == pytest.approx(0.8)
    plan = a_plan(epsilon=1, split={**weights, "keys": 2}, **optimal)
    assert 0 <= plan._blueprint.key_share.epsilon_units - 2 * 10**17 <= 1
    plan = a_plan(epsilon=1, split={**weights, "keys": 8}, **optimal)
    assert 0 <= plan._blueprint.key_share.epsilon_units - 5 * 10**17 <= 1
    # A count that is the test of its own group has the selection's share as well.
    plan = a_plan(epsilon=1, split={**weights, "keys": 8}, keys=None, mechanism="laplace", key_selection="count")
    assert plan._blueprint.key_share.epsilon_units == 0
    rows = plan._blueprint.parts[0]
    assert rows.measure.kind == "rows"
    assert 1 / rows.scale >= 9 / 16 * (1 - 1e-12)
    assert plan.to_frame().unique("charge")["epsilon"].sum() == pytest.approx(1)


def total_error(queries, weights=None):
    """Return the sum of all variances in the queries' own units, a mean as the numerator that it is made of."""
    total = 0.0
    for planned in queries:
        low, high = planned.query.bounds or (0.0, 0.0)
        for part in planned.parts:
            is_count_of_mean = planned.query.kind == "mean" and part.measure.kind == "values"
            size = ((high - low) / 2) ** 2 if is_count_of_mean else 1
            total += (part.deviation * part.step) ** 2 * size * (weights or {}).get(planned.name, 1)
    return total


@pytest.mark.parametrize("budget", [{"epsilon": 0.7, "delta": 0, "mechanism": "laplace"},
                                    {"epsilon": None, "rho": 0.02, "mechanism": "gaussian"}], ids=str)  # fmt: skip
def test_the_optimal_plan_has_less_error_than_others(budget, seed):
    generator = random.Random(seed)
    optimal = total_error(a_plan(split="optimal", **budget)._blueprint.queries)
    assert optimal < 0.8 * total_error(a_plan(split="even", **budget)._blueprint.queries)
    for _ in range(20):
        split = {name: generator.uniform(0.05, 1) for name in "nsim"}
        assert optimal < total_error(a_plan(split=split, **budget)._blueprint.queries)


def test_weights_of_errors():
    """With each query's squared sensitivity as the inverse weight, optimal is even."""
    parts = {"n": dpf.count(), "s": dpf.sum("v", bounds=(0, 600))}
    split = ("optimal", {"s": Fraction(1, 600**2)})
    plan = dpf.plan(FRAME, epsilon=1, split=split, **{"privacy_unit": "row", **parts})
    assert plan.to_frame()["epsilon"].to_list() == pytest.approx([0.5, 0.5], rel=1e-12)
    assert "weighing s 2.77778e-06" in plan.explain()


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_a_split_says_what_it_is(split):
    assert "split         " in a_plan(split=split).explain()
    assert str(read_split(split, ["n", "s", "i", "m"], selects=True))


def test_a_share_of_less_than_a_unit_is_refused():
    """What an event says may be a little less than its charge: that little must not be all of a share."""
    own = [Measure("sum", "a", 0, 0, 1), Measure("values", "a")]
    block, unit = Block(dict.fromkeys(own, ()), Measure("missing", "a")), PrivacyUnit(None, 1, 1, "add_remove")
    shares = [Budget("epsilon", units) for units in (1, 10**18 // 3)]
    with pytest.raises(ParameterError, match="a share would be below 1e-18"):
        laplace_block(shares, block, unit, ["", ""])


def test_a_split_too_uneven_is_named():
    with pytest.raises(ParameterError, match=r"^split must be less uneven"):
        a_plan(split={"i": 1e-30, "n": 1, "s": 1, "m": 1})
