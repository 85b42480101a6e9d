"""Shares of the budget that plans speak of are shares of the whole, whatever else has a share."""

from __future__ import annotations

import pytest

import dpfast as dpf
from dpfast.accounting.accountants import basic, zcdp
from dpfast.exact.amounts import UNITS_PER_ONE

from .uneven_units import KEYS, rows_of

LIMITS = {"max_groups": 2, "max_rows_per_group": 3}


@pytest.mark.parametrize("budget", [{"epsilon": 2.0}, {"epsilon": 2.0, "delta": 1e-6}, {"rho": 0.7}], ids=str)
@pytest.mark.parametrize("keys", [KEYS, None], ids=["public", "selected"])
@pytest.mark.parametrize("chosen", [
    {}, {"max_groups": "auto"}, {"max_rows_per_group": "auto"}, {"max_groups": "auto", "max_rows_per_group": "auto"},
    {"bounds": "auto"}, {"bounds": "auto", "max_groups": "auto"},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("share", [0.03, 0.5])
def test_the_share_is_of_the_whole_budget_whatever_is_chosen_first(budget, keys, chosen, share):
    """What `explain` calls a share of the budget is that of the whole, and surveys have theirs beside it."""
    changed = {name: limit for name, limit in chosen.items() if name != "bounds"}
    given = {**LIMITS, **changed, **budget, "mechanism": "laplace" if "rho" not in budget else "auto"}
    if keys is None:
        given |= {"delta": 1e-6}
    elif changed.keys() == LIMITS.keys() and "rho" in budget:
        # Units are clipped as a whole, and what is cut is told without a share.
        given |= {"mechanism": "laplace"}
    total = dpf.sum("x", bounds=chosen.get("bounds", (0, 9)))
    plan = dpf.plan(
        rows_of(range(9)), "k", keys=keys, privacy_unit="u", report_cut=share, n=dpf.count(), s=total, **given
    )
    blueprint = plan._blueprint
    report = getattr(blueprint, "plan", blueprint).cut
    kind = "rho" if "rho" in budget else "epsilon"
    whole = round(budget[kind] * UNITS_PER_ONE)
    cost = zcdp.cost(report.charge.event)[0] if kind == "rho" else report.charge.epsilon_units
    assert share * whole * 0.999 <= cost <= share * whole * (1 + 1e-9) + 1
    assert f"{share:.3g} of the budget;" in plan.explain()
    charges = [charge.fact.times(charge.count) for charge in blueprint.charges]
    spent = sum(zcdp.cost(fact)[0] if kind == "rho" else basic.cost(fact)[0] for fact in charges)
    assert whole * 0.99 < spent <= whole
    if hasattr(blueprint, "share"):
        first = blueprint.charges[0]
        surveyed = zcdp.cost(first.fact)[0] if kind == "rho" else first.epsilon_units
        assert surveyed == pytest.approx(float(blueprint.share) * whole, rel=1e-3)
        assert f"{float(blueprint.share):.3g} of the budget, by histograms" in plan.explain()
