"""The namespace ``dpf``: it hands on what it is given, whatever the frame, and specifications are no expressions."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
import weakref
from datetime import date

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest

import dpfast as dpf
import dpfast.integrations.polars as namespace
from dpfast.errors import BudgetExceededError, ColumnError, DpfastError, LedgerError, ParameterError

from .barrier import IS_OLD

ROWS = pl.DataFrame({"k": ["a", "b", None] * 20, "x": [0.25, 0.5, 1.0] * 20, "u": range(60)})
KEYS = pl.DataFrame({"k": ["a", "b", "c", None]})
#: With so much of it a count is exact, and a sum within 0.5, but with a probability of e**-50.
PLENTY = 100.0
FORMS = {
    "DataFrame": lambda frame: frame,
    "LazyFrame": lambda frame: frame.lazy(),
    "chunks": lambda frame: pl.concat([frame[:7], frame[7:8], frame[8:]], rechunk=False),
    "slice": lambda frame: pl.concat([frame.head(1)[:0], frame, frame])[: frame.height],
    "lazy slice": lambda frame: pl.concat([frame, frame]).lazy().slice(frame.height),
    "categorical": lambda frame: frame.with_columns(pl.col("k").cast(pl.Categorical)),
    "enum": lambda frame: frame.with_columns(pl.col("k").cast(pl.Enum(["b", "z", "a", "c"]))),
    "lazy query": lambda frame: frame.lazy().with_columns(x=pl.col("x") * 2).with_columns(x=pl.col("x") / 2),
}


@pytest.fixture(params=FORMS)
def formed(request):
    return FORMS[request.param]


def ledger():
    return dpf.Ledger(epsilon=1000, delta=0.1)


def test_dpfast_alone_imports_neither_polars_nor_the_namespace():
    program = "import sys, dpfast; assert not {'polars', 'numba'} & sys.modules.keys()"
    both = f"{program}; import polars; assert not hasattr(polars.LazyFrame, 'dpf')"
    done = f"{both}; import dpfast.integrations.polars as n; assert polars.DataFrame.dpf is polars.LazyFrame.dpf"
    subprocess.run([sys.executable, "-W", "error", "-c", done], check=True, timeout=1200)


def test_a_release_reads_as_it_should(formed):
    account = ledger()
    release = formed(ROWS).dpf.release(
        by="k",
        n=pl.col("x").dpf.count(),
        s=pl.col("x").dpf.sum(bounds=(0, 1)),
        m=pl.col("x").dpf.mean(bounds=(0, 1)),
        q=pl.col("x").dpf.quantile(0.5, bounds=(0, 1), grid=0.25),
        keys=KEYS,
        privacy_unit="row",
        epsilon=4 * PLENTY,
        ledger=account,
    )
    frame = release.frame
    assert frame["k"].to_list() == ["a", "b", "c", None]
    assert frame["n"].to_list() == [20, 20, 0, 20]
    assert frame["s"].to_list() == pytest.approx([5, 10, 0, 20], abs=0.5)
    assert frame.filter(pl.col("n") > 0)["m"].to_list() == pytest.approx([0.25, 0.5, 1.0], abs=0.1)
    assert frame.filter(pl.col("n") > 0)["q"].to_list() == [0.25, 0.5, 1.0]
    assert account.spent.epsilon == 4 * PLENTY


def test_keys_units_modes_and_bins(formed):
    account = ledger()
    options = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 1, "delta": 1e-9, "epsilon": 4 * PLENTY}
    plan = formed(ROWS).dpf.plan(
        pl.col("x").dpf.bins([0, 0.4, 2]), top=pl.col("k").dpf.mode(candidates=["a", "b", None]), **options
    )
    assert account.spent.epsilon == 0
    assert plan.run(account).frame.select("x", "top").rows() in ([(0.0, "a"), (0.4, "b")], [(0.0, "a"), (0.4, None)])


def test_each_method_hands_everything_on():
    for name in ("plan", "release", "answer", "synthesize"):
        seen = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(namespace, name, lambda *given, seen=seen, **named: seen.append((given, named)))
            method = getattr(namespace.Frames(ROWS), name)
            parameters = inspect.signature(method).parameters.values()
            named = {one.name: object() for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD}
            asked = {"self": 1, "queries": 2, "given": 3} if name in ("plan", "release") else {}
            method(**named, **asked)
        ((given, handed_on),) = seen
        assert given == (ROWS,)
        assert handed_on == named | asked


def test_queries_may_have_any_name_but_those_of_parameters():
    names = ["self", "queries", "frame", "given", "name"]
    account = ledger()
    release = ROWS.dpf.release(ledger=account, privacy_unit="row", epsilon=1.0, **{name: dpf.count() for name in names})
    assert [name for name in names if name not in release.frame.columns] == []
    with pytest.raises(TypeError, match="data"):
        ROWS.dpf.plan(privacy_unit="row", epsilon=1.0, data=dpf.count())
    with pytest.raises(ParameterError, match="epsilom"):
        ROWS.dpf.plan(epsilom=1.0, n=dpf.count(), privacy_unit="row")


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize(
    "rows",
    [
        ROWS[:0],
        ROWS.with_columns(k=pl.lit(None, pl.String)),
        ROWS.with_columns(x=pl.lit(float("nan"))),
        ROWS.with_columns(x=pl.lit(None, pl.Float64)),
        ROWS.with_columns(x=pl.lit(float("-inf"))),
        ROWS[:1],
    ],
    ids=["empty", "null keys", "NaN", "null", "infinite", "one row"],
)
def test_whatever_the_rows_the_charge_and_the_columns_are_the_same(rows, lazily):
    """Soundness rule 12: an empty frame is charged and released like any other."""
    account = ledger()
    frame = rows.lazy() if lazily else rows
    asked = {"n": dpf.count(), "s": pl.col("x").dpf.sum(bounds=(0, 1)), "m": pl.col("x").dpf.mean(bounds=(0, 1))}
    release = frame.dpf.release("k", keys=KEYS, epsilon=4 * PLENTY, ledger=account, **{"privacy_unit": "row", **asked})
    assert account.spent.epsilon == 4 * PLENTY
    exact = rows.group_by("k").len()
    joined = release.frame.join(exact, on="k", how="left", nulls_equal=True)
    assert (joined["n"] == joined["len"].fill_null(0)).all()
    assert release.frame.null_count().row(0) == (1,) + (0,) * (release.frame.width - 1)
    assert release.frame["s"].is_between(-0.5, 35.5).all()
    assert (
        release.frame.schema
        == ROWS.dpf.plan("k", keys=KEYS, epsilon=1.0, **{"privacy_unit": "row", **asked}).lazy(account).collect_schema()
    )


def test_a_million_rows():
    rows = pl.LazyFrame({"k": np.arange(10**6) % 3, "x": np.ones(10**6)})
    account = ledger()
    release = rows.dpf.release(
        "k", keys=pl.DataFrame({"k": [0, 1, 2]}), n=dpf.count(), s=pl.col("x").dpf.sum(bounds=(0, 1)),
        privacy_unit="row", epsilon=2 * PLENTY, ledger=account,
    )  # fmt: skip
    assert release.frame["n"].to_list() == [333334, 333333, 333333]
    assert release.frame["s"].to_list() == pytest.approx(release.frame["n"].to_list(), abs=0.5)


def fails(frame):
    """Return a LazyFrame whose schema is right and whose values are not."""
    return frame.lazy().with_columns(x=pl.col("k").cast(pl.Float64, strict=True))


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_rows_that_fail_are_charged_and_leave_a_dead_plan(engine):
    """No word of the engine's error, which quotes values, is in what is raised."""
    account = ledger()
    plan = fails(ROWS).dpf.plan(
        "u", keys=pl.DataFrame({"u": [1]}), s=pl.col("x").dpf.sum(bounds=(0, 1)), privacy_unit="row", epsilon=0.5
    )
    lazy = plan.lazy(account)
    lazy.explain()
    lazy.collect_schema()
    assert account.spent.epsilon == 0
    kind = pl.exceptions.ComputeError if IS_OLD else DpfastError
    with pytest.raises(kind, match="cannot be read to its end") as raised:
        lazy.collect(engine=engine)
    error = raised.value
    while error is not None:
        assert "conversion" not in str(error)
        error = error.__cause__ or error.__context__
    assert account.spent.epsilon == 0.5
    for again in (lambda: lazy.collect(engine=engine), lambda: plan.run(account)):
        with pytest.raises((LedgerError, kind), match="failed after it was charged"):
            again()
    assert account.spent.epsilon == 0.5
    with pytest.raises(DpfastError, match="cannot be read to its end"):
        fails(ROWS).dpf.release(s=pl.col("x").dpf.sum(bounds=(0, 1)), privacy_unit="row", epsilon=0.25, ledger=account)
    assert account.spent.epsilon == 0.75


def test_a_query_that_has_no_schema_is_not_charged():
    account = ledger()
    broken = ROWS.lazy().select(pl.col("none such"))
    for ask in (broken.dpf.release, broken.dpf.plan):
        named = {"ledger": account} if ask.__name__ == "release" else {}
        with pytest.raises((DpfastError, pl.exceptions.PolarsError)):
            ask(n=dpf.count(), privacy_unit="row", epsilon=0.5, **named)
    with pytest.raises(ColumnError, match="none such"):
        ROWS.lazy().dpf.release(
            s=pl.col("none such").dpf.sum(bounds=(0, 1)), privacy_unit="row", epsilon=0.5, ledger=account
        )
    assert account.spent.epsilon == 0


def test_what_is_asked_of_a_column_is_what_the_functions_return():
    column = pl.col("x").dpf
    assert column.count() == dpf.count("x")
    assert column.sum(bounds=(0, 1)) == dpf.sum("x", bounds=(0, 1))
    assert column.mean(bounds=(0, 1)) == dpf.mean("x", bounds=(0, 1))
    assert column.quantile([0.5, 0.1], bounds=(0, 1), grid=0.5) == dpf.quantile(
        "x", [0.5, 0.1], bounds=(0, 1), grid=0.5
    )
    assert column.mode(candidates=["a", None]) == dpf.mode("x", candidates=["a", None])
    assert column.bins([0, 1]) == dpf.bins("x", [0, 1])
    assert pl.col("").dpf.sum(bounds=(0, 1)) == dpf.sum("", bounds=(0, 1))
    assert pl.col.x.dpf.sum(bounds=(0, 1)) == dpf.sum("x", bounds=(0, 1))
    assert not isinstance(column.sum(bounds=(0, 1)), pl.Expr)


REFUSED = {
    "computed": (pl.col("x") + 1, r"lf\.with_columns\(y=\.\.\.\)"),
    "cast": (pl.col("x").cast(pl.Int8), r"lf\.with_columns"),
    "aggregated": (pl.col("x").sum(), r"lf\.with_columns"),
    "window": (pl.col("x").over("k"), r"lf\.with_columns"),
    "filtered": (pl.col("x").filter(pl.col("x") > 0), r"lf\.with_columns"),
    "two columns": (pl.col("x") * pl.col("y"), r"lf\.with_columns"),
    "condition": (pl.when(pl.col("x") > 0).then(1), r"lf\.with_columns"),
    "literal": (pl.lit(31337), r"lf\.with_columns"),
    "length": (pl.len(), r"lf\.with_columns"),
    # Before 1.36 it is the same as pl.col("").
    **({"element": (pl.element(), r"lf\.with_columns")} if not pl.element().meta.is_column() else {}),
    "alias": (pl.col("x").alias("y"), r"by its keyword: y=pl\.col"),
    "own alias": (pl.col("x").alias("x"), r"by its keyword"),
    "suffix": (pl.col("x").name.suffix("_y"), r"by its keyword"),
    "all": (pl.all(), "a query for each"),
    "star": (pl.col("*"), "a query for each"),
    "pattern": (pl.col("^x.*$"), "a query for each"),
    "several": (pl.col("x", "y"), "a query for each"),
    "list": (pl.col(["x"]), "a query for each"),
    "dtype": (pl.col(pl.Int64), "a query for each"),
    "place": (pl.nth(0), "a query for each"),
    "selector": (cs.by_name("x"), "a query for each"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_expressions_are_refused_in_one_line(kind):
    expression, mend = REFUSED[kind]
    asked = expression.dpf
    for ask in (
        asked.count,
        lambda: asked.sum(bounds=(0, 1)),
        lambda: asked.mean(bounds=(0, 1)),
        lambda: asked.quantile(0.5, bounds=(0, 1)),
        lambda: asked.mode(candidates=["a"]),
        lambda: asked.bins([0, 1]),
    ):
        with pytest.raises(ParameterError, match=f"column must be a bare column.*{mend}") as raised:
            ask()
        assert "\n" not in str(raised.value)
        assert "31337" not in str(raised.value)


def test_a_frame_goes_when_it_is_done_with():
    """Polars keeps a namespace in its frame; a circle would keep the rows of both in memory."""
    gc.disable()
    try:
        for made in (ROWS.clone, ROWS.lazy):
            frame = made()
            gone = weakref.ref(frame)
            frame.dpf.release(n=dpf.count(), privacy_unit="row", epsilon=0.5, ledger=ledger())
            del frame
            assert gone() is None
    finally:
        gc.enable()


def test_a_frame_that_grows_is_released_as_it_is():
    frame, account = ROWS.clone(), ledger()
    first = frame.dpf
    assert first.release(n=dpf.count(), privacy_unit="row", epsilon=PLENTY, ledger=account).frame["n"].item() == 60
    frame.extend(ROWS)
    assert frame.dpf.release(n=dpf.count(), privacy_unit="row", epsilon=PLENTY, ledger=account).frame["n"].item() == 120
    assert first.release(n=dpf.count(), privacy_unit="row", epsilon=PLENTY, ledger=account).frame["n"].item() == 120


def test_a_charge_that_does_not_fit_spends_nothing():
    account = dpf.Ledger(epsilon=0.4)
    with pytest.raises(BudgetExceededError):
        ROWS.dpf.release(n=dpf.count(), privacy_unit="row", epsilon=0.5, ledger=account)
    plan = ROWS.lazy().dpf.plan(n=dpf.count(), privacy_unit="row", epsilon=0.3)
    lazy = plan.lazy(account)
    ROWS.dpf.release(n=dpf.count(), privacy_unit="row", epsilon=0.2, ledger=account)
    for engine in ("in-memory", "streaming"):
        kind = pl.exceptions.ComputeError if IS_OLD else BudgetExceededError
        with pytest.raises(kind, match=r"epsilon 0\.3 and delta 0 were asked"):
            lazy.collect(engine=engine)
    assert account.spent.epsilon == 0.2
    other = dpf.Ledger(epsilon=1)  # nothing was charged: the plan is not dead
    assert plan.lazy(other).collect().height == 1
    with pytest.raises(pl.exceptions.ComputeError if IS_OLD else LedgerError, match="another ledger"):
        plan.lazy(dpf.Ledger(epsilon=1)).collect()
    assert other.spent.epsilon == 0.3


def test_answers_of_a_frame_and_none_of_a_lazy_one():
    account = ledger()
    queries = pl.DataFrame({"ward": ["a", "b"], "count": [1200, 87]})
    answered = queries.dpf.answer(value="count", epsilon=PLENTY, ledger=account)
    assert answered.select("ward", "answer").rows() == [("a", 1200), ("b", 87)]
    assert account.spent.epsilon == 2 * PLENTY
    with pytest.raises(ParameterError, match=r"^table must be .*LazyFrame.*collect it first"):
        queries.lazy().dpf.answer(value="count", epsilon=PLENTY, ledger=account)
    assert account.spent.epsilon == 2 * PLENTY


def test_dates_and_columns_without_a_name():
    rows = pl.LazyFrame({"": [1, 2, 3], "day": [date(2026, 1, 1)] * 3})
    days = pl.DataFrame({"day": [date(2026, 1, 1), date(2026, 1, 2)]})
    asked = {"s": pl.col("").dpf.sum(bounds=(0, 3)), "epsilon": PLENTY, "ledger": ledger()}
    assert rows.dpf.release("day", keys=days, **{"privacy_unit": "row", **asked}).frame["s"].to_list() == [6, 0]
