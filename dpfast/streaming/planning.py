"""From what a user asks of a counter to a method: chosen, calibrated, and described so that it can be made again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpfast.accounting.budget import Budget
from dpfast.arguments import Choice
from dpfast.errors import LedgerError, ParameterError
from dpfast.randomness import DRAW_VERSION
from dpfast.streaming.buffers import BufferedToeplitz
from dpfast.streaming.method import Found, Method
from dpfast.streaming.pan_private import PanPrivate
from dpfast.streaming.square_root import SquareRootCounter
from dpfast.streaming.trees import BinaryTree, Honaker
from dpfast.streaming.unit import StreamUnit

__all__ = ["MECHANISM", "Asked", "plan_method"]

_METHODS: dict[str, type[Any]] = {
    kind.name: kind for kind in (BinaryTree, Honaker, SquareRootCounter, BufferedToeplitz, PanPrivate)
}
MECHANISM = Choice(("auto", *_METHODS), mend="leave {name} out")
_GAUSSIAN_ALONE = ("square_root", "blt")


@dataclass(frozen=True)
class Asked:
    """All that a counter is made from: public parameters."""

    horizon: int
    counters: int
    mechanism: str
    budget: Budget
    unit: StreamUnit

    def to_json(self, method: Method) -> dict[str, Any]:
        """Return them as JSON can say them, with what was searched for."""
        asked = {**asdict(self), "mechanism": method.name}
        return {**asked, "found": method.found, "event": repr(method.event), "draw_version": DRAW_VERSION}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> tuple[Asked, Method]:
        """Return what `to_json` was given.

        Raises
        ------
        LedgerError
            It would not be the same noise any more.

        """
        unit = {**given["unit"], "bounds": tuple(given["unit"]["bounds"])}
        parts = given["horizon"], given["counters"], given["mechanism"]
        asked = cls(*parts, Budget(**given["budget"]), StreamUnit(**unit))
        method = plan_method(asked, given["found"])
        if repr(method.event) != given["event"] or given.get("draw_version") != DRAW_VERSION:
            raise LedgerError("the counter was made by another version of dpfast, whose noise this one would not draw")
        return asked, method


def plan_method(asked: Asked, found: Found | None = None) -> Method:
    """Return the method that was asked for, or for "auto" the one with the least mean variance.

    Raises
    ------
    ParameterError
        It cannot be had for this budget.

    """
    name, budget = asked.mechanism, asked.budget
    gaussian = budget.kind == "rho" or budget.delta_units > 0
    if name in _GAUSSIAN_ALONE and not gaussian:
        mend = 'add delta=1e-6, or use mechanism="honaker"'
        raise ParameterError("mechanism", name, "one with Laplace noise where epsilon stands alone", mend)
    if name == PanPrivate.name and gaussian:
        allowed = "one without a state that is private, where rho or a delta is given"
        raise ParameterError("mechanism", name, allowed, "give epsilon alone")
    if name != "auto":
        made: Method = _METHODS[name](asked.horizon, asked.unit, budget, found)
        return made
    kinds: list[type[Any]] = [Honaker, BufferedToeplitz] if gaussian else [Honaker]
    methods: list[Method] = [kind(asked.horizon, asked.unit, budget) for kind in kinds]
    return min(methods, key=lambda method: method.mean_variance())
