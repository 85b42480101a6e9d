"""Histograms and distribution functions by group: exact figures, sensitivities, shapes and intervals."""

from __future__ import annotations

import math
import random
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import dpfast as dpf
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation.exact import aggregate
from dpfast.errors import ColumnError, ParameterError
from dpfast.queries import Measure, bins_measure
from dpfast.releases.distribution_answers import best_blocks, block_sums

from .oracles import ALPHA, largest_moves
from .small_units import seeded_words
from .test_query_measures import frame_of, routes

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(("max_groups", "max_rows"), [(1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("blocks", [((1, 1),), ((1, 1), (2, 1)), ((1, 2), (2, 3))])
def test_the_formula_is_the_largest_move_there_is(neighbors, max_groups, max_rows, blocks):
    """Soundness rule 14: over all units of so many rows in four groups of four bins, by brute force; and reached."""
    bins, groups = 4, 2 * max_groups
    measure = bins_measure("x", tuple(range(bins + 1)), blocks)
    contents = {
        tuple(np.bincount(rows, minlength=bins + 1)[:bins])
        for rows in combinations_with_replacement(range(bins + 1), max_rows)
    }
    some = [*sorted(contents, key=max)[-3:], (0,) * bins] if max_groups * max_rows > 2 else sorted(contents)
    vectors = []
    for held in product(some, repeat=max_groups):
        for places in combinations_with_replacement(range(groups), max_groups):
            if len(set(places)) == max_groups:
                counts = np.zeros((groups, bins), np.int64)
                counts[list(places)] = held
                vectors.append(block_sums(counts, blocks).ravel())
    stated = measure.sensitivity(PrivacyUnit("who", max_groups, max_rows, neighbors))
    assert (stated.l1, stated.l2_squared) == largest_moves(np.unique(vectors, axis=0), neighbors)
    assert measure.figures == len(vectors[0]) / groups


def expected_bin(value, edges):
    if value is None or value != value:
        return None
    place = sum(edge <= float(value) for edge in edges) - 1
    if value == INF and edges[-1] == INF:
        return len(edges) - 2
    return place if 0 <= place < len(edges) - 1 else None


def test_exact_figures_on_every_route(seed):
    frame = frame_of(300, seed)
    edges = {
        "x": [(-2.5, -0.0, 0.5, 2.5, 1e300), (-INF, 0.0, 5e-324, INF), (0.5, 1.7976931348623157e308)],
        "g": [(0.1, 2.5, 3.0)],
        "y": [(-1.0, 0.0, 3.0, 2.0**62), (-INF, 3.0, INF)],
        "n": [(0.0, 1.0, 2.0**63, INF)],
        "b": [(0.0, 1.0, 2.0)],
        "z": [(0.0, 1.0)],
    }
    measures = [bins_measure(column, one) for column, some in edges.items() for one in some]
    wanted = {}
    for row in frame.iter_rows(named=True):
        figures = wanted.setdefault(row["k"], [np.zeros(measure.points, np.int64) for measure in measures])
        for counts, measure in zip(figures, measures, strict=True):
            place = expected_bin(row[measure.column], measure.edges)
            if place is not None:
                counts[place] += 1
    for source, grouping in routes(frame):
        found = aggregate(source, grouping, [*measures, Measure("rows")], seeded_words(1))
        for place, measure in enumerate(measures):
            for key, counts in zip(found.keys["k"], found.measures[place], strict=True):
                assert counts.tolist() == wanted[key][place].tolist(), (measure, grouping)


def data_of(groups, size, seed=None):
    generator = np.random.default_rng(seed)
    keys = np.repeat(np.arange(groups), size)
    x = np.round(generator.normal(generator.uniform(0, 10, groups).repeat(size), 4), 1)
    x[generator.random(keys.size) < 0.05] = NAN
    return pl.DataFrame({"k": keys, "u": np.arange(keys.size), "x": x})


EDGES = [-3, 0, 2.5, 5, 8, 12]
UNIT = {"privacy_unit": "u", "max_groups": 9, "max_rows_per_group": 10_000}


@pytest.mark.parametrize("unit", [{}, UNIT], ids=["rows", "units"])
@pytest.mark.parametrize("edges", [EDGES, np.arange(0, 12, 0.05).tolist()], ids=["few", "many"])
def test_values_are_those_of_polars(unit, edges, without_noise, released, seed):
    data = data_of(20, 200, seed)
    asked = {"h": dpf.histogram("x", edges), "c": dpf.cdf("x", edges)}
    frame = released(data, "k", keys=pl.DataFrame({"k": range(20)}), **asked, **unit).frame
    x = pl.col("x").fill_nan(None)
    truth = data.group_by("k", maintain_order=True).agg(
        h=pl.concat_list(((x >= low) & (x < high)).sum().cast(pl.Int64) for low, high in pairwise(edges)),
        c=pl.concat_list((x <= edge).mean() for edge in edges),
    )
    assert frame["h"].to_list() == truth["h"].to_list()
    assert frame["c"].explode().to_list() == pytest.approx(truth["c"].explode().to_list(), abs=1e-9)
    assert frame["h_bin"].to_list() == [edges[:-1]] * 20
    assert frame["c_edge"].to_list() == [edges] * 20
    long = frame.explode("h_bin", "h", "h_lower", "h_upper")
    assert long.height == 20 * (len(edges) - 1)
    assert long.select((pl.col("h") >= pl.col("h_lower")) & (pl.col("h") <= pl.col("h_upper"))).to_series().all()


def test_distribution_functions_rise(released):
    frame = released(data_of(50, 5), "k", keys=pl.DataFrame({"k": range(60)}), c=dpf.cdf("x", EDGES), epsilon=0.1).frame
    for values, lower, upper in frame.select("c", "c_lower", "c_upper").iter_rows():
        assert values == sorted(values)
        for figures in (values, lower, upper):
            assert all(0 <= figure <= 1 for figure in figures)


GROUPS = 1000


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(("size", "epsilon"), [(300, 0.3), (20, 1.0), (1, 1.0)])
@pytest.mark.parametrize("many", [False, True])
def test_intervals_hold_the_truth(size, epsilon, mechanism, many, released):
    """95% of each figure's intervals over 1,000 groups at least, by binomial tests at 1e-12.

    There are at most 66 figures of each query and 12 cases: the false-failure rate of this function is below 1e-9.
    """
    edges = np.linspace(-3, 12, 66).tolist() if many else EDGES
    data = data_of(GROUPS, size)
    asked = {"h": dpf.histogram("x", edges), "c": dpf.cdf("x", edges)}
    frame = released(
        data, "k", keys=pl.DataFrame({"k": range(GROUPS)}), **asked, epsilon=epsilon, mechanism=mechanism, delta=1e-5
    ).frame
    x = pl.col("x").fill_nan(None)
    truth = data.group_by("k", maintain_order=True).agg(
        h=pl.concat_list(((x >= low) & (x < high)).sum() for low, high in pairwise(edges)),
        # Of no values, any part is right.
        c=pl.concat_list((x <= edge).mean().fill_null(0.5) for edge in edges),
    )
    for name in asked:
        exact = np.array(truth[name].to_list(), np.float64)
        low, high = (np.array(frame[f"{name}_{end}"].to_list(), np.float64) for end in ("lower", "upper"))
        inside = ((low <= exact + 1e-9) & (high >= exact - 1e-9)).sum(axis=0)
        assert binom.cdf(inside.min(), GROUPS, 0.95) > ALPHA, name


def test_blocks_are_measured_where_they_pay():
    assert best_blocks(10, gaussian=False) == ((1, 1),)
    plan = dpf.plan(data_of(3, 3), c=dpf.cdf("x", np.arange(900.0).tolist()), privacy_unit="row", rho=0.5)
    assert "and of blocks of 8, 64" in plan.explain()
    for gaussian in (False, True):
        sizes = [len(best_blocks(bins, gaussian=gaussian)) for bins in (3, 30, 300, 1000)]
        assert sizes == sorted(sizes)


@pytest.mark.parametrize(
    ("budget", "mechanism", "levels"),
    [({"epsilon": 1.0}, "laplace", 2), ({"epsilon": 1.0, "delta": 1e-6}, "laplace", 2),
     ({"epsilon": 0.1, "delta": 1e-3}, "gaussian", 3), ({"rho": 0.1}, "gaussian", 3),
     ({"rho": 0.1, "mechanism": "laplace"}, "laplace", 2)],
)  # fmt: skip
def test_blocks_are_those_of_the_noise(budget, mechanism, levels):
    """Noise and blocks are chosen together; a histogram of one bin has no blocks, and no error beside its noise."""
    asked = {"c": dpf.cdf("x", list(range(161))), "h": dpf.histogram("x", [0, 1])}
    plan = dpf.plan(pl.DataFrame({"x": [1.0]}), privacy_unit="row", **budget, **asked)
    part = next(part for part in plan._blueprint.parts if part.measure.points > 1)
    assert (part.mechanism, len(part.measure.blocks)) == (mechanism, levels)


@pytest.mark.parametrize("ask", [dpf.histogram, dpf.cdf])
@pytest.mark.parametrize("edges", [[], [0, 0], [1, 0], [0, NAN], [0, INF], [-1e301, 0], range(1002), "01", None])
def test_edges_that_do_not_serve_are_refused(ask, edges):
    with pytest.raises(ParameterError, match=r"^edges "):
        ask("x", edges if edges is None or isinstance(edges, str) else list(edges))


def test_a_histogram_of_one_edge_is_refused():
    with pytest.raises(ParameterError, match=r"^edges must be two or more"):
        dpf.histogram("x", [0])


def test_a_column_that_has_no_numbers_is_refused_by_the_plan():
    for ask in (dpf.histogram, dpf.cdf):
        with pytest.raises(ColumnError, match="cannot bin the column 't'"):
            dpf.plan(frame_of(5, 0), q=ask("t", [0, 1]), privacy_unit="row", epsilon=1.0)


def test_names_of_the_lists_may_not_collide():
    with pytest.raises(ParameterError, match="h_bin"):
        dpf.plan(frame_of(5, 0), h=dpf.histogram("x", [0, 1]), h_bin=dpf.count(), privacy_unit="row", epsilon=1.0)


def test_what_is_asked_of_engines_and_charts(tmp_path, released):
    sqlite3 = pytest.importorskip("sqlite3")
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (k TEXT, x REAL)")
    choose = random.Random(5)
    rows = [("ab"[choose.randrange(2)], choose.choice([-1.0, 0.5, 3.0, None, 1e9])) for _ in range(500)]
    connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    asked = {"h": dpf.histogram("x", EDGES), "c": dpf.cdf("x", EDGES), "keys": pl.DataFrame({"k": ["a", "b"]})}
    pushed = released(dpf.sql(connection, "t"), "k", **asked, epsilon=9e5, engine="sql")
    frame = released(pl.DataFrame(rows, schema=["k", "x"], orient="row"), "k", **asked, epsilon=9e5).frame
    assert pushed.frame["h"].to_list() == frame["h"].to_list()
    assert pushed.frame["c"].to_list() == frame["c"].to_list()
    pytest.importorskip("vl_convert")
    for query in ("h", "c"):
        pushed.plot(tmp_path / f"{query}.png", query=query)
        assert (tmp_path / f"{query}.png").stat().st_size > 1000
    with pytest.raises(ParameterError, match=r"^edges .* at most 1000"):
        released(dpf.sql(connection, "t"), "k", h=dpf.histogram("x", range(1001)), n=dpf.count(), engine="sql")
