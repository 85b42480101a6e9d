"""Exact groups in Spark are those of dpfast itself, bit for bit, and those of the template in DuckDB where a salt keeps
rows; whatever the setting of ANSI, the collation or the partitions.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import replace

import duckdb
import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate
from dpfast.aggregation.protocols import GroupQuery
from dpfast.integrations.spark.aggregating import exact_groups
from dpfast.integrations.sql.dialects import DUCKDB
from dpfast.integrations.sql.template import write
from dpfast.queries import Measure, matches_measure, product_measure

DAYS = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31), None]
MOMENTS = [datetime.datetime(*parts) for parts in ((1970, 1, 1, 0, 0, 0, 1), (2024, 2, 29), (1, 1, 1), (9999, 12, 31))]
MOMENTS += [None]
WORDS = ["", " ", "a", "A", "a ", "\u00e4", "a\u0308", "\0", "\ufffd", "it's `quoted`", "x" * 300, None]
TINY = 2.0**-1074
FLOATS = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, math.nan, math.inf, -math.inf, 1e308, -1e308, TINY, -TINY, 7.25, None]
WHOLE = [0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 3, -3, 5, None]


def adversarial(rows=600, seed=7):
    """Return rows of everything that engines differ in."""
    draw = np.random.default_rng(seed)

    def some(values, dtype):
        return pl.Series([values[i] for i in draw.integers(0, len(values), rows)], dtype=dtype)

    return pl.DataFrame(
        {
            "word": some(WORDS, pl.String),
            "day": some(DAYS, pl.Date),
            "flag": some([True, False, None], pl.Boolean),
            "small": some([-128, 127, 0, None], pl.Int8),
            "Odd `name`.x": some(FLOATS, pl.Float64),
            "f": some([0.5, 1.5, -2.5, math.nan, math.inf, None], pl.Float32),
            "n": some(WHOLE, pl.Int64),
            "N": some([1, 2, None], pl.Int32),
            "who": some([*WORDS, *(f"u{number}" for number in range(20))], pl.String),
            "moment": some(
                MOMENTS,
                pl.Datetime("us", "UTC"),
            ),
        }
    )


FRAME = adversarial()
MEASURES = [
    Measure("rows"),
    Measure("values", "Odd `name`.x"),
    Measure("values", "n"),
    Measure("sum", "Odd `name`.x", -1, -5, 9, 2),
    Measure("sum", "Odd `name`.x", 3, 0, 4),
    Measure("sum", "f", -3, -20, 20),
    Measure("sum", "n", 0, -4, 2**23, 7),
    Measure("sum", "n", 2, -4, 2**23),
    Measure("sum", "N", -4, 0, 40),
    Measure("sum", "flag", 0, 0, 1),
    Measure("units"),
    Measure("sum", "f", -3, -20, 20, given=("n",)),
    matches_measure(dpf.proportion("n", above=2).condition),
    matches_measure(dpf.proportion("f", below=0.5).condition),
    matches_measure(dpf.proportion("word", among=["a", "\u00e4", "", "\0"]).condition),
    matches_measure((dpf.column("Odd `name`.x") > 0.25) | (dpf.column("N") == 1) & ~dpf.column("word").is_null()),
    Measure("passes", condition=(dpf.column("n") > 2) | dpf.column("word").is_null()),
    product_measure(Measure("sum", "f", -20, -(2**22), 2**22, 3), Measure("sum", "n", 0, -4, 2**23, 7)),
]


FAR = 2**47
UNIT_MEASURES = [
    Measure("unit_sum", "Odd `name`.x", -1, -5, 90, factors=(Measure("addend", "Odd `name`.x", -12, -FAR, FAR),)),
    Measure("unit_sum", "n", 0, -4, 2**23, factors=(Measure("addend", "n", 0, -FAR, FAR),)),
    Measure("unit_sum", "n", 40, -(2**23), 2**23, factors=(Measure("addend", "n", 29, -FAR, FAR),)),
    Measure("unit_mean", "f", -3, -20, 20, 3, factors=(Measure("sum", "f", -3, -20, 20, 3),)),
    Measure("unit_mean", "N", -4, 0, 40, 20, factors=(Measure("sum", "N", -4, 0, 40, 20),)),
    Measure("unit_values", "f"),
    Measure("units"),
]


def in_spark(session, frame, slices=3):
    made = session.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))
    return made.repartition(slices) if slices else made


@pytest.fixture(scope="module")
def rows(spark):
    return in_spark(spark.session, FRAME).cache()


def found(frame, query, public=None):
    """Return what Spark adds up, sorted by keys."""
    table = exact_groups(frame, query, public).toArrow()
    return sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True), key=repr)


def of_dpfast(grouping, measures=MEASURES, frame=FRAME):
    """Return the same of dpfast's own aggregation, with keys as the template has them."""
    exact = aggregate(frame, grouping, measures, lambda count: np.zeros(count, np.uint64))
    keys = []
    for entry, series in zip(grouping.by, exact.keys.get_columns(), strict=True):
        if isinstance(entry, dpf.queries.Bins):
            keys.append([None if label is None else entry.labels.index(label) for label in series])
        elif series.dtype == pl.String:
            keys.append([None if value is None else value.encode() for value in series])
        else:
            keys.append(series.to_physical().cast(pl.Int64).to_list())
    units = exact.measures[0] if exact.units is None else exact.units
    return sorted(zip(*keys, units.tolist(), *(measure.tolist() for measure in exact.measures), strict=True), key=repr)


BYS = {
    "nothing": (),
    "words": ("word",),
    "days and flags": ("day", "flag"),
    "bins": (dpf.bins("Odd `name`.x", [-1.5, 0, 0.5, 7.25, 1e308]), "small"),
    "names that differ in case": ("n", "N"),
    "moments": ("moment",),
    "parts of dates": (dpf.calendar("day", "week"), dpf.calendar("moment", "year")),
}
FILTERS = [
    dpf.column("word").is_in(["a", "A", "\0"]) | (dpf.column("Odd `name`.x") > 0.5),
    ~(dpf.column("n") >= 3) & (dpf.column("N") == 1),
    (dpf.column("day") < "1970-01-01") | dpf.column("moment").is_null() | dpf.column("flag"),
    (dpf.column("f") != 0.5) & ~(dpf.column("f") < math.inf),
]


@pytest.mark.parametrize(
    ("by", "ansi"),
    [*((by, "true") for by in BYS.values()), (BYS["bins"], "false")],
    ids=[*BYS, "bins without ANSI"],
)
def test_without_a_unit_they_are_those_of_dpfast(rows, setting, by, ansi):
    setting("spark.sql.ansi.enabled", ansi)
    query = GroupQuery(by, tuple(MEASURES))
    assert found(rows, query) == of_dpfast(Grouping(by))


@pytest.mark.parametrize("by", [("word",), (), ("day", "flag")], ids=str)
def test_what_units_contribute_is_of_all_their_rows(rows, by):
    """Beside a sum of few rows; all groups are kept, so that all engines keep the same."""
    query = GroupQuery(by, (*UNIT_MEASURES, Measure("values", "n")), "who", 10**6, 1)
    wanted = of_dpfast(Grouping(by, None, "who", 10**6, 1), UNIT_MEASURES)
    assert [row[:-1] for row in found(rows, query)] == wanted
    alone = GroupQuery(by, tuple(UNIT_MEASURES), "who", 10**6, 2**40)
    assert found(rows, alone) == wanted


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_the_same_rows_pass_a_filter(rows, where):
    assert found(rows, GroupQuery(("n", "N"), tuple(MEASURES), where=where)) == of_dpfast(
        Grouping(("n", "N"), where=where)
    )


def test_public_keys_are_all_there_and_no_others(rows):
    keys = pl.DataFrame(
        {"word": ["a", "none", None, "\0", ""], "small": [0, 1, None, 0, 127]}, schema_overrides={"small": pl.Int8}
    )
    public = keys.rename({"word": "key0", "small": "key1"})
    query = GroupQuery(("word", "small"), tuple(MEASURES))
    assert found(rows, query, public) == of_dpfast(Grouping(("word", "small"), keys))


def test_an_empty_frame(session):
    empty = in_spark(session, FRAME.clear(), 0)
    assert found(empty, GroupQuery(("word",), tuple(MEASURES))) == []
    assert found(empty, GroupQuery((), tuple(MEASURES))) == [(0,) * (1 + len(MEASURES))]
    unit = {"unit": "who", "max_groups": 2, "max_rows_per_group": 3, "salt": bytes(32)}
    assert found(empty, GroupQuery((), tuple(MEASURES), **unit)) == [(0,) * (1 + len(MEASURES))]
    assert found(empty, GroupQuery(("word",), tuple(MEASURES), **unit)) == []


PUBLIC = pl.DataFrame({"key0": ["a", "none", None, "A"]})


@pytest.mark.parametrize(
    ("bounds", "public"),
    [((1, 1), None), ((2, 3), PUBLIC), ((100, 1), None), ((3, 10**6), PUBLIC), ((2**40, 2**40), None)],
    ids=str,
)
def test_with_a_unit_they_are_those_of_the_template_in_duckdb(rows, bounds, public):
    """One salt keeps the same rows of every unit on both engines."""
    query = GroupQuery(("word",), tuple(MEASURES), "who", *bounds, public, bytes(range(32)))
    # DuckDB takes names for equal that differ in case.
    frame = FRAME.rename({"N": "other"})
    names = {name: name for name in FRAME.columns} | {"N": "other"}
    measures = tuple(each.renamed(names) for each in MEASURES)
    with duckdb.connect() as connection:
        connection.register("frame", frame.to_arrow())
        statement = write(DUCKDB, "frame", frame.schema, replace(query, measures=measures))
        table = connection.execute(statement.sql, statement.parameters).fetchall()
    theirs = [(None if row[0] is None else row[0].encode(), *row[1:]) for row in table]
    if public is not None:
        held = {row[0] for row in theirs}
        plain = [None if key is None else key.encode() for key in public["key0"]]
        theirs += [(key, *(0,) * (1 + len(MEASURES))) for key in plain if key not in held]
    assert found(rows, query, public) == sorted(theirs, key=repr)
    if bounds == (2**40, 2**40) and public is None:
        assert found(rows, query) == of_dpfast(Grouping(("word",), None, "who", *bounds))


def test_collations_merge_neither_keys_nor_units(rows, session):
    plain = rows.toDF(*FRAME.rename({"N": "other"}).columns)
    collated = plain.selectExpr("collate(word, 'UTF8_LCASE') word", "collate(who, 'UNICODE_CI_RTRIM') who", "n")
    measures = (Measure("rows"), Measure("sum", "n", 0, -4, 8))
    plain = FRAME.select("word", "who", "n")
    assert found(collated, GroupQuery(("word",), measures)) == of_dpfast(Grouping(("word",)), measures, plain)
    query = GroupQuery((), measures, "who", 1, 1, None, bytes(32))
    assert found(collated, query)[0][0] == FRAME["who"].drop_nulls().n_unique()


def test_strings_that_are_no_utf8_are_keys_nevertheless(session):
    frame = session.sql("SELECT CAST(b AS STRING) word FROM VALUES (X'ff61'), (X'fe61'), (X'61') AS t(b)")
    assert found(frame, GroupQuery(("word",), (Measure("rows"),))) == sorted(
        [(b"a", 1, 1), ("\ufffda".encode(), 2, 2)], key=repr
    )


@pytest.mark.parametrize("measures", [MEASURES, MEASURES[:1]], ids=["sums", "counts"])
def test_rows_are_dealt_out_by_unit_once(session, rows, setting, measures):
    """All that is counted within a unit shares one shuffle, and a place and a number share one window."""
    setting("spark.sql.adaptive.enabled", "false")
    for asked, parts in (("3", 3), ("1000", 64)):
        setting("spark.sql.shuffle.partitions", asked)
        query = GroupQuery(("word",), tuple(measures), "who", 2, 3, None, bytes(32))
        explained = exact_groups(rows, query, None)._jdf.queryExecution().executedPlan().toString()
        above = explained.split("InMemoryTableScan")[0]
        assert above.count("Exchange ") == 2
        assert above.count("REPARTITION_BY_NUM") == 1
        assert f", {parts}), REPARTITION_BY_NUM" in above
        assert above.count("+- Window ") == (4 if len(measures) > 1 else 2)
        assert above.count("Sort [") == (2 if len(measures) > 1 else 1)


def test_groups_never_pass_the_driver(rows, setting):
    """No side of a join that holds data is broadcast, which the driver would collect."""
    setting("spark.sql.autoBroadcastJoinThreshold", str(2**40))
    setting("spark.sql.adaptive.autoBroadcastJoinThreshold", str(2**40))
    for public, by in ((PUBLIC, ("word",)), (None, ("word",)), (None, ())):
        query = GroupQuery(by, tuple(MEASURES), "who", 2, 3, public, bytes(range(32)))
        plan = exact_groups(rows, query, public)._jdf.queryExecution().executedPlan().toString()
        broadcast = plan.split("BroadcastExchange")[1:]
        assert len(broadcast) == (public is not None)
        for branch in broadcast:
            assert "InMemoryTableScan" not in branch
