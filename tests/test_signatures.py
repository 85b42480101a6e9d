"""Signatures: one of a plan and of a release, typed in full; what follows a workload is given by name."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing

import polars as pl
import pytest

import dpfast as dpf
from dpfast.integrations.polars import Expressions, Frames
from dpfast.releases.plan import Plan
from dpfast.releases.release import Release
from dpfast.releases.request import Request

PLAN, RELEASE = inspect.signature(dpf.plan), inspect.signature(dpf.release)


def test_plan_and_release_have_the_same_parameters_but_for_the_ledger():
    released = dict(RELEASE.parameters)
    assert released.pop("ledger").default is inspect.Parameter.empty
    assert list(released.values()) == list(PLAN.parameters.values())


@pytest.mark.parametrize("name", ["plan", "release", "answer", "synthesize"])
def test_a_namespace_has_the_parameters_of_the_function_but_for_the_data(name):
    _, *of_function = inspect.signature(getattr(dpf, name)).parameters.values()
    _, *of_method = inspect.signature(getattr(Frames, name)).parameters.values()
    assert of_method == of_function
    functions, methods = (typing.get_type_hints(getattr(where, name), include_extras=True) for where in (dpf, Frames))
    assert {one.name: methods[one.name] for one in of_method} == {one.name: functions[one.name] for one in of_method}


#: What is asked of a column; the others are expressions.
SPECIFICATIONS = [
    name
    for name, member in vars(Expressions).items()
    if inspect.isfunction(member) and name[0] != "_" and name not in ("laplace", "gaussian", "randomized_response")
]


def test_whatever_is_asked_of_one_column_is_in_the_namespace():
    asked = dpf.queries.__all__
    functions = {name for name in asked if inspect.isfunction(getattr(dpf.queries, name)) and name in dpf.__all__}
    assert functions - {"units"} == set(SPECIFICATIONS)


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_a_specification_is_the_function_but_for_the_column(name):
    function, method = getattr(dpf, name), getattr(Expressions(pl.col("x")), name)
    assert (
        list(inspect.signature(method).parameters.values()) == list(inspect.signature(function).parameters.values())[1:]
    )
    assert inspect.signature(method).return_annotation == inspect.signature(function).return_annotation
    assert method.__doc__ == function.__doc__


@pytest.mark.parametrize("function", [dpf.plan, dpf.release])
def test_every_parameter_has_a_type(function):
    types = typing.get_type_hints(function)
    assert types.pop("return") is (Plan if function is dpf.plan else Release)
    assert types.pop("data") is object
    for name, given in types.items():
        assert given is not object, name
        assert "Any" not in re.sub(r"numpy\.\w+\[typing\.Any\]", "", str(given)), name


def test_a_request_holds_every_parameter_of_a_plan():
    """And what is left of the budget, once limits or bounds were chosen."""
    assert {field.name for field in dataclasses.fields(Request)} == {*PLAN.parameters, "rest"}


def asks_of_histograms() -> list[typing.Callable[..., typing.Any]]:
    public = [getattr(dpf, name) for name in dpf.__all__] + [dpf.strategies.choose]
    return [thing for thing in public if callable(thing) and first_options(thing) is not None]


def first_options(thing: typing.Callable[..., typing.Any]) -> list[inspect.Parameter] | None:
    """Return what follows the workload, or else the histogram; None where there is neither."""
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except ValueError:  # an exception of Python's own
        return None
    names = [parameter.name for parameter in parameters]
    given = next((name for name in ("workload", "histogram") if name in names), None)
    return None if given is None else parameters[names.index(given) + 1 :]


@pytest.mark.parametrize("thing", asks_of_histograms(), ids=lambda thing: thing.__name__)
def test_what_follows_the_workload_is_given_by_name(thing):
    options = first_options(thing)
    assert options
    assert {option.kind for option in options} <= {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}


def test_the_check_of_names_sees_every_estimate_of_a_histogram():
    seen = {thing.__name__ for thing in asks_of_histograms()}
    assert seen >= {"mwem", "dawa", "ahp", "matrix_mechanism", "choose", "project_answers", "boost_queries", "plan"}
    assert seen >= {"PrivateMultiplicativeWeights", "estimate_histogram", "adaptive_hierarchy", "projection_mechanism"}


KEYS = pl.DataFrame({"age": range(8)})
WORKLOAD = {"keys": KEYS, "workload": dpf.workloads.prefix(8)}
KINDS = {
    "by group": {"keys": KEYS, "n": dpf.count()},
    "workload": WORKLOAD,
    "adaptive": {**WORKLOAD, "strategy": "adaptive"},
}


def a_plan(kind: str) -> Plan:
    return dpf.plan(
        pl.DataFrame({"age": [1, 2, 3] * 100}), "age", epsilon=1.0, **{"privacy_unit": "row", **KINDS[kind]}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_is_one_class(kind):
    plan = a_plan(kind)
    release = plan.run(dpf.Ledger(epsilon=1.0))
    assert (type(plan), type(release)) == (Plan, Release)
    assert release.explain() == plan.explain()
    assert release.frame.equals(release.lazy().collect())
    assert repr(release).startswith("Release of ")


@pytest.mark.parametrize(
    ("kind", "lacks"),
    [("by group", {"histogram": "frame", "estimate": "frame"}), ("workload", {"estimate": "histogram"})],
)
def test_figures_that_a_release_has_not_are_refused_in_one_line(kind, lacks):
    release = a_plan(kind).run(dpf.Ledger(epsilon=1.0))
    for name, has in lacks.items():
        with pytest.raises(dpf.errors.DpfastError, match=rf"^this release has no {name}.*{has}"):
            getattr(release, name)
        assert not hasattr(release, name)


def test_what_is_computed_late_is_computed_once(monkeypatch):
    from dpfast.strategies.matrix_mechanism import MatrixRelease

    made, frame = [], MatrixRelease.frame
    monkeypatch.setattr(MatrixRelease, "frame", lambda self: made.append(1) or frame(self))
    release = a_plan("workload").run(dpf.Ledger(epsilon=1.0))
    assert made == []
    assert release.frame.equals(release.frame)
    assert made == [1]
    release.frame.insert_column(0, pl.Series("mine", [0] * 8))
    release.histogram.drop_in_place("age")
    assert "mine" not in release.frame.columns
    assert release.histogram.columns == ["age", "estimate"]


def test_an_adaptive_plan_knows_its_strategy_alone():
    frame = a_plan("adaptive").to_frame()
    assert frame.schema == a_plan("workload").to_frame().schema
    assert frame.row(0) == ("adaptive", None, None, None, None)
    with pytest.raises(dpf.errors.ParameterError, match='strategy="auto"'):
        a_plan("adaptive").error()


@pytest.mark.parametrize("option", [{"query": "answer"}, {"top": 3}])
@pytest.mark.parametrize("kind", ["workload", "adaptive"])
def test_a_workload_is_drawn_whole(kind, option):
    with pytest.raises(dpf.errors.ParameterError, match="left out for a workload"):
        a_plan(kind).run(dpf.Ledger(epsilon=1.0)).plot(**option)
