"""Whether charges are true of what is drawn, by the parameters alone; and a plan of a bit of everything."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.accounting.accountants import basic
from dpfast.accounting.events import Approximate, DiscreteLaplace, Gaussian, KeySelection, Laplace, Pure
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import as_written

from . import joint_moves, oracles

FRAME = pl.DataFrame({"k": ["a", "b"] * 300, "u": list(range(300)) * 2, "v": [1.0, 2.0] * 300, "i": [1, 2] * 300})
KEYS = pl.DataFrame({"k": ["a", "b", "c"]})


def a_plan(**changed):
    queries = {
        "n": dpf.count(),
        "s": dpf.sum("v", bounds=(0, 600)),
        "i": dpf.sum("i", bounds=(-3, 9)),
        "m": dpf.mean("v", bounds=(-0.1, 7.3)),
    }
    # Beside rho only private keys take a delta.
    delta = 1e-6 if changed.get("rho") is None or changed.get("keys", KEYS) is None else 0
    return dpf.plan(
        FRAME,
        "k",
        **{"privacy_unit": "row", "epsilon": 0.7, "delta": delta, "keys": KEYS, "dataset": "d", **queries, **changed},
    )


def apart(**changed):
    """Return a plan of queries that share nothing."""
    queries = {
        "s": dpf.sum("v", bounds=(0, 600)),
        "i": dpf.sum("i", bounds=(-3, 9)),
        "m": dpf.mean("v", bounds=(-0.1, 7.3)),
    }
    return dpf.plan(
        FRAME,
        "k",
        **{
            "privacy_unit": "row",
            "keys": KEYS,
            "epsilon": 0.7,
            "mechanism": "laplace",
            "dataset": "d",
            **queries,
            **changed,
        },
    )


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
