"""Synthetic records of frames: charged before a row is read, of public values alone."""

from __future__ import annotations

import polars as pl
import pytest

import dpfast as dpf
import dpfast.integrations.polars
from dpfast.domain.counting import OpenRecords
from dpfast.errors import BudgetExceededError, ColumnError, DpfastError, ParameterError
from dpfast.synthesis.synthesizing import READING

PEOPLE = pl.DataFrame({"sex": ["f", "m", "m"] * 400, "age": [20, 40, 70] * 400, "name": ["secret"] * 1200})
DOMAIN = dpf.Domain({"sex": ["f", "m"], "age": dpf.bins("age", [0, 30, 60, 120])})
FORMS = {
    "DataFrame": lambda frame: frame,
    "LazyFrame": lambda frame: frame.lazy(),
    "categorical": lambda frame: frame.with_columns(pl.col("sex").cast(pl.Categorical)),
    "chunks": lambda frame: pl.concat([frame[:7], frame[7:]], rechunk=False),
    "slice": lambda frame: pl.concat([frame, frame]).lazy().slice(1200),
}


@pytest.fixture
def ledger():
    return dpf.Ledger(epsilon=1000)


@pytest.mark.parametrize("form", FORMS)
def test_records_are_as_the_rows_are(ledger, form):
    """With so much of a budget the three pairs that there are have 400 records each; fails with less than 1e-9."""
    made = FORMS[form](PEOPLE).dpf.synthesize(DOMAIN, epsilon=100.0, ledger=ledger)
    assert ledger.spent.epsilon == made.spent.epsilon == 100
    assert made.entry == 1
    assert made.frame.columns == ["sex", "age"]
    cells = made.frame.group_by("sex", pl.col("age") // 30 * 30).len()
    counts = {(sex, age if age < 90 else 60): number for sex, age, number in cells.rows() if age in (0, 30)}
    assert counts.get(("f", 0), 0) == pytest.approx(400, abs=20)
    assert counts.get(("m", 30), 0) == pytest.approx(400, abs=20)
    assert made.frame.height == pytest.approx(1200, abs=20)
    assert DOMAIN.records(made.estimate, 10).height == 10
    assert "spent epsilon 100" in repr(made)


def test_the_charge_comes_before_any_row(ledger, monkeypatch):
    seen = []
    count = OpenRecords.count
    monkeypatch.setattr(OpenRecords, "count", lambda self: seen.append(ledger.spent.epsilon) or count(self))
    stages = []
    PEOPLE.lazy().dpf.synthesize(DOMAIN, epsilon=0.5, rounds=3, ledger=ledger, progress=stages.append)
    assert seen == [0.5]
    assert stages[:2] == ["charging the ledger", READING]
    assert stages[-1].endswith("rounds")


def test_an_empty_frame_is_charged(ledger):
    made = PEOPLE[:0].dpf.synthesize(DOMAIN, epsilon=0.5, rows=7, ledger=ledger)
    assert (made.frame.height, ledger.spent.epsilon) == (7, 0.5)
    rho = dpf.Ledger(epsilon=1, delta=1e-6, accountant="zcdp")
    assert PEOPLE[:0].lazy().dpf.synthesize(DOMAIN, rho=0.01, rows=0, ledger=rho).frame.height == 0


@pytest.mark.parametrize("values", [[None] * 3, ["x", "y", "f"]])
def test_what_is_not_declared_is_left_out_or_null(ledger, values):
    rows = pl.LazyFrame({"sex": values * 100}, schema={"sex": pl.String})
    left = rows.dpf.synthesize(dpf.Domain({"sex": ["f", "m"]}), epsilon=100.0, ledger=ledger).frame
    assert left["sex"].null_count() == 0
    kept = rows.dpf.synthesize(dpf.Domain({"sex": ["f", "m"]}, "null"), epsilon=100.0, ledger=ledger).frame
    assert kept["sex"].null_count() == pytest.approx(300 - 100 * values.count("f"), abs=10)


def test_rows_that_fail_are_charged_and_their_values_are_not_shown(ledger):
    rows = PEOPLE.lazy().with_columns(age=pl.col("name").cast(pl.Int64, strict=True))
    with pytest.raises(DpfastError, match="cannot be read to its end") as raised:
        rows.dpf.synthesize(DOMAIN, epsilon=0.5, ledger=ledger)
    error = raised.value
    while error is not None:
        assert "secret" not in str(error)
        error = error.__cause__ or error.__context__
    assert ledger.spent.epsilon == 0.5


def test_what_is_wrong_is_refused_before_the_charge(ledger):
    wrong = {
        "over the cells of the domain": {"workload": dpf.workloads.prefix(4)},
        "neighbors must be .*outside": {"neighbors": "replace"},
        "epsilon": {"epsilon": None},
        "rho": {"rho": 0.1, "epsilon": None},
        "rows": {"rows": -1},
        "rounds": {"rounds": 0},
        "domain must be a dpfast.Domain": {"domain": {"sex": ["f", "m"]}},
        "sexes": {"domain": dpf.Domain({"sexes": ["f", "m"]})},
        "schema": {"schema": {"sex": pl.String}},
        "progress": {"progress": 3},
    }
    for told, given in wrong.items():
        with pytest.raises((ParameterError, ColumnError), match=told):
            PEOPLE.dpf.synthesize(**{"domain": DOMAIN, "epsilon": 0.5, "ledger": ledger, **given})
    with pytest.raises(BudgetExceededError):
        PEOPLE.dpf.synthesize(DOMAIN, epsilon=1001, ledger=ledger)
    assert ledger.spent.epsilon == 0
    assert ledger.history().height == 0


def test_a_clamping_domain_may_leave_rows_out_too(ledger):
    domain = dpf.Domain({"age": dpf.bins("age", [0, 30])}, outside="clamp")
    with pytest.raises(ParameterError, match="neighbors"):
        PEOPLE.dpf.synthesize(domain, neighbors="replace", epsilon=0.5, ledger=ledger)
    kept = dpf.Domain({"age": dpf.bins("age", [0, 30])}, outside="null")
    replaced = dpf.Ledger(epsilon=1000)
    assert PEOPLE.dpf.synthesize(kept, neighbors="replace", epsilon=100.0, ledger=replaced).frame.height == 1200
    assert replaced.identity.neighbors == "replace"


def test_a_progress_that_says_no_ends_the_rounds_and_keeps_the_charge(ledger):
    domain = dpf.Domain(dict.fromkeys("abcd", 3))
    rows = pl.LazyFrame({name: [0, 1, 2] * 10 for name in "abcd"})
    made = rows.dpf.synthesize(domain, epsilon=1.0, rounds=4, ledger=ledger, progress=lambda stage: "1 of" not in stage)
    assert not made.estimate.complete
    assert made.estimate.rounds.height < 4
    assert ledger.spent.epsilon == 1
    assert made.frame.columns == list("abcd")


def test_a_file_is_known_by_its_path(ledger, tmp_path):
    path = tmp_path / "people.parquet"
    PEOPLE.write_parquet(path)
    dpf.synthesize(path, DOMAIN, epsilon=0.5, rows=1, ledger=ledger)
    assert ledger.identity.dataset == str(path)


def test_records_that_cannot_be_drawn_do_not_lose_what_was_paid_for(ledger, monkeypatch):
    made = PEOPLE.dpf.synthesize(DOMAIN, epsilon=0.5, rows=9, ledger=ledger)
    with monkeypatch.context() as patch:
        patch.setattr(type(made.estimate), "draw_parts", lambda *_, **__: (_ for _ in ()).throw(MemoryError()))
        with pytest.raises(MemoryError):
            made.frame.head()
    assert made.frame.height == 9
    assert made.frame is made.frame
    assert ledger.spent.epsilon == 0.5
