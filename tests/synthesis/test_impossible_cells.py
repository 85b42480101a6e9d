"""Combinations that no record has: none is ever drawn, whatever the constraints, the budget and the data are."""

from __future__ import annotations

import datetime
import itertools

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.domain.domain import possible_cells
from dpfast.errors import ColumnError, ParameterError
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.support import find_support
from dpfast.testing import SeededRandom

SIZES = (4, 3, 5, 2, 6)
NAMES = [f"x{place}" for place in range(len(SIZES))]
DOMAIN = dpf.Domain(dict(zip(NAMES, SIZES, strict=True)))


def ledger():
    return dpf.Ledger(epsilon=100, delta=1e-6)


def some_table(generator):
    """Return a table of combinations of a few columns."""
    held = sorted(generator.choice(len(SIZES), generator.integers(1, 4), replace=False).tolist())
    shape = [SIZES[place] for place in held]
    share = generator.choice([0.1, 0.5, 0.8])
    cells = np.flatnonzero(generator.random(int(np.prod(shape))) < share)
    codes = np.unravel_index(cells, shape)
    return pl.DataFrame({NAMES[place]: code.astype(np.int64) for place, code in zip(held, codes, strict=True)})


def all_cells():
    return pl.DataFrame(list(itertools.product(*map(range, SIZES))), schema=NAMES, orient="row")


def left_of(frame, tables):
    for table in tables:
        if table.height:
            frame = frame.join(table, on=table.columns, how="anti")
    return frame


def some_constraints(generator):
    """Return tables of one row at least: one without rows is refused."""
    tables = [some_table(generator) for _ in range(generator.integers(1, 4))]
    return [table for table in tables if table.height] or [pl.DataFrame({"x0": [0], "x1": [0]})]


@pytest.mark.parametrize("trial", range(60))
def test_what_is_left_of_each_clique_is_what_all_cells_leave(trial):
    generator = np.random.default_rng(trial)
    tables = some_constraints(generator)
    possible = possible_cells(DOMAIN, tables, 1e6, "")
    if not possible:
        return
    tree = JunctionTree.holding(SIZES, [one.attributes for one in possible])
    left = left_of(all_cells(), tables)
    for clique, support in zip(tree.cliques, find_support(tree, possible), strict=True):
        shape = [SIZES[place] for place in clique]
        own = np.zeros(shape, np.bool_)
        own[tuple(left[NAMES[place]].to_numpy() for place in clique)] = True
        np.testing.assert_array_equal(own.reshape(-1), support)


@pytest.mark.parametrize("trial", range(25))
def test_no_impossible_record_is_drawn_and_marginals_agree(trial):
    """Over random constraints: few records, which are balanced, many of them, which are not, and the marginals."""
    generator = np.random.default_rng(1000 + trial)
    tables = some_constraints(generator)
    left = left_of(all_cells(), tables)
    rows = pl.DataFrame({name: generator.integers(0, size, 3000) for name, size in zip(NAMES, SIZES, strict=True)})
    given = {"epsilon": float(generator.choice([0.01, 1.0, 20.0])), "delta": 1e-9, "rounds": 4, "ledger": ledger()}
    if left.is_empty():
        with pytest.raises(ParameterError, match="impossible must be false of some record"):
            dpf.synthesize(rows, DOMAIN, impossible=tables, **given)
        assert given["ledger"].history().is_empty()
        return
    made = dpf.synthesize(rows, DOMAIN, impossible=tables, **given)
    for number in (1, 500, 300_000):
        drawn = DOMAIN.records(made.estimate, number, random=SeededRandom(trial))
        assert drawn.height == number
        assert left_of(drawn, tables).height == number
    whole = made.estimate.total
    for columns in itertools.combinations(NAMES, 2):
        marginal = made.estimate.marginal(columns)
        assert marginal.sum() == pytest.approx(whole, rel=1e-9)
        possible = np.zeros(marginal.shape, np.bool_)
        possible[tuple(left[name].to_numpy() for name in columns)] = True
        assert not marginal[~possible].any()
        np.testing.assert_allclose(marginal.sum(axis=1), made.estimate.marginal(columns[:1]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("trial", range(5))
def test_rows_in_impossible_cells_are_left_out(trial, tmp_path):
    """Deviations of the noise are below 0.1 records: what is counted is seen."""
    generator = np.random.default_rng(trial)
    rows = pl.DataFrame({name: generator.integers(0, size, 3000) for name, size in zip(NAMES, SIZES, strict=True)})
    rows = rows.with_columns(x4=pl.when(pl.col("x4") == 5).then(None).otherwise("x4"))
    alike = pl.DataFrame({"x1": [0, 1, 2], "x0": [0, 1, 2]})
    where = (dpf.column("x2") > 3) & (dpf.column("x3") == 1)
    left = left_of(rows, [alike]).filter(~((pl.col("x2") > 3) & (pl.col("x3") == 1)), pl.col("x4").is_not_null())
    rows.write_parquet(tmp_path / "rows.parquet")
    for data in (rows, tmp_path / "rows.parquet"):
        given = {"rho": 1e5, "rounds": 1, "ledger": dpf.Ledger(epsilon=1e6, delta=1e-6, accountant="zcdp")}
        made = dpf.synthesize(data, DOMAIN, [("x0", "x1")], impossible=[alike, where], **given)
        assert abs(made.estimate.total - left.height) < 2
        counts = np.zeros((4, 3))
        np.add.at(counts, (left["x0"].to_numpy(), left["x1"].to_numpy()), 1)
        np.testing.assert_allclose(made.estimate.marginal(["x0", "x1"]), counts, atol=3)


PEOPLE = dpf.Domain(
    {"age": dpf.bins("age", [0, 14, 30, 60]), "married": ["yes", "no"], "wed": [2001, 2002]}, nulls=["wed"]
)
AGE, MARRIED, WED = dpf.column("age"), dpf.column("married"), dpf.column("wed")


def flags_of(impossible, domain=PEOPLE):
    (one,) = possible_cells(domain, impossible, 1e6, "raise it")
    return one.attributes, one.flags.reshape([domain.shape[place] for place in one.attributes]).astype(int).tolist()


@pytest.mark.parametrize(
    ("impossible", "attributes", "flags"),
    [
        ((MARRIED == "yes") & (AGE < 14), (0, 1), [[0, 1], [1, 1], [1, 1]]),
        ((AGE <= 13) & (MARRIED == "yes"), (0, 1), [[0, 1], [1, 1], [1, 1]]),
        ((AGE >= 30) & (MARRIED != "yes"), (0, 1), [[1, 1], [1, 1], [1, 0]]),
        ((MARRIED == "no") & ~WED.is_null(), (1, 2), [[1, 1, 1], [0, 0, 1]]),
        ([MARRIED.is_in(["yes"]) & WED.is_null(), (MARRIED == "no") & (WED > 0)], (1, 2), [[1, 1, 0], [0, 0, 1]]),
        (pl.DataFrame({"married": ["no", "yes"], "age": [0, 30]}), (0, 1), [[1, 0], [1, 1], [0, 1]]),
        (AGE == 200, None, None),
        (AGE.between(0, 29), (0,), [0, 0, 1]),
        (pl.DataFrame({"wed": [None]}, schema={"wed": pl.Int64}), (2,), [1, 1, 0]),
    ],
)  # fmt: skip
def test_what_a_declaration_says_of_cells(impossible, attributes, flags):
    if attributes is None:
        assert possible_cells(PEOPLE, impossible, 1e6, "") == ()
        return
    assert flags_of(impossible) == (attributes, flags)


def test_parts_joined_by_or_are_said_each_of_its_own_columns():
    found = possible_cells(PEOPLE, ((AGE < 14) & (MARRIED == "yes")) | ((MARRIED == "no") & (WED == 2001)), 1e6, "")
    assert [one.attributes for one in found] == [(0, 1), (1, 2)]


DAY = datetime.date(2020, 1, 1)
ALL_KINDS = {
    "code": 3, "works": [False, True], "day": [DAY], "word": ["1", "x"], "number": [1, 2],
    "age": dpf.bins("age", [0, 20, 40]), "share": dpf.bins("share", [0.0, 0.5, 1.0]),
    "at": dpf.bins("at", [datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1), datetime.datetime(2022, 1, 1)]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("code", [1.9]), ("code", ["1"]), ("code", [True]), ("code", [2**64]), ("code", [float("nan")]), ("code", [-1]),
        ("works", [7]), ("works", [0.5]), ("works", [1]), ("works", ["true"]), ("works", [None]),
        ("day", [datetime.datetime(2020, 1, 1, 15)]), ("day", [DAY.toordinal()]), ("day", [datetime.date(2020, 1, 2)]),
        ("word", [1]), ("number", [1.5]), ("number", ["1"]), ("number", [DAY]),
        ("age", [20.7]), ("age", ["20"]), ("age", [21]), ("age", [True]), ("age", [40]),
        ("share", ["0"]), ("share", [0.49999999999999994]), ("share", [1.0]), ("share", [False]),
        ("at", [DAY]), ("at", [datetime.datetime(2021, 1, 1, 0, 0, 0, 1)]), ("at", [0]),
    ],
)  # fmt: skip
def test_a_table_forbids_no_value_but_those_that_it_has(column, values):
    """A value that is cast, 1.9 to 1, would forbid another one without a word."""
    with pytest.raises((ParameterError, ColumnError), match="impossible"):
        possible_cells(dpf.Domain(ALL_KINDS), pl.DataFrame({column: values}), 1e6, "")


@pytest.mark.parametrize(
    ("column", "values", "place"),
    [
        ("code", pl.Series([2], dtype=pl.UInt8), 2), ("code", [2.0], 2), ("works", [True], 1), ("day", [DAY], 0),
        ("word", pl.Series(["x"], dtype=pl.Categorical), 1), ("word", pl.Series(["x"], dtype=pl.Enum(["x"])), 1),
        ("number", [2.0], 1), ("age", [20], 1), ("age", [20.0], 1), ("share", [0], 0), ("share", [0.5], 1),
        ("at", pl.Series([datetime.datetime(2021, 1, 1)]).cast(pl.Datetime("ms")), 1),
    ],
)  # fmt: skip
def test_a_table_of_another_dtype_forbids_the_same_values(column, values, place):
    domain = dpf.Domain(ALL_KINDS)
    (found,) = possible_cells(domain, pl.DataFrame({column: values}), 1e6, "")
    assert np.flatnonzero(~found.flags).tolist() == [place]


def test_numbers_that_are_no_whole_ones():
    domain = dpf.Domain({"x": dpf.bins("x", [0.0, 0.5, 1.0]), "y": 2})
    assert flags_of((dpf.column("x") < 0.5) & (dpf.column("y") == 1), domain)[1] == [[1, 0], [1, 1]]
    with pytest.raises(ParameterError, match=r"cuts the bin from 0\.5 to 1\.0"):
        flags_of(dpf.column("x") <= 0.5, domain)


@pytest.mark.parametrize(
    ("impossible", "error", "words"),
    [
        (AGE < 15, ParameterError, "cuts the bin from 14 to 30"),
        (AGE == 7, ParameterError, "cuts the bin from 0 to 14"),
        (AGE != 7, ParameterError, "cuts the bin"),
        (AGE.is_in([14]), ParameterError, "cuts the bin from 14 to 30"),
        (dpf.column("none") == 1, ColumnError, "names the column 'none', which the domain lacks"),
        (MARRIED > 5, ColumnError, "married"),
        (pl.DataFrame({"married": ["perhaps"]}), ParameterError, "a value that the domain declares"),
        (pl.DataFrame({"age": [15]}), ParameterError, "left edges"),
        ((AGE < 14) | (AGE >= 14), ParameterError, "false of some record"),
        (MARRIED == "maybe", ParameterError, "no declared value of married passes married == 'maybe'"),
        ((AGE < 14) & MARRIED.is_in(["maybe"]), ParameterError, "no declared value of married passes married in"),
        (AGE > 1000, ParameterError, "no declared value of age passes age > 1000"),
        ([(AGE < 14) & (MARRIED == "yes"), AGE == 200], ParameterError, "but was age == 200; no declared value"),
        ((AGE < 14) | (MARRIED == "maybe"), ParameterError, "but was married == 'maybe'"),
        (MARRIED.is_null(), ParameterError, "no declared value of married passes married is None"),
        ((MARRIED == "yes") & (MARRIED == "no"), ParameterError, "married == 'no'; mend it, or leave it out"),
        (~MARRIED.is_in(["yes", "no"]), ParameterError, "must be true of some combination of declared values"),
        (pl.DataFrame({"married": []}, schema={"married": pl.String}), ParameterError, "a table without rows"),
        (pl.DataFrame({"married": ["no", "perhaps"], "age": [0, 0]}), ParameterError, "but was 'perhaps'"),
        ("age < 14", ParameterError, "filters of dpf.column"),
    ],
)
def test_what_is_refused_costs_nothing(impossible, error, words):
    rows, account = (
        pl.DataFrame({"age": [20], "married": ["no"], "wed": [None]}, schema_overrides={"wed": pl.Int64}),
        ledger(),
    )
    with pytest.raises(error, match=words):
        dpf.synthesize(rows, PEOPLE, impossible=impossible, epsilon=1.0, ledger=account)
    assert account.history().is_empty()


def test_cells_that_a_model_has_no_room_for_are_refused():
    domain = dpf.Domain({"a": 1000, "b": 1000, "c": 2})
    alike = pl.DataFrame({"a": range(1000), "b": range(1000)})
    with pytest.raises(ParameterError, match="raise max_megabytes"):
        dpf.synthesize(
            pl.DataFrame({"a": [1], "b": [2], "c": [0]}), domain, impossible=alike, epsilon=1.0, max_megabytes=1,
            ledger=ledger(),
        )  # fmt: skip


def test_a_workload_that_has_no_room_beside_them_is_refused():
    """Beside 100 x 100 cells and a column of 100 values no pair with that column fits into 0.09 MB."""
    domain, account = dpf.Domain(dict.fromkeys("abc", 100)), ledger()
    alike = pl.DataFrame({"a": range(100), "b": range(100)})
    rows = pl.DataFrame({"a": [1], "b": [2], "c": [0]})
    with pytest.raises(ParameterError, match="no set of the workload has room"):
        dpf.synthesize(
            rows, domain, [("a", "c")], impossible=alike, epsilon=1.0, max_megabytes=0.09, rounds=1, ledger=account
        )
    assert account.history().is_empty()


def test_values_are_grouped_with_their_like_alone():
    """Of 40 x 40 places all but a few are rare; origin and destination differ in every record."""
    generator = np.random.default_rng(3)
    origin = np.minimum(generator.geometric(0.3, 4000), 39)
    rows = pl.DataFrame({"origin": origin, "dest": (origin + generator.integers(1, 40, 4000)) % 40})
    rows = rows.with_columns(day=pl.Series(generator.integers(0, 7, 4000)))
    domain = dpf.Domain({"origin": 40, "dest": 40, "day": 7})
    alike = pl.DataFrame({"origin": range(40), "dest": range(40)})
    for neighbors in ("add_remove", "replace"):
        own = dpf.Domain({"origin": 40, "dest": 40, "day": 7}, outside="null") if neighbors == "replace" else domain
        made = dpf.synthesize(
            rows, own, impossible=alike, epsilon=0.5, delta=1e-9, neighbors=neighbors, ledger=ledger()
        )
        assert made.frame.height > 3000
        assert made.frame.filter(pl.col("origin") == pl.col("dest")).is_empty()
