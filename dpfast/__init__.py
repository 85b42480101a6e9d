"""dpfast: differentially private statistics at the speed of the data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpfast.answering import answer
    from dpfast.ledger import Ledger
    from dpfast.mechanisms.exponential import exponential
    from dpfast.mechanisms.exponential_draws import exponential_draws
    from dpfast.mechanisms.gaussian import gaussian
    from dpfast.mechanisms.laplace import laplace
    from dpfast.mechanisms.permute_and_flip import permute_and_flip
    from dpfast.queries import bins, count, mean, sum
    from dpfast.release import plan, release

__all__ = [
    "Ledger",
    "answer",
    "bins",
    "count",
    "exponential",
    "exponential_draws",
    "gaussian",
    "laplace",
    "mean",
    "permute_and_flip",
    "plan",
    "release",
    "sum",
]

# Names are imported when they are first used: numba and polars take longer to import than most programs to run.
_HOMES = {
    "Ledger": "dpfast.ledger",
    "answer": "dpfast.answering",
    "bins": "dpfast.queries",
    "count": "dpfast.queries",
    "exponential": "dpfast.mechanisms.exponential",
    "exponential_draws": "dpfast.mechanisms.exponential_draws",
    "gaussian": "dpfast.mechanisms.gaussian",
    "laplace": "dpfast.mechanisms.laplace",
    "mean": "dpfast.queries",
    "permute_and_flip": "dpfast.mechanisms.permute_and_flip",
    "plan": "dpfast.release",
    "sum": "dpfast.queries",
}


def __getattr__(name: str) -> Any:
    """Import a public name, or a module of the package."""
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
    if name in {"errors", "release", "testing"}:
        # The module `release` can be called like the function in it.
        return import_module(f"{__name__}.{name}")
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
