"""What is written on the command line -> the arguments of `dpfast.plan`."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpfast.cli.errors import CommandError, described, shortened, tell
from dpfast.cli.files import is_csv, read_keys, read_schema, take_data
from dpfast.cli.filters import read_filters
from dpfast.cli.ledgers import accountant_of
from dpfast.cli.options import dataset_name
from dpfast.cli.queries import read_bins, read_queries, split_values
from dpfast.cli.wishes import WISH_MEND, read_budget_limit, read_errors
from dpfast.errors import ColumnError, ParameterError, PrivacyUnitWarning

if TYPE_CHECKING:
    from dpfast.aggregation.keys import KeyEntry
    from dpfast.queries import Bins
    from dpfast.releases.plan import Plan
    from dpfast.releases.splitting import Splitting
    from dpfast.releases.wishes import Limit

__all__ = ["draw_plan"]

#: Options that `dpfast.plan` takes as they stand.
_AS_WRITTEN = (
    "epsilon", "rho", "delta", "privacy_unit", "max_groups", "max_rows_per_group", "neighbors", "mechanism",
    "key_selection", "population", "interval", "report_cut",
)  # fmt: skip


def draw_plan(given: Mapping[str, Any], ledger: str | None = None) -> Plan:
    """Return the plan that a command line asks for; only schemas and the public keys are read.

    Parameters
    ----------
    given
        The options.
    ledger
        What will be charged: errors that are wished are counted as it counts, unless --budget says how.

    Raises
    ------
    DpfastError
        Something on the command line does not serve.

    """
    from dpfast.aggregation.sources import open_source

    if given["epsilon"] is None and given["rho"] is None and not given["errors"]:
        raise CommandError("missing option '--epsilon'; write for example --epsilon 1, or --error count=50")
    schema = read_schema(given["schema"])
    casts = read_schema(",".join(given["cast"]) or None, "--cast") or {}
    by = _read_by(given["by"], given["bins"])
    dataset = dataset_name(given["files"], given["dataset"])
    where = read_filters(given["where"])
    keys = None if given["keys"] is None else read_keys(given["keys"], schema)
    keys_use_schema = keys is not None and is_csv(given["keys"])
    declared = None if keys_use_schema and not any(map(is_csv, given["files"])) else schema
    written: dict[str, str] = {}
    try:
        data, declared = take_data(given["files"], declared, casts)
        queries = read_queries(given, lambda: open_source(data, schema=declared).schema(), written)
        asked: dict[str, Any] = {name: given[name] for name in _AS_WRITTEN} | queries
        asked |= {"error": read_errors(given["errors"], queries), "budget": _budget_limit(given, ledger)}
        plan = _plan(
            data,
            by,
            split=_read_split(given["split"]),
            keys=keys,
            dataset=dataset,
            schema=declared,
            where=where,
            **asked,
        )
    except ColumnError as error:
        raise _by_option(error, written) from None
    except ParameterError as error:
        if error.argument == "candidates":
            raise CommandError(f"--mode does not serve: {described(error)}") from None
        if error.argument.startswith("error") and "error={" in str(error):
            # What the library would have written instead is no option of a shell.
            raise CommandError(f"--{str(error).partition('; write')[0]}; {WISH_MEND}") from None
        if error.argument != "split":
            raise
        # What the library would have written instead is no option of a shell.
        raise CommandError(f"--{str(error).rpartition(';')[0]}; {_SPLIT_MEND}") from None
    if given["privacy_unit"] is None:
        tell(f"{_NO_UNIT}; name the column that says whose row it is: --unit COLUMN, or say --unit row")
    return plan


#: What the library would have written, where a shell has an option.
_CAST = re.compile("the column '(?P<name>[^']*)' of dtype .*(?P<mend>cast it to (?P<to>.*))$")
_BINS = re.compile(r"write dpf\.bins\('([^']*)', edges\) in its place")


def _by_option(error: ColumnError, written: Mapping[str, str]) -> ColumnError:
    """Return an error about a query's column that says what was written for the query, and how a column is cast."""
    text = str(error)
    for name, option in written.items():
        text = text.replace(f"the query {name!r}: it names", f"{option} names", 1)
        text = text.replace(f"the query {name!r}: ", f"{option} does not serve: ", 1)
    cast = _CAST.search(text)
    if cast is not None:
        dtype = "float64" if "Float64" in cast["to"] else "str"
        text = f"{text[: cast.start('mend')]}write --cast {cast['name']}={dtype}"
    text = _BINS.sub(r"cut it into bins: --bins \1:0,10,20", text)
    return ColumnError(text)


_NO_UNIT = "without --unit each row is a privacy unit, and whoever has several rows is protected for each of them alone"


def _plan(*arguments: Any, **asked: Any) -> Plan:
    """Plan, and leave the warning about the unit to the shell's own line."""
    import dpfast as dpf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyUnitWarning)
        return dpf.plan(*arguments, **asked)


def _budget_limit(given: Mapping[str, Any], ledger: str | None) -> Limit:
    """Return what wished errors may cost, in what the ledger counts."""
    from dpfast.releases.wishes import limit_of

    limit = read_budget_limit(given["budget"])
    return limit_of(limit, accountant_of(ledger)) if given["errors"] else limit


_SPLIT_MEND = "write for example --split count=1,fare_sum=3"


def _read_split(text: str) -> Splitting:
    """Read ``even``, ``optimal``, ``NAME=WEIGHT,...`` or ``optimal:NAME=WEIGHT,...``."""
    if text == "even":
        return "even"
    if text == "optimal":
        return "optimal"
    optimal = text.startswith("optimal:")
    weights: dict[str, float] = {}
    for entry in text.removeprefix("optimal:").split(","):
        name, equals, weight = entry.strip().rpartition("=")
        try:
            number = float(weight)
        except ValueError:
            number = math.nan
        if not equals or not name or math.isnan(number):
            raise CommandError(
                f"--split {shortened(text)} cannot be read; write even, optimal, NAME=WEIGHT,... or "
                f"optimal:NAME=WEIGHT,...; {_SPLIT_MEND}"
            )
        if name in weights:
            raise CommandError(f"--split names {name!r} twice; leave one out")
        weights[name] = number
    return ("optimal", weights) if optimal else weights


def _read_by(by: tuple[str, ...], bins: tuple[str, ...]) -> list[KeyEntry] | None:
    """Read ``COLUMN,...`` and ``COLUMN:PART``; what follows another colon is a part of the column's name."""
    from dpfast.rows.calendars import PARTS, Calendar

    names = [name.strip() for text in by for name in text.split(",")]
    if not all(names):
        raise CommandError("--by holds an empty name; write columns with commas between, for example --by carrier,dest")
    binned: dict[str, Bins] = {}
    for text in bins:
        column, edges = split_values(text, names)
        if not column or not edges:
            mend = "write COLUMN:EDGE,EDGE,..., for example --bins distance:0,500,1000"
            raise CommandError(f"--bins {shortened(text)} cannot be read; {mend}")
        read = read_bins(column, edges, f"--bins {shortened(text)}")
        if column not in names:
            raise CommandError(
                f"--bins names {column!r}, which --by does not; add it: --by {','.join([*names, column])}"
            )
        if column in binned:
            raise CommandError(f"--bins names {column!r} twice; give all its edges at once")
        binned[column] = read
    entries: list[KeyEntry] = []
    for name in names:
        column, colon, part = name.rpartition(":")
        is_calendar = colon and column and part in PARTS and name not in binned
        entries.append(Calendar(column, part) if is_calendar else binned.get(name, name))
    return entries or None
