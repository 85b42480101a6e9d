"""A release by Spark from end to end: one charge, one draw, no trace of what is exact, and clear refusals."""

from __future__ import annotations

import base64
import datetime
import pickle
import re
import shutil
import sys
from pathlib import Path

import polars as pl
import pytest
from arguments.calls import Call

import dpfast as dpf
from dpfast.errors import BudgetExceededError, ColumnError, DpfastError, LedgerError, ParameterError
from dpfast.integrations import spark as dpspark
from dpfast.integrations.spark import cluster as cluster_module
from dpfast.integrations.spark.jobs import DrawNoise
from dpfast.integrations.spark.storage import Folder
from dpfast.randomness import SystemRandom

UNIT = {"privacy_unit": "who", "max_groups": 2, "max_rows_per_group": 3}
QUERIES = {"n": dpf.count(), "s": dpf.sum("x", bounds=(0, 8)), "m": dpf.mean("x", bounds=(0, 8))}
KEYS = pl.DataFrame({"city": ["Rome", "Oslo", "none", None]})


@pytest.fixture(scope="module")
def trips(spark):
    """Return 2,000 rows: three cities that many have, 600 that one unit alone has, with a name that can be found."""
    frame = pl.DataFrame(
        {
            "city": [f"lonely-{row:06d}" if row < 600 else ["Rome", "Oslo", None][row % 3] for row in range(2000)],
            "x": [float(row % 9) for row in range(2000)],
            "who": list(range(2000)),
            "hour": [row % 24 for row in range(2000)],
        },
        schema_overrides={"hour": pl.Int32},
    )
    made = spark.session.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))
    return made.repartition(5).cache()


def ledger():
    return dpf.Ledger(epsilon=1000, delta=0.1)


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


class TestFigures:
    @pytest.mark.parametrize(
        ("rule", "unit"),
        [
            ("auto", {}),
            ("auto", UNIT),
            ("optimal", UNIT),
            ("threshold", {}),
            ("count", UNIT),
            ("public", {}),
            ("public", UNIT),
            ("one group", UNIT),
        ],
    )
    def test_they_have_the_schema_and_the_values_of_a_release_in_memory(self, trips, tmp_path, rule, unit):
        """Two draws differ by 60 scales in a part of 1e-24 of runs.

        Noise that shows a key of one unit is by every rule but the optimal one Laplace noise 28 scales away, or
        further: one of 1,200 is shown in a part of 1e-9 of runs at most.
        """
        own = {"auto": {}, "public": {"keys": KEYS}, "one group": {"by": None}}
        asked = {
            "by": "city",
            "epsilon": 300.0,
            "delta": 1e-9,
            **unit,
            **own.get(rule, {"key_selection": rule}),
            **QUERIES,
        }
        release = dpspark.release(
            trips, **{"privacy_unit": "row", **asked}, path=tmp_path / "noisy", ledger=ledger(), files=2
        )
        ours = release.collect().frame
        here = {**asked, "key_selection": "threshold"} if rule == "auto" and unit else asked
        theirs = dpf.release(pl.DataFrame(trips.toArrow()), **{"privacy_unit": "row", **here}, ledger=ledger()).frame
        assert ours.schema == theirs.schema
        assert release.frame.columns == ours.columns
        assert (release.entry, release.spent.epsilon) == (1, pytest.approx(300))
        if rule == "one group":
            keys = []
        else:
            keys = ["city"]
            named = [None if rule != "public" else "none", "Oslo", "Rome"] + ([None] if rule == "public" else [])
            if rule in ("public", "threshold", "count", "auto"):
                assert set(ours["city"]) == set(named)
            ours, theirs = (frame.filter(pl.col("city").is_in([*named], nulls_equal=True)) for frame in (ours, theirs))
        ours, theirs = (frame.sort(keys, nulls_last=True) if keys else frame for frame in (ours, theirs))
        for name in ("n", "s"):
            scale = pl.max_horizontal(ours[f"{name}_scale"], theirs[f"{name}_scale"])
            assert ((ours[name] - theirs[name]).abs() <= pl.select(60 * scale).to_series()).all()

    @pytest.mark.parametrize(
        ("kind", "unit", "keys"),
        [("x", UNIT, None), ("hour", {}, KEYS), ("day", UNIT, KEYS), ("moment", {}, None), ("fare", {}, KEYS)],
        ids=["x", "hour", "day", "moment", "fare"],
    )
    def test_histograms_are_those_of_a_release_in_memory(self, trips, tmp_path, kind, unit, keys):
        """Of every kind of edges: two draws differ by 60 scales in a part of 1e-24 of runs.

        One of 600 keys of one unit each is shown by one of two releases with a probability of 1200 delta, or 1.2e-12.
        """
        days = [datetime.date(1970, 1, day) for day in (1, 4, 20)]
        moments = [datetime.datetime(1970, 1, 1, hour, tzinfo=datetime.UTC) for hour in (0, 7, 23)]
        edges = {"x": [0, 2.5, 8], "hour": [0, 6, 24], "day": days, "moment": moments, "fare": [0, 1, 2]}[kind]
        rows = trips.selectExpr(
            *("*", "date_add(DATE '1970-01-01', hour) AS day", "timestamp_micros(hour * 3600000000L) AS moment"),
            "CAST(x / 4 AS DECIMAL(9, 2)) AS fare",
        )
        asked = {"by": "city", "keys": keys, "epsilon": 300.0, "delta": 0.0 if keys is not None else 1e-15}
        asked |= {"privacy_unit": "row", **unit, "h": dpf.histogram(kind, edges), "f": dpf.cdf(kind, edges)}
        asked |= {"key_selection": "auto" if keys is not None else "threshold"}
        ours = dpspark.release(rows, **asked, path=tmp_path / "noisy", ledger=ledger()).collect().frame
        theirs = dpf.release(pl.DataFrame(rows.toArrow()), **asked, ledger=ledger()).frame
        assert ours.schema == theirs.schema
        ours, theirs = (frame.sort("city", nulls_last=True) for frame in (ours, theirs))
        shown = [
            name for name in ours.columns if name not in ("city", "h", "f") and name[-6:] not in ("_lower", "_upper")
        ]
        assert ours.select("city", *shown).equals(theirs.select("city", *shown))
        scale = 60 * ours["h_scale"][0]
        counts = [frame.select(pl.col("h").explode()).to_series() for frame in (ours, theirs)]
        # What bounding keeps of each unit is drawn anew: of a unit of one row, all.
        assert (counts[0] - counts[1]).abs().max() <= scale

    def test_keys_of_every_type(self, session, setting, tmp_path):
        """Dates, moments in another time zone, Booleans, small numbers; with Arrow's large types as well."""
        setting("spark.sql.session.timeZone", "America/St_Johns")
        setting("spark.sql.execution.arrow.useLargeVarTypes", "true")
        by = ["day", "flag", "small", "moment", "word"]
        frame = session.range(9000).selectExpr(
            "date_add(DATE '1969-12-30', CAST(id % 3 AS INT)) day",
            "IF(id % 3 = 0, NULL, id % 3 = 1) flag",
            "CAST(id % 3 - 128 AS TINYINT) small",
            "timestamp_micros(id % 3 - 1) moment",
            "IF(id % 3 = 0, '', concat('\u00e4', id % 3)) word",
        )
        asked = {"epsilon": 300.0, "delta": 1e-3, "n": dpf.count()}
        release = dpspark.release(
            frame, by, path=tmp_path / "noisy", ledger=ledger(), **{"privacy_unit": "row", **asked}
        )
        assert [field.dataType for field in release.frame.schema][:5] == [field.dataType for field in frame.schema]
        expected = {tuple(row) for row in frame.distinct().collect()}
        assert {tuple(row) for row in release.frame.select(*by).collect()} == expected
        assert release.collect().frame["n"].is_between(2999, 3001).all()

    def test_two_actions_and_another_reader_see_one_draw(self, trips, session, tmp_path):
        release = dpspark.release(
            trips,
            ["city", dpf.bins("hour", [0, 12, 24])],
            path=tmp_path / "noisy",
            ledger=ledger(),
            privacy_unit="row",
            epsilon=0.1,
            delta=1e-3,
            n=dpf.count(),
        )
        first, second = release.frame.toArrow(), release.frame.toArrow()
        assert first.equals(second)
        joined = release.frame.join(release.frame, ["city", "hour"]).where("city IS NOT NULL").count()
        assert joined == release.frame.where("city IS NOT NULL").count()
        assert pl.read_parquet(tmp_path / "noisy" / "*.parquet").height == first.num_rows
        assert release.collect().frame.height == first.num_rows
        for lost in (release, dpspark.plan(trips, path=tmp_path / "p", privacy_unit="row", epsilon=1.0, n=dpf.count())):
            with pytest.raises(DpfastError, match="cannot be pickled"):
                pickle.dumps(lost)

    @pytest.mark.parametrize("selected", [True, False])
    def test_few_rows_and_none(self, session, tmp_path, selected):
        """Most partitions are empty, and so may be all that is released: two keys are shown in 2e-15 of runs."""
        few = session.createDataFrame([("Rome", 1), ("Oslo", 2)], "city string, who int").repartition(20)
        for number, frame in enumerate((few, few.limit(0))):
            keys = {"delta": 1e-15} if selected else {"keys": KEYS}
            paid = ledger()
            path = tmp_path / f"{number}"
            release = dpspark.release(
                frame, "city", path=path, ledger=paid, epsilon=1.0, n=dpf.count(), **{"privacy_unit": "row", **keys}
            )
            assert release.frame.count() == (0 if selected else 4)
            assert paid.spent.epsilon == 1.0
            assert release.collect().frame.height == (0 if selected else 4)


class TestCharge:
    def test_a_plan_runs_once(self, trips, tmp_path):
        paid = ledger()
        plan = dpspark.plan(
            trips, "city", path=tmp_path / "noisy", keys=KEYS, epsilon=0.5, **{"privacy_unit": "row", **QUERIES}
        )
        assert "noise drawn by Spark" in plan.explain()
        assert paid.history().is_empty()
        first = plan.run(paid)
        assert plan.run(paid).collect() is first.collect()
        assert paid.spent.epsilon == 0.5
        with pytest.raises(LedgerError, match="another ledger"):
            plan.run(ledger())

    def test_a_refused_charge_reads_nothing(self, session, tmp_path, spark):
        """An action on this frame would fail."""
        trap = session.range(5).selectExpr("raise_error('read!') AS city")
        with pytest.raises(BudgetExceededError):
            dpspark.release(
                trap.selectExpr("CAST(city AS STRING) city"),
                "city",
                path=tmp_path / "n",
                ledger=dpf.Ledger(epsilon=0.1),
                keys=KEYS,
                privacy_unit="row",
                epsilon=0.5,
                n=dpf.count(),
            )
        assert list(tmp_path.iterdir()) == []

    def test_a_failure_after_the_charge_says_nothing_and_leaves_a_dead_plan(self, session, tmp_path):
        trap = session.range(5).selectExpr("CAST(raise_error('secret ' || id) AS STRING) city")
        paid = ledger()
        plan = dpspark.plan(
            trap, "city", path=tmp_path / "noisy", keys=KEYS, privacy_unit="row", epsilon=0.5, n=dpf.count()
        )
        with pytest.raises(DpfastError, match="Spark failed to aggregate the data") as caught:
            plan.run(paid)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert paid.spent.epsilon == 0.5
        with pytest.raises(LedgerError, match="failed after it was charged"):
            plan.run(paid)
        assert list(tmp_path.iterdir()) == []

    def test_exact_blocks_are_deleted_when_the_noise_fails(self, trips, tmp_path, monkeypatch):
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        monkeypatch.setattr(cluster_module, "DrawNoise", Failing)
        paid = ledger()
        with pytest.raises(DpfastError, match="Spark failed to aggregate the data"):
            dpspark.release(
                trips,
                "city",
                path=tmp_path / "noisy",
                ledger=paid,
                keys=KEYS,
                privacy_unit="row",
                epsilon=0.5,
                n=dpf.count(),
            )
        assert paid.spent.epsilon == 0.5
        assert not list(tmp_path.glob("_dpfast-sealed-*"))
        assert not list(tmp_path.rglob("*.parquet"))


class Failing(DrawNoise):
    """Fails at every attempt, with what could be an exact figure in its message."""

    def __call__(self, batches):
        raise RuntimeError("a city has 1 row")
        yield


class TestTraces:
    def test_nothing_exact_and_no_key_is_left_anywhere(self, spark, trips, tmp_path, monkeypatch, capfd):
        """Sealed files, noisy files, plans and the event log: no key, and no group that was not selected (rule 20)."""
        keys: list[bytes] = []
        draw, delete = SystemRandom.key, Folder.delete

        def key(self):
            keys.append(draw(self))
            return keys[-1]

        def keep(folder):
            path = Path(folder.path.removeprefix("file:"))
            if path.exists():
                shutil.copytree(path, tmp_path / "kept" / str(len(keys)))
            return delete(folder)

        monkeypatch.setattr(SystemRandom, "key", key)
        monkeypatch.setattr(Folder, "delete", keep)
        asked = {"delta": 1e-3, "epsilon": 300.0, "key_selection": "threshold", **UNIT, **QUERIES}
        release = dpspark.release(trips, "city", path=tmp_path / "noisy", ledger=ledger(), **asked)
        release.frame.explain(True)
        assert [path.name for path in tmp_path.iterdir() if path.name not in ("kept", "noisy")] == []
        texts = {
            "sealed": files_of(tmp_path / "kept"),
            "noisy": files_of(tmp_path / "noisy"),
            "events": files_of(spark.events),
            "output": "".join(capfd.readouterr()).encode(),
        }
        assert len(keys) > 4
        assert b"payload" in texts["sealed"]
        assert b"DrawNoise" in texts["events"]
        assert b"Rome" not in texts["sealed"]
        assert b"Rome" in texts["noisy"]
        for name, text in texts.items():
            assert b"lonely-0" not in text, name
            for each in keys:
                # The first bytes of one are in the name of the sealed folder, and of nothing that is secret.
                for written in (each, each.hex().encode(), base64.b64encode(each), repr(each)[2:-1].encode()):
                    assert written not in text, name

    def test_files_tell_nothing_of_keys_that_were_not_selected(self, trips, tmp_path):
        """With 600 lonely keys or without, what is in which file, and in which order, is the same.

        A lonely key is shown by Laplace noise of scale 1/150 that is 1, one of 600 in e**-143 of runs.
        """
        layouts = []
        for number, frame in enumerate((trips, trips.where("city IS NULL OR city NOT LIKE 'lonely%'").repartition(2))):
            by = ["city", dpf.bins("hour", [0, 6, 12, 18])]
            path = tmp_path / str(number)
            asked = {"delta": 1e-12, "epsilon": 300.0, "key_selection": "threshold", "n": dpf.count()}
            dpspark.release(frame, by, path=path, ledger=ledger(), files=4, **{"privacy_unit": "row", **asked})
            parts = {part.name[:10]: pl.read_parquet(part) for part in path.glob("part-*.parquet")}
            layouts.append({name: part.select("city", "hour").rows() for name, part in parts.items()})
        assert sum(map(len, layouts[0].values())) == 12
        assert layouts[0] == layouts[1]


class TestRefusals:
    """All of them before the charge."""

    def test_what_spark_cannot_do(self, trips, session, tmp_path):
        paid = ledger()

        def refused(line, error=ParameterError, data=trips, by="city", path=tmp_path / "noisy", **asked):
            given = {"epsilon": 1.0, "delta": 1e-6, "n": dpf.count(), **asked}
            with pytest.raises(error, match=line) as caught:
                dpspark.release(data, by, path=path, ledger=paid, **{"privacy_unit": "row", **given})
            assert "\n" not in str(caught.value)

        (tmp_path / "there").mkdir()
        (tmp_path / "file").touch()
        refused("path must be a folder that does not exist yet", path=tmp_path / "there")
        refused("path must be a folder that does not exist yet", path=tmp_path / "file")
        refused("a job over no data failed in Spark", DpfastError, path=tmp_path / "file" / "below")
        refused("path must be a path without", path=tmp_path / "a[b]")
        refused("path must be a path that", path="nowhere://bucket/noisy")
        refused("q must be made of counts and sums", q=dpf.quantile("x", 0.5, bounds=(0, 8)))
        refused("q must be made of counts and sums", q=dpf.mode("city", candidates=["Rome", "Oslo"]))
        for rule in ("weighted", "iterated", "policy"):
            refused("key_selection must be", key_selection=rule, **UNIT)
        refused("lacks", ColumnError, by="town")
        refused("cannot be a key", ColumnError, by="x")
        odd = trips.selectExpr("city", "array(x) x", "who w", "who W")
        refused("cannot sum", ColumnError, data=odd, s=dpf.sum("x", bounds=(0, 1)))
        refused("not of a stream", data=session.readStream.format("rate").load(), by="value")
        local = session.sql("SELECT TIMESTAMP_NTZ '2024-02-29 12:00:00' AS city")
        refused("Spark cannot be asked about the column", ColumnError, data=local)
        refused("two columns of the name", ColumnError, data=trips.selectExpr("city", "x city"))
        for name, given in {
            "report_cut": 0.1,
            "schema": {},
            "engine": "sql",
            "workload": "all",
            "strategy": "auto",
        }.items():
            refused(f"{name} must be left out: a release of Spark does not take it", **{name: given})
        refused("queries must be a name that Spark can tell from 'city'", City=dpf.count())
        refused("queries must be a name that Spark can tell from 'n_scale'", N_SCALE=dpf.count())
        assert paid.history().is_empty()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "there"]

    def test_a_frame_of_spark_is_refused_elsewhere_by_the_name_of_this(self, trips):
        with pytest.raises(ParameterError, match=re.escape("dpfast.integrations.spark.release")):
            dpf.release(trips, "city", ledger=ledger(), privacy_unit="row", epsilon=1.0, delta=1e-6, n=dpf.count())

    @pytest.mark.parametrize("function", [dpspark.plan, dpspark.release])
    def test_wrong_values_are_refused_by_name_and_nothing_is_spent(self, trips, tmp_path, function):
        paid = ledger()
        given = {"data": trips, "by": "city", "path": tmp_path / "noisy", "epsilon": 1.0, "delta": 1e-6, **UNIT}
        given |= {"ledger": paid} if function is dpspark.release else {}
        call = Call("spark", function, lambda: {**given, "n": dpf.count()})
        for name in call.parameters:
            declared = call.declaration(name)
            assert declared is not None, name
            for wrong in [*declared.wrong(), *([] if declared.optional else [None])]:
                with pytest.raises(DpfastError) as caught:
                    call(**{name: wrong})
                assert re.search(rf"\b{name}\b", str(caught.value)), f"{name}={wrong!r}: {caught.value}"
                assert "\n" not in str(caught.value)
        assert paid.history().is_empty()

    def test_columns_of_odd_names(self, trips, tmp_path):
        odd = trips.selectExpr("city AS `a ``b``.c,(d)=`", "who AS `ROW`", "x AS `row`")
        name = "a `b`.c,(d)="
        keys = KEYS.rename({"city": name})
        asked = {"keys": keys, "epsilon": 1.0, "privacy_unit": "ROW", "max_groups": 1, "max_rows_per_group": 1}
        queries = {"odd name; \u00e4": dpf.sum("row", bounds=(0, 8))}
        release = dpspark.release(odd, name, path=tmp_path / "noisy", ledger=ledger(), **asked, **queries)
        assert release.frame.columns[:2] == [name, "odd name; \u00e4"]
        assert release.frame.count() == 4
