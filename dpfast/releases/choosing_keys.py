"""A share of the budget -> the rule by which keys are selected, without looking at the data.

A rule is charged as the facts that it is made of: the optimal rule as a selection of keys at (epsilon, delta), every
other one as its noise and, beside it, a mechanism of epsilon 0 and the delta with which a key that one unit alone holds
may be shown (`dpfast.mechanisms.keys.thresholds` has the proof that these two are true of it).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from statistics import NormalDist

from dpfast.accounting.accountants import zcdp
from dpfast.accounting.budget import Budget
from dpfast.accounting.events import Approximate, KeySelection
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, charge_units, to_float
from dpfast.exact.balls import as_written, written_below
from dpfast.ledger import Charge
from dpfast.mechanisms.keys.optimal import selection_table
from dpfast.mechanisms.keys.policy import SENSITIVITY, cutoff_above, lonely_by_policy, units_needed
from dpfast.mechanisms.keys.thresholds import Lonely, least_threshold
from dpfast.mechanisms.keys.weights import STEPS, lonely_keys, weight_of
from dpfast.mechanisms.noise.calibration import round_up_root
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, gaussian_of_scale
from dpfast.releases.key_share import KeyShare, NoisyUnits, OneByOne, Policy, ReleasedCount, UnitsNeeded, Weights
from dpfast.releases.measure_noise import between, noise_of
from dpfast.releases.planned_queries import Mechanism, NoisyMeasure

__all__ = ["best_apart", "divided_delta", "rough_scale", "tested_count"]

#: Rules whose noise is Gaussian, and cannot be Laplace.
_GAUSSIAN = {"iterated": "rounds are Gaussian", "policy": "its sums move by a Euclidean norm"}

#: The shares of the rounds of ``"iterated"``, which grow as DP-SIPS has them.
_ROUNDS = (Fraction(1, 21), Fraction(4, 21), Fraction(16, 21))

#: Delta is divided between Gaussian noise and threshold in this many parts.
_PARTS = 16


def best_apart(
    unit: PrivacyUnit,
    budget: Budget,
    key_selection: str,
    mechanism: str,
    description: str,
    *,
    lists_groups: bool = True,
) -> KeyShare | None:
    """Return the rule that needs the fewest units, of those that have a share of the budget of their own.

    Guarantee
        What is charged is at most the budget, and its events are true of the rule.

    Parameters
    ----------
    unit
        Whose keys are selected.
    budget
        The share.
    key_selection
        The rule; ``"auto"`` compares the optimal rule, a noisy number of units, and weights. A policy is
        never among them: by its worst case, which is all that is known beforehand, it needs more units than weights.
    mechanism
        ``"auto"``, or the only noise to be used.
    description
        For the ledger.
    lists_groups
        Whether it is known which keys each unit holds, which weights and policies need.

    Returns
    -------
    KeyShare or None
        None where the count itself was asked to be the test.

    """
    if key_selection == "count":
        return None
    if key_selection in _GAUSSIAN and mechanism == "laplace":
        allowed = f"another rule with Laplace noise: {_GAUSSIAN[key_selection]}"
        raise ParameterError("key_selection", key_selection, allowed)
    if not lists_groups and key_selection in ("weighted", "iterated", "policy"):
        allowed = '"auto", "optimal", "threshold" or "count" where a database aggregates'
        raise ParameterError("key_selection", key_selection, allowed, 'or let rows be read: engine="rows"')
    known: tuple[Mechanism, ...] = ("gaussian", "laplace")
    kinds = [kind for kind in known if mechanism in ("auto", kind)]
    found: list[KeyShare] = []
    refused: ParameterError | None = None
    for plan in _plans(unit, budget, key_selection, kinds, description, lists_groups=lists_groups):
        try:
            found.append(plan())
        except ParameterError as error:
            refused = refused or error
    if found:
        # The first of equals: weights count units of few keys for more.
        return min(found, key=lambda share: share.needed.typical)
    assert refused is not None
    raise refused


def _plans(
    unit: PrivacyUnit,
    budget: Budget,
    key_selection: str,
    kinds: list[Mechanism],
    description: str,
    *,
    lists_groups: bool,
) -> Iterator[Callable[[], KeyShare]]:
    """Yield what makes the rules that are asked for."""
    if key_selection in ("auto", "optimal"):
        yield partial(_one_by_one, unit, budget, description)
    # A unit that holds one key at most has no weights to share.
    alone = unit.max_groups == 1
    wanted = "threshold" if alone and key_selection in ("weighted", "iterated", "policy") else key_selection
    if wanted == "iterated":
        yield partial(_iterated, unit, budget, description)
    if wanted == "policy":
        yield partial(_policy, unit, budget, description)
    for kind in kinds:
        if wanted == "weighted" or (wanted == "auto" and lists_groups and not alone):
            yield partial(_weights, unit, budget, kind, description)
        if wanted in ("auto", "threshold"):
            yield partial(_noisy_units, unit, budget, kind, description)


def _one_by_one(unit: PrivacyUnit, budget: Budget, description: str) -> KeyShare:
    """Return the optimal rule at a kappa-th of the budget for each of a unit's keys (Soundness rule 18).

    The table is for exactly the event's epsilon and delta, read as the decimals that they denote, and these are at
    most the share; of a share of rho, the event's e tanh(e / 2) is, and e is found by halving.
    """
    kappa = unit.max_groups * (2 if unit.neighbors == "replace" else 1)
    delta = written_below(budget.delta_units)
    if budget.kind == "epsilon":
        epsilon, charged = written_below(budget.units), budget.units
    else:
        epsilon = _epsilon_of_rho(budget.units, delta)
        charged = charge_units(epsilon, "epsilon", "rho")
    try:
        table = selection_table(as_written(epsilon) / kappa, as_written(delta) / kappa)
    except ParameterError as error:
        if error.argument != "epsilon" or budget.kind == "epsilon":
            raise
        allowed = "larger for selecting keys by the optimal rule: each group's share of it"
        mend = "raise rho, lower max_groups, choose another rule, or give public keys"
        raise ParameterError("rho", budget.units / UNITS_PER_ONE, allowed, mend) from None
    charge = Charge(charged, budget.delta_units, description, KeySelection(epsilon, delta))
    return KeyShare(OneByOne(table), unit.max_groups, (charge,), UnitsNeeded(table.median, table.median))


def _epsilon_of_rho(rho: int, delta: float) -> float:
    share = rho / UNITS_PER_ONE

    def fits(epsilon: float) -> bool:
        return zcdp.cost(KeySelection(epsilon, delta or 0.5))[0] <= rho

    # e**2 / 2 >= rho >= e - 2.
    low, high = math.sqrt(2 * share), share + 2
    while not fits(low):
        low *= 1 - 2.0**-40
    return between(fits, low, high)


def _noisy_units(unit: PrivacyUnit, budget: Budget, mechanism: Mechanism, description: str) -> KeyShare:
    """Return a threshold on the noisy number of units: one unit moves kappa numbers by 1."""
    moved = unit.max_groups * (2 if unit.neighbors == "replace" else 1)
    noise, delta, charges = _noise(moved, moved, budget, mechanism, unit.max_groups, description)
    threshold = least_threshold(noise, [Lonely(unit.max_groups, 1)], delta)
    needed = max(threshold, 1)
    return KeyShare(NoisyUnits(noise, threshold), unit.max_groups, charges, UnitsNeeded(needed, needed))


def _weights(unit: PrivacyUnit, budget: Budget, mechanism: Mechanism, description: str) -> KeyShare:
    """Return weights in one round; see `dpfast.mechanisms.keys.weights` for the norms."""
    noise, delta, charges = _noise_of_weights(unit, budget, mechanism, description)
    threshold = least_threshold(noise, lonely_keys(mechanism, unit.max_groups), delta)
    return KeyShare(Weights(((noise, threshold),)), unit.max_groups, charges, _needed(unit, mechanism, threshold))


def _iterated(unit: PrivacyUnit, budget: Budget, description: str) -> KeyShare:
    """Return weights in rounds: sigma**2 / share of a round's noise, so that 1 / sigma**2 adds up; delta by shares."""
    noise, delta, charges = _noise_of_weights(unit, budget, "gaussian", description)
    lonely = lonely_keys("gaussian", unit.max_groups)
    rounds = []
    for share in _ROUNDS:
        scale = round_up_root(Fraction(noise.scale) ** 2 / share)
        wider = gaussian_of_scale(scale, STEPS**2)
        rounds.append((wider, least_threshold(wider, lonely, delta * share)))
    needed = _needed(unit, "gaussian", rounds[-1][1])
    return KeyShare(Weights(tuple(rounds), "iterated"), unit.max_groups, charges, needed)


def _policy(unit: PrivacyUnit, budget: Budget, description: str) -> KeyShare:
    """Return sums that units spend their norm on in turn; see `dpfast.mechanisms.keys.policy` for the sensitivity."""
    noise, delta, charges = _noise_of_weights(unit, budget, "gaussian", description, SENSITIVITY)
    threshold = least_threshold(noise, lonely_by_policy(unit.max_groups), delta)
    cutoff = cutoff_above(threshold, noise.scale)
    if cutoff is None:
        allowed = "larger for selecting keys by a policy, whose sums stay below 2**14 units"
        raise ParameterError(budget.kind, to_float(budget.units), allowed, "choose another rule, or give public keys")
    needed = UnitsNeeded(*(units_needed(keys, threshold, cutoff) for keys in (unit.max_groups, 1)))
    return KeyShare(Policy(noise, threshold, cutoff), unit.max_groups, charges, needed)


def _noise_of_weights(
    unit: PrivacyUnit, budget: Budget, mechanism: Mechanism, description: str, norm: int = STEPS
) -> tuple[IntegerNoise, Fraction, tuple[Charge, ...]]:
    """Return noise for sums that one unit raises by at most ``norm``, in no entry below 0: two by a - b."""
    replaced = 2 if unit.neighbors == "replace" else 1
    return _noise(replaced * norm, replaced * norm**2, budget, mechanism, unit.max_groups, description)


def _needed(unit: PrivacyUnit, mechanism: Mechanism, threshold: int) -> UnitsNeeded:
    """Return how many equal weights reach a threshold."""
    most, fewest = (max(-(-threshold // max(weight_of(mechanism, keys), 1)), 1) for keys in (unit.max_groups, 1))
    return UnitsNeeded(most, fewest)


def tested_count(
    name: str, place: int, part: NoisyMeasure, unit: PrivacyUnit, delta_units: int, description: str
) -> KeyShare:
    """Return the rule by which a released count, of rows or of units, is the test of its group.

    Guarantee
        The count's own charge and this one, of epsilon 0 and delta, are true of the groups shown with their counts:
        up to max_groups groups that one unit alone holds have up to max_rows_per_group rows each, and one unit.

    """
    noise = IntegerNoise(part.mechanism, part.scale, part.charge.event)  # type: ignore[arg-type]
    charge, delta = _lonely_charge(delta_units, description)
    # Whatever rows a unit has in a group, it counts once among units.
    rows = 1 if part.measure.kind == "units" else unit.max_rows_per_group
    threshold = least_threshold(noise, [Lonely(unit.max_groups, rows)], delta)
    needed = UnitsNeeded(max(threshold, 1), max(-(-threshold // rows), 1))
    return KeyShare(ReleasedCount(name, place, threshold), unit.max_groups, (charge,), needed)


def _lonely_charge(delta_units: int, description: str) -> tuple[Charge, Fraction]:
    """Return the charge of a delta beside some noise, and that delta as the decimal of its event."""
    delta = written_below(delta_units)
    if not delta > 0:
        raise ParameterError(
            "delta", delta, "above 0 to select keys privately", "write for example delta=1e-7, or give keys="
        )
    event = Approximate(0.0, delta)
    return Charge(0, delta_units, f"{description}: groups of one unit alone", event), as_written(delta)


def _noise(
    l1: int, l2_squared: int, budget: Budget, mechanism: Mechanism, keys: int, description: str
) -> tuple[IntegerNoise, Fraction, tuple[Charge, ...]]:
    """Return the noise that a share allows for numbers of these sensitivities, the threshold's delta, the charges."""
    of_noise, of_threshold = 0, budget.delta_units
    if mechanism == "gaussian" and budget.kind == "epsilon":
        of_noise, of_threshold = divided_delta(budget.units, budget.delta_units, keys)
    second, delta = _lonely_charge(of_threshold, description)
    share = Budget(budget.kind, budget.units, of_noise)
    noise, first = noise_of(share, mechanism, l1, l2_squared, description, "raise {}, or lower max_groups")
    return noise, delta, (first, second)


@lru_cache(maxsize=256)
def divided_delta(epsilon_units: int, delta_units: int, keys: int) -> tuple[int, int]:
    """Return delta divided between Gaussian noise and the threshold above it, which it makes lowest.

    The threshold lies about z sigma above a lonely key's number, z of delta and the number of lonely keys; sigma and z
    are computed in floats here, since any division is as private.

    Examples
    --------
    >>> noise, threshold = divided_delta(10**18, 16 * 10**9, 1)
    >>> noise + threshold, noise // 10**9
    (16000000000, 8)

    """
    if delta_units < 2:
        raise ParameterError("delta", to_float(delta_units), "at least 2e-18, to be split between noise and threshold")
    epsilon, delta = to_float(epsilon_units), to_float(delta_units)

    def height(part: int) -> float:
        noise, rest = delta * part / _PARTS, delta * (_PARTS - part) / _PARTS
        return rough_scale(epsilon, noise) * -NormalDist().inv_cdf(max(rest / keys, 1e-300))

    of_noise = max(delta_units * min(range(1, _PARTS), key=height) // _PARTS, 1)
    return of_noise, delta_units - of_noise


def rough_scale(epsilon: float, delta: float) -> float:
    """Return the analytic Gaussian mechanism's scale at sensitivity 1, about."""

    def suffices(scale: float) -> bool:
        half, shift = 1 / (2 * scale), epsilon * scale
        tail = math.erfc((half + shift) / math.sqrt(2)) / 2
        return math.erfc((shift - half) / math.sqrt(2)) / 2 - (math.exp(min(epsilon, 700)) * tail) <= delta

    low, high = 1e-4, 1e10
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
