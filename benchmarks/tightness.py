"""How much epsilon accountants charge for the same plan: a figure of the suite accounting that is no time.

All are upper bounds, so that the smallest is the best. The figures are the same in every round.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import dpfast as dpf
from dpfast.accounting.events import Gaussian, Laplace, PoissonSubsampled
from dpfast.bench import Case, Measured, Wish
from dpfast.bench.cases import measured_in_turns

from .contestants import imported, opendp

__all__ = ["cases"]

_DELTA, _ROUNDS = 1e-6, 7
PLANS = {
    "100 Laplace answers of scale 20": Laplace(20.0).times(100),
    "1,000 Gaussian answers of deviation 100": Gaussian(100.0).times(1_000),
    "1,000 steps of private training": PoissonSubsampled(Gaussian(1.0), 0.001).times(1_000),
}

#: Of OpenDP those without a sample that it knows nothing of: kind, scale, and how many answers.
_OF_OPENDP = {
    "100 Laplace answers of scale 20": ("laplace", 20.0, 100),
    "1,000 Gaussian answers of deviation 100": ("gaussian", 100.0, 1_000),
}


def cases(suite: str, wish: Wish) -> list[Case]:
    """Return a case for each plan."""
    return [Case(suite, f"Epsilon of {name}", partial(_measure, name), is_quick=True) for name in PLANS]


def _measure(name: str, wish: Wish) -> list[Measured]:
    plan = PLANS[name]
    accountants = {"dpfast": dpf.accounting.pld, "dpfast, Rényi": dpf.accounting.rdp}
    found: dict[str, Callable[[], float]] = {
        told: partial(lambda one: one(plan).epsilon(_DELTA), accountant)
        for told, accountant in accountants.items()
        if accountant.applies(plan)
    }
    if imported("dp_accounting") is not None:
        found |= _of_dp_accounting(name)
    if name in _OF_OPENDP and imported("opendp") is not None:
        found["OpenDP"] = partial(opendp.epsilon_of, *_OF_OPENDP[name], _DELTA)
    trials = {told: (epsilon, 1) for told, epsilon in found.items()}
    return measured_in_turns(trials, _ROUNDS, unit="epsilon charged", tell=wish.tell)


def _of_dp_accounting(name: str) -> dict[str, Callable[[], float]]:
    from dp_accounting import pld, rdp

    event = dpf.accounting.to_dp_accounting(PLANS[name])

    def charged(make: Callable[[], object]) -> float:
        accountant = make()
        accountant.compose(event)  # type: ignore[attr-defined]
        return float(accountant.get_epsilon(_DELTA))  # type: ignore[attr-defined]

    return {
        "dp_accounting": partial(charged, pld.PLDAccountant),
        "dp_accounting, Rényi": partial(charged, rdp.RdpAccountant),
    }
