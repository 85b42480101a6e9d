"""dpfast select: the best candidates of every group, charged to a ledger."""

from __future__ import annotations

import polars as pl
import pytest

import dpfast as dpf

from .conftest import one_line

ASKED = ["--score", "cases", "--candidate", "illness", "--ledger", "ledger.db"]


@pytest.fixture
def cases(folder):
    """Return a folder with counts of illnesses by ward and a ledger for them."""
    table = pl.DataFrame(
        {
            "ward": ["b", "a", "b", "a", "b"],
            "illness": ["flu", "flu", "gout", "gout", "rash"],
            "cases": [10, 900, 500, 3, 900],
        }
    )
    table.write_parquet("cases.parquet")
    table.write_csv("cases.csv")
    dpf.Ledger.open("ledger.db", 2.0).close()
    return folder


def test_winners_by_group(cases, run):
    asked = [*ASKED, "--by", "ward", "--monotonic", "--epsilon", "0.5"]
    result = run("select", "cases.parquet", *asked, "--out", "most.parquet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "wrote most.parquet: 2 answers; charged ledger.db; left: epsilon 1, delta 0\n"
    assert pl.read_parquet("most.parquet").rows() == [("b", "rash"), ("a", "flu")]
    assert "selections of cases.parquet" in run("ledger", "show", "ledger.db").stdout
    result = run("select", "cases.parquet", *asked, "--epsilon", "0.6", "--out", "more.parquet")
    assert (result.exit_code, "nothing was charged" in one_line(result)) == (3, True)


def test_several_winners_in_order(cases, run):
    result = run("select", "cases.parquet", *ASKED, "--by", "ward", "--top", "2", "--epsilon", "1", "--out", "-")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "ward,illness,rank\nb,rash,1\nb,gout,2\na,flu,1\na,gout,2\n"


def test_one_selection_in_all(cases, run):
    run("ledger", "create", "rho.db", "--epsilon", "3", "--delta", "1e-6", "--accountant", "zcdp")
    asked = [*ASKED[:4], "--ledger", "rho.db", "--rho", "0.1"]
    pl.DataFrame({"illness": ["flu", "gout"], "cases": [9, 900]}).write_ipc("all.arrow")
    result = run("select", "all.arrow", *asked, "--out", "-")
    assert (result.exit_code, result.stdout) == (0, "illness\ngout\n")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["cases.csv", "--epsilon", "1"], 2, "write CSV as Parquet first"),
        (["cases.parquet"], 2, "--epsilon must be given"),
        (["cases.parquet", "--epsilon", "0"], 2, "--epsilon"),
        (["cases.parquet", "--epsilon", "1", "--by", "nowhere"], 2, "--by: there is no column 'nowhere'"),
        (["cases.parquet", "--epsilon", "1", "--score", "ward"], 2, "--score must be a column of numbers"),
        (["cases.parquet", "--epsilon", "1", "--by", "cases"], 2, "columns of their own"),
        (["cases.parquet", "--epsilon", "1", "--top", "0"], 2, "--top must be a whole number"),
        (["cases.parquet", "--epsilon", "1", "--sensitivity", "-1"], 2, "--sensitivity must be"),
        (["cases.parquet", "--rho", "1"], 2, "--rho must be left out"),
    ],
)
def test_mistakes(cases, run, arguments, code, told):
    """One line that says how to mend it; nothing is charged."""
    result = run("select", *ASKED, *arguments, "--out", "o.parquet")
    assert (result.exit_code, told in one_line(result)) == (code, True), result.stderr
    assert dpf.Ledger.open("ledger.db").spent.epsilon == 0
