"""Accountants: what a plan of events costs, as epsilon for a delta and delta for an epsilon, always rounded up.

An event of `dpfast.accounting.events` says which mechanism runs, with which parameters. An accountant is a theorem on
composition: it takes one event or many, and has ``epsilon(delta)`` and ``delta(epsilon)``; ``applies(events)`` says
whether the theorem takes them. A plan is fixed before any answer is seen. What admits queries that are chosen by the
answers to earlier ones is a `dpfast.Ledger`.

- `basic`: all epsilons and all deltas added.
- `advanced`: by the square root of the number of events (Dwork, Rothblum, Vadhan 2010).
- `optimal`: the best for equal events of which only (epsilon, delta) is known (Kairouz, Oh, Viswanath 2015).
- `gdp`: Gaussian noise alone, exactly (Dong, Roth, Su 2022).
- `zcdp`: zero-concentrated privacy (Bun, Steinke 2016).
- `rdp`: Rényi divergences (Mironov 2017).
- `pld`: privacy loss distributions, the tightest, between two certified bounds.

>>> import dpfast as dpf
>>> from dpfast.accounting.events import Gaussian, Laplace
>>> plan = [Laplace(scale=20.0).times(50), Gaussian(scale=30.0).times(50)]
>>> [round(accountant(plan).epsilon(delta=1e-6), 2) for accountant in (dpf.accounting.zcdp, dpf.accounting.pld)]
[2.01, 1.84]
>>> dpf.accounting.basic.applies(plan)
False
"""
# ruff: noqa: N811, N813  # the names of a face are those of functions

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpfast.accounting import events

if TYPE_CHECKING:
    from dpfast.accounting.accountants.advanced import Advanced as advanced
    from dpfast.accounting.accountants.basic import Basic as basic
    from dpfast.accounting.accountants.gdp import GDP as gdp
    from dpfast.accounting.accountants.optimal import Optimal as optimal
    from dpfast.accounting.accountants.pld import PLD as pld
    from dpfast.accounting.accountants.rdp import RDP as rdp
    from dpfast.accounting.accountants.zcdp import ZCDP as zcdp
    from dpfast.accounting.exchange import from_dp_accounting, to_dp_accounting

__all__ = [
    "advanced",
    "basic",
    "events",
    "from_dp_accounting",
    "gdp",
    "optimal",
    "pld",
    "rdp",
    "to_dp_accounting",
    "zcdp",
]

# Names are imported when they are first used: a ledger that only charges does without most accountants.
_HOMES = {
    "advanced": ("accountants.advanced", "Advanced"),
    "basic": ("accountants.basic", "Basic"),
    "from_dp_accounting": ("exchange", "from_dp_accounting"),
    "gdp": ("accountants.gdp", "GDP"),
    "optimal": ("accountants.optimal", "Optimal"),
    "pld": ("accountants.pld", "PLD"),
    "rdp": ("accountants.rdp", "RDP"),
    "to_dp_accounting": ("exchange", "to_dp_accounting"),
    "zcdp": ("accountants.zcdp", "ZCDP"),
}


if not TYPE_CHECKING:  # for which a misspelt name would be anything

    def __getattr__(name: str) -> Any:
        """Import a public name."""
        if name not in _HOMES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        home, called = _HOMES[name]
        value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), called)
        return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
