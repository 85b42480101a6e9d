"""What in the parameters of a plan gives reason to warn, without looking at the data.

A warning is no proof of a mistake, and their absence proves nothing: bounds and keys that were computed from the
data look like any others.
"""

from __future__ import annotations

from dpfast.accounting.budget import Amounts, ConcentratedAmounts, ShownAmounts
from dpfast.releases.asked_unit import UNSAID
from dpfast.releases.key_share import KeyShare
from dpfast.releases.request import Request
from dpfast.showing import number_of

__all__ = ["caveats"]

LARGEST_EPSILON = 10.0
#: rho = 1 is an epsilon of about 8 at delta 1e-6.
LARGEST_RHO = 1.0
#: Without a population: so many units for one key are more than most data have.
MANY_UNITS = 1000
#: Without a population: one in 100,000.
LARGEST_DELTA = 1e-5


def caveats(request: Request, budget: ShownAmounts, key_share: KeyShare | None = None) -> tuple[str, ...]:
    """Return the warnings, each a sentence without its full stop.

    Parameters
    ----------
    request
        Of its data and keys, only whether they are one and the same object is looked at.
    budget
        What the release costs.
    key_share
        How keys are selected, if they are.

    """
    population, found = request.population, [] if request.privacy_unit is not None else [UNSAID]
    if isinstance(budget, Amounts) and budget.epsilon > LARGEST_EPSILON:
        found.append(
            f"epsilon {budget.epsilon:g} is above {LARGEST_EPSILON:g}: an attacker's odds about one unit may change "
            f"by a factor of e**{budget.epsilon:g}, which promises next to nothing"
        )
    if isinstance(budget, ConcentratedAmounts) and budget.rho > LARGEST_RHO:
        found.append(f"rho {budget.rho:g} is above {LARGEST_RHO:g}, about epsilon 8 at delta 1e-6: a weak promise")
    if population is None and budget.delta > LARGEST_DELTA:
        found.append(
            f"delta {budget.delta:g} is above {LARGEST_DELTA:g}: it should be well below 1 / (number of units); "
            "say population= if that number is public"
        )
    if population is not None and budget.delta * population >= 1:
        found.append(
            f"delta {budget.delta:g} is not below 1 / population = {1 / population:g}: publishing the data of a few "
            "units at random would be allowed at that delta"
        )
    for name, query in request.queries.items():
        if query.computed:
            found.append(
                f"the bounds of {name} are NumPy numbers, as computed from an array: bounds must not be computed from "
                "the private data; write them down as numbers"
            )
    if request.keys is not None and request.keys is request.data:
        found.append(
            "keys is the data itself: which keys occur in the data is then published as it is; leave keys out to "
            "select them privately"
        )
    if key_share is not None:
        found.extend(_few_keys(key_share, population))
    return tuple(found)


def _few_keys(key_share: KeyShare, population: int | None) -> list[str]:
    """Return the warning that keys need more units than there are, or than most data sets have for a key."""
    fewest, most = key_share.needed.fewest, key_share.needed.most
    shown, mend = "to be shown with probability 1/2", "raise epsilon or delta, lower max_groups, or give public keys"
    if population is None and fewest >= MANY_UNITS:
        said = "keys of fewer will mostly be missing; say population= if the number of units is public"
        return [f"a key needs {number_of(fewest, 'unit')} or more {shown}: {said}; {mend}"]
    if population is None or most <= population:
        return []
    if fewest > population:
        said = f"probably no key will be shown: one needs {number_of(fewest, 'unit')} or more {shown}"
    else:
        said = (
            f"probably no key will be shown but where units stay below their bounds: one needs from {fewest} to "
            f"{number_of(most, 'unit')} {shown}"
        )
    return [f"{said}, and there are {population}; {mend}"]
