"""Every way to a release ends in one, of the same columns and dtypes, however little data there is.

Nobody and one person are neighbours: a route that fails, or looks different, where the data are empty shows which of
the two it was, and delta is 1.
"""

from __future__ import annotations

import datetime
import itertools
import random
from decimal import Decimal
from typing import NamedTuple

import polars as pl
import pytest

import dpfast as dpf

DAYS = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]
MOMENTS = [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2, 3)]
FAR = [-(2**62), 0, 2**62]
TEXTS = ["a", "b", "c"]
LETTERS = {"k": (pl.String, TEXTS)}
EDGES = [0, 1, 2, 3]
#: Of bins that have other ones.
OTHER_EDGES = {
    "bins of moments": [*MOMENTS, datetime.datetime(2020, 1, 3), datetime.datetime(2020, 2, 1)],
    "bins of dates": [*DAYS, datetime.date(2020, 1, 3), datetime.date(2020, 2, 1)],
}

#: What rows are grouped by: each column's dtype and values.
ROUTES = {
    "dense integers": {"k": (pl.Int64, [1, 2, 3])},
    "sparse integers": {"k": (pl.Int64, FAR)},
    "unsigned integers": {"k": (pl.UInt64, [0, 2**63, 2**64 - 1])},
    "short strings": LETTERS,
    "long strings": {"k": (pl.String, ["a key of more than twelve bytes", "b" * 40, "c"])},
    "enum": {"k": (pl.Enum(TEXTS), TEXTS)},
    "categorical": {"k": (pl.Categorical, TEXTS)},
    "small categorical": {"k": (pl.Categorical(pl.Categories("few", physical=pl.UInt8)), TEXTS)},
    "Booleans": {"k": (pl.Boolean, [True, False])},
    "dates": {"k": (pl.Date, DAYS)},
    "moments": {"k": (pl.Datetime("us"), MOMENTS)},
    "decimals": {"k": (pl.Decimal(38, 2), [Decimal("0.25"), Decimal(-1), Decimal("1e35")])},
    "times of day": {"k": (pl.Time, [datetime.time(1), datetime.time(2)])},
    "durations": {"k": (pl.Duration("ms"), [datetime.timedelta(1), datetime.timedelta(-2)])},
    "bytes": {"k": (pl.Binary, [b"a", b"\xff\0", b"bytes of more than twelve"])},
    "wide integers": {"k": (pl.Int128, [0, 2**100])},
    "nothing but null": {"k": (pl.Null, [None])},
    "bins of floats": {"k": (pl.Float64, [0.5, 1.5, 7.0])},
    "bins of integers": {"k": (pl.Int32, [0, 1, 7])},
    "months of moments": {"k": (pl.Datetime("us"), MOMENTS)},
    "bins of decimals": {"k": (pl.Decimal(9, 2), [Decimal("0.50"), Decimal(1), Decimal(7)])},
    "bins of moments": {"k": (pl.Datetime("us"), [*MOMENTS, datetime.datetime(1950, 1, 1)])},
    "bins of dates": {"k": (pl.Date, [*DAYS, datetime.date(1950, 1, 1)])},
    "two columns": {"k": (pl.String, TEXTS), "h": (pl.Int8, [1, 2])},
    "columns that cannot be coded": {"k": (pl.Int64, FAR), "h": (pl.Int64, FAR)},
    "no column": {},
}

QUERIES = {
    "count": {"n": dpf.count()},
    "sum": {"s": dpf.sum("i", bounds=(0, 5))},
    "mean": {"m": dpf.mean("f", bounds=(0, 5))},
    "sum of decimals": {"money": dpf.sum("d", bounds=(0, Decimal("9.99")))},
    "mean of moments": {"t": dpf.mean("t", bounds=tuple(MOMENTS))},
    "quantile of moments": {"tq": dpf.quantile("t", 0.5, bounds=tuple(MOMENTS))},
    "units": {"d": dpf.units()},
    "of units": {
        "us": dpf.sum("f", unit_bounds=(0, 7)),
        "ui": dpf.sum("i", unit_bounds=(-2, 5)),
        "ud": dpf.sum("d", unit_bounds=(0, Decimal("19.99"))),
        "um": dpf.mean("f", bounds=(0, 5), per="unit"),
        "ut": dpf.mean("t", bounds=tuple(MOMENTS), per="unit"),
    },
    "some rows": {"nf": dpf.count(where=dpf.column("f") > 1), "nc": dpf.count("f", where=dpf.column("c") != "x")},
    "proportions": {
        "pf": dpf.proportion("f", above=1),
        "pj": dpf.proportion((dpf.column("f") > 1) & (dpf.column("c") == "x")),
        "pi": dpf.proportion("i", at_least=2, below=5.5),
        "pc": dpf.proportion("c", among=["x", "y"]),
    },
    "moments": {
        "v": dpf.variance("f", bounds=(0, 5)),
        "sd": dpf.std("i", bounds=(0, 5)),
        "cov": dpf.covariance("f", "i", bounds=(0, 5), other_bounds=(-1, 9)),
    },
    "distributions": {
        "hf": dpf.histogram("f", [0, 1, 5]),
        "hi": dpf.histogram("i", [-1, 2.5, 6]),
        "below": dpf.cdf("f", [0.5, 3.25, 4]),
    },
    "values": {
        "cd": dpf.count_distinct("c"),
        "cf": dpf.count_distinct("f"),
        "tk": dpf.top_k("c", 2, candidates=["x", "y", "z"]),
        "tf": dpf.top_k("c", 2),
        "ti": dpf.top_k("i", 3),
    },
    "extremes": {"low": dpf.minimum("f", bounds=(0, 5)), "high": dpf.maximum("i", bounds=(0, 5))},
    "moments of other types": {
        "dv": dpf.variance("d", bounds=(0, Decimal("9.99"))),
        "tsd": dpf.std("t", bounds=tuple(MOMENTS)),
        "dcov": dpf.covariance("d", "i", bounds=(0, 5), other_bounds=(-1, 9)),
    },
    "distributions of other types": {
        "hd": dpf.histogram("d", [0, 0.1, 5]),
        "cd_d": dpf.cdf("d", [0, 0.1, 5]),
        "ht": dpf.histogram("t", MOMENTS),
        "ct": dpf.cdf("t", MOMENTS),
    },
    "values of other types": {
        "dt": dpf.count_distinct("t"),
        "tkt": dpf.top_k("t", 1, candidates=MOMENTS),
        "pd": dpf.proportion("d", at_most=1.25),
        "pt": dpf.proportion("t", equal=MOMENTS[0]),
        "mt": dpf.maximum("t", bounds=tuple(MOMENTS)),
    },
    "quantile": {"q": dpf.quantile("f", 0.5, bounds=(0, 5))},
    "quantiles": {"qs": dpf.quantile("i", [0.25, 0.5, 0.75], bounds=(0, 5))},
    "mode": {"o": dpf.mode("c", candidates=["x", "y", "z"])},
    "mode with null": {"on": dpf.mode("i", candidates=[None, 1, 2**40])},
}
DRAWN = {name: query for queries in ("mean", "quantiles", "mode") for name, query in QUERIES[queries].items()}
QUERIES["all"] = {name: query for queries in QUERIES.values() for name, query in queries.items()}

QUERIES["drawn"] = DRAWN
#: Not among all: previews of made-up rows need bounds.
QUERIES["chosen bounds"] = {
    "cm": dpf.mean("f", bounds="auto"),
    "cs": dpf.sum("i", bounds="auto"),
    "cq": dpf.quantile("d", 0.5, bounds="auto"),
    "ct_sd": dpf.std("t", bounds="auto"),
}
#: All queries in three parts, with neighbours in the table above apart.
THIRDS = {f"third {place}": dict(list(QUERIES["all"].items())[place::3]) for place in range(3)}
ASKED = QUERIES | THIRDS
#: What no budget of rho alone pays for, and what may be null.
SELECTED, NULLABLE = {"tf", "ti"}, {"on"}

UNITS = {"rows": {}, "units": {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 3}}
SOURCES = ["DataFrame", "LazyFrame", "Parquet", "IPC", "CSV"]
NEIGHBORS = ["add_remove", "replace"]
BUDGETS = ["epsilon", "rho"]
#: How many rows there are of each kind of data; "dropped" are rows of no unit.
DATA = {"ordinary": 60, "empty": 0, "one row": 1, "all null": 6, "dropped": 6}


class Cell(NamedTuple):
    """One cell of the matrix."""

    route: str
    data: str
    query: str
    given: bool
    unit: str
    source: str
    neighbors: str
    budget: str
    filtered: bool = False


def frame_of(route, data):
    """Return the rows of one kind of data."""
    rows = DATA[data]

    def column(dtype, values, *, null=data == "all null"):
        return pl.Series([None if null else values[i % len(values)] for i in range(rows)], dtype=dtype)

    return pl.DataFrame(
        {
            **{name: column(dtype, values) for name, (dtype, values) in ROUTES[route].items()},
            "u": column(pl.Int64, range(60), null=data in ("all null", "dropped")),
            "i": column(pl.Int64, range(7)),
            "f": column(pl.Float64, [0.5, float("nan"), 3.25, float("inf")]),
            "d": column(pl.Decimal(9, 2), [Decimal("1.25"), Decimal("9999999.99")]),
            "t": column(pl.Datetime("us"), [*MOMENTS, datetime.datetime(9999, 12, 31)]),
            "c": column(pl.String, ["x", "y", "other"]),
        }
    )


def by_of(route):
    names = list(ROUTES[route])
    if route.startswith("months"):
        return dpf.calendar("k", "month")
    return dpf.bins("k", OTHER_EDGES.get(route, EDGES)) if route.startswith("bins") else (names or None)


def keys_of(route):
    """Return public keys, one of which is not in the data; none where there is no column."""
    if route.startswith("bins"):
        edges = OTHER_EDGES.get(route, EDGES)
        return pl.DataFrame({"k": [edges[0], edges[2], None]})
    if route.startswith("months"):
        return pl.DataFrame({"k_month": [1, 2, None]})
    columns = ROUTES[route].items()
    keys = pl.DataFrame({name: pl.Series(values[:2], dtype=dtype) for name, (dtype, values) in columns})
    return keys if columns else None


def known_height(cell):
    """Return how many rows a release has; None where that is drawn."""
    if not ROUTES[cell.route]:
        return 1
    if cell.given:
        return keys_of(cell.route).height
    return 0 if cell.data in ("empty", "dropped") else None


def source_of(frame, source, folder):
    """Return a frame as what `dpf.plan` takes, and what else it needs to be told."""
    if source == "DataFrame":
        return frame, {}
    if source == "LazyFrame":
        return frame.lazy(), {}
    path = folder / f"data.{source.lower()}"
    if source == "Parquet":
        frame.write_parquet(path)
    elif source == "IPC":
        frame.write_ipc(path)
    else:
        frame.write_csv(path)
        return path, {"schema": dict(frame.schema)}
    return path, {}


def has_source(route, source):
    """Say whether such a file can hold such keys."""
    kinds = {type(dtype) if isinstance(dtype, pl.DataType) else dtype for dtype, _ in ROUTES[route].values()}
    not_in_csv = {
        pl.Decimal,
        pl.Time,
        pl.Duration,
        pl.Binary,
        pl.Enum,
        pl.Categorical,
        pl.Null,
        pl.Datetime,
        pl.Date,
        pl.Boolean,
    }
    return not (source == "CSV" and kinds & not_in_csv)


def released(cell, folder):
    """Return a release on a new ledger, after everything that can be read of it has been read."""
    route, data, query, given, unit, source, neighbors, budget, filtered = cell
    rows, told = source_of(frame_of(route, data), source, folder)
    keys = keys_of(route) if given and ROUTES[route] else None
    needs_delta = (keys is None and ROUTES[route]) or SELECTED & ASKED[query].keys()
    delta = 1e-6 if budget == "epsilon" or needs_delta else 0.0
    arguments = {"rho": 0.5} if budget == "rho" else {"epsilon": 1.0}
    ledger = dpf.Ledger(epsilon=50.0, delta=0.1, accountant="zcdp" if budget == "rho" else "basic")
    plan = dpf.plan(
        rows, by_of(route), keys=keys, delta=delta, neighbors=neighbors,
        where=(dpf.column("f") > 1) | dpf.column("c").is_null() if filtered else None,
        **{"privacy_unit": "row", **arguments, **told, **UNITS[unit], **ASKED[query]},
    )  # fmt: skip
    release = plan.run(ledger)
    assert plan.run(ledger) is release
    assert release.lazy().collect().equals(release.frame)
    assert repr(release)
    assert release.explain()
    return release


def check(cells, folder):
    """Run every cell of a matrix; say all that fail, by what they share."""
    schemas, failed = {}, []
    for cell in cells:
        reference = cell.route, cell.query, cell.given
        try:
            if reference not in schemas:
                schemas[reference] = released(cell._replace(data="ordinary", source="DataFrame"), folder).frame.schema
            frame = released(cell, folder).frame
        except Exception as error:  # the test is that there is none
            failed.append((cell, f"{type(error).__name__}: {error}"))
            continue
        if frame.schema != schemas[reference]:
            failed.append((cell, f"{frame.schema} and not {schemas[reference]}"))
        known = known_height(cell)
        if known is not None and frame.height != known:
            failed.append((cell, f"{frame.height} rows and not {known}"))
        nulls = (
            frame.drop("k_month" if cell.route.startswith("months") else ROUTES[cell.route])
            .null_count()
            .sum_horizontal()
            .sum()
        )
        if nulls and not NULLABLE & ASKED[cell.query].keys():
            failed.append((cell, "a null"))
    assert not failed, "\n".join([f"{len(failed)} cells failed, the first of them:", *map(str, failed[:20])])


#: Each unit with each kind of data; rows of no unit are rows like any other where the row is the unit.
UNITS_AND_DATA = [
    (unit, data) for unit in UNITS for data in DATA if data != "ordinary" and (unit, data) != ("rows", "dropped")
]


#: What is asked of each kind of keys in turn; what None stands for is drawn by chance.
IN_TURN = ["count", "mode", *THIRDS, None]
#: Keys given and selected, with units and data.
KEYS_AND_DATA = list(itertools.product([True, False], UNITS_AND_DATA))


def in_turn(route, place, first):
    """Return what is asked of keys of a kind at a place of the list above."""
    return IN_TURN[(list(ROUTES).index(route) + place + first) % len(IN_TURN)]


@pytest.mark.parametrize("route", ROUTES)
def test_every_key_on_next_to_no_data(route, seed, tmp_path):
    """All kinds of keys, given and selected, units and data, each with a count, one query or a third of all.

    The rule: every query meets every kind of keys, and every kind of data with both units and both sorts of keys, but
    not all of them at once (the next test says so), for what keys are has no say in what is asked of their rows.
    Source, neighbours and budget are drawn: they meet in the test after it, and everything in the long one.
    """
    choose = random.Random(seed)
    turns = list(itertools.product([source for source in SOURCES if has_source(route, source)], NEIGHBORS, BUDGETS))
    first = choose.randrange(len(IN_TURN))
    cells = []
    for place, (given, (unit, data)) in enumerate(KEYS_AND_DATA):
        if ROUTES[route] or given:
            query = in_turn(route, place, first) or choose.choice(list(QUERIES))
            cells.append(Cell(route, data, query, given, unit, *choose.choice(turns), choose.random() < 0.5))
    check(cells, tmp_path)


def test_every_query_meets_every_key_and_every_kind_of_data():
    """Whichever comes first."""
    for first in range(len(IN_TURN)):
        met = [
            (route, place, in_turn(route, place, first))
            for route in ROUTES
            for place, (given, _) in enumerate(KEYS_AND_DATA)
            if ROUTES[route] or given
        ]
        assert {(route, query) for route, _, query in met} == set(itertools.product(ROUTES, IN_TURN))
        places = range(len(KEYS_AND_DATA))
        assert {(place, query) for _, place, query in met} == set(itertools.product(places, IN_TURN))


@pytest.mark.parametrize("given", [True, False])
def test_every_source_neighbour_and_budget_on_next_to_no_data(given, tmp_path):
    cells = [
        Cell("short strings", data, "drawn", given, "units", source, neighbors, budget)
        for data, source, neighbors, budget in itertools.product(["empty", "dropped"], SOURCES, NEIGHBORS, BUDGETS)
    ]
    check(cells, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("route", ROUTES)
def test_the_whole_matrix(route, tmp_path):
    """Every cell of the product: some 60,000 releases."""
    cells = [
        Cell(route, data, query, given, unit, source, neighbors, budget, filtered)
        for query, given, (unit, data), source, neighbors, budget, filtered in itertools.product(
            QUERIES, [True, False], UNITS_AND_DATA, SOURCES, NEIGHBORS, BUDGETS, [True, False]
        )
        if has_source(route, source) and (ROUTES[route] or given)
    ]
    check(cells, tmp_path)
