"""Every public function of these rooms, and every method of what they return, has a right call to be made wrong."""

from __future__ import annotations

import inspect

import pytest

import dpfast as dpf
from dpfast.domain.counting import OpenRecords
from dpfast.ledger.partitions import Partitions
from dpfast.streaming.counter import ContinualCounter
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.fitted.boosting import BoostedAnswers

from .calls import every_call

ROOMS = ("workloads", "domain", "ledger", "strategies", "synthesis", "charts", "attacks", "streaming", "sketches")
FUNCTIONS = [call.function for call in every_call()]
#: Strategies, products of workloads and errors are made of these: the package calls them, with what it has checked.
WITHIN = {
    "answer_along",
    "count_marginals",
    "transposed_along",
    "energy",
    "error",
    "measure",
    "reconstruct",
    "sensitivity",
    "variances",
}


def takes_arguments(function):
    unnamed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.kind not in unnamed and parameter.name != "self" for parameter in parameters)


def is_method(member):
    return inspect.isfunction(member) or inspect.ismethod(member)


def is_called(kind, method):
    owners = [getattr(function, "__self__", None) for function in FUNCTIONS if function.__name__ == method]
    return any(owner is kind or isinstance(owner, kind) for owner in owners)


def public(module):
    return [getattr(module, name) for name in module.__all__]


EVERY = [
    *public(dpf),
    *public(dpf.workloads),
    *public(dpf.strategies),
    *public(dpf.attacks),
    OpenRecords,
    Partitions,
    Estimate,
    BoostedAnswers,
    ContinualCounter,
]
OURS = sorted(
    {one for one in EVERY if callable(one) and one.__module__.split(".")[1] in ROOMS},
    key=lambda one: (one.__module__, one.__qualname__),
)


@pytest.mark.parametrize("function", [one for one in OURS if not inspect.isclass(one)])
def test_every_function_is_called(function):
    assert function in FUNCTIONS or not takes_arguments(function)


@pytest.mark.parametrize("kind", [one for one in OURS if inspect.isclass(one)])
def test_every_method_is_called(kind):
    methods = {
        name
        for name, method in inspect.getmembers(
            kind, lambda member: inspect.isfunction(member) or inspect.ismethod(member)
        )
        if not name.startswith("_") and takes_arguments(method)
    }
    assert {name for name in methods - WITHIN if not is_called(kind, name)} == set()
