"""`dpfast.accounting` as a reader uses it: accountants by the names of their theorems, and events."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

import dpfast as dpf
from dpfast.accounting.events import Gaussian, Laplace, Pure
from dpfast.errors import ParameterError

ACCOUNTANTS = ("basic", "advanced", "optimal", "gdp", "zcdp", "rdp", "pld")


def test_all_names_are_there():
    assert set(ACCOUNTANTS) < set(dpf.accounting.__all__) <= set(dir(dpf.accounting))
    assert all(hasattr(dpf.accounting, name) for name in dpf.accounting.__all__)
    with pytest.raises(AttributeError, match="no attribute 'renyi'"):
        dpf.accounting.renyi  # noqa: B018


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_every_accountant_reads_the_same(name):
    accountant = getattr(dpf.accounting, name)
    event = Gaussian(scale=20.0) if name == "gdp" else Pure(0.05)
    plan = accountant(event.times(100))
    assert 0.0 < plan.epsilon(delta=1e-6) < math.inf
    assert 0.0 <= plan.delta(epsilon=1.0) <= 1.0
    assert accountant.applies(event)
    with pytest.raises(ParameterError, match=r"^events must be"):
        accountant("Laplace")


def test_tighter_theorems_say_less():
    plan = Laplace(scale=20.0).times(100)
    tighter = ("basic", "advanced", "zcdp", "rdp", "pld")
    found = [getattr(dpf.accounting, name)(plan).epsilon(1e-6) for name in tighter]
    assert found == sorted(found, reverse=True)
    assert dpf.accounting.pld(plan).epsilon_lower(1e-6) <= found[-1]


def test_no_accountant_is_hidden_by_a_module():
    """A module of the name of an accountant would take its place once it is imported."""
    code = (
        "import pkgutil, importlib, dpfast as dpf, dpfast.accounting as face\n"
        "for module in pkgutil.walk_packages(face.__path__, 'dpfast.accounting.'):\n"
        "    importlib.import_module(module.name)\n"
        f"print([type(getattr(dpf.accounting, name)).__name__ for name in {ACCOUNTANTS}])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(["ABCMeta"] * len(ACCOUNTANTS))


def test_events_are_imported_without_accountants():
    code = "import sys, dpfast as dpf\ndpf.accounting.events.Laplace(1.0)\nprint({'flint', 'numpy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_exchange():
    theirs = pytest.importorskip("dp_accounting")
    event = Laplace(scale=10.0).times(3)
    assert dpf.accounting.to_dp_accounting(event) == theirs.SelfComposedDpEvent(theirs.LaplaceDpEvent(10.0), 3)
    assert dpf.accounting.from_dp_accounting(dpf.accounting.to_dp_accounting(event)) == event
