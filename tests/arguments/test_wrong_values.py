"""Every public function x every argument x every wrong value: one clear line that names it, and nothing spent."""

from __future__ import annotations

import inspect
import re
import typing

import pytest

import dpfast as dpf
from dpfast.errors import DpfastError

from .calls import every_call

CALLS = every_call()
ABSTRACT = {"dpfast.strategies.Strategy", "dpfast.weights.LinearQuery", "dpfast.workloads.Workload"}
RETURNED = {f"dpfast.strategies.{name}" for name in ("Choice", "Considered", "MatrixRelease")}
EACH = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)


def is_about(name, text, others):
    """Whether an error says what this argument must be, or what another must be because of this one."""
    subject, _, rest = text.partition(" must ")

    def named(argument, part):
        return re.search(rf"\b{argument}\b", part) is not None

    return named(name, subject) or (named(name, rest) and any(named(other, subject) for other in others))


def test_every_argument_is_declared():
    assert [
        f"{call.name}: {name}" for call in CALLS for name in call.parameters if call.declaration(name) is None
    ] == []


def test_no_argument_is_of_any_type():
    """But data: a frame or a file of any library."""
    hints = {f"{call.name}: {name}": call.hint(name) for call in CALLS for name in call.parameters if name != "data"}
    assert [name for name, hint in hints.items() if getattr(hint, "__origin__", hint) in (typing.Any, object)] == []


def test_every_public_name_is_called():
    """All but abstract classes, what is returned, and what plans are asked with."""
    called = [inspect.unwrap(call.function) for call in CALLS]
    rooms = (dpf, dpf.accounting, dpf.strategies, dpf.theory, dpf.weights, dpf.workloads)
    public = {f"{room.__name__}.{name}": getattr(room, name) for room in rooms for name in room.__all__}
    missing = {name for name, thing in public.items() if callable(thing) and thing not in called}
    assert missing == ABSTRACT | RETURNED


@EACH
def test_the_right_call_is_right(call):
    call()


@EACH
def test_wrong_values_are_refused_by_name_and_nothing_is_spent(call):
    adds = "zcdp" if "rho" in call.given() else "basic"
    ledger = dpf.Ledger(epsilon=1000, delta=0.5, accountant=adds) if "ledger" in call.parameters else None
    always = {} if ledger is None else {"ledger": ledger}
    for name in call.parameters:
        declared = call.declaration(name)
        assert declared is not None
        wrong = list(declared.wrong())
        if not declared.optional:
            wrong.append(None)
        for given in wrong:
            try:
                call(**{**always, name: given})
            except DpfastError as error:
                text = str(error)
                assert is_about(name, text, call.parameters), f"{name}={given!r}: {text}"
                assert "\n" not in text
                assert len(text) < 300
            else:
                pytest.fail(f"{name}={given!r} was taken")
    if ledger is not None:
        assert ledger.history().is_empty()
