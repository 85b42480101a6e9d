"""What a message calls an argument: by its option, in every command and for every option that takes a value."""

from __future__ import annotations

import re

import click
import polars as pl
import pytest

import dpfast as dpf
from dpfast.cli import main
from dpfast.cli.errors import described
from dpfast.errors import LedgerError, ParameterError

from .conftest import one_line
from .test_manners import COMMANDS, commands_of

#: Those whose options are checked by click alone, or that do more than fail; release has the options of explain.
LEFT_OUT = {"attack", "bench", "completion", "demo", "doctor", "init", "release", "warmup"}
WRONG = ("-1", "nope", "nope=3")
#: What only Python has, or an option that was renamed twice.
PYTHON = re.compile(r"\bNone\b|\[\(|----")
TELLS_OF_PYTHON = re.compile(r"in Python [\w.]+\([^()]*\)")


def options_with_values(command):
    return [one for one in command.params if isinstance(one, click.Option) and not one.is_flag]


@pytest.fixture
def place(tmp_path, monkeypatch, trips, run):
    monkeypatch.chdir(tmp_path)
    trips.head(300).write_parquet("trips.parquet")
    pl.DataFrame({"city": ["Oslo", "Rome"], "n": [50, 70]}).write_parquet("queries.parquet")
    made = run("ledger", "create", "ledger.db", "--epsilon", "1000", "--delta", "0.5", "--dataset", "trips.parquet")
    assert made.exit_code == 0


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - LEFT_OUT))
def test_no_message_calls_an_argument_by_its_name_in_python(place, run, name):
    command, refused = dict(commands_of(main))[name], 0
    own = [one for one in options_with_values(command) if one.name != "out"]
    names = {str(one.name) for one in own if "_" in str(one.name)} | {"max_rows_per_group", "privacy_unit"}
    out = ["--out", "out.json"] if any(one.name == "out" for one in command.params) else []
    for option in own:
        for wrong in WRONG:
            done = run(*COMMANDS[name][0], *out, max(option.opts, key=len), wrong)
            if done.exit_code in (0, 1):
                continue
            refused += 1
            told = TELLS_OF_PYTHON.sub("", one_line(done))
            assert PYTHON.search(told) is None, told
            keywords = set(re.findall(r"(?<![-\w'])(\w+)=", told))
            assert not keywords & ({str(one.name) for one in own} - {"count"}), told  # a query may be called so
            assert not names & set(re.findall(r"\w+", told)), told
            assert re.match(r"dpfast: (?!column )\w+ (must|names the column)\b", told) is None, told
    assert refused or not own


@pytest.mark.parametrize(
    ("options", "written", "shown"),
    [
        (["--made-up-units"], "units must be 3, or None, but was None", "--made-up-units must be 3, but is missing"),
        (["--number", "--bins"], "write for example bins=7", "write for example --number 7"),
        (["--bins"], "write for example bins=7", "write for example --bins 7"),
        (["--epsilon"], "write ledger.allot('a', epsilon=...)", "write ledger.allot('a', epsilon=...)"),
        (["--where"], "where names the column 'a', where --where is", "--where names the column 'a', where --where is"),
        (["--by"], "give candidates=", "give candidates"),
    ],
)
def test_words_of_the_library_are_those_of_the_running_command(options, written, shown):
    command = click.Command("any", params=[click.Option([option]) for option in options])
    assert described(LedgerError(written), command) == shown


def test_without_a_command_a_message_stands_as_it_is():
    assert described(ParameterError("epsilon", -1, "above 0")) == "epsilon must be above 0, but was -1"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["explain", "trips.parquet", "--count", "--epsilon", "1", "--schema", "city=str"],
         "--schema must be left out for Parquet, Arrow and Avro files"),
        (["report", "ledger.db", "--out", "page.html", "--allotment", "foo"], "ledger.allot('foo', epsilon=...)"),
    ],
)  # fmt: skip
def test_what_a_newcomer_met(place, run, asked, told):
    assert told in one_line(run(*asked))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--nulls", "foo"], "--nulls names 'foo', which --columns does not; add it"),
        (["--workload", "city,foo"], "--workload names 'foo', which --columns does not; add it, or write marginals:2"),
    ],
)
def test_a_column_that_a_domain_lacks(place, run, given, told):
    asked = ["marginals", "trips.parquet", "--columns", "city", "--values", "city:Oslo,Rome", "--epsilon", "1"]
    assert told in one_line(run(*asked, "--explain", *given))


def test_no_records_are_refused_before_the_charge(place, run):
    """A file without records is no use, and its measurements would be paid for all the same."""
    asked = ["synthesize", "trips.parquet", "--columns", "city", "--values", "city:Oslo,Rome", "--epsilon", "1"]
    done = run(*asked, "--ledger", "ledger.db", "--out", "out.csv", "--rows", "0")
    assert "--rows must be a whole number from 1 to" in one_line(done)
    assert "in 0 entries" in run("ledger", "show", "ledger.db").stdout


def test_without_by_no_number_of_groups_is_asked_for(place, run):
    """There is one group, which a unit is in or not."""
    asked = ["explain", "trips.parquet", "--count", "--epsilon", "1", "--unit", "rider", "--max-rows", "3"]
    assert run(*asked).exit_code == 0
    trips = pl.read_parquet("trips.parquet")
    unit = {"privacy_unit": "rider", "max_rows_per_group": 3, "epsilon": 1, "n": dpf.count()}
    plans = [dpf.plan(trips, **unit), dpf.plan(trips, **unit, max_groups=1), dpf.plan(trips, **unit, max_groups=9)]
    assert len({str(plan.to_frame()["scale"].to_list()) for plan in plans}) == 1
    with pytest.raises(ParameterError, match=r"max_groups must be a whole number .* where privacy_unit is given"):
        dpf.plan(trips, by="city", delta=1e-6, **unit)
