"""A share of the budget -> calibrated noise, and the charge for it: amounts, and the event that is drawn.

An event is a fact about the noise: the scale is the float that is drawn, the sensitivity is rounded up, and what
the event costs by exact rational arithmetic is never above the share that it was made for.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpfast.accounting import basic, zcdp
from dpfast.accounting.amounts import UNITS_PER_ONE, charge_units, to_float
from dpfast.accounting.balls import as_written
from dpfast.accounting.events import (
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    KeySelection,
    Laplace,
)
from dpfast.errors import ParameterError
from dpfast.ledger import Charge
from dpfast.mechanisms.calibration import analytic_gaussian_scale, laplace_scale, round_up, round_up_root
from dpfast.mechanisms.intervals import grid_of_integers
from dpfast.mechanisms.key_selection import selection_table
from dpfast.mechanisms.lattice import LARGEST_INTEGER_SCALE
from dpfast.mechanisms.quantile_nodes import QuantileTree, quantile_tree
from dpfast.planner.blueprint import DrawnQuantiles, KeyShare, Mechanism, NoisyMeasure
from dpfast.queries import Measure, PrivacyUnit, QuantileQuery, Sensitivity

__all__ = [
    "noise_of_epsilon",
    "noise_of_rho",
    "quantiles_of_epsilon",
    "quantiles_of_rho",
    "selection_of_epsilon",
    "selection_of_rho",
]

#: Gaussian noise planned by rho has an epsilon only beside a delta: the one at this delta stands in its charge.
DECLARED_DELTA = 1e-6
#: More would change nothing, as weights are below exp(-700) already.
LARGEST_NODE_EPSILON = 1e6


def _laplace_event(scale: float, l1: int) -> DiscreteLaplace | Laplace:
    """Return what Laplace noise on integers is: continuous noise, rounded, where it is too wide for the ones."""
    return DiscreteLaplace(scale, l1) if grid_of_integers(scale) == 1 else Laplace(scale, round_up(Fraction(l1)))


def noise_of_epsilon(
    measure: Measure, unit: PrivacyUnit, mechanism: Mechanism, epsilon: int, delta: int, description: str
) -> NoisyMeasure:
    """Return a measure with the least noise that a share of (epsilon, delta) allows.

    Guarantee
        The event is (epsilon, delta)-private at the share: its scale is at least its sensitivity / epsilon, in
        rationals, or the analytic Gaussian mechanism's, in balls; and the event's sensitivity is at least the
        measure's (Soundness rules 10 and 14).

    Parameters
    ----------
    measure, unit
        They fix the sensitivity.
    mechanism
        The noise.
    epsilon, delta
        The share, in units of 1e-18.
    description
        For the ledger.

    """
    sensitivity = Sensitivity.of(measure, unit)
    share = Fraction(epsilon, UNITS_PER_ONE)
    event: DiscreteLaplace | Laplace | Gaussian
    if mechanism == "laplace":
        # Rounded up first, so that the event of noise too wide for the ones is as private as the exact one.
        size = Fraction(round_up(Fraction(sensitivity.l1)))
        scale = laplace_scale(size, share) if size / share < 2**1000 else math.inf
        _check_scale(scale, "epsilon", share)
        event = _laplace_event(scale, sensitivity.l1)
    else:
        spread = round_up_root(Fraction(sensitivity.l2_squared))
        scale = analytic_gaussian_scale(Fraction(spread), share, Fraction(delta, UNITS_PER_ONE))
        _check_scale(scale, "epsilon", share)
        event = Gaussian(scale, spread)
    charge = Charge(epsilon, delta, description, event)
    return NoisyMeasure(measure, sensitivity, mechanism, scale, charge)


def _check_scale(scale: float, argument: str, share: Fraction) -> None:
    if not scale <= LARGEST_INTEGER_SCALE:
        allowed = "larger: the noise would drown every value that an int64 can hold"
        mend = f"raise {argument}, or lower max_groups or the bounds"
        raise ParameterError(argument, float(share), allowed, mend)


def noise_of_rho(measure: Measure, unit: PrivacyUnit, mechanism: Mechanism, rho: int, description: str) -> NoisyMeasure:
    """Return a measure with the least noise that a share of rho allows.

    Guarantee
        The event is rho-zCDP at the share: `dpfast.accounting.zcdp.cost` says so of the very event that the
        ledger is charged with. The charge's (epsilon, delta) is true of it too: of Gaussian noise, by conversion
        at a delta of 1e-6.

    Parameters
    ----------
    measure, unit, mechanism, description
        As for `noise_of_epsilon`.
    rho
        The share, in units of 1e-18.

    Notes
    -----
    Gaussian: sigma = D2 / sqrt(2 rho). Laplace: b = D1 / e with e tanh(e / 2) = rho where the noise is discrete
    and e + exp(-e) - 1 = rho where it is continuous, by halving.

    """
    sensitivity = Sensitivity.of(measure, unit)
    share = Fraction(rho, UNITS_PER_ONE)
    if mechanism == "gaussian":
        spread = round_up_root(Fraction(sensitivity.l2_squared))
        scale = round_up_root(Fraction(spread) ** 2 / (2 * share))
        while zcdp.cost(Gaussian(scale, spread))[0] > rho:
            scale = math.nextafter(scale, math.inf)
        _check_scale(scale, "rho", share)
        gaussian = Gaussian(scale, spread)
        epsilon = zcdp.ZCDP(gaussian).epsilon(DECLARED_DELTA)
        declared = charge_units(max(epsilon, 1e-18), "epsilon"), charge_units(DECLARED_DELTA, "delta")
        return NoisyMeasure(measure, sensitivity, mechanism, scale, Charge(*declared, description, gaussian))

    def suffices(scale: float) -> bool:
        return zcdp.cost(_laplace_event(scale, sensitivity.l1))[0] <= rho

    # e**2 / 2 >= rho >= e - 2.
    size = float(sensitivity.l1)
    low, high = size / (float(share) + 2), size / math.sqrt(2 * float(share))
    while not suffices(high):
        high *= 1 + 2.0**-40
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if suffices(middle) else (middle, high)
    _check_scale(high, "rho", share)
    event = _laplace_event(high, sensitivity.l1)
    return NoisyMeasure(measure, sensitivity, mechanism, high, Charge(*basic.cost(event), description, event))


def _quantiles(
    query: QuantileQuery, measure: Measure, unit: PrivacyUnit, groups: int | None
) -> tuple[QuantileTree, int]:
    """Return the tree, and how many nodes over all groups a unit pays for (Soundness rule 24).

    A unit lies in max_groups groups, a replaced one in as many before and after; but in no more than there are.
    """
    tree = quantile_tree(query.parts)
    touched = unit.max_groups * (2 if unit.neighbors == "replace" else 1)
    touched = touched if groups is None else max(min(touched, groups), 1)
    return tree, touched * tree.touched(unit.max_rows_per_group, unit.neighbors)


def quantiles_of_epsilon(
    query: QuantileQuery, measure: Measure, unit: PrivacyUnit, groups: int | None, epsilon: int, description: str
) -> DrawnQuantiles:
    """Return quantiles at a share of epsilon.

    Guarantee
        Every node is drawn at the share divided by the nodes that a unit pays for, rounded down.

    Parameters
    ----------
    query, measure, unit
        What is drawn, for whom.
    groups
        How many groups there are, None where keys are selected.
    epsilon
        The share, in units of 1e-18.
    description
        For the ledger.

    """
    tree, nodes = _quantiles(query, measure, unit, groups)
    each = _written_below(epsilon // nodes)
    if not each > 0:
        allowed = f"at least {nodes}e-18 for this query: a unit pays for {nodes} draws"
        raise ParameterError("epsilon", epsilon / UNITS_PER_ONE, allowed, "raise epsilon, or lower max_groups")
    each = min(each, LARGEST_NODE_EPSILON)
    charge = Charge(epsilon // nodes, 0, description, ExponentialMechanism(each), nodes)
    return DrawnQuantiles(measure, tree, each, unit, charge)


def quantiles_of_rho(
    query: QuantileQuery, measure: Measure, unit: PrivacyUnit, groups: int | None, rho: int, description: str
) -> DrawnQuantiles:
    """Return quantiles at a share of rho: the bounded range of each node, epsilon**2 / 8, adds up.

    Guarantee
        The event, so many exponential mechanisms, is rho-zCDP at the share, by `dpfast.accounting.zcdp.cost`.

    Parameters
    ----------
    query, measure, unit, groups, description
        As for `quantiles_of_epsilon`.
    rho
        The share, in units of 1e-18.

    """
    tree, nodes = _quantiles(query, measure, unit, groups)

    def fits(epsilon: float) -> bool:
        return zcdp.cost(ExponentialMechanism(epsilon).times(nodes))[0] <= rho

    # epsilon**2 / 8 is an upper bound of what one costs.
    low = min(math.sqrt(8 * (rho / UNITS_PER_ONE) / nodes), LARGEST_NODE_EPSILON)
    while not fits(low):
        low *= 1 - 2.0**-40
        if low < 1e-18:
            raise ParameterError("rho", rho / UNITS_PER_ONE, f"larger: a unit pays for {nodes} draws", "raise rho")
    high = 2 * low
    while fits(high) and high < LARGEST_NODE_EPSILON:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if fits(middle) else (low, middle)
    each = min(low, LARGEST_NODE_EPSILON)
    event = ExponentialMechanism(each)
    return DrawnQuantiles(measure, tree, each, unit, Charge(*basic.cost(event), description, event, nodes))


def _written_below(units: int) -> float:
    """Return the largest float that, as the decimal it denotes, is no more than an amount."""
    value = to_float(units)
    while as_written(value) * UNITS_PER_ONE > units:
        value = math.nextafter(value, 0.0)
    return value


def _selection(unit: PrivacyUnit, epsilon: float, delta: float, charge: tuple[int, int], description: str) -> KeyShare:
    """Return the selection of keys at (epsilon, delta) for all the keys of a unit (Soundness rule 18)."""
    kappa = unit.max_groups * (2 if unit.neighbors == "replace" else 1)
    table = selection_table(as_written(epsilon) / kappa, as_written(delta) / kappa)
    event = KeySelection(epsilon, delta)
    return KeyShare(table, unit.max_groups, Charge(*charge, description, event))


def selection_of_epsilon(unit: PrivacyUnit, epsilon: int, delta: int, description: str) -> KeyShare:
    """Return the private selection of keys that a share of (epsilon, delta) allows.

    Guarantee
        The table is for exactly the event's epsilon and delta, read as the decimals that they denote, and these
        are at most the share.

    Raises
    ------
    ParameterError
        delta is 0, or the share is so small that there is no table.

    """
    return _selection(unit, _written_below(epsilon), _written_below(delta), (epsilon, delta), description)


def selection_of_rho(unit: PrivacyUnit, rho: int, delta: int, description: str) -> KeyShare:
    """Return the private selection of keys that a share of rho, and delta beside it, allow.

    Guarantee
        As for `selection_of_epsilon`; the event's rho, e tanh(e / 2), is at most the share. Its epsilon e is
        found by halving.

    """
    share = rho / UNITS_PER_ONE
    below = _written_below(delta)

    def fits(epsilon: float) -> bool:
        return zcdp.cost(KeySelection(epsilon, below or 0.5))[0] <= rho

    # e**2 / 2 >= rho >= e - 2.
    low, high = math.sqrt(2 * share), share + 2
    while not fits(low):
        low *= 1 - 2.0**-40
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if fits(middle) else (low, middle)
    epsilon = charge_units(low, "epsilon", "rho")
    return _selection(unit, low, below, (epsilon, delta), description)
