"""`dpfast.preview`: what a plan would show of public or made-up rows, drawn several times and set beside the truth."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl

from dpfast.aggregation import Grouping, prepare
from dpfast.aggregation.keys import name_of
from dpfast.aggregation.protocols import Engine
from dpfast.aggregation.sources import Source, open_data
from dpfast.arguments import Instance, Special, Whole
from dpfast.columns.bounds import AUTO, ReadBounds
from dpfast.columns.value_axis import axis_of
from dpfast.columns.values import values_of
from dpfast.errors import ParameterError, PrivacyUnitWarning, Words
from dpfast.progress import silent
from dpfast.queries import Measure, Query, RankedQuery, UnitQuery
from dpfast.releases.blueprint import Blueprint
from dpfast.releases.clipped_blueprint import ClippedBlueprint
from dpfast.releases.group_blueprint import GroupBlueprint
from dpfast.releases.made_up import made_up, zipf_sizes
from dpfast.releases.plan import Plan, bounding_words
from dpfast.releases.planned_queries import RANKS, columns_of
from dpfast.releases.planning import draw_up
from dpfast.releases.preview import Preview
from dpfast.releases.query_measures import measures_of, of_columns
from dpfast.releases.request import LIMITS, Request
from dpfast.releases.staged_blueprint import StagedBlueprint
from dpfast.showing import number_of

__all__ = ["preview"]

_PLAN = Instance(Plan, "what dpf.plan returns")
_ROWS, _GROUPS, _UNITS = Whole(1, 10**8, optional=True), Whole(1, 10**6, optional=True), Whole(1, 10**8, optional=True)
_REPEATS = Whole(1, 10_000)
_MOST_BOUND = 2**40
#: At this epsilon the noise of what is exact is 0, or a millionth of the bounds.
_EXACT = 10**6
_MADE_UP_ROWS, _MADE_UP_GROUPS, _ROWS_PER_UNIT = 10_000, 20, 5


def _no_samples() -> Iterator[object]:
    yield from (5, True, "sample", b"a", [1], {"k": [1]}, object(), pl.Series([1]), pl.DataFrame)


def _no_sizes() -> Iterator[object]:
    yield from (5, True, "12", b"12", [], [0], [-1, 5], [1.5], [True], ["1"], {"a": 1}, object(), [10**9])


Sample: TypeAlias = Annotated[pl.DataFrame | pl.LazyFrame | None, Special(_no_samples, optional=True)]
Sizes: TypeAlias = Annotated[Sequence[int] | None, Special(_no_sizes, optional=True)]


def preview(
    plan: Annotated[Plan, _PLAN],
    sample: Sample = None,
    *,
    rows: Annotated[int | None, _ROWS] = None,
    groups: Annotated[int | None, _GROUPS] = None,
    sizes: Sizes = None,
    units: Annotated[int | None, _UNITS] = None,
    repeats: Annotated[int, _REPEATS] = 20,
) -> Preview:
    """Show what a plan's noise, clipping and key selection do to rows of its shape, before any budget is spent.

    Guarantee
        None, and none is needed: neither the data of the plan are read, but for their schema, nor is a ledger charged.
        What is shown is of the sample as it is, which must be public. The very object that the plan was given is
        refused, but no copy of it, nor another way to its files: to compare rows would read the plan's data. That the
        sample is public is for the caller to know.

    Parameters
    ----------
    plan
        What `dpf.plan` returned, by group, whether it was run or not.
    sample
        Public rows with the columns of the plan's data: of another year, say, or a published table. None for made-up
        rows of the schema: groups of Zipf-like sizes, in proportion to 1, 1/2, 1/3 and so on, values spread evenly
        over the bounds, and rows dealt out to units evenly.
    rows, groups, units
        How many made-up rows, groups and units there are; by default 10,000 rows, the public keys or else 20 groups,
        and a unit for every 5 rows.
    sizes
        How many made-up rows every group has, in place of ``rows`` and ``groups``.
    repeats
        How often everything is drawn.

    Returns
    -------
    Preview
        With ``summary``, ``frame``, ``keys_lost``, ``rows_cut``, ``explain()`` and ``plot()``; no `Release`.

    Raises
    ------
    ParameterError
        The plan is of a workload or of Spark; the sample is the very data that the plan was given, or has other dtypes;
        or what makes up rows is given beside a sample.
    ColumnError
        The sample lacks a column.

    Examples
    --------
    >>> import dpfast as dpf
    >>> import polars as pl
    >>> trips = pl.DataFrame({"city": ["Rome", "Oslo"] * 500, "rider": range(1000)})
    >>> plan = dpf.plan(
    ...     trips, by="city", rides=dpf.count(), epsilon=1.0, delta=1e-6,
    ...     privacy_unit="rider", max_groups=1, max_rows_per_group=2,
    ... )
    >>> shown = dpf.preview(plan, sizes=[500, 50, 5], units=300)
    >>> print(shown.explain().splitlines()[0])
    PREVIEW on public or made-up rows: no release, nothing was charged
    >>> shown.keys_lost > 0.2, shown.frame.filter(rows=500)["missing"].to_list()
    (True, [0.0])

    """
    blueprint, request = _read_plan(plan)
    repeats = _REPEATS.read("repeats", repeats)
    shape = {"rows": _ROWS.read_optional("rows", rows), "groups": _GROUPS.read_optional("groups", groups)}
    shape["units"], listed = _UNITS.read_optional("units", units), _read_sizes(sizes)
    if sample is not None:
        for name, given in (*shape.items(), ("sizes", listed)):
            if given is not None:
                raise ParameterError(name, given, "left out beside a sample, which has its own")
        frame, rows_of = _read_sample(sample, request)
        rows_of = f"a public sample of {number_of(frame.height, 'row')}"
    else:
        if any(query.leaves_open for query in request.queries.values()):
            allowed = "public rows where bounds are chosen from rows: made-up values lie where bounds say"
            raise ParameterError("sample", None, allowed)
        frame, rows_of = _made_up(blueprint, request, shape, listed)
        # Rows are made up of those that count.
        request = replace(request, where=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyUnitWarning)  # the plan has told of it
        return _drawn(blueprint, request, frame, rows_of, repeats)


def _read_plan(plan: Plan) -> tuple[GroupBlueprint | ClippedBlueprint | StagedBlueprint, Request]:
    blueprint, request = _PLAN.read("plan", plan)._blueprint, plan._request
    if request is None or not isinstance(blueprint, (GroupBlueprint, ClippedBlueprint, StagedBlueprint)):
        mend = "of a workload, Plan.error and Plan.to_frame say what noise does"
        raise ParameterError("plan", Words("of another kind"), "a plan by group that dpf.plan returned", mend)
    return blueprint, request


def _read_sizes(sizes: object) -> list[int] | None:
    if sizes is None:
        return None
    listed = list(sizes) if isinstance(sizes, (list, tuple, range)) else []
    whole = [one for one in listed if isinstance(one, (int, np.integer)) and not isinstance(one, bool) and one >= 1]
    if not listed or len(whole) != len(listed) or sum(whole) > 10**8:
        raise ParameterError("sizes", sizes, "a list of whole numbers of at least 1, of 10**8 rows in all")
    return [int(one) for one in whole]


def _read_sample(sample: object, request: Request) -> tuple[pl.DataFrame, str]:
    if sample is request.data:
        given, allowed = (
            Words("the data of the plan"),
            "public rows: what is shown of them has no noise that hides them",
        )
        raise ParameterError("sample", given, allowed, "leave it out to preview made-up rows")
    if isinstance(sample, pl.LazyFrame):
        sample = sample.collect()
    if not isinstance(sample, pl.DataFrame):
        raise ParameterError("sample", sample, "a Polars DataFrame or LazyFrame of public rows, or None")
    return sample, f"a public sample of {number_of(sample.height, 'row')}"


def _made_up(
    blueprint: GroupBlueprint | ClippedBlueprint | StagedBlueprint,
    request: Request,
    shape: Mapping[str, int | None],
    sizes: list[int] | None,
) -> tuple[pl.DataFrame, str]:
    aggregation: Any = blueprint.aggregation
    schema: pl.Schema = (aggregation.engine if hasattr(aggregation, "engine") else aggregation.source).schema()
    entries = request.read_by()
    keys = request.keys if entries else None
    known = 1 if not entries else None if keys is None else keys.height
    rows, groups = shape["rows"], shape["groups"]
    if sizes is not None:
        for name in ("rows", "groups"):
            if shape[name] is not None:
                raise ParameterError(name, shape[name], "left out beside sizes, which say it")
    if known is not None:
        given, name = (len(sizes), "sizes") if sizes is not None else (groups, "groups")
        if given is not None and given != known:
            raise ParameterError(name, Words(f"{given:,}"), f"{known:,}, the number of public groups", "leave it out")
    if sizes is None:
        count = known if known is not None else groups or _MADE_UP_GROUPS
        sizes = zipf_sizes(rows or _MADE_UP_ROWS, count)
    total = sum(sizes)
    units = shape["units"] or max(total // _ROWS_PER_UNIT, 1)
    unit = blueprint.unit.column
    queries = [of_columns(query, schema) for query in request.queries.values()]
    asked = [(query, measures_of(query)) for query in queries]
    frame = made_up(schema, entries, keys, unit, asked, sizes, units)
    whose = "" if unit is None else f" of {number_of(units, 'unit')}"
    return frame, f"{total:,} made-up rows{whose} in {number_of(len(sizes), 'group')}"


def _drawn(blueprint: Blueprint, request: Request, frame: pl.DataFrame, rows_of: str, repeats: int) -> Preview:
    """Draw what is shown of public rows, and set it beside what is exact."""
    of_sample = replace(request, data=frame, schema=None, engine="auto", dataset=None)
    shown = draw_up(of_sample)
    if [charge.fact for charge in shown.charges] != [charge.fact for charge in blueprint.charges]:
        raise ParameterError("sample", Words("of other dtypes"), "of the dtypes of the plan's data", "cast its columns")
    by = [name_of(entry) for entry in request.read_by()]
    draws, bounds = [], [] if isinstance(shown, ClippedBlueprint) else [shown.aggregation.grouping]
    for number in range(repeats):
        released = shown.carry_out(0, bounding_words, silent)
        draws.append(_comparable(released.frame).with_columns(pl.lit(number).alias("\0draw")))
        limits = {name: limit for name, limit in released.chosen.items() if name in LIMITS}
        if limits:
            bounds[number:] = [replace(shown.aggregation.grouping, **limits)]
    truth, kept = _exact(of_sample, shown, frame, bounds)
    found = [
        _compared(truth, pl.concat(draws), by, column, repeats, ranked=isinstance(query, RankedQuery))
        for name, query in request.queries.items()
        for column in _figures(name, query)
    ]
    table = pl.concat(found)
    table = truth.select(*by, "\0group", "rows", "rows_cut").join(table, on="\0group", how="left").drop("\0group")
    return Preview(
        rows_of=rows_of,
        repeats=repeats,
        keys_lost=float(found[0]["missing"].mean() or 0.0),  # type: ignore[arg-type]
        rows_cut=kept,
        _by=tuple(by),
        _frame=table,
        _summary=_summary(table),
    )


def _figures(name: str, query: Query) -> list[str]:
    """Return the columns of what is shown of a query, without its scale, interval and names of bins."""
    columns = columns_of(name, query)
    return [column for column in columns if column == name or (name + RANKS in columns and column != name + RANKS)]


def _comparable(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def _exact(
    request: Request, shown: Blueprint, frame: pl.DataFrame, bounds: Sequence[Grouping]
) -> tuple[pl.DataFrame, float | None]:
    """Return the exact figures of all groups, beside their rows and the share of these that is cut; and that of all.

    ``bounds`` says what is kept of a unit, of each draw where that differs; none where all rows count.
    """
    source, entries = open_data(frame), request.read_by()
    rows, where = Measure("rows"), request.read_where()
    keys = request.keys if entries else None
    whole = prepare(source, Grouping(entries, keys, where=where), [rows]).run(bounding_words)
    totals = whole.measures[0]
    if not totals.size:
        allowed = "public rows of at least one group, as keys are selected among those of the data"
        raise ParameterError("sample", Words("rows of no group"), allowed)
    found = whole.keys if entries else None
    widened = {name: _widened(query, frame) for name, query in request.queries.items()}
    finds = any(isinstance(query, RankedQuery) and not query.candidates for query in request.queries.values())
    # Without noise worth the name, bounds, clipping or units: what is exact.
    asked = replace(
        request, keys=found, privacy_unit=None, max_groups=None, max_rows_per_group=None,
        neighbors="add_remove", mechanism="laplace", key_selection="auto", epsilon=_EXACT,
        delta=1e-6 if finds else 0, rho=None, error=None, budget=None, split="even", queries=widened,
        report_cut=None, interval="noise",
    )  # fmt: skip
    blueprint = draw_up(asked)
    truth = blueprint.carry_out(0, bounding_words, silent).frame
    unit = shown.unit.column
    counted = [name for name, query in request.queries.items() if query.kind == "units"]
    cut, share = np.zeros(totals.size), None
    if unit is not None:
        everyone = Grouping(entries, found, unit, _MOST_BOUND, _MOST_BOUND, where=where)
        for name, query in widened.items():
            if isinstance(query, UnitQuery) and query.kind == "mean":
                truth = truth.with_columns(_mean_of_units(query, source, everyone).alias(name))
        if counted:
            numbers = prepare(source, everyone, [Measure("units")]).run(bounding_words).measures[0]
            truth = truth.with_columns(pl.Series(name, numbers) for name in counted)
    if bounds:
        bounded = [prepare(source, replace(bound, keys=found), [rows]) for bound in bounds]
        left = np.mean([one.run(bounding_words).measures[0] for one in bounded], axis=0)
        cut = 1 - left / np.maximum(totals, 1)
        share = float(1 - left.sum() / max(totals.sum(), 1))
    return _comparable(truth).with_columns(
        pl.Series("rows", totals), pl.Series("rows_cut", np.where(totals > 0, cut, 0.0))
    ).with_row_index("\0group"), share


def _mean_of_units(query: UnitQuery, source: Source | Engine, everyone: Grouping) -> pl.Series:
    """Return the exact mean over units of their means."""
    known = of_columns(query, source.schema())
    measures = measures_of(known)
    total, counts = prepare(source, everyone, measures).run(bounding_words).measures
    step = Fraction(2) ** measures[0].step_exponent
    low, high = known.limits()
    means = total * float(step) / np.maximum(counts, 1)
    return pl.Series(known.values.near(measures[0].centre * step, means, low, high))


def _widened(query: Query, frame: pl.DataFrame) -> Query:
    """Return a query whose bounds hold all values of its columns."""
    changed: dict[str, Any] = {}
    for name, column in (("bounds", query.column), ("other_bounds", getattr(query, "other", None))):
        bounds = getattr(query, name, None)
        if bounds is None or column is None or query.kind == "proportion":
            continue
        values = frame[column].drop_nulls()
        if values.dtype.is_numeric():
            values = values.cast(pl.Float64, strict=False)
            values = values.filter(values.is_finite())
        elif not values.dtype.is_temporal():
            continue
        if bounds == AUTO:
            changed[name] = _around(values)
        elif len(values):
            changed[name] = (min(bounds[0], values.min()), max(bounds[1], values.max()))
    return replace(query, **changed) if changed else query


def _around(values: pl.Series) -> ReadBounds:
    """Return bounds that hold all of these values."""
    kind = values_of(values.dtype)
    axis = axis_of(kind)
    if not len(values):
        return axis.bounds(*axis.unknown())
    # Dates and times are told by what they are held as.
    ticks = values.to_physical() if values.dtype.is_temporal() else values
    worth = 1 if values.dtype.is_temporal() else kind.tick
    least, most = (Fraction(end) / worth for end in (ticks.min(), ticks.max()))  # type: ignore[arg-type]
    return axis.bounds(least, most + axis.finest(most))


def _compared(
    truth: pl.DataFrame, draws: pl.DataFrame, by: Sequence[str], column: str, repeats: int, *, ranked: bool
) -> pl.DataFrame:
    """Return, for every group, how a figure that is shown differs from the exact one; of ranked values whether."""
    exact = truth.select("\0group", *by, pl.col(column).alias("\0exact"))
    if by:
        pairs = exact.join(draws.select(*by, "\0draw", column), on=list(by), how="left", nulls_equal=True)
    else:
        pairs = exact.join(draws.select("\0draw", column), how="cross")
    is_shown = pl.col("\0draw").is_not_null()
    dtype = truth.schema[column]
    number = dtype.is_numeric() or dtype.is_temporal()
    numbers = isinstance(dtype, pl.List) and dtype.inner.is_numeric() and not ranked
    if number:
        one, other = (_number(name, dtype) for name in ("\0exact", column))
        squared, value = (other - one) ** 2, other
    elif numbers:
        one, other = (pl.col(name).cast(pl.List(pl.Float64)) for name in ("\0exact", column))
        squared = ((other - one).list.eval(pl.element() ** 2)).list.mean()
        value = one = pl.lit(None, pl.Float64)
    else:
        squared = value = one = pl.lit(None, pl.Float64)
    right = pl.lit(None, pl.Float64)
    if not number and not numbers:
        right = pl.col(column).eq_missing(pl.col("\0exact")).cast(pl.Float64)
    return (
        pairs.with_columns(
            pl.when(is_shown).then(squared).alias("\0squared"), value.alias("\0value"), one.alias("\0one"),
            pl.when(is_shown).then(right).alias("\0right"),
        )
        .group_by("\0group", maintain_order=True)
        .agg(
            (1 - is_shown.sum() / repeats).alias("missing"),
            pl.lit(column).alias("query").first(),
            pl.col("\0one").first().alias("exact"),
            pl.col("\0value").mean().alias("mean"),
            (pl.col("\0value").mean() - pl.col("\0one").first()).alias("bias"),
            pl.when(pl.col("\0value").count() > 0).then(pl.col("\0value").std(ddof=0)).alias("deviation"),
            pl.col("\0squared").mean().sqrt().alias("rmse"),
            pl.col("\0right").mean().alias("right"),
        )
    )  # fmt: skip


def _number(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a column as numbers; dates and times in seconds."""
    if not dtype.is_temporal():
        return pl.col(name).cast(pl.Float64)
    return pl.col(name).to_physical().cast(pl.Float64) * float(values_of(dtype).tick)


def _summary(table: pl.DataFrame) -> pl.DataFrame:
    """Return the root mean squares over all groups, each as often as it is shown."""
    weight = 1 - pl.col("missing")

    def mean(squared: pl.Expr) -> pl.Expr:
        # What is null nowhere counts.
        known = squared.is_not_null()
        return (squared * weight).sum() / pl.when(known).then(weight).sum()

    return table.group_by("query", maintain_order=True).agg(
        *(_known(mean(pl.col(name) ** 2).sqrt()).alias(name) for name in ("rmse", "bias", "deviation")),
        _known(mean(pl.col("right"))).alias("right"),
    )


def _known(value: pl.Expr) -> pl.Expr:
    """Return a number, null where there was nothing to make it of."""
    return pl.when(value.is_finite()).then(value)
