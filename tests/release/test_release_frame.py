"""What a release's frame holds: rows, columns, types, figures and intervals (Soundness rules 15 to 19)."""

from __future__ import annotations

import datetime
import math
import random
from contextlib import suppress

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binom

import dpfast as dpf
from dpfast.errors import ColumnError, ParameterError

from .oracles import ALPHA, contribution, discrete_laplace_tail, gaussian_scale

DAYS = [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), datetime.date(2000, 1, 1)]
KINDS = {
    "string": (pl.String, ["b", "a", "a key of more than twelve bytes"]),
    "categorical": (pl.Categorical, ["b", "a", "c"]),
    "enum": (pl.Enum(["z", "b", "a"]), ["b", "a", "z"]),
    "int8": (pl.Int8, [-5, 7, 0]),
    "int64": (pl.Int64, [2**62, -(2**62), 0]),
    "uint64": (pl.UInt64, [2**64 - 1, 0, 5]),
    "boolean": (pl.Boolean, [True, False]),
    "date": (pl.Date, DAYS),
    "datetime": (pl.Datetime("ms"), [datetime.datetime(2024, 2, 29, 12), datetime.datetime(1969, 1, 1)]),
}
UNIT = {"privacy_unit": "u", "max_groups": 10, "max_rows_per_group": 10_000}


@pytest.mark.parametrize("unit", [{}, UNIT], ids=["rows", "units"])
@pytest.mark.parametrize("kind", KINDS)
def test_public_keys_are_the_rows(kind, unit, without_noise, released):
    """Soundness rule 19: in their order, zeros included, null safe; rows of other keys are dropped."""
    dtype, values = KINDS[kind]
    counts = {values[0]: 3, values[1]: 2, None: 4}
    # A value that is no public key is there too, where the type has a third.
    public = [values[1], None, values[0]]
    missing = pl.DataFrame({"k": pl.Series([*public, *values[2:]], dtype=dtype)})
    rows = [key for key, count in counts.items() for _ in range(count)]
    data = pl.DataFrame({"k": pl.Series(rows, dtype=dtype), "u": range(len(rows))})
    release = released(data, "k", keys=missing, n=dpf.count(), **unit)
    assert release.frame["k"].to_list() == [*public, *values[2:]]
    assert release.frame["k"].dtype == dtype
    assert release.frame["n"].to_list() == [2, 4, 3] + [0] * len(values[2:])
    fewer = pl.DataFrame({"k": pl.Series([values[0]], dtype=dtype)})
    assert released(data, "k", keys=fewer, n=dpf.count(), **unit).frame["n"].to_list() == [3]


def test_several_key_columns_and_bins(without_noise, released):
    data = pl.DataFrame({"k": ["a", "a", None, "zz"], "h": [0.0, 5.99, 6.0, 1.0]})
    keys = pl.DataFrame({"h": [6, 0, 0], "k": [None, "b", "a"]})
    release = released(data, ["k", dpf.bins("h", (0, 6, 12))], keys=keys, n=dpf.count())
    assert release.frame.select("k", "h", "n").rows() == [(None, 6, 1), ("b", 0, 0), ("a", 0, 2)]


def test_no_keys_are_one_group(without_noise, released):
    release = released(pl.DataFrame({"x": [1, 2, None]}), n=dpf.count(), s=dpf.sum("x", bounds=(0, 5)))
    assert release.frame.height == 1
    assert release.frame.columns[:1] == ["n"]
    assert release.frame.select("n", "s").row(0) == (3, 3)
    assert released(pl.DataFrame({"x": [1]}), [], n=dpf.count()).frame.height == 1


def test_columns_and_types(released):
    data = pl.DataFrame({"k": ["a"], "i": [1], "f": [1.0], "b": [True]})
    release = released(
        data, "k", keys=pl.DataFrame({"k": ["a", "b"]}), n=dpf.count(), s=dpf.sum("i", bounds=(-5, 5)),
        t=dpf.sum("b", bounds=(0, 1)), f=dpf.sum("f", bounds=(0, 1)), m=dpf.mean("i", bounds=(0, 9)),
    )  # fmt: skip
    expected = {"k": pl.String}
    for name, dtype in (("n", pl.Int64), ("s", pl.Int64), ("t", pl.Int64), ("f", pl.Float64), ("m", pl.Float64)):
        expected |= {name: dtype, f"{name}_scale": pl.Float64, f"{name}_lower": dtype, f"{name}_upper": dtype}
    assert dict(release.frame.schema) == expected
    assert release.frame.null_count().sum_horizontal().item() == 0
    for name in "nstfm":
        assert (release.frame[f"{name}_lower"] <= release.frame[name]).all()
        assert (release.frame[f"{name}_upper"] >= release.frame[name]).all()


@pytest.mark.parametrize("upper", [0.5, 2.0**22, 2.0**23 + 1, 2.0**24 - 1, 2.0**24, 2.0**60, 1e300])
def test_the_type_of_a_sum_follows_the_column_not_the_bounds(upper, released):
    """A sum of floats is Float64, also where its step happens to be one."""
    data = pl.DataFrame({"f": [1.0], "i": [1]})
    frame = released(data, f=dpf.sum("f", bounds=(0, upper)), m=dpf.mean("i", bounds=(0, upper))).frame
    assert frame["f"].dtype == frame["f_lower"].dtype == frame["m"].dtype == pl.Float64
    if 1 <= upper < 2**24:
        assert released(data, i=dpf.sum("i", bounds=(0, upper))).frame["i"].dtype == pl.Int64


@pytest.mark.statistical
def test_counts_are_not_cut_off_at_zero(released):
    """1000 empty groups: all figures 0 or more has probability below 0.51**1000."""
    release = released(
        pl.DataFrame({"k": [-1]}), "k", keys=pl.DataFrame({"k": range(1000)}), n=dpf.count(), epsilon=0.1
    )
    assert release.frame["n"].min() < 0


def test_scales_are_the_theory(released):
    """Laplace: G R M / epsilon, doubled under replace; Gaussian: sigma * sqrt(G) R M; a mean's by its noisy count."""
    data = pl.DataFrame({"k": ["a"], "u": [1], "x": [1.5]})
    keys = pl.DataFrame({"k": ["a", "b", "c", "d", "e"]})
    unit = {"privacy_unit": "u", "max_groups": 4, "max_rows_per_group": 3}
    queries = {"n": dpf.count(), "s": dpf.sum("x", bounds=(-2, 8))}
    for neighbors, factor in (("add_remove", 1), ("replace", 2)):
        frame = released(data, "k", keys=keys, epsilon=2, neighbors=neighbors, **unit, **queries).frame
        assert frame["n_scale"][0] == 12 * factor
        assert frame["s_scale"][0] == pytest.approx(12 * factor * 8, rel=1e-15)
    gaussian = {"keys": keys, "mechanism": "gaussian", "epsilon": 2, "delta": 2e-5}
    # One noise on both, each with half of the square of the distance.
    both = math.sqrt(2) * gaussian_scale(2, 2e-5)
    frame = released(data, "k", **gaussian, **unit, **queries).frame
    assert frame["n_scale"][0] == pytest.approx(6 * both, rel=1e-12)
    assert frame["s_scale"][0] == pytest.approx(6 * 8 * both, rel=1e-12)
    frame = released(data, "k", neighbors="replace", **gaussian, **unit, **queries).frame
    assert frame["n_scale"][0] == pytest.approx(2 * 3 * math.sqrt(2) * both, rel=1e-12)
    # max(S, sqrt(2) M) = max(10, 11.3)
    assert frame["s_scale"][0] == pytest.approx(2 * 3 * math.sqrt(2) * 8 * both, rel=1e-12)
    # No unit touches more groups than there are.
    assert released(data, "k", keys=keys[:2], epsilon=2, **unit, **queries).frame["n_scale"][0] == 2 * 3
    assert released(data, epsilon=2, **unit, **queries).frame["n_scale"][0] == 3
    # A mean halves its share; its numerator moves by half the width of the bounds.
    frame = released(data, "k", keys=keys, epsilon=1, m=dpf.mean("x", bounds=(0, 10))).frame
    assert frame["m_scale"][0] <= 5 / 0.5 * (1 + 1e-9)


def test_auto_takes_the_smaller_noise(released):
    data, keys = pl.DataFrame({"k": ["0"], "u": [1]}), pl.DataFrame({"k": [str(key) for key in range(200)]})
    for groups, mechanism in ((1, "laplace"), (200, "gaussian")):
        unit = {"privacy_unit": "u", "max_groups": groups, "max_rows_per_group": 1}
        arguments = {"keys": keys, "n": dpf.count(), "delta": 1e-6, **unit}
        chosen = released(data, "k", **arguments)
        assert mechanism in chosen.explain()
        forced = released(data, "k", mechanism=mechanism, **arguments)
        assert chosen.frame["n_scale"][0] == forced.frame["n_scale"][0]
        # What Laplace noise does not need is not charged.
        assert chosen.spent.delta == (0 if mechanism == "laplace" else 1e-6)


GROUPS = 20_000


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("query", ["count", "integers", "floats", "mean"])
def test_intervals_hold_the_truth(query, mechanism, released):
    """95% of 20,000 groups at least, by a binomial test at 1e-12; for counts, as many as the theory says."""
    generator = np.random.default_rng()
    keys = np.arange(GROUPS)
    data = pl.DataFrame({"k": np.repeat(keys, 4), "i": generator.integers(-50, 60, 4 * GROUPS)})
    data = data.with_columns(f=pl.col("i") * math.pi / 4)
    truth = data.group_by("k", maintain_order=True).agg(
        count=pl.len().cast(pl.Int64), integers=pl.sum("i"), floats=pl.sum("f"), mean=pl.mean("f")
    )
    asked = {
        "count": dpf.count(),
        "integers": dpf.sum("i", bounds=(-50, 60)),
        "floats": dpf.sum("f", bounds=(-50, 60)),
        "mean": dpf.mean("f", bounds=(-50, 60)),
    }[query]
    epsilon = 3.0 if query == "mean" else 0.3
    frame = released(
        data, "k", keys=pl.DataFrame({"k": keys}), q=asked, mechanism=mechanism, epsilon=epsilon, delta=1e-5
    ).frame  # fmt: skip
    inside = ((frame["q_lower"] <= truth[query]) & (frame["q_upper"] >= truth[query])).sum()
    assert binom.cdf(inside, GROUPS, 0.95) > ALPHA
    if query in ("count", "integers") and mechanism == "laplace":
        reach = int((frame["q_upper"] - frame["q"])[0])
        hit = 1 - float(discrete_laplace_tail(frame["q_scale"][0], reach))
        assert binom.sf(inside - 1, GROUPS, hit) > ALPHA
    if query == "mean":
        assert frame["q"].is_between(-50, 60).all()
        assert frame["q_lower"].is_between(-50, 60).all()


def test_means_are_clamped_and_of_present_values_only(without_noise, released):
    """Soundness rule 17: mid + sum(x - mid) / max(1, present), over the rows that the sum saw.

    The noise that is planned is so small that it leaves something of one value.
    """
    data = pl.DataFrame({"k": ["a", "a", "a", "b", "c", "c"], "x": [1.0, None, math.nan, None, 100.0, math.inf]})
    keys = pl.DataFrame({"k": ["a", "b", "c", "d"]})
    frame = released(data, "k", keys=keys, m=dpf.mean("x", bounds=(-2, 8)), n=dpf.count(), epsilon=100).frame
    assert frame["m"].to_list() == pytest.approx([1.0, 3.0, 8.0, 3.0])
    assert frame["n"].to_list() == [3, 1, 2, 0]


def test_a_noisy_mean_stays_within_the_bounds(released):
    data = pl.DataFrame({"k": np.arange(2000) % 50, "x": np.full(2000, 0.999)})
    frame = released(data, "k", keys=pl.DataFrame({"k": range(60)}), m=dpf.mean("x", bounds=(0, 1)), epsilon=0.01).frame
    assert frame.select(pl.col("m", "m_lower", "m_upper").is_between(0, 1).all()).row(0) == (True, True, True)
    assert frame["m_scale"].is_finite().all()


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int32, pl.Int64, pl.UInt8, pl.UInt32, pl.UInt64])
def test_sums_do_not_wrap(dtype, without_noise, released):
    """Soundness rule 16: Polars' own sum of Int32 wraps."""
    largest = int(pl.select(dtype.max()).item())
    data = pl.DataFrame({"x": pl.Series([largest] * 1000, dtype=dtype)})
    frame = released(data, s=dpf.sum("x", bounds=(0, float(largest)))).frame
    assert float(frame["s"].item()) == pytest.approx(1000.0 * largest, rel=2**-23)
    if largest < 2**24:
        assert frame["s"].item() == 1000 * largest


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, 5e-324, 1e300, -1e300, math.nan, math.inf, -math.inf, None, 2.5, -7.125, 3.3]


@pytest.mark.parametrize("unit", [{}, UNIT], ids=["rows", "units"])
@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("bounds", [(-1, 3), (0.1, 0.7), (-1e300, 1e300), (5, 10), (0, 1e-12)])
def test_special_values_by_the_declared_rule(bounds, public, unit, without_noise, released):
    """Null and NaN add nothing; infinities are clipped; everything else is rounded to the step, half to even."""
    data = pl.DataFrame({"k": ["a"] * len(SPECIAL) * 10, "x": SPECIAL * 10, "u": range(len(SPECIAL) * 10)})
    keys = pl.DataFrame({"k": ["a"]}) if public else None
    release = released(data, "k", keys=keys, s=dpf.sum("x", bounds=bounds), m=dpf.mean("x", bounds=bounds), **unit)
    lower, upper = float(bounds[0]), float(bounds[1])
    queries = {"s": dpf.sum("x", bounds=bounds), "m": dpf.mean("x", bounds=bounds)}
    parts = [
        planned.parts[0]
        for planned in dpf.plan(data, epsilon=1, **{"privacy_unit": "row", **queries})._blueprint.queries
    ]

    def total(measure):
        lowest, highest = measure.lower, measure.upper
        return 10 * sum(contribution(x, measure.step_exponent, lowest, highest, measure.centre) for x in SPECIAL)

    assert release.frame["s"].item() == total(parts[0].measure) * parts[0].step
    present = [min(max(x, lower), upper) for x in SPECIAL if x is not None and not math.isnan(x)]
    mean = parts[1].step * (parts[1].measure.centre + total(parts[1].measure) / (10 * len(present)))
    assert release.frame["m"].item() == pytest.approx(mean, rel=1e-15)
    assert mean == pytest.approx(math.fsum(present) / len(present), abs=(upper - lower) * 2**-20)


def test_the_order_of_rows_changes_nothing(without_noise, released):
    """Soundness rule 16: exact sums, so the figures before the noise are the same in any order."""
    generator = random.Random(5)
    rows = [(generator.choice("abc"), generator.gauss(0, 1) * 10 ** generator.randint(-20, 20)) for _ in range(5000)]
    rows += [("a", 2.0**53), ("a", 1.0), ("a", 1.0), ("a", -(2.0**53))]
    frames = {}
    for _ in range(3):
        generator.shuffle(rows)
        data = pl.DataFrame(rows, schema=["k", "x"], orient="row")
        for source in (data, data.lazy()):
            for public in (True, False):
                keys = pl.DataFrame({"k": ["a", "b", "c"]}) if public else None
                queries = {"s": dpf.sum("x", bounds=(-1e17, 1e17)), "m": dpf.mean("x", bounds=(-1, 1))}
                frame = released(source, "k", keys=keys, **queries).frame
                assert frame.equals(frames.setdefault(public, frame))


def test_bounding_keeps_what_it_says_and_null_units_are_dropped(without_noise, released):
    """Soundness rule 15."""
    data = pl.DataFrame({"k": ["a"] * 500 + ["b"] * 500, "u": [1] * 400 + [None] * 100 + [1, 2] * 250, "x": [1] * 1000})
    arguments = {"keys": pl.DataFrame({"k": ["a", "b"]}), "n": dpf.count(), "s": dpf.sum("x", bounds=(0, 1))}
    frame = released(data, "k", privacy_unit="u", max_groups=2, max_rows_per_group=7, **arguments).frame
    assert frame["n"].to_list() == frame["s"].to_list() == [7, 14]
    frame = released(data, "k", privacy_unit="u", max_groups=1, max_rows_per_group=7, **arguments).frame
    assert frame["n"].sum() == 14
    assert frame["n"].to_list() == frame["s"].to_list()


def test_every_source_gives_the_same_exact_figures(tmp_path, without_noise, released):
    generator = np.random.default_rng(3)
    data = pl.DataFrame(
        {
            "k": generator.choice(["a", "b", "a longer key, of many bytes"], 3000),
            "x": generator.normal(0, 100, 3000),
            "i": generator.integers(-100, 100, 3000),
            "u": generator.integers(0, 100, 3000),
        }
    ).with_columns(pl.when(pl.col("i") % 7 != 0).then("x").alias("x"))
    half, rest = data.head(1234), data.tail(3000 - 1234)
    data.write_parquet(tmp_path / "whole.parquet", row_group_size=700)
    data.write_ipc(tmp_path / "whole.arrow")
    data.write_csv(tmp_path / "whole.csv")
    for place, part in enumerate((half, rest)):
        part.write_parquet(tmp_path / f"part{place}.parquet")
        part.write_csv(tmp_path / f"part{place}.csv")
    schema = dict(data.schema)
    sources = {
        "DataFrame": (data, {}),
        "chunks": (pl.concat([half, rest], rechunk=False), {}),
        "LazyFrame": (data.lazy(), {}),
        "Arrow table": (data.to_arrow(), {}),
        "Arrow batches": (pa.Table.from_batches(data.to_arrow().to_batches(100)), {}),
        "Parquet": (str(tmp_path / "whole.parquet"), {}),
        "IPC": (tmp_path / "whole.arrow", {}),
        "CSV": (tmp_path / "whole.csv", {"schema": schema}),
        "Parquet glob": (str(tmp_path / "part*.parquet"), {}),
        "CSV glob": (str(tmp_path / "part*.csv"), {"schema": schema}),
        "list": ([tmp_path / "part0.parquet", tmp_path / "part1.parquet"], {}),
    }
    queries = {"n": dpf.count(), "s": dpf.sum("x", bounds=(-50, 70)), "m": dpf.mean("x", bounds=(-50, 70))}
    queries["i"] = dpf.sum("i", bounds=(-30, 99))
    by_unit = {"privacy_unit": "u", "max_groups": 3, "max_rows_per_group": 1000}
    for arguments in ({}, {"keys": pl.DataFrame({"k": ["b", "a", "no"]})}, by_unit):
        frames = {}
        for name, (source, extra) in sources.items():
            frames[name] = released(source, "k", **queries, **extra, **arguments).frame
        for name, frame in frames.items():
            assert frame.equals(frames["DataFrame"]), name


@pytest.mark.parametrize(
    "names",
    [("k",), ("a", "a_scale"), ("a", "a_lower"), ("a_upper", "a"), ("h",), ("x_scale", "x")],
)
def test_names_that_would_collide_are_refused(names):
    data = pl.DataFrame({"k": ["a"], "h": [1.0]})
    with pytest.raises(ParameterError, match=f"'{names[-1]}'"):
        dpf.plan(
            data,
            ["k", dpf.bins("h", [0, 1])],
            epsilon=1,
            delta=1e-6,
            **{"privacy_unit": "row", **dict.fromkeys(names, dpf.count())},
        )


def test_a_key_column_may_not_bear_the_name_of_a_scale():
    with pytest.raises(ParameterError, match="n_scale"):
        dpf.plan(pl.DataFrame({"n_scale": ["a"]}), "n_scale", privacy_unit="row", epsilon=1, delta=1e-6, n=dpf.count())


NAMES = [
    "key0",
    "key1",
    "unit",
    "value0",
    "rows",
    "measure0",
    "row",
    "place",
    "len",
    "literal",
    "",
    "a b",
    "u\n",
    "*",
    "^k.*$",
]


@pytest.mark.filterwarnings("ignore::dpfast.errors.PrivacyUnitWarning")
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_columns_may_have_any_name_or_are_refused(name, lazy, without_noise, released):
    """Also those that dpfast uses itself, and those that Polars would take for patterns: "^k.*$" also names k1."""
    data = pl.DataFrame({name: ["a", "b", "a", None] * 100, "k1": range(400), "x": [1.5] * 400})
    source = data.lazy() if lazy else data
    queries = {"n": dpf.count(), "s": dpf.sum("x", bounds=(0, 3))}
    unit = {"privacy_unit": name, "max_groups": 1, "max_rows_per_group": 5}
    if name in ("*", "^k.*$"):
        for by, extra in ((name, {}), (None, unit)):
            plan = None
            with suppress(ColumnError, ParameterError):
                plan = dpf.plan(source, by, epsilon=1, delta=1e-6, **{"privacy_unit": "row", **queries, **extra})
            if plan is not None:
                frame = plan.run(dpf.Ledger(epsilon=1, delta=1e-6)).frame
                assert frame["n"].to_list() == ([100, 200, 100] if by else [10])
        return
    # Where a column has that name, "row" is no clear unit.
    rows = {"privacy_unit": None if name == "row" else "row"}
    for keys in (None, pl.DataFrame({name: [None, "a", "b"]})):
        frame = released(source, name, keys=keys, **rows, **queries).frame
        assert frame.select(name, "n", "s").rows() == [(None, 100, 150.0), ("a", 200, 300.0), ("b", 100, 150.0)]
    assert released(source, **queries, **unit).frame.select("n", "s").row(0) == (10, 15.0)
    # A unit may also be a key.
    assert released(source, name, keys=keys, **queries, **unit).frame["n"].to_list() == [0, 5, 5]


@pytest.mark.parametrize("kind", [int, np.int8, np.uint8, np.int32, np.uint64])
def test_bounds_may_be_any_whole_number(kind, without_noise, released):
    data = pl.DataFrame({"k": ["a", "b", "c"] * 10, "u": [1] * 30, "x": [1.0] * 30})
    unit = {"privacy_unit": "u", "max_groups": kind(2), "max_rows_per_group": kind(3)}
    keys = pl.DataFrame({"k": ["a", "b", "c"]})
    frame = released(data, "k", keys=keys, n=dpf.count(), s=dpf.sum("x", bounds=(0, 1)), **unit).frame
    assert sorted(frame["n"].to_list()) == sorted(frame["s"].to_list()) == [0, 3, 3]


def test_a_count_of_a_column_leaves_out_nulls_and_nan(without_noise, released):
    """The scale is that of a count of rows; it is no test of keys, and whole whatever the column holds."""
    frame = pl.DataFrame(
        {"k": ["a"] * 4 + ["b"], "x": [1.0, None, math.nan, math.inf, None], "s": ["p", None, "", "q", "r"]}
    )
    keys = pl.DataFrame({"k": ["a", "b", "c"]})
    queries = {"rows": dpf.count(), "x": dpf.count("x"), "s": dpf.count("s")}
    shown = released(frame, "k", keys=keys, **queries).frame
    assert shown.select("rows", "x", "s").rows() == [(4, 2, 3), (1, 0, 1), (0, 0, 0)]
    assert shown["x"].dtype == pl.Int64
    assert shown["x_scale"].to_list() == pytest.approx(shown["rows_scale"].to_list())
    with pytest.raises(ColumnError, match="lacks"):
        released(frame, "k", keys=keys, n=dpf.count("none"))
    with pytest.raises(ParameterError, match="where no count of rows or units is asked"):
        released(frame, "k", n=dpf.count("x"), key_selection="count", epsilon=1.0, delta=1e-6)
