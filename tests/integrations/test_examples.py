"""The programs in examples/ about pipelines run on small data, and do what they say."""

from __future__ import annotations

import datetime
import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpfast as dpf

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def main_of(name: str) -> Any:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]


def write_day(folder: Path, day: str, rows: int = 1000) -> None:
    part = folder / "visits" / f"day={day}"
    part.mkdir(parents=True, exist_ok=True)
    visits = {"page": ["home", "cart"] * (rows // 2), "visitor": range(rows), "seconds": np.arange(rows) % 100}
    pl.DataFrame(visits).write_parquet(part / f"{len(list(part.iterdir()))}.parquet")


def test_hourly_release(tmp_path, monkeypatch):
    """Hour by hour, with a run that is killed after its charge: each day is drawn once, and paid once."""
    main, today = main_of("hourly_release"), datetime.date(2026, 3, 3)
    write_day(tmp_path, "2026-03-01")
    write_day(tmp_path, "2026-03-01")
    write_day(tmp_path, "2026-03-03")
    assert main(tmp_path, today) == {"2026-03-01": "released for epsilon 0.5"}
    first = pl.read_parquet(tmp_path / "released" / "2026-03-01.parquet")
    assert first["page"].to_list() == ["home", "search", "cart", "help"]
    assert abs(first["visits"][0] - 1000) < 400  # e**-10: noise of scale 40
    assert main(tmp_path, today) == {"2026-03-01": "done before"}

    write_day(tmp_path, "2026-03-02")
    with monkeypatch.context() as patch:
        patch.setattr(pl.DataFrame, "write_parquet", lambda *given, **named: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            main(tmp_path, today)
    lost = "charged by another run, which has not written its result"
    assert main(tmp_path, today) == {"2026-03-01": "done before", "2026-03-02": lost}
    assert main(tmp_path, datetime.date(2026, 3, 4))["2026-03-03"] == "released for epsilon 0.5"
    with dpf.Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.spent.epsilon == 1.5
    assert pl.read_parquet(tmp_path / "released" / "2026-03-01.parquet").equals(first)


def test_a_ledger_of_the_hourly_job_that_is_used_up_says_so(tmp_path):
    """60 days are paid for; what is set aside for a day stays there for it."""
    main, today = main_of("hourly_release"), datetime.date(2026, 3, 2)
    with dpf.Ledger.open(tmp_path / "ledger.db", epsilon=30, dataset="visits", privacy_unit="column:visitor") as ledger:
        for day in range(59):
            ledger.allot(f"day {day}", epsilon=0.5)
        ledger.allot("2026-03-01", epsilon=0.5)
    write_day(tmp_path, "2026-03-01")
    write_day(tmp_path, "2026-03-02")
    assert main(tmp_path, today) == {"2026-03-01": "released for epsilon 0.5"}
    done = main(tmp_path, datetime.date(2026, 3, 3))
    assert done == {"2026-03-01": "done before", "2026-03-02": "not released: the ledger's budget is used up"}


def test_the_page_runs_cell_by_cell():
    """Twice over the whole, and the release's cell once more: the plan of a page is charged once for each plan."""
    page = json.loads((EXAMPLES / "first_release.ipynb").read_text())
    assert (page["nbformat"], page["nbformat_minor"]) == (4, 4)
    cells = ["".join(cell["source"]) for cell in page["cells"] if cell["cell_type"] == "code"]
    assert all(not cell.get("outputs") for cell in page["cells"])
    names: dict[str, Any] = {"print": lambda *shown: None}
    for cell in (*cells, cells[2], cells[2]):
        exec(cell, names)
    assert names["ledger"].spent.epsilon == 1.0
    assert names["release"].frame["city"].to_list() == ["Bonn", "Lyon", "Oslo", "Rome"]


def test_duckdb_query():
    pytest.importorskip("duckdb")
    frames = main_of("duckdb_query")()
    assert list(frames) == ["rows", "sql"]
    for frame in frames.values():
        assert frame["region"].to_list() == ["east", "north", "south", "west"]
        assert (frame["orders"] > 10_000).all()


def test_postgresql_table(postgresql):
    import psycopg

    with psycopg.connect(postgresql.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE patients (patient bigint, illness text, age integer)")
        connection.execute(
            "INSERT INTO patients SELECT i, (ARRAY['asthma', 'none'])[1 + i % 2], 10 + i % 70 "
            "FROM generate_series(1, 8000) i"
        )
        try:
            frame = main_of("postgresql_table")(postgresql.url)
        finally:
            connection.execute("DROP TABLE patients")
    assert frame["illness"].to_list() == ["asthma", "diabetes", "hypertension", "none"]
    # e**-30: noise of scale 6 (two groups, a third of epsilon).
    assert frame["cases"].gather([0, 3]).is_between(3300, 3800).all()
