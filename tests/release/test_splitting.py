"""One budget, several queries: shares never add up to more, the optimal ones are, and charges say what is drawn."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from importlib import import_module

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import dpfast as dpf
from dpfast.accounting.accountants import basic, zcdp
from dpfast.accounting.budget import Budget, ConcentratedAmounts
from dpfast.accounting.events import Approximate, DiscreteLaplace, Gaussian, KeySelection, Laplace, Pure
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.errors import BudgetExceededError, ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import as_written
from dpfast.queries import Measure
from dpfast.releases.measure_noise import laplace_block
from dpfast.releases.measurements import Block
from dpfast.releases.splitting import Split, Stake, portions, read_split, weights_of

from . import joint_moves, oracles

FRAME = pl.DataFrame({"k": ["a", "b"] * 300, "u": list(range(300)) * 2, "v": [1.0, 2.0] * 300, "i": [1, 2] * 300})
KEYS = pl.DataFrame({"k": ["a", "b", "c"]})

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


def a_plan(**changed):
    queries = {
        "n": dpf.count(),
        "s": dpf.sum("v", bounds=(0, 600)),
        "i": dpf.sum("i", bounds=(-3, 9)),
        "m": dpf.mean("v", bounds=(-0.1, 7.3)),
    }
    # Beside rho only private keys take a delta.
    delta = 1e-6 if changed.get("rho") is None or changed.get("keys", KEYS) is None else 0
    return dpf.plan(FRAME, "k", **{"epsilon": 0.7, "delta": delta, "keys": KEYS, "dataset": "d", **queries, **changed})


SPLITS = [
    "even",
    "optimal",
    {"n": 1, "s": 3, "i": 0.1, "m": Fraction(1, 3)},
    {"n": Decimal("0.7"), "s": np.float32(2), "i": np.int8(5), "m": 10**6},
    ("optimal", {"s": 1e-6, "m": 4}),
]
UNITS = [{}, {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 5}]


def check_parts(parts, unit):
    """The event of every charge is all that is drawn for it, and costs no more than the charge.

    Measures of one charge share it: by their L1 sensitivities, or the squares of the L2 ones. Of the missing values of
    a column and its other measures only the larger use counts (test_measurements.py).
    """
    for some in joint_moves.by_charge(parts):
        charge, event = some[0].charge, some[0].charge.event
        uses = {}
        for part in some:
            assert part.charge is charge
            moved = part.measure.sensitivity(unit)
            assert part.sensitivity == moved
            size, power = (moved.l2_squared, 2) if type(event) is Gaussian else (moved.l1, 1)
            assert part.mechanism == ("gaussian" if power == 2 else "laplace")
            uses[part.measure] = Fraction(size) / Fraction(part.scale) ** power
        missing = {measure.column: uses.pop(measure) for measure in list(uses) if measure.kind == "missing"}
        beside = {column: sum(use for measure, use in uses.items() if measure.column == column) for column in missing}
        alone = sum(use for measure, use in uses.items() if measure.column not in missing)
        assert alone + sum(max(use, beside[column]) for column, use in missing.items()) <= joint_moves.allowed(some)
        share = Fraction(charge.epsilon_units, UNITS_PER_ONE)
        if type(event) is Gaussian:
            with mpmath.workdps(100):
                delta = oracles.exact(Fraction(charge.delta_units, UNITS_PER_ONE))
                assert oracles.gaussian_delta(event.scale, event.sensitivity, share) <= delta
            continue
        if len(some) > 1:
            assert type(event) is Pure
            assert {measure.column for measure in uses} == set(missing)
        else:
            (part,) = some
            assert event.scale == part.scale
            assert type(event) is (DiscreteLaplace if part.scale < 2**25 else Laplace)
            assert event.sensitivity >= part.sensitivity.l1
            assert type(event) is Laplace or event.sensitivity == part.sensitivity.l1
        assert joint_moves.allowed(some) <= share
        assert basic.cost(event) <= (charge.epsilon_units, 0)
        assert charge.delta_units == 0 or type(event) is not Pure


def check_charges(plan, epsilon_units, delta_units):
    """Charges add up to no more than was given, and their events are true of what is drawn and cost no more."""
    blueprint = plan._blueprint
    charges = blueprint.charges
    assert sum(charge.epsilon_units for charge in charges) == blueprint.epsilon_units <= epsilon_units
    assert sum(charge.delta_units for charge in charges) == blueprint.delta_units <= delta_units
    own = [] if blueprint.key_share is None else blueprint.key_share.charges
    assert len(charges) == len(own) + len(joint_moves.by_charge(blueprint.parts))
    check_parts(blueprint.parts, blueprint.unit)
    assert all(part.delta_units == 0 for part in blueprint.parts if part.mechanism == "laplace")
    share = blueprint.key_share
    if share is not None and share.rule.name != "optimal":
        (lonely,) = [charge for charge in share.charges if type(charge.event) is Approximate]
        assert basic.cost(lonely.event) <= (0, lonely.delta_units)
    elif share is not None:
        (charge,) = share.charges
        event, table = charge.event, share.rule.table
        assert type(event) is KeySelection
        kappa = blueprint.unit.max_groups * (2 if blueprint.unit.neighbors == "replace" else 1)
        assert table.epsilon * kappa == as_written(event.epsilon)
        assert table.delta * kappa == as_written(event.delta)
        assert basic.cost(event)[0] <= share.epsilon_units
        assert basic.cost(event)[1] <= share.delta_units


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=["rows", "units"])
@pytest.mark.parametrize("keys", [None, KEYS], ids=["private", "public"])
def test_events_are_true_and_charges_within_the_budget(split, unit, keys):
    """Soundness rules 10, 14, 18 and 21."""
    for mechanism in ("laplace", "gaussian"):
        for neighbors in ("add_remove", "replace"):
            plan = a_plan(split=split, keys=keys, mechanism=mechanism, neighbors=neighbors, **unit)
            check_charges(plan, 7 * 10**17, 10**12)
            assert plan.epsilon == 0.7
            # Gaussian noise is one; of Laplace noise what a column's missing values stand beside.
            kinds = 1 if mechanism == "gaussian" else len(joint_moves.by_charge(plan._blueprint.parts))
            share = plan._blueprint.key_share
            assert len(plan._blueprint.charges) == kinds + (0 if share is None else len(share.charges))


@settings(deadline=None, max_examples=20)
@given(
    st.fractions(Fraction(1, 10**9), 50),
    st.fractions(Fraction(1, 10**12), Fraction(1, 2)),
    st.integers(1, 2**40),
    st.floats(1e-3, 1e12),
    st.booleans(),
)
def test_any_budget_any_sensitivity(epsilon, delta, rows, bound, public):
    """Also what float64 does not hold: the event's sensitivity is rounded up, its epsilon never above the share."""
    unit = {"privacy_unit": "u", "max_groups": 3, "max_rows_per_group": rows}
    queries = {"n": dpf.count(), "s": dpf.sum("v", bounds=(-bound, 1))}
    for mechanism in ("laplace", "gaussian"):
        given = {"epsilon": epsilon, "delta": delta, "keys": KEYS if public else None, "mechanism": mechanism}
        plan, refused = None, None
        try:
            plan = dpf.plan(FRAME, "k", **given, **queries, **unit)
        except ParameterError as error:
            refused = error.argument
        if plan is None:
            assert refused == "epsilon"  # noise beyond int64, or a table of keys too long
        else:
            check_charges(plan, math.floor(epsilon * UNITS_PER_ONE), math.floor(delta * UNITS_PER_ONE))


LIES = ["scale", "sensitivity", "event", "sum", "missing", "together", "stranger"]


@pytest.mark.parametrize("lie", LIES)
def test_the_check_of_charges_sees_a_lie(lie, monkeypatch):
    """The mutants: too little noise, a sensitivity rounded down, another event, a share too many; measures in one
    charge that share more than it, missing values beside those of another column or with too little noise.
    """
    noise, drafting, shared = map(
        import_module,
        ("dpfast.mechanisms.noise.integer_noise", "dpfast.releases.drafting", "dpfast.releases.measure_noise"),
    )
    mechanism = "gaussian" if lie == "together" else "laplace"
    with monkeypatch.context() as patch:
        if lie == "scale":
            scale = noise.laplace_scale
            patch.setattr(noise, "laplace_scale", lambda *given: math.nextafter(scale(*given), 0.0))
        elif lie == "sensitivity":
            patch.setattr(noise, "DiscreteLaplace", lambda scale, l1: DiscreteLaplace(scale, max(l1 - 1, 1)))
        elif lie == "event":
            patch.setattr(noise, "grid_of_integers", lambda scale: 2)
        elif lie == "sum":
            split = drafting.portions
            patch.setattr(drafting, "portions", lambda total, weights: split(total + 1, weights))
        elif lie == "missing":
            sizes = Measure.sensitivity

            def rows_forgotten(measure, unit):
                return sizes(measure, replace(unit, max_rows_per_group=1) if measure.kind == "missing" else unit)

            patch.setattr(Measure, "sensitivity", rows_forgotten)
        elif lie == "together":
            scale_within = noise.scale_within
            patch.setattr(shared, "scale_within", lambda *given: math.nextafter(scale_within(*given), 0.0))
        else:
            lay_out = import_module("dpfast.releases.measurements").lay_out

            def beside_others(measures, derived):
                layout = lay_out(measures, derived)
                uses = {measure: some for block in layout.blocks for measure, some in block.uses.items()}
                lone = next((block for block in layout.blocks if block.missing is not None), None)
                return layout if lone is None else replace(layout, blocks=(replace(lone, uses=uses),))

            patch.setattr(import_module("dpfast.releases.measurements"), "lay_out", beside_others)
        plan = a_plan(mechanism=mechanism, **UNITS[1])
    with pytest.raises(AssertionError):
        check_charges(plan, 7 * 10**17, 10**12)


def shares_of(plan):
    """Return the epsilon that each measure uses, by its kind and column."""
    return {
        (part.measure.kind, part.measure.column, part.measure.upper - part.measure.lower): part.sensitivity.l1
        / part.scale
        for part in plan._blueprint.parts
    }


def apart(**changed):
    """Return a plan of queries that share nothing."""
    queries = {
        "s": dpf.sum("v", bounds=(0, 600)),
        "i": dpf.sum("i", bounds=(-3, 9)),
        "m": dpf.mean("v", bounds=(-0.1, 7.3)),
    }
    return dpf.plan(
        FRAME, "k", **{"keys": KEYS, "epsilon": 0.7, "mechanism": "laplace", "dataset": "d", **queries, **changed}
    )


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
    plan = dpf.plan(FRAME, n=dpf.count(), again=dpf.count(), s=dpf.sum("v", bounds=(0, 1)), epsilon=0.3)
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
    plan = dpf.plan(FRAME, epsilon=1, split=split, **parts)
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
        a_plan(split={"n": 1e-30, "s": 1, "i": 1, "m": 1})


# Ledgers ------------------------------------------------------------------------------------------------------


def test_a_basic_ledger_keeps_an_entry_a_charge_with_its_event():
    ledger = dpf.Ledger(epsilon=1, delta=1e-5)
    plan = a_plan(keys=None, mechanism="laplace", key_selection="optimal")
    release = plan.run(ledger)
    history = ledger.history()
    assert release.entry == 1
    assert history["event"].to_list() == [repr(charge.event) for charge in plan._blueprint.charges]
    assert history["description"].to_list() == [
        "selection of keys by k",
        "n, m by k: one measurement; s: sum of v, values clipped to [0, 600] by k; "
        "m: mean of v, values clipped to [-0.1, 7.3] by k (sum)",
        "i: sum of i, values clipped to [-3, 9] by k",
    ]
    assert (release.spent.epsilon, release.spent.delta) == (ledger.spent.epsilon, ledger.spent.delta) == (0.7, 1e-6)
    assert a_plan(epsilon=0.1).run(ledger).entry == 4
    # What shares nothing has an entry each; Gaussian noise has one for all.
    ledger = dpf.Ledger(epsilon=2, delta=1e-5)
    apart().run(ledger)
    apart(mechanism="gaussian", delta=1e-6, epsilon=0.5).run(ledger)
    assert ledger.history()["description"].to_list() == [
        "s: sum of v, values clipped to [0, 600] by k",
        "i: sum of i, values clipped to [-3, 9] by k",
        "m: mean of v, values clipped to [-0.1, 7.3] by k (sum)",
        "m: mean of v, values clipped to [-0.1, 7.3] by k (number of values)",
        "s, i, m by k: measured together",
    ]
    # One call declared it all, so tighter accountants may speak of it.
    report = dpf.Ledger(epsilon=1, delta=1e-5)
    a_plan(keys=None, mechanism="gaussian").run(report)
    assert report.report().filter(~pl.col("holds")).is_empty()


def test_a_zcdp_ledger_is_charged_the_rho_of_the_events():
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, accountant="zcdp")
    plan = a_plan(epsilon=0.2, delta=1e-7, keys=None, mechanism="laplace")
    plan.run(ledger)
    rho, delta = zcdp.cost([charge.event for charge in plan._blueprint.charges])
    assert (ledger.spent.rho, ledger.spent.delta) == (rho / 10**18, delta / 10**18)
    # Far less than epsilon composed as a whole: what is measured beside missing values, another sum, the selection.
    assert rho / 1e18 < 0.2**2 / 2 / 2
    assert delta == 10**11


def test_what_does_not_fit_spends_nothing_at_all():
    """All charges or none."""
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, accountant="zcdp")
    plan = a_plan(epsilon=3, delta=1e-7, keys=None, mechanism="laplace")
    with pytest.raises(BudgetExceededError):
        plan.run(ledger)
    assert ledger.spent == ConcentratedAmounts(0.0, 0.0)
    assert ledger.history().height == 0
    basic_ledger = dpf.Ledger(epsilon=0.69, delta=1e-6)
    with pytest.raises(BudgetExceededError):
        a_plan().run(basic_ledger)
    assert basic_ledger.history().height == 0
    assert basic_ledger.spent.epsilon == 0


# Plans by rho -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.02, 0.5, 7.0, 100.0])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "auto"])
@pytest.mark.parametrize("keys", [None, KEYS], ids=["private", "public"])
def test_a_plan_by_rho_costs_that_rho_and_hardly_less(rho, mechanism, keys):
    plan = a_plan(epsilon=None, rho=rho, keys=keys, mechanism=mechanism, delta=0 if keys is not None else 1e-7)
    charges = plan._blueprint.charges
    cost, delta = zcdp.cost([charge.event for charge in charges])
    assert cost <= round(rho * 10**18)
    assert cost >= rho * 10**18 * (1 - 1e-9) - 20
    assert delta == (10**11 if keys is None else 0)
    assert plan.rho == cost / 10**18
    # What the charges declare is true as well.
    check_parts(plan._blueprint.parts, plan._blueprint.unit)


def test_auto_by_rho_takes_the_kind_of_less_noise():
    for rho, expected in ((0.02, "gaussian"), (60.0, "laplace")):
        plan = dpf.plan(FRAME, n=dpf.count(), rho=rho)
        assert plan.to_frame()["mechanism"].to_list() == [expected]
    scale = dpf.plan(FRAME, n=dpf.count(), rho=0.5).to_frame()["scale"].item()
    assert scale == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("accountant", ["zcdp", "rdp"])
def test_a_plan_by_rho_runs_on_ledgers_that_add_it_up(accountant):
    ledger = dpf.Ledger(epsilon=2, delta=1e-5, accountant=accountant)
    plan = a_plan(epsilon=None, rho=0.02, delta=1e-7, keys=None)
    release = plan.run(ledger)
    assert type(release.spent) is ConcentratedAmounts
    assert release.spent.rho == plan.rho
    assert "spent rho 0.0" in repr(release)
    if accountant == "zcdp":
        assert ledger.spent == release.spent
    assert "rho 0.0" in plan.explain()


def test_a_plan_by_rho_is_refused_by_a_basic_ledger_before_anything():
    ledger = dpf.Ledger(epsilon=100, delta=1e-2)
    plan = a_plan(epsilon=None, rho=0.02)
    stages = []
    with pytest.raises(ParameterError, match="rho must be left out: this ledger adds up epsilons"):
        plan.run(ledger, progress=stages.append)
    assert stages == []
    assert ledger.history().height == 0
    assert plan.run(dpf.Ledger(epsilon=2, delta=1e-5, accountant="zcdp")).frame.height == 3


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({}, "epsilon"),
        ({"epsilon": 1, "rho": 1}, "rho"),
        ({"rho": 0}, "rho"),
        ({"rho": 1e-18}, "rho"),
        ({"rho": 100_001}, "rho"),
        ({"rho": -1.0}, "rho"),
        ({"rho": "1"}, "rho"),
        ({"rho": 1e-17, "m": dpf.sum("v", bounds=(0, 1)), "privacy_unit": "u", "max_groups": 2**30,
          "max_rows_per_group": 2**30}, "rho"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_budgets_by_rho(given, argument):
    queries = {"n": dpf.count(), "m": dpf.mean("v", bounds=(0, 1)), **given}
    with pytest.raises(ParameterError, match=f"^{argument} "):
        dpf.plan(FRAME, **queries)


def test_keys_by_rho_need_a_delta():
    with pytest.raises(ParameterError, match=r"^delta "):
        dpf.plan(FRAME, "k", n=dpf.count(), rho=0.1)
