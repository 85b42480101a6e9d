"""The command that makes synthetic records."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import combinations
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click

from dpfast.cli.documents import JSON, ledger_facts, say, wants_document, write_document
from dpfast.cli.domains import domain_options, left_out_lines, names_of, read_domain
from dpfast.cli.errors import CommandError, shortened
from dpfast.cli.files import open_files, read_typed_table
from dpfast.cli.filters import read_filters
from dpfast.cli.ledgers import accountant_of, open_or_create, shown_path
from dpfast.cli.options import (
    EPSILON,
    FILES,
    RHO,
    Destination,
    choice,
    dataset_name,
    destination_options,
    reading_options,
)
from dpfast.cli.output import Outputs
from dpfast.cli.releasing import charge_line, cost_words, run_charged
from dpfast.cli.terminal import Progress
from dpfast.showing import number_of

if TYPE_CHECKING:
    import polars as pl

    from dpfast.aggregation.sources import Source
    from dpfast.domain import Domain
    from dpfast.domain.counting import OpenRecords
    from dpfast.ledger import Ledger
    from dpfast.synthesis.estimate import Estimate
    from dpfast.synthesis.graphical.estimate import ModelEstimate
    from dpfast.synthesis.planning import SynthesisPlan
    from dpfast.synthesis.synthesis import Synthesis
    from dpfast.workloads import Workload

__all__ = ["synthesize"]

#: What shall be right: None for the usual.
Queries: TypeAlias = "Workload | list[tuple[str, ...]] | None"

_ENDED = "ended early: what was not measured is paid for all the same"
#: Sets of columns for a model, which are listed.
_MOST_SETS = 10**6


@click.command(
    short_help="Make synthetic records of files, charged to a ledger.",
    epilog="\b\nExample:\n"
    "  dpfast synthesize people.parquet --columns sex,age,job --values sex:f,m --bins age:0,30,60,120 \\\n"
    "    --values job:none,clerk,farmer --workload marginals:2 --epsilon 1 --rows 50000 \\\n"
    "    --ledger ledger.db --budget-epsilon 4 --out synthetic.parquet",
)
@FILES
@click.option("--columns", required=True, metavar="COLUMN,...", help="What the records hold.")
@domain_options
@click.option(
    "--impossible",
    "impossible",
    multiple=True,
    metavar="FILTER|FILE",
    help="""What no record is, as 'age < 14 and married == "yes"', or a table of such values (.parquet, .arrow); """
    "repeatable. Rows that are so are left out, and a model is made.",
)
@click.option(
    "--workload",
    metavar="KIND",
    help="What shall be right: marginals:K, cells, or for one column prefix or ranges.  [default: marginals:2]",
)
@EPSILON
@click.option("--delta", type=float, help="Beside epsilon: a model is measured, for which Gaussian noise serves.")
@RHO
@click.option("--rounds", type=int, help="How many queries or marginals.  [default: 30, of a model 3 a column]")
@click.option("--max-megabytes", type=float, default=16.0, show_default=True, help="The most that a model may take.")
@click.option("--rows", type=int, metavar="N", help="How many records.  [default: about as many as the data have]")
@choice("--selection", "exponential", "permute_and_flip", text="The mechanism that selects what is measured next.")
@reading_options
@click.option("--explain", is_flag=True, help="Only show what would be measured: nothing is read or charged.")
@destination_options(
    "records",
    required=False,
    plot="the answers to all queries, or a model's counts beside the measured ones",
    report="the records",
)
@click.option("--public", is_flag=True, help="The data are public: --plot draws errors against the true answers.")
@JSON
def synthesize(
    files: tuple[str, ...],
    columns: str,
    outside: str | None,
    nulls: str | None,
    impossible: tuple[str, ...],
    workload: str | None,
    rows: int | None,
    dataset: str | None,
    schema: str | None,
    public: bool,
    explain: bool,
    **given: Any,
) -> None:
    """Make records that answer queries nearly as FILES do, by private measurements, and charge the ledger for them.

    The values that columns may take are public, and declared: none is read from the data. Mistakes in the arguments,
    the ledger or the output are found before the charge, and the charge comes before any row is read. A charge is
    never given back. If the command is interrupted after the charge, it writes what was measured so far. What would be
    measured is known beforehand: --explain.
    """
    destination = Destination.taken(given)
    if not explain and not (destination.ledger and destination.out):
        raise CommandError("missing option '--ledger' or '--out'; give both, or --explain")
    if given["epsilon"] is None and given["rho"] is None:
        raise CommandError("missing option '--epsilon'; write for example --epsilon 1")
    if rows is not None and not 1 <= rows <= 2**31:
        raise CommandError(f"--rows must be a whole number from 1 to {2**31}, but was {rows}")
    if public and destination.plot is None:
        raise CommandError("--public is for --plot, which is missing; add it: --plot errors.png")
    declared = {option: given.pop(option) for option in ("values", "bins")}
    domain = given.pop("domain")
    names = names_of(columns)
    domain_of = partial(read_domain, names, declared, domain, outside, nulls)
    planned = partial(_planned, partial(open_files, files, schema, names), domain_of, impossible, workload)
    if explain:
        _explain(planned(destination, given, public=public).plan)
        return
    with Outputs(destination, keep=(*files, domain or "", *filter(_is_table, impossible))) as outputs:
        name = dataset_name(files, dataset)
        source, opened, plan = planned(destination, given, public=public)
        axes = plan.domain
        account = open_or_create(destination, name)
        place = shown_path(destination.ledger)
        source.check()
        with Progress() as progress:
            cost = cost_words(given["epsilon"], given["rho"], given["delta"])
            run = partial(plan.run, source, ledger=account, rows=rows, dataset=name)
            made = _synthesized(run, cost, account, place, progress)
            estimate = made.estimate
            progress("writing")
            written = outputs.save_records(made, progress)
            outputs.save_page(lambda: made._page().html(), "the records were")
            outputs.save_chart(lambda path: _draw(estimate, path, opened, public=public), "the records were")
        content = f"{number_of(written, 'record')} of {number_of(len(axes.names), 'column')}"
        lines = outputs.written(content) + _described(estimate, axes)
        lines += [charge_line(account, place, estimate.entry, estimate.spent), *left_out_lines(axes)]
        if not wants_document():
            say("\n".join(lines), err=outputs.frame is None)
            return
        write_document(
            out=destination.out,
            plot=destination.plot,
            report=destination.report,
            rows=written,
            columns=axes.names,
            shape=axes.shape,
            outside=axes.outside,
            measured=estimate.rounds.height,
            complete=estimate.complete,
            ledger=ledger_facts(account, place, entry=estimate.entry, charged=estimate.spent),
        )


class _Planned(NamedTuple):
    """What is known before a ledger is opened."""

    source: Source
    opened: OpenRecords
    plan: SynthesisPlan


def _planned(
    open_source: Callable[[], Source],
    domain_of: Callable[[pl.Schema], Domain],
    impossible: tuple[str, ...],
    workload: str | None,
    destination: Destination,
    given: dict[str, Any],
    *,
    public: bool,
) -> _Planned:
    """Return the plan of records, with the files that it is for, of which schemas alone are read."""
    from dpfast.synthesis.planning import plan_synthesis

    source = open_source()
    axes = domain_of(source.schema())
    if given["neighbors"] == "replace" and axes.outside != "null":
        raise CommandError(
            "--neighbors replace needs --outside null: no row may be left out where their number is public"
        )
    given["impossible"] = _read_impossible(impossible)
    models = given["delta"] is not None or given["impossible"] is not None
    queries = _read_workload(workload, axes, models=models)
    _check_public(axes, public=public, models=models)
    plan = plan_synthesis(axes, queries, accountant=_accountant(destination), **given)
    return _Planned(source, axes.open(source), plan)


def _accountant(destination: Destination) -> str | None:
    """Return what adds up in the ledger that will be charged; None where it is still to be created, for the usual."""
    return None if destination.ledger is None else accountant_of(destination.ledger)


def _explain(plan: SynthesisPlan) -> None:
    """Write the plan; no row is read, and nothing is charged."""
    if wants_document():
        write_document(out=None, text=plan.explain(), ways=plan.to_frame().to_dicts(), ledger=None)
    else:
        say(plan.explain())


def _synthesized(
    run: Callable[..., Synthesis], cost: str, account: Ledger, place: str, progress: Progress
) -> Synthesis:
    """Charge, count, measure and draw; from the count on, an interrupt ends the rounds and keeps what was measured."""
    from dpfast.synthesis.fitted.request import READING

    interrupted = False

    def interrupt(*_: Any) -> None:
        nonlocal interrupted
        interrupted = True

    def show(stage: str) -> bool:
        progress(stage)
        if stage == READING:
            with suppress(ValueError):  # not in the main thread, which alone is interrupted
                signal.signal(signal.SIGINT, interrupt)
        return not interrupted

    return run_charged(lambda: run(progress=show), cost, account, place, progress)


def _check_public(axes: Domain, *, public: bool, models: bool) -> None:
    """Refuse a chart of errors where a model is made, which lists no answers."""
    from dpfast.synthesis.planning import makes_model

    if public and (models or makes_model(None, axes)):
        raise CommandError("--public is for the answers of a histogram, but a model is made; leave --public out")


def _draw(estimate: Estimate | ModelEstimate, path: Path, opened: OpenRecords, *, public: bool) -> object:
    """Draw answers, or their errors where data are public; of a model what was measured and what it says."""
    from dpfast.synthesis.estimate import Estimate

    if isinstance(estimate, Estimate):
        return estimate.plot(path, opened.count() if public else None)
    return estimate.plot(path)


def _described(estimate: Estimate | ModelEstimate, axes: Domain) -> list[str]:
    """Return what was done, in lines; they depend on the data only through what was paid for."""
    from dpfast.synthesis.estimate import Estimate
    from dpfast.synthesis.fitted.request import groups_of

    if not isinstance(estimate, Estimate):
        measured, reach = estimate.rounds.height, estimate.rounds["error95"][-1]
        lines = [
            f"measured {number_of(measured, 'marginal')} of {number_of(len(axes.shape), 'column')}, "
            "the last one's counts each within "
            f"{reach:,.6g} with probability 0.95; a model of {number_of(estimate.cells, 'cell')}",
        ]
        return lines if estimate.complete else [*lines, _ENDED]
    measured, number = estimate.rounds.height, groups_of(estimate.workload)
    kind = "queries" if estimate.workload.groups is None else "marginals"
    reach = estimate.rounds["error95"][0] if measured else 0
    shape = " x ".join(map(str, axes.shape))
    lines = [
        f"measured {measured} of {number} {kind} over {shape} cells, each answer within {reach:,.6g} with "
        "probability 0.95",
    ]
    return lines if estimate.complete else [*lines, _ENDED]


def _read_impossible(written: tuple[str, ...]) -> list[Any] | None:
    """Return the filters and tables that --impossible names."""
    option, found = "--impossible", list[Any]()
    for text in written:
        found.append(read_typed_table(text, option) if _is_table(text) else read_filters((text,), option))
    return found or None


def _is_table(written: str) -> bool:
    """Return whether a file is named: no filter ends so."""
    return written.lower().endswith((".parquet", ".arrow"))


def _read_workload(text: str | None, axes: Domain, *, models: bool) -> Queries:
    """Return the workload that is named, None for the usual one; for a model, sets of columns."""
    import dpfast as dpf
    from dpfast.synthesis.planning import makes_model

    shape = axes.shape
    models = models or makes_model(None, axes)
    if text is None:
        return None
    kind, _, number = text.partition(":")
    mend = "write marginals:2, cells, or for one column prefix or ranges"
    if models and kind != "marginals":
        raise CommandError(f"--workload {shortened(text)} is not for a model of small tables; write marginals:2")
    if kind == "marginals":
        if not number.isdecimal() or not 1 <= int(number) <= len(shape):
            raise CommandError(
                f"--workload {shortened(text)} must be marginals:K with K from 1 to {len(shape)}; {mend}"
            )
        if models:
            if comb(len(shape), int(number)) > _MOST_SETS:
                raise CommandError(
                    f"--workload {shortened(text)} names more than {_MOST_SETS:,} sets of columns; lower K, or leave "
                    "columns out"
                )
            return list(combinations(axes.names, int(number)))
        return dpf.workloads.marginals(shape, int(number))
    if number or kind not in ("cells", "prefix", "ranges"):
        raise CommandError(f"--workload {shortened(text)} is not known; {mend}")
    if kind == "cells":
        return dpf.workloads.identity(shape)
    if len(shape) > 1:
        raise CommandError(f"--workload {kind} is for one column, but --columns names {len(shape)}; {mend}")
    return dpf.workloads.prefix(shape[0]) if kind == "prefix" else dpf.workloads.all_range(shape[0])
