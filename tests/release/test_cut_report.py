"""What bounding cut is told: each unit is counted once, every route counts alike, and figures are corrected by it.

Figures are compared exactly where the noise is turned off, and elsewhere only where the false-failure rate is stated.
"""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.accountants import basic, zcdp
from dpfast.accounting.events import Gaussian
from dpfast.aggregation import Grouping, by_unit, memory, prepare
from dpfast.aggregation.losses import MOST_ROWS, LossCounts, points_up_to
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.mechanisms.clipping import last_told
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, gaussian_of_scale, laplace_of_scale
from dpfast.queries import Measure
from dpfast.releases import cut_report

from .uneven_units import KEYS, rows_by_group, rows_of

LIMITS = {"max_groups": 2, "max_rows_per_group": 3}
QUERIES = {"n": dpf.count(), "d": dpf.units(), "v": dpf.count("x"), "s": dpf.sum("x", bounds=(-3, 9))}
OTHERS = {
    "m": dpf.mean("x", bounds=(-3, 9)),
    "h": dpf.histogram("x", [0, 1, 2]),
    "q": dpf.quantile("x", 0.5, bounds=(0, 1)),
}


def words_of(value):
    """Return words of one value, by which all numbers are rounded to a point the same way."""
    return lambda number: np.full(number, value, np.uint64)


DOWN, UP = words_of(2**64 - 1), words_of(0)


def found_losses(data, keys, words, groups=2, rows=3):
    """Return the counts of losses of an aggregation."""
    aggregation = prepare(data, Grouping(("k",), keys, "u", groups, rows), [Measure("rows")])
    return dataclasses.replace(aggregation, tells_losses=True).run(words).losses


def listed(counts):
    return [counts.lost[kind].tolist() for kind in counts.lost] + [counts.kept[kind].tolist() for kind in counts.kept]


def plainly(data, keys, *, up, groups=2, rows=3):
    """Return the same with loops, where each number is rounded to a point down, or up."""
    had = rows_by_group(data, keys)
    found = {"lost rows": [], "lost groups": [], "kept rows": [], "kept groups": []}
    for counts in had.values():
        # What is kept of the groups does not depend on which they are where all of them are alike, or few.
        kept = sum(min(count, rows) for count in counts.values()) if len(counts) <= groups else None
        found["kept rows"].append(kept)
        found["lost rows"].append(None if kept is None else counts.total() - kept)
        found["kept groups"].append(min(len(counts), groups))
        found["lost groups"].append(len(counts) - min(len(counts), groups))
    points = {"lost": points_up_to(MOST_ROWS), "rows": points_up_to(groups * rows), "groups": points_up_to(groups)}
    tables = {}
    for name, numbers in found.items():
        of_it = points["lost" if name.startswith("lost") else name.split()[1]]
        table = np.zeros(of_it.size, np.int64)
        for number in numbers:
            if number is None:
                return None
            place = np.flatnonzero(of_it >= number)[0] if up else np.flatnonzero(of_it <= number)[-1]
            table[place] += 1
        tables[name] = table.tolist()
    return list(tables.values())


@pytest.mark.parametrize("keys", [KEYS, None], ids=["public", "found"])
@pytest.mark.parametrize("room", [2**40, 2000, 1], ids=["memory", "parts", "lone units"])
def test_units_are_counted_at_points_next_to_what_they_lose(monkeypatch, keys, room):
    monkeypatch.setattr(memory, "room_for_rows", lambda: room)
    for seed in range(3):
        data = rows_of(range(40), seed)
        for words, up in ((DOWN, False), (UP, True)):
            assert listed(found_losses(data, keys, words, groups=5)) == plainly(data, keys, up=up, groups=5)


def test_all_rows_are_there_on_average():
    """Rows lost and kept of 3,000 units of 1 to 60 rows, by two random points each.

    A unit's points lie within 32 of each other, or 64 of what is lost: the sum over units is off by more than t with
    probability 2 exp(-2 t**2 / (3000 * 64**2)) (Hoeffding), which is 3e-14 for t = 14,000; of 160,000 rows.
    """
    generator = np.random.default_rng(5)
    data = pl.DataFrame({"u": np.repeat(np.arange(3000), generator.integers(1, 107, 3000)), "k": "a"})
    counts = found_losses(data, KEYS, lambda number: generator.integers(0, 2**64, number, dtype=np.uint64), rows=40)
    sizes = data.group_by("u").len()["len"]
    kept = int(counts.kept["rows"] @ counts.points_of_kept["rows"])
    lost = int(counts.lost["rows"] @ counts.POINTS_OF_LOST)
    assert abs(kept - sizes.clip(0, 40).sum()) < 14_000
    assert abs(lost - (sizes - sizes.clip(0, 40)).sum()) < 14_000
    assert counts.lost["rows"][1:].sum() == (sizes > 40).sum()


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("words", [DOWN, UP], ids=["down", "up"])
def test_one_unit_moves_each_histogram_by_one(neighbors, words):
    most = 0
    for seed in range(40):
        one, unit = rows_of(range(12), seed), seed % 12
        other = one.filter(pl.col("u").ne_missing(unit))
        if neighbors == "replace":
            changed = rows_of([unit], seed + 1000).with_columns(u=pl.lit(unit, pl.Int64))
            if not changed.filter(pl.col("k").is_in(KEYS["k"].to_list())).height:
                continue
            other = pl.concat([other, changed])
        tables = [listed(found_losses(data, KEYS, words)) for data in (one, other)]
        moves = [sum(map(abs, np.subtract(a, b).tolist())) for a, b in zip(*tables, strict=True)]
        assert max(moves) <= (2 if neighbors == "replace" else 1)
        squares = sum(int(np.square(np.subtract(a, b)).sum()) for a, b in zip(*tables, strict=True))
        most = max(most, squares)
        assert squares <= 4 * (2 if neighbors == "replace" else 1)
    assert most == 4 * (2 if neighbors == "replace" else 1)


def a_plan(data=None, **changed):
    budget = {"epsilon": 1.0, "delta": 1e-6} if "rho" not in changed else {}
    asked = {"by": "k", "keys": KEYS, "privacy_unit": "u", "report_cut": 0.1, **LIMITS, **budget, **QUERIES, **changed}
    return dpf.plan(rows_of(range(9)) if data is None else data, **asked)


def a_ledger(plan):
    return dpf.Ledger(epsilon=1e6, delta=1e-2, accountant="basic" if plan.rho is None else "zcdp")


def released(data=None, **changed):
    plan = a_plan(data, **changed)
    return plan.run(a_ledger(plan))


@pytest.mark.parametrize("queries", [QUERIES, {"n": dpf.count()}, {"d": dpf.units()}], ids=str)
@pytest.mark.parametrize("changed", [
    {}, {"neighbors": "replace"}, {"keys": None}, {"rho": 0.3}, {"rho": 0.3, "neighbors": "replace"},
    {"rho": 0.3, "mechanism": "laplace"}, {"mechanism": "gaussian"}, {"report_cut": 1e-6}, {"report_cut": 0.5},
    {"split": "optimal"},
], ids=str)  # fmt: skip
def test_the_charge_is_true_and_within_the_budget(queries, changed):
    plan = _only(queries, changed)
    blueprint = plan._blueprint
    report, share = blueprint.cut, changed.get("report_cut", 0.1)
    moved = (4 if "d" in queries else 2) * (2 if "neighbors" in changed else 1)
    event = report.charge.event
    if "rho" in changed:
        whole, cost = round(0.3 * UNITS_PER_ONE), zcdp.cost(event)[0]
        assert sum(zcdp.cost(charge.fact.times(charge.count))[0] for charge in blueprint.charges) <= whole
    else:
        whole, cost = UNITS_PER_ONE, basic.cost(event)[0]
        assert blueprint.epsilon_units <= whole
        assert blueprint.epsilon_units > 0.999 * whole
    assert cost <= whole * share * (1 + 1e-12) + 1
    assert cost >= whole * share * 0.999 - 1
    assert event.scale == report.noise.scale
    squared = Fraction(event.sensitivity) ** 2 if isinstance(event, Gaussian) else Fraction(event.sensitivity)
    assert squared >= moved
    assert isinstance(event, Gaussian) == ("rho" in changed and "mechanism" not in changed)
    assert report.charge is blueprint.charges[-1]
    assert plan.to_frame()["query"].to_list()[-1] == "report_cut"
    assert plan.to_frame()["charge"].to_list()[-1] == max(plan.to_frame()["charge"])
    assert f"{share:.3g} of the budget" in plan.explain()


def _only(queries, changed):
    budget = {"epsilon": 1.0} if "rho" not in changed else {}
    delta = {"delta": 1e-6} if "rho" not in changed or changed.get("keys", 1) is None else {}
    asked = {"by": "k", "keys": KEYS, "privacy_unit": "u", "report_cut": 0.1, **LIMITS, **budget, **delta, **changed}
    return dpf.plan(rows_of(range(9)), **asked, **queries)


@pytest.fixture
def exactly(monkeypatch):
    """Turn all noise off."""
    monkeypatch.setattr(IntegerNoise, "add", lambda self, values, random, threads=1: values.copy())
    # Without noise every place tells.
    monkeypatch.setattr(cut_report, "last_told", lambda points, counts, noise: int(np.flatnonzero(counts)[-1:].sum()))


def even_rows(units=40, rows=16, keys="ab"):
    """Return units that have as many rows for each key."""
    return pl.DataFrame(
        {"u": np.repeat(np.arange(units), rows * len(keys)), "k": list(keys) * (rows * units), "x": 2.0}
    )


@pytest.mark.parametrize("keys", [KEYS, None], ids=["public", "selected"])
def test_what_is_told_and_corrected(exactly, keys):
    data = even_rows(rows=18, keys="abce")
    release = released(data, max_groups=2, max_rows_per_group=2, keys=keys, key_selection="auto", **OTHERS)
    # Each unit keeps 2 of 4 groups, 4 of 72 rows, and loses 68: 4 above 64, and so counted there or at 128.
    cut = release.cut
    assert (cut.units, cut.units_cut, cut.groups_kept) == (40, 40, 0.5)
    assert 4 / 132 <= cut.rows_kept <= 4 / 68
    frame = release.frame
    assert frame.columns[-4:] == ["n_corrected", "d_corrected", "v_corrected", "s_corrected"]
    for name in "nvs":
        assert frame[f"{name}_corrected"].sum() * cut.rows_kept == pytest.approx(frame[name].sum(), rel=1e-9, abs=1e-6)
    assert frame["d_corrected"].sum() == pytest.approx(frame["d"].sum() * 2, rel=1e-9, abs=1e-6)
    assert "about 40 of 40 units lost rows" in release.explain()
    assert "more than a tenth was cut" in release.explain()


def corrected(figures, deviation, part=0.25):
    report = _only({"n": dpf.count()}, {})._blueprint.cut
    frame = pl.DataFrame({"n": pl.Series(figures, dtype=pl.Int64)})
    return report.correct(frame, cut_report.Cut(9, 9, 1, part, None), {"n": deviation})["n_corrected"].to_list()


def test_noise_is_not_multiplied():
    """The more of the groups' variance is noise, the more alike is what is added to them; in all it is the same."""
    figures = [100, 300, 800]
    assert corrected(figures, 0.0) == pytest.approx([400, 1200, 3200])
    assert corrected(figures, 1e6) == pytest.approx([1300, 1500, 2000])
    half = np.std(figures) / np.sqrt(2)
    assert corrected(figures, half) == pytest.approx([850, 1350, 2600])
    for deviation in (0.0, 10.0, 200.0, 1e6):
        assert sum(corrected(figures, deviation)) == pytest.approx(4800)
    assert corrected([], 5.0) == []
    assert corrected([50], 1e6) == pytest.approx([200])
    assert corrected([50, 50], 5.0) == pytest.approx([200, 200])


def test_nothing_cut_is_no_warning_and_corrects_nothing(exactly):
    release = released(even_rows(rows=1), max_rows_per_group=5, epsilon=2000.0)
    assert release.cut == cut_report.Cut(40, 0, release.cut.units_within, 1.0, 1.0)
    np.testing.assert_allclose(release.frame["n_corrected"], release.frame["n"])
    assert "more than a tenth" not in release.explain()


def test_units_are_told_where_their_rows_are_not(monkeypatch):
    """Noise without chance: what is lost is told of no point, and yet that units lost some."""
    monkeypatch.setattr(IntegerNoise, "add", lambda self, values, random, threads=1: values.copy())
    monkeypatch.setattr(cut_report, "last_told", lambda points, counts, noise: 3 if points.size < 39 else 0)
    release = released(even_rows(units=3000), max_rows_per_group=2, d=dpf.count())
    assert (release.cut.units_cut, release.cut.rows_kept) == (3000, None)
    assert "what is called corrected is not" in release.explain()
    assert "more than a tenth was cut" in release.explain()
    assert (release.frame["n_corrected"] == release.frame["n"]).all()


def test_a_correction_is_near_the_truth():
    """One group; 5,000 units lose 40 of 50 rows each: the count is corrected to 5% or so.

    All noise is 0: the histograms' has scale 4 / 200, and one of 90 numbers is not 0 with probability 90 * 2 exp(-50),
    which is 4e-20. The sum of points, 32 or 64 for what each loses, is off by more than t with probability
    2 exp(-2 t**2 / (5000 * 32**2)) (Hoeffding): 2e-12 for t = 8,400 of 200,000. What is kept, 10, is itself a point.
    """
    data = even_rows(units=5000, rows=50, keys="a")
    release = released(data, max_groups=1, max_rows_per_group=10, epsilon=2000.0)
    assert (release.cut.units, release.cut.units_cut) == (5000, 5000)
    assert release.cut.rows_kept == pytest.approx(0.2, rel=0.05)
    assert release.frame["n_corrected"][0] == pytest.approx(250_000, rel=0.05)


@pytest.mark.parametrize("changed", [
    {}, {"neighbors": "replace"}, {"rho": 0.1}, {"keys": None}, {"by": None, "keys": None}, OTHERS,
], ids=lambda changed: "-".join(changed) or "plain")  # fmt: skip
@pytest.mark.parametrize("rows", [0, 1, 300])
def test_next_to_no_data_looks_like_much(changed, rows):
    if "rho" in changed and changed.get("keys", 1) is None:
        changed = {**changed, "delta": 1e-6}
    plan = a_plan(rows_of(range(60), 5).head(rows), **changed)
    release = plan.run(a_ledger(plan))
    assert release.frame.schema == plan._blueprint.schema()
    assert release.frame.schema == released(rows_of(range(60), 6), **changed).frame.schema
    assert not any(release.frame.select("^.*_corrected$").null_count().sum_horizontal())
    assert release.cut.rows_kept is None or 0 < release.cut.rows_kept <= 1
    assert 0 <= release.cut.units_cut <= release.cut.units
    assert release.lazy().collect().equals(release.frame)
    assert repr(release)


def test_every_source_counts_alike(exactly, monkeypatch, tmp_path):
    """Units of whose numbers all are points, so that nothing is left to chance."""
    data = even_rows(rows=10, keys="abce")
    first = released(data, max_groups=4, max_rows_per_group=2)
    data.write_parquet(tmp_path / "d.parquet")
    data.write_csv(tmp_path / "d.csv")
    sources = [
        data.lazy(), data.to_arrow(), data.to_arrow().to_reader(), tmp_path / "d.parquet",
        data.sample(fraction=1, shuffle=True, seed=1), data.with_columns(u=pl.col("u").cast(pl.String)),
    ]  # fmt: skip
    duckdb = pytest.importorskip("duckdb")
    arrow = data.to_arrow()
    sources.append(duckdb.sql("FROM arrow"))

    def same(release):
        assert release.frame.equals(first.frame)
        assert release.cut == first.cut

    for source in sources:
        same(released(source, max_groups=4, max_rows_per_group=2))
    same(released(tmp_path / "d.csv", max_groups=4, max_rows_per_group=2, schema=dict(data.schema)))
    monkeypatch.setattr(memory, "room_for_rows", lambda: 20_000)
    same(released(data.lazy(), max_groups=4, max_rows_per_group=2))
    assert arrow.num_rows == data.height


@pytest.mark.parametrize(("changed", "words"), [
    ({"privacy_unit": "row", "max_groups": None, "max_rows_per_group": None}, "None where each row is a unit"),
    ({"max_groups": "auto", "max_rows_per_group": "auto", "d": dpf.count("x")}, 'None with max_groups="auto"'),
    ({"report_cut": 0.6}, "report_cut must be a number from 1e-06 to 0.5"),
    ({"report_cut": True}, "report_cut must be a number"),
    ({"n_corrected": dpf.count()}, "a name that leaves n_corrected to one column"),
    ({"by": "n_corrected"}, "a name that leaves n_corrected to one column"),
], ids=str)  # fmt: skip
def test_what_is_not_told_is_refused(changed, words):
    data = rows_of(range(9)).with_columns(n_corrected=pl.col("k"))
    keys = KEYS.rename({"k": "n_corrected"}) if "by" in changed else KEYS
    with pytest.raises(ParameterError, match=words):
        a_plan(data, keys=keys, **changed)


def test_a_budget_of_few_units_is_refused():
    with pytest.raises(ParameterError, match="epsilon must be larger"):
        a_plan(epsilon=1e-16, report_cut=1e-6)


def test_a_workload_is_refused():
    ages = pl.DataFrame({"k": ["a", "b"]})
    with pytest.raises(ParameterError, match="None with a workload"):
        dpf.plan(rows_of(range(9)), "k", keys=ages, workload=dpf.workloads.all_range(2), privacy_unit="u", epsilon=1.0,
                 report_cut=0.1, **LIMITS)  # fmt: skip


def test_an_engine_is_refused():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.connect().sql("SELECT 1 AS u, 'a' AS k, 1.0::DOUBLE AS x")
    with pytest.raises(ParameterError, match=r'report_cut must be None where a database aggregates.*engine="rows"'):
        a_plan(relation, engine="sql")
    assert a_plan(relation, engine="rows")


def test_without_it_nothing_is_told_or_counted():
    release = released(report_cut=None)
    assert release.cut is None
    assert not [name for name in release.frame.columns if name.endswith("_corrected")]
    assert by_unit.UnitRows.__dataclass_fields__["tells_losses"].default is False


@pytest.mark.parametrize("make", [laplace_of_scale, gaussian_of_scale])
def test_noise_alone_is_rarely_taken_for_many_rows(make):
    """The chance to be taken for units at a point p is at most .01 / p by the half widths; the seed is fixed."""
    generator, noise, points = np.random.default_rng(3), make(30.0, 1), points_up_to(MOST_ROWS)
    draw = generator.laplace if noise.mechanism == "laplace" else generator.normal
    last = [last_told(points, np.rint(draw(0, 30.0, points.size)), noise) for _ in range(5000)]
    for place in (1, 4, 8, 20):
        assert sum(one >= place for one in last) / 5000 < 0.05 / points[place] + 1e-3


def test_counts_of_losses_are_private():
    counts = LossCounts.of_none(3, 5)
    assert "0" not in repr(counts)
    assert [points.tolist() for points in counts.points_of_kept.values()] == [[0, 1, 2, 4, 8, 15], [0, 1, 2, 3]]


def test_huge_limits(exactly):
    asked = {"by": "k", "privacy_unit": "u", "epsilon": 1.0, "report_cut": 0.1, "n": dpf.count()}
    plan = dpf.plan(even_rows(), keys=KEYS, max_groups=2**40, max_rows_per_group=2**40, **asked)
    cut = plan.run(dpf.Ledger(epsilon=1.0)).cut
    # With 40 units, and noise of scale 20, nobody can say that none of them is cut.
    assert (cut.units, cut.units_cut, cut.rows_kept) == (40, 0, None)


def test_the_command_line_tells_it(tmp_path, monkeypatch):
    """The noise on the histograms, of 3,000 units, has scale 2 / 5: it hides them with probability e**-1000."""
    from click.testing import CliRunner

    from dpfast.cli.commands import main

    monkeypatch.chdir(tmp_path)
    even_rows(units=3000).write_parquet("d.parquet")
    KEYS.write_csv("keys.csv")
    asked = ["d.parquet", "--by", "k", "--keys", "keys.csv", "--count", "--unit", "u", "--max-groups", "2",
             "--max-rows", "3", "--epsilon", "50", "--report-cut", "0.1"]  # fmt: skip
    ledger = ["--ledger", "l.db", "--budget-epsilon", "1000"]
    shown = CliRunner().invoke(main, ["release", *asked, *ledger, "--out", "out.parquet"])
    assert shown.exit_code == 0, shown.output
    assert "units lost rows, give or take" in shown.output
    assert "more than a tenth was cut" in shown.output
    assert "count_corrected" in pl.read_parquet("out.parquet").columns
    document = json.loads(
        CliRunner().invoke(main, ["release", *asked, *ledger, "--out", "again.parquet", "--json"]).stdout
    )
    assert set(document["cut"]) == {field.name for field in dataclasses.fields(cut_report.Cut)}
    refused = CliRunner().invoke(main, ["explain", *asked[:-1], "2"])
    assert refused.exit_code == 2
    assert "--report-cut must be a number from 1e-06 to 0.5" in refused.output


def test_what_cannot_be_told_is_said():
    """A unit alone at a high point is within the noise: what it lost is in no figure, and the words say so.

    Of 1,000 others, who lose 4 rows each, the noise of scale 20 tells but with a probability below 1e-15. Without them
    it would be doubted in 1 of 50 runs that nothing is lost, and no part would be said to be kept.
    """
    frame = pl.DataFrame(
        {"u": [0] * 50_000 + [i // 3 for i in range(3, 6_000)] + [2_000 + i % 1_000 for i in range(8_000)]}
    )
    asked = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 4, "epsilon": 2.0, "report_cut": 0.05}
    release = dpf.release(frame, n=dpf.count(), ledger=dpf.Ledger(epsilon=2.0), **asked)
    told = next(line for line in release.explain().splitlines() if "of the rows were kept" in line)
    assert "at most about" in told
    assert "by units that can be told from noise" in release.explain()
    assert "at most which part is kept" in dpf.plan(frame, n=dpf.count(), **asked).explain()
