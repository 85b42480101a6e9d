"""No output replaces a file that the same command reads or writes, whether it exists before or not."""

from __future__ import annotations

import os

import pytest

from .conftest import ASKED, one_line

BUDGET = ["--budget-epsilon", "4", "--budget-delta", "1e-6"]
DOMAIN = ["domain", "trips.parquet", "--columns", "city", "--private", "--epsilon", "1", "--delta", "1e-8"]
RELEASE = ["release", "trips.parquet", *ASKED]
SYNTHESIZE = ["synthesize", "trips.parquet", "--columns", "city", "--values", "city:Oslo,Rome", "--epsilon", "1"]


@pytest.mark.parametrize("command", [DOMAIN, RELEASE, SYNTHESIZE], ids=lambda command: command[0])
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("named", ["same", "another name", "link"])
def test_a_ledger_is_not_replaced(folder, run, command, exists, named):
    if exists:
        assert run("ledger", "create", "l.json", "--epsilon", "4", "--delta", "1e-6").exit_code == 0
    before = (folder / "l.json").read_bytes() if exists else None
    out = {"same": "l.json", "another name": "./l.json", "link": "link.json"}[named]
    if named == "link":
        os.symlink("l.json", "link.json")
    budget = [] if exists else BUDGET
    done = run(*command, "--ledger", "l.json", *budget, "--out", out, "--overwrite")
    assert done.exit_code == 4
    assert "read or written by this command" in one_line(done)
    assert ((folder / "l.json").read_bytes() if exists else None) == before


@pytest.mark.parametrize("command", [DOMAIN, RELEASE], ids=lambda command: command[0])
def test_data_are_not_replaced(folder, run, command):
    os.link("trips.parquet", "linked.parquet")
    out = "trips.parquet" if command is RELEASE else "trips.json"
    if command is DOMAIN:
        os.link("trips.parquet", "trips.json")
    before = (folder / "trips.parquet").read_bytes()
    done = run(*command, "--ledger", "l.db", *BUDGET, "--out", out, "--overwrite")
    assert done.exit_code == 4
    assert (folder / "trips.parquet").read_bytes() == before
    assert not (folder / "l.db").exists()
