"""A share of the budget -> calibrated noise, and the charge for it: amounts, and the event that is drawn.

An event is a fact about the noise: the scale is the float that is drawn, the sensitivity is rounded up, and what
the event costs by exact rational arithmetic is never above the share that it was made for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from dpfast.accounting.accountants import basic, zcdp
from dpfast.accounting.budget import Budget
from dpfast.accounting.events import ExponentialMechanism, Pure
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import as_written, written_below
from dpfast.ledger import Charge
from dpfast.mechanisms.noise.integer_noise import (
    IntegerNoise,
    declared_amounts,
    gaussian_of_delta,
    gaussian_of_rho,
    laplace_of_epsilon,
    laplace_of_rho,
    scale_within,
)
from dpfast.mechanisms.quantiles.joint import JointCalibration, count_noise, count_units, joint_pays
from dpfast.mechanisms.quantiles.tree import Calibration, quantile_tree
from dpfast.queries import Measure, QuantileQuery
from dpfast.releases.measurements import Block
from dpfast.releases.planned_queries import DrawnModes, DrawnQuantiles, DrawnTogether, Mechanism, NoisyMeasure

__all__ = ["between", "gaussian_blocks", "laplace_block", "modes_of", "noise_of", "quantiles_of"]

#: More would change nothing, as weights are below exp(-700) already.
LARGEST_DRAW_EPSILON = 1e6

_MEND = "raise {}, or lower max_groups or the bounds"


def noise_of(
    share: Budget, mechanism: Mechanism, l1: int, l2_squared: int, description: str, mend: str = _MEND
) -> tuple[IntegerNoise, Charge]:
    """Return the least noise that a share of the budget allows, and the charge for it.

    Guarantee
        Of epsilon: the event is (epsilon, delta)-private at the share. Its scale is at least its sensitivity / epsilon,
        in rationals, or the analytic Gaussian mechanism's, in balls; and its sensitivity is at least the one given
        (Soundness rules 10 and 14). Of rho: the event is rho-zCDP at the share, as `zcdp.cost` says of the very event
        that the ledger is charged with. The charge's (epsilon, delta) is true of it too: of Gaussian noise, by
        conversion at a delta of 1e-6.

    Parameters
    ----------
    share
        What is spent; a delta is for Gaussian noise by epsilon alone.
    mechanism
        The noise.
    l1, l2_squared
        The sensitivities of all that is drawn with this noise, together.
    description
        For the ledger.
    mend
        What to do where the share is too small; braces stand for what the share is of.

    """
    units, mend = share.units, mend.format(share.kind)
    if share.kind == "epsilon":
        if mechanism == "laplace":
            noise = laplace_of_epsilon(l1, units, mend=mend)
        else:
            noise = gaussian_of_delta(l2_squared, units, share.delta_units, mend=mend)
        amounts = units, share.delta_units
    elif mechanism == "laplace":
        noise = laplace_of_rho(l1, units, mend=mend)
        amounts = basic.cost(noise.event)
    else:
        noise = gaussian_of_rho(l2_squared, units, mend=mend)
        amounts = declared_amounts(noise.event)
    return noise, Charge(*amounts, description, noise.event)


def laplace_block(
    shares: Sequence[Budget], block: Block, unit: PrivacyUnit, descriptions: Sequence[str]
) -> list[NoisyMeasure]:
    """Return a block's measures with the least Laplace noise that their shares of the budget allow.

    Guarantee
        Without missing values each has a charge of its own: that of `noise_of`. With missing values all have one. The
        scales are at least L1 sensitivity / share, for missing values the sum of all shares, and so all of them are
        epsilon-private together, for that sum (`dpfast.releases.measurements`). That is the event: not Laplace noise on
        some of them, which composes better than missing values may.

    Parameters
    ----------
    shares, descriptions
        Of all measures but the missing values.
    block, unit
        What is measured, for whom.

    """
    moved = [measure.sensitivity(unit) for measure in block.measures]
    if block.missing is None:
        found = []
        for measure, size, share, description in zip(block.uses, moved, shares, descriptions, strict=True):
            noise, charge = noise_of(share, "laplace", size.l1, size.l2_squared, description)
            found.append(NoisyMeasure(measure, size, "laplace", noise.scale, charge))
        return found
    total = sum(share.units for share in shares)
    epsilon = written_below(total)
    # Of what the event says, which may be a little less than the shares, each gets its part.
    units = int(as_written(epsilon) * UNITS_PER_ONE)
    parts = [share.units * units // total for share in shares]
    charge = Charge(total, 0, "; ".join(descriptions), Pure(epsilon))
    mend = _MEND.format("epsilon")
    if not all(parts):
        raise ParameterError("epsilon", total / UNITS_PER_ONE, "larger: a share would be below 1e-18", mend)
    return [
        NoisyMeasure(measure, size, "laplace", laplace_of_epsilon(size.l1, part, mend=mend).scale, charge)
        for measure, size, part in zip(block.measures, moved, [*parts, sum(parts)], strict=True)
    ]


def gaussian_blocks(
    share: Budget, blocks: Sequence[Block], parts: Sequence[Sequence[int]], unit: PrivacyUnit, description: str
) -> list[NoisyMeasure]:
    """Return the measures of blocks with one Gaussian noise on all of them together.

    Guarantee
        The charge's event is all of them (`scale_within`). Missing values get all parts of their block, and use no more
        beside its measures than these alone (`dpfast.releases.measurements`).

    Parameters
    ----------
    share
        What is spent on all blocks.
    blocks, parts
        What is measured, and in which proportion all measures but the missing values share it.
    unit
        It fixes the sensitivities.
    description
        For the ledger.

    """
    only = next(iter(blocks[0].uses)) if len(blocks) == 1 == len(blocks[0].uses) else None
    noise, charge = noise_of(
        share, "gaussian", 1, 1 if only is None else only.sensitivity(unit).l2_squared, description
    )
    amount, mend, whole = Fraction(share.amount), _MEND.format(share.kind), sum(map(sum, parts))

    def drawn(measure: Measure, part: int) -> NoisyMeasure:
        size = measure.sensitivity(unit)
        scale = scale_within(noise, size.l2_squared, Fraction(part, whole), share.kind, amount, mend)
        return NoisyMeasure(measure, size, "gaussian", scale, charge)

    return [
        drawn(measure, part)
        for block, some in zip(blocks, parts, strict=True)
        for measure, part in zip(block.measures, [*some, sum(some)], strict=False)
    ]


def quantiles_of(
    query: QuantileQuery,
    measure: Measure,
    unit: PrivacyUnit,
    groups: int | None,
    share: Budget,
    description: str,
) -> DrawnQuantiles | DrawnTogether:
    """Return quantiles at a share of the budget: all together, or by halves (`dpfast.mechanisms.quantiles.joint`).

    Guarantee
        Every level of a group's nodes is drawn at the share divided by the levels and groups that a unit pays for; see
        `_draws`. These are max_groups, but no more than there are, for replaced units too: what such a unit takes from
        one node or group and brings to another costs half each (`dpfast.mechanisms.quantiles.tree`, Soundness rule 24).

    Parameters
    ----------
    query, measure, unit
        What is drawn, for whom.
    groups
        How many groups there are, None where keys are selected.
    share
        What is spent; no delta is needed.
    description
        For the ledger.

    """
    tree = quantile_tree(query.parts)
    touched = unit.max_groups if groups is None else max(min(unit.max_groups, groups), 1)
    rows, neighbors, alone = unit.max_rows_per_group, unit.neighbors, groups == 1
    units = share.units
    if share.kind == "epsilon" and joint_pays(len(query.parts), units // touched, rows, neighbors):
        counted = count_units(units // touched)
        noise = count_noise(counted, rows, neighbors, alone=alone)
        together, charge = _draws(Budget("epsilon", (units // touched - counted) * touched), touched, description)
        joint = JointCalibration(query.parts, noise.scale, as_written(together), rows, neighbors, alone)
        count = Charge(counted, 0, description, noise.event, touched)
        return DrawnTogether(measure, together, unit, charge, joint, count)
    each, charge = _draws(share, touched * len(tree.levels), description)
    calibration = Calibration(tree, as_written(each), rows, neighbors, alone)
    return DrawnQuantiles(measure, each, unit, charge, calibration)


def modes_of(measure: Measure, unit: PrivacyUnit, share: Budget, description: str) -> DrawnModes:
    """Return modes at a share of the budget.

    Guarantee
        Every group's is selected at the share divided by max_groups, for replaced units too: what such a unit takes
        from one group and brings to another costs half each (`dpfast.mechanisms.selection.modes`).

    Parameters
    ----------
    measure, unit, share, description
        As for `quantiles_of`.

    """
    each, charge = _draws(share, unit.max_groups, description)
    return DrawnModes(measure, each, unit, charge)


def _draws(share: Budget, draws: int, description: str) -> tuple[float, Charge]:
    """Return the epsilon of one of so many draws by the exponential mechanism, and the charge for all of them.

    Of a share of epsilon each gets an equal part, rounded down. Of a share of rho they get what is rho-zCDP at the
    share by `zcdp.cost`: the bounded range of each, epsilon**2 / 8, adds up.
    """
    units = share.units
    if share.kind == "epsilon":
        each = min(written_below(units // draws), LARGEST_DRAW_EPSILON)
        if not each > 0:
            allowed = f"at least {draws}e-18 for this query: a unit pays for {draws} draws"
            raise ParameterError("epsilon", units / UNITS_PER_ONE, allowed, "raise epsilon, or lower max_groups")
        return each, Charge(units // draws, 0, description, ExponentialMechanism(each), draws)

    def fits(epsilon: float) -> bool:
        return zcdp.cost(ExponentialMechanism(epsilon).times(draws))[0] <= units

    # epsilon**2 / 8 is an upper bound of what one costs.
    low = min(math.sqrt(8 * (units / UNITS_PER_ONE) / draws), LARGEST_DRAW_EPSILON)
    lower = 2.0**-40
    while not fits(low):
        # What each costs is rounded up to whole units: of a small share that may be much.
        low *= 1 - lower
        lower = min(2 * lower, 0.5)
        if low < 1e-18:
            raise ParameterError("rho", units / UNITS_PER_ONE, f"larger: a unit pays for {draws} draws", "raise rho")
    high = 2 * low
    while fits(high) and high < LARGEST_DRAW_EPSILON:
        low, high = high, 2 * high
    each = min(between(fits, low, high), LARGEST_DRAW_EPSILON)
    event = ExponentialMechanism(each)
    return each, Charge(*basic.cost(event), description, event, draws)


def between(fits: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest float from ``low``, which fits, to below ``high`` that fits, by halving."""
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
