"""Tables of queries on the command line, and ledgers that are reported on and verified."""

from __future__ import annotations

import polars as pl
import pytest

import dpfast as dpf

from .conftest import one_line


@pytest.fixture
def queries(folder):
    """Return a folder with a table of ten queries and a ledger for them."""
    table = pl.DataFrame({"name": [f"q{n}" for n in range(10)], "count": range(10), "epsilon": [0.1] * 10})
    table.write_parquet("queries.parquet")
    table.write_ipc("queries.arrow")
    table.write_csv("queries.csv")
    dpf.Ledger.open("ledger.db", 1.0).close()
    return folder


ASKED = ["--value", "count", "--ledger", "ledger.db"]


def test_answers(queries, run):
    result = run("answer", "queries.parquet", *ASKED, "--epsilon", "epsilon", "--out", "answers.parquet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == ("wrote answers.parquet: 10 answers; charged ledger.db; left: epsilon 0, delta 0\n")
    answers = pl.read_parquet("answers.parquet")
    assert answers.columns == ["name", "epsilon", "answer", "answer_scale", "answer_lower", "answer_upper"]
    result = run("answer", "queries.parquet", *ASKED, "--epsilon", "epsilon", "--out", "more.parquet")
    assert result.exit_code == 3
    assert "nothing was charged" in one_line(result)
    assert not (queries / "more.parquet").exists()


def test_answers_on_standard_output(queries, run):
    result = run("answer", "queries.arrow", *ASKED, "--epsilon", "1", "--weight", "epsilon", "--out", "-")
    assert result.exit_code == 0
    assert result.stdout.startswith("name,epsilon,answer,answer_scale,answer_lower,answer_upper\n")
    assert dpf.Ledger.open("ledger.db").remaining.epsilon < 1e-11


def test_answers_by_rho(queries, run):
    assert run("ledger", "create", "rho.db", "--epsilon", "3", "--delta", "1e-6", "--accountant", "zcdp").exit_code == 0
    asked = ["--value", "count", "--ledger", "rho.db", "--rho", "0.001", "--out", "a.csv"]
    result = run("answer", "queries.parquet", *asked)
    assert result.exit_code == 0, result.stderr
    assert dpf.Ledger.open("rho.db").spent.rho == pytest.approx(0.01, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["queries.csv", "--epsilon", "1"], 2, "write CSV as Parquet first"),
        (["nowhere.parquet", "--epsilon", "1"], 4, "there is no file"),
        (["queries.parquet"], 2, "--epsilon must be given"),
        (["queries.parquet", "--epsilon", "nowhere"], 2, "--epsilon must be one of the table's columns"),
        (["queries.parquet", "--epsilon", "-1"], 2, "--epsilon must be"),
        (["queries.parquet", "--rho", "1"], 2, "rho must be left out"),
        (["queries.parquet", "--epsilon", "1", "--mechanism", "cauchy"], 2, "--mechanism must be"),
        (["queries.parquet", "--epsilon", "1", "--ledger", "none.db"], 4, "there is no ledger 'none.db'"),
        (["queries.parquet", "--epsilon", "1", "--out", "ledger.db"], 2, "must end in one of"),
        (["queries.parquet", "--epsilon", "1", "--out", "queries.parquet"], 4, "exists"),
    ],
)
def test_mistakes(queries, run, arguments, code, told):
    if "--out" not in arguments:
        arguments = [*arguments, "--out", "out.parquet"]
    before = sorted(path.name for path in queries.iterdir())
    result = run("answer", arguments[0], *ASKED, *arguments[1:])
    assert result.exit_code == code, result.stderr
    assert told in one_line(result)
    with dpf.Ledger.open("ledger.db") as ledger:
        assert ledger.spent.epsilon == 0.0
    assert sorted(path.name for path in queries.iterdir()) == before


def test_report_and_verify(queries, run):
    run("answer", "queries.parquet", *ASKED, "--epsilon", "epsilon", "--out", "answers.parquet")
    result = run("ledger", "report", "ledger.db", "--delta", "1e-6")
    assert result.exit_code == 0
    assert "privacy loss distribution" in result.stdout
    verified = run("ledger", "verify", "ledger.db")
    assert verified.stdout.startswith("ledger.db is in order: 10 charges, epsilon 0, delta 0 left, head ")
    head = verified.stdout.split()[-1]
    assert run("ledger", "verify", "ledger.db", "--expect-head", head).exit_code == 0
    result = run("ledger", "show", "ledger.db", "--expect-head", "0" * 64)
    assert result.exit_code == 4
    assert "has never had the head" in one_line(result)
    content = bytearray((queries / "ledger.db").read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    (queries / "ledger.db").write_bytes(content)
    result = run("ledger", "verify", "ledger.db")
    assert result.exit_code == 4
    assert "damaged" in one_line(result)


def test_report_on_an_allotment(queries, run):
    with dpf.Ledger.open("ledger.db") as ledger:
        ledger.allot("team-a", epsilon=0.3)
    assert "budget" in run("ledger", "report", "ledger.db", "--allotment", "team-a").stdout
    assert "no allotment 'team-b'" in one_line(run("ledger", "report", "ledger.db", "--allotment", "team-b"))
