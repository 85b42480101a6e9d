"""How far off a plan's answers would be at other budgets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

import polars as pl

from dpfast.accounting.budget import ConcentratedAmounts, Kind, no_amounts, read_budget
from dpfast.arguments import Real, Special
from dpfast.errors import ParameterError, Words
from dpfast.releases.blueprint import Blueprint
from dpfast.releases.request import Request

__all__ = ["Budgets", "asked_budgets", "errors_at"]

_MOST, _POINTS = 100, 9

#: Budgets at which errors are asked for.
Budgets: TypeAlias = Annotated[
    Iterable[Real] | None,
    Special(
        lambda: (5, True, "text", [], object(), [0.1] * (_MOST + 1), *([one] for one in no_amounts())), optional=True
    ),
]


def asked_budgets(blueprint: Blueprint, epsilon: Budgets, rho: Budgets) -> tuple[Kind, list[float]]:
    """Return which kind of budget is asked about, and the budgets, rising.

    Raises
    ------
    ParameterError
        They are no budgets, more than 100, or not of the plan's kind.

    """
    concentrated = isinstance(blueprint.budget, ConcentratedAmounts)
    kind: Kind = "rho" if concentrated else "epsilon"
    given, other, wrong = (rho, epsilon, "epsilon") if concentrated else (epsilon, rho, "rho")
    if other is not None:
        raise ParameterError(wrong, Words("given"), f"left out for a plan by {kind}", f"give {kind}= instead")
    if given is None:
        middle = getattr(blueprint.budget, kind)
        spread = (10 ** (place / (_POINTS // 2) - 1) for place in range(_POINTS))
        return kind, [float(f"{middle * times:.3g}") for times in spread]
    listed: list[Any] = [] if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) else list(given)
    if not 1 <= len(listed) <= _MOST:
        raise ParameterError(kind, given, f"from 1 to {_MOST} budgets", f"write for example {kind}=[0.1, 0.5, 1]")
    for one in listed:
        amounts = {"epsilon": None, "rho": None, kind: one}
        read_budget(amounts["epsilon"], 0, amounts["rho"])
    return kind, sorted(map(float, listed))


def errors_at(
    blueprint: Blueprint,
    request: Request,
    draw_up: Callable[[Request], Blueprint],
    kind: Kind,
    budgets: Iterable[float],
    alpha: float,
) -> Mapping[str, list[float]]:
    """Return by query the error at every budget; no row of data is read, and nothing is charged.

    Parameters
    ----------
    blueprint, request
        The plan, of whose data nothing but the schema counts.
    draw_up
        Plans a request.
    kind, budgets
        Of epsilon or of rho.
    alpha
        The probability that an error is exceeded. Of a workload the error is the root mean square over its queries.

    Raises
    ------
    ParameterError
        The error is not known before the data are read.

    """
    aggregation = blueprint.aggregation
    schema: pl.Schema = (aggregation.engine if hasattr(aggregation, "engine") else aggregation.source).schema()
    asked = replace(
        request,
        data=pl.DataFrame(schema=schema),
        schema=None,
        engine="auto",
        dataset=None,
        error=None,
        budget=None,
        epsilon=None,
        rho=None,
    )
    errors: dict[str, list[float]] = {}
    for budget in budgets:
        at = replace(asked, epsilon=budget) if kind == "epsilon" else replace(asked, rho=budget)
        for name, error in _errors(draw_up(at), request, alpha):
            errors.setdefault(name, []).append(error)
    if not errors:
        mend = "give bounds and limits in place of auto"
        raise ParameterError("plan", Words("one of unknown error"), "one whose noise is known beforehand", mend)
    return errors


def _errors(blueprint: Blueprint, request: Request, alpha: float) -> Iterable[tuple[str, float]]:
    """Yield each query, and its error; of a query of several measures each of these."""
    if request.workload is not None:
        found = blueprint.to_frame()["rmse"][0]
        if found is None:
            blueprint.error(alpha)  # which says why there is none
        yield "root mean square error", found
        return
    frame = blueprint.error(alpha)
    several = frame["query"].is_duplicated()
    for (query, measure, one), many in zip(frame.select("query", "measure", "one").iter_rows(), several, strict=True):
        if one is not None and math.isfinite(one):
            yield f"{query}: {measure}" if many else query, one
