"""One-bit means, the oracle of local randomizers with its budgets, statistical queries, and heavy hitters."""

from __future__ import annotations

import math
import os
import pickle
from decimal import Decimal, getcontext

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import BudgetExceededError, ColumnError, LedgerError, ParameterError
from dpfast.kernels.local.hashing import PRIME
from dpfast.kernels.local.means import one_bit_reports
from dpfast.testing import SeededRandom

getcontext().prec = 80
EPSILONS = ["1e-18", "0.001", "1", "3", "43", "44.3", "44.4", "45", "1000000"]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_ends_of_one_bit_reports_are_private(epsilon):
    """Soundness rule 10: the ratio of the two ends is at most e, and nearly reaches it."""
    lie = dpf.BoundedMean((0, 1), Decimal(epsilon)).lie
    assert 1 <= lie < 2**63
    e = Decimal(epsilon).exp()
    assert Decimal(2**64 - lie) / lie <= e
    if Decimal("0.001") <= Decimal(epsilon) < 20:
        assert Decimal(2**64 - lie) / lie > e * (1 - Decimal(2) ** -30)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_number_leads_past_the_ends(epsilon):
    """Words next to both ends, for numbers of every kind: below t always True, from 1 - t on always False."""
    lie = dpf.BoundedMean((-3, 7), Decimal(epsilon)).lie
    numbers = [
        -3,
        7,
        -3.0000001,
        7.1,
        np.inf,
        -np.inf,
        np.nan,
        0,
        1e300,
        -1e300,
        np.nextafter(7, 0),
        np.nextafter(-3, 0),
    ]
    for word, wanted in ((lie - 1, 1), (0, 1), (2**64 - lie, 0), (2**64 - 1, 0)):
        values = np.array(numbers)
        values.setflags(write=False)
        released = np.full(values.size, 7, np.uint8)
        words = np.full(values.size, word, np.uint64)
        one_bit_reports(words, values, np.float64(-3), np.float64(7), np.uint64(lie), released)
        assert (released == wanted).all()


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 50.0])
def test_means(epsilon):
    """Of 10**5 numbers each, within 6 standard errors: fails once in 10**8 runs."""
    generator = np.random.default_rng(3)
    for values in (generator.uniform(-5, 15, 100_000), np.full(100_000, -5.0), generator.integers(-5, 16, 100_000)):
        oracle = dpf.BoundedMean((-5, 15), epsilon)
        frame = oracle.estimate(oracle.randomize(values, random=SeededRandom(2)))
        assert abs(frame["mean"][0] - values.mean()) <= 6 * frame["standard_error"][0] + 1e-9
        assert -5 <= frame["low"][0] <= frame["high"][0] <= 15


def test_numbers_outside_are_clamped_and_nulls_are_in_the_middle():
    oracle = dpf.BoundedMean((0, 10), 60.0)
    reports = oracle.randomize(pl.Series("x", [-5.0, 50.0] * 2000), random=SeededRandom(1))
    assert reports.to_list() == [False, True] * 2000
    for missing in (pl.Series("x", [None] * 4000, dtype=pl.Float64), pl.Series("x", [np.nan] * 4000)):
        assert 0.45 < oracle.randomize(missing, random=SeededRandom(1)).mean() < 0.55


@pytest.mark.parametrize(
    "values",
    [
        pl.Series("x", [0, 1, None]),
        pa.array([0.0, None, 1.0]),
        pa.chunked_array([[0], [1, 1]]),
        pd.Series([0.0, 1.0], index=[5, 3]),
        np.zeros((3, 2)),
        [0, 1],
        pl.Series("x", [], dtype=pl.Int64),
        0.5,
    ],
    ids=lambda values: type(values).__name__,
)
def test_means_of_every_kind_of_column(values):
    oracle = dpf.BoundedMean((0, 1), 60.0)
    reports = oracle.randomize(values, random=SeededRandom(1))
    if isinstance(values, float):
        assert isinstance(reports, bool)
    elif not isinstance(values, (list, pa.Array)):
        assert type(reports) is type(values)
    assert oracle.estimate(reports).height == 1
    one = oracle.randomize(values, random=SeededRandom(1), threads=2)
    assert np.array_equal(np.asarray(one), np.asarray(reports))


@pytest.mark.parametrize("bounds", [(1, 1), (2, 1), (0, math.inf), (0,), "01", (0, "1"), None])
def test_bounds_are_checked(bounds):
    with pytest.raises(ParameterError, match="bounds"):
        dpf.BoundedMean(bounds, 1.0)


# The oracle of local randomizers.


def test_budgets_of_each_row_add_up_exactly():
    """Row 12-1: sum of the epsilons of a row's randomizers is at most epsilon, ten times 0.1 is 1."""
    people = dpf.LocalOracle(list(range(5)), 1.0)
    tenth = dpf.HadamardResponse(5, 0.1)
    for _ in range(10):
        people.ask(tenth, rows=[1, 3])
    assert people.spent.to_list() == [0, 1.0, 0, 1.0, 0]
    with pytest.raises(BudgetExceededError, match="1e-18 more"):
        people.ask(dpf.HadamardResponse(5, 1e-18), rows=[0, 3])
    assert people.spent.to_list() == [0, 1.0, 0, 1.0, 0]
    people.ask(dpf.BoundedMean((0, 4), 1.0), rows=np.array([4, 0, 2]))
    with pytest.raises(BudgetExceededError, match="of 5 of these rows"):
        people.ask(tenth)


def test_a_ledger_that_counts_calls_and_not_epsilons_is_caught():
    """The mechanism that lets every row answer a fixed number of times would take this sum."""
    people = dpf.LocalOracle([1], 1.0)
    people.ask(dpf.HadamardResponse(5, 0.9))
    with pytest.raises(BudgetExceededError):
        people.ask(dpf.HadamardResponse(5, 0.2))


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", "c"],
        pl.Series("x", ["a", "b", "c"]),
        pa.array(["a", "b", "c"]),
        pa.chunked_array([["a"], ["b", "c"]]),
        pd.Series(["a", "b", "c"], index=[9, 8, 7]),
        np.array(["a", "b", "c"]),
    ],
    ids=lambda values: type(values).__name__,
)
def test_rows_of_every_kind_are_asked(values):
    people = dpf.LocalOracle(values, 200.0)
    oracle = dpf.SubsetSelection(["a", "b", "c"], 60.0)
    frame = oracle.estimate(people.ask(oracle, rows=[2, 0], random=SeededRandom(1)))
    assert frame["frequency"].round(6).abs().to_list() == [0.5, 0.0, 0.5]
    assert oracle.estimate(people.ask(oracle))["frequency"].is_between(0.3, 0.4).all()


def test_many_threads_spend_no_more_than_there_is():
    """Soundness rule 11: eight threads ask until they are refused; every row pays 100 calls at most."""
    from concurrent.futures import ThreadPoolExecutor

    people, oracle = dpf.LocalOracle(list(range(20)), 1.0), dpf.HadamardResponse(20, 0.01)

    def ask(_):
        try:
            people.ask(oracle)
        except BudgetExceededError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(160))) == 100


def test_an_oracle_is_neither_copied_nor_shown():
    for one in (dpf.LocalOracle(["secret"], 1.0), dpf.LocalStatisticalQueries(["secret"], 1.0, queries=1)):
        assert "secret" not in repr(one)
        with pytest.raises(LedgerError):
            pickle.dumps(one)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_nothing_is_asked_after_a_fork():
    people = dpf.LocalOracle([1, 2], 1.0)
    queries = dpf.LocalStatisticalQueries([1, 2], 1.0, queries=1)
    child = os.fork()
    if child == 0:
        refused = 0
        for ask in (lambda: people.ask(dpf.HadamardResponse(5, 0.1)), lambda: queries.answer(lambda x: [0.5] * len(x))):
            try:
                ask()
            except LedgerError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    people.ask(dpf.HadamardResponse(5, 0.1))


@pytest.mark.parametrize("values", [5, "rows", {"a": 1}, np.zeros((2, 2)), pl.DataFrame({"a": [1]}), None])
def test_what_is_no_column_is_refused(values):
    with pytest.raises(ColumnError, match="values must be a column"):
        dpf.LocalOracle(values, 1.0)


# Statistical queries.


def test_tolerances_and_rows_belong_together():
    for tolerance, epsilon, queries in ((0.1, 1.0, 1), (0.01, 0.2, 7), (0.5, 8.0, 1000)):
        rows = dpf.statistical_query_rows(tolerance, epsilon, queries=queries)
        assert dpf.statistical_query_tolerance(rows, epsilon, queries=queries) <= tolerance
        e = math.exp(epsilon)
        wanted = ((e + 1) / (e - 1)) ** 2 * math.log(40 * queries) / (2 * tolerance**2)
        assert queries * wanted <= rows <= queries * (wanted + 2)


@pytest.mark.statistical
def test_answers_are_within_their_tolerance():
    """Twenty queries, each chosen by the answer before it; off by more with probability below 1e-6."""
    values = np.random.default_rng(1).normal(0, 1, 200_000)
    queries = dpf.LocalStatisticalQueries(values, 2.0, queries=20, failure=1e-6, random=SeededRandom(2))
    low, high = -4.0, 4.0
    for _ in range(20):
        middle = (low + high) / 2
        answer = queries.answer(lambda rows, at=middle: rows <= at)
        assert abs(answer - 0.5 * math.erfc(-middle / math.sqrt(2))) < queries.tolerance
        low, high = (middle, high) if answer < 0.5 else (low, middle)
    with pytest.raises(BudgetExceededError, match="20 queries"):
        queries.answer(lambda rows: rows <= 0)
    assert abs(low) < 0.2


def test_local_error_grows_as_the_root_of_rows():
    """Row 12-2: the slope of ln(error of a sum) over ln n is 1/2 here, and 0 for one Laplace noise."""
    sizes = [10**4, 10**6, 10**8]
    errors = [n * dpf.statistical_query_tolerance(n, 1.0) for n in sizes]
    assert math.log(errors[2] / errors[0]) / math.log(10**4) == pytest.approx(0.5, abs=1e-6)
    deviations = [n * math.sqrt(dpf.RandomizedResponse(2, 1.0).variance / n) for n in sizes]
    assert math.log(deviations[2] / deviations[0]) / math.log(10**4) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(
    "query",
    [
        lambda rows: 1 / 0,
        lambda rows: 0.5,
        lambda rows: [0.5],
        lambda rows: ["x"] * len(rows),
        lambda rows: None,
        lambda rows: [[0.5]] * len(rows),
    ],
)
def test_a_query_that_fails_shows_nothing_of_the_rows(query):
    """Each row is 1/2, as that of a null: no error says that it fails, or on which row (soundness rule 12)."""
    queries = dpf.LocalStatisticalQueries(["secret"] * 4, 1.0, queries=2)
    assert np.nan_to_num(queries._numbers(query, np.arange(4)), nan=0.5).tolist() == [0.5] * 4
    assert math.isfinite(queries.answer(query))


def test_a_row_on_which_a_query_fails_moves_no_other():
    rows = np.arange(1, 101)
    given = []
    for values in (rows, np.where(rows == 17, 0, rows)):
        queries = dpf.LocalStatisticalQueries(values.tolist(), 1.0, queries=1)
        given.append(queries._numbers(lambda held: [1 / row for row in held], np.arange(100)))
    assert (given[0] != given[1]).tolist() == (rows == 17).tolist()


@pytest.mark.parametrize(
    "values", [pl.Series([1, 2, 3, 4]), pa.array([1, 2, 3, 4]), pd.Series([1, 2, 3, 4]), np.arange(4), [1, 2, 3, 4]]
)
def test_queries_see_rows_in_their_own_kind(values):
    queries = dpf.LocalStatisticalQueries(values, 60.0, queries=2)
    seen = []

    def query(rows):
        seen.extend(rows.to_pylist() if hasattr(rows, "to_pylist") else list(rows))
        return rows == rows if isinstance(values, pl.Series) else [True] * len(rows)

    assert queries.answer(query) == pytest.approx(1.0)
    assert queries.answer(query) == pytest.approx(1.0)
    assert sorted(int(str(row)) for row in seen) == sorted(int(str(row)) for row in values)


# Heavy hitters.


@pytest.mark.statistical
@pytest.mark.parametrize("bits", [8, 16, 20, 33, 62])
def test_what_is_frequent_is_found_and_nothing_else(bits):
    """Three values above what is detectable among rare ones; a miss or a false one has probability below 1e-5 each."""
    n = 150_000
    search = dpf.HeavyHitters(bits, 3.0, most=8, failure=1e-5)
    generator = np.random.default_rng(bits)
    wanted = [2**bits - 1, 2 ** (bits - 1) + 3, 0]
    shares = [0.3, 0.25, 0.2]
    assert search.detectable(n) < 0.2
    values = generator.choice([*wanted, -1], n, p=[*shares, 0.25])
    rare = generator.integers(0, 2 ** min(bits, 62), n)
    values = np.where(values < 0, rare if bits > 10 else wanted[0], values)
    found = search.find(search.randomize(values, random=SeededRandom(1)))
    assert sorted(found["value"].to_list()) == sorted(wanted)
    assert found["frequency"].is_sorted(descending=True)
    for value, low, high in found.select("value", "low", "high").iter_rows():
        true = (values == value).mean()
        assert low - 0.03 < true < high + 0.03


def test_rows_of_no_value_and_no_rows():
    search = dpf.HeavyHitters(30, 2.0)
    assert search.find(search.randomize(pl.Series([None, -5, 2**40] * 10_000), random=SeededRandom(1))).height == 0
    empty = search.find(search.randomize(pl.Series([], dtype=pl.Int64)))
    assert empty.height == 0
    assert empty.columns == ["value", "frequency", "standard_error", "low", "high"]


def test_levels_are_drawn_evenly_whatever_the_value_is():
    """Chi-squared of 4 levels, 3 degrees of freedom, below 40 for each of 3 values: fails once in 3 * 10**7 runs."""
    search = dpf.HeavyHitters(40, 1.0)
    assert search.prefixes == (16, 24, 32, 40)
    for value in (0, 2**40 - 1, -1):
        levels = search.randomize(np.full(40_000, value), random=SeededRandom(value + 5)) >> 58
        counts = np.bincount(levels, minlength=4)
        assert ((counts - 10_000) ** 2 / 10_000).sum() < 40


def test_hashes_of_prefixes_are_linear_and_fixed_by_the_key():
    one, other = dpf.HeavyHitters(62, 1.0), dpf.HeavyHitters(62, 1.0, key=1)
    values = np.array([0, 1, 2**61 + 5, 2**62 - 1])
    levels = np.full(4, len(one.prefixes) - 1)
    hashed = one._hashed(values, levels)
    multipliers = [int(m) for m in one._multipliers[-1]]
    limbs = [[v >> 28 * limb & (2**28 - 1) for limb in range(3)] for v in values.tolist()]
    assert hashed.tolist() == [sum(m * x for m, x in zip(multipliers, part, strict=True)) % PRIME for part in limbs]
    assert not np.array_equal(hashed, other._hashed(values, levels))
    assert np.array_equal(one._hashed(np.array([7, 65535]), np.zeros(2, int)), [7, 65535])


@pytest.mark.parametrize("wrong", [[-1], [2**62 + 2**61], [PRIME << 29], [0.5], pl.Series([None, 1]), ["a"]])
def test_reports_that_are_none_are_refused(wrong):
    with pytest.raises(ColumnError, match="reports must"):
        dpf.HeavyHitters(20, 1.0).find(wrong)


def test_threads_do_not_matter():
    search, values = dpf.HeavyHitters(30, 2.0), np.arange(140_000) % 7
    one = search.randomize(values, random=SeededRandom(1), threads=1)
    assert np.array_equal(one, search.randomize(values, random=SeededRandom(1), threads=2))
    assert search.find(one, threads=1).equals(search.find(one, threads=2))
