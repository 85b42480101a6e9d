"""Pages on the command line: of a release beside its table, and of a ledger at any time."""

from __future__ import annotations

import json
import shutil

from .conftest import ASKED, RARE, one_line

BUDGET = ["--ledger", "l.db", "--budget-epsilon", "4", "--budget-delta", "1e-6"]
RELEASE = ["release", "trips.parquet", *ASKED, *BUDGET, "--out", "out.csv", "--report", "page.html"]


def test_a_release_and_its_ledger_have_pages(folder, run):
    result = run(*RELEASE)
    assert result.exit_code == 0, result.output
    assert "wrote page.html" in result.stdout
    page = (folder / "page.html").read_text()
    assert "Oslo" in page
    assert RARE not in page
    assert "Left afterwards" in page
    result = run("report", "l.db", "--out", "budget.html")
    assert result.exit_code == 0, result.output
    assert result.stdout == "wrote budget.html: the budget of l.db\n"
    assert "count by city" in (folder / "budget.html").read_text()
    document = json.loads(run("report", "l.db", "--out", "budget.html", "--overwrite", "--json").stdout)
    assert (document["command"], document["out"], document["ledger"]["path"]) == ("report", "budget.html", "l.db")


def test_mistakes_are_found_before_the_charge(folder, run):
    (folder / "page.html").write_text("what must not be lost")
    assert "exists and is no page" in one_line(run(*RELEASE, "--overwrite"))
    (folder / "page.html").write_text("<!doctype html>")
    assert "exists; give another name, or --overwrite" in one_line(run(*RELEASE))
    assert "must end in one of .html, .htm" in one_line(run(*RELEASE[:-1], "page.pdf"))
    assert not (folder / "l.db").exists()
    assert run(*RELEASE, "--overwrite").exit_code == 0


def test_no_ledger_is_replaced_by_its_page(folder, run):
    assert run("ledger", "create", "l.db", "--epsilon", "4").exit_code == 0
    shutil.copy("l.db", "l.html")
    before = (folder / "l.html").read_bytes()
    result = run("report", "l.html", "--out", "l.html", "--overwrite")
    assert result.exit_code == 4
    assert "is no page" in one_line(result)
    assert (folder / "l.html").read_bytes() == before
    assert run("report", "none.db", "--out", "budget.html").exit_code == 4
    assert not (folder / "budget.html").exists()
