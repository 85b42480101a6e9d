"""The command that makes synthetic records."""

from __future__ import annotations

import csv
import json
import math
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpfast.cli.arguments import read_schema
from dpfast.cli.asking import shortened
from dpfast.cli.errors import CommandError, FileTroubleError
from dpfast.cli.ledgers import open_or_create, told
from dpfast.cli.output import rescue_frame, write_frame
from dpfast.cli.releasing import Outputs, run_charged
from dpfast.cli.terminal import Progress
from dpfast.errors import ColumnError, ParameterError

if TYPE_CHECKING:
    from dpfast.aggregation.sources import Source
    from dpfast.domain import Domain
    from dpfast.ledger import Ledger
    from dpfast.synthesis.estimate import Estimate
    from dpfast.workloads import Workload

__all__ = ["synthesize"]

_DOMAIN_MEND = "declare them: --values sex:f,m, or --bins age:0,30,60, or --domain FILE"


@click.command(
    short_help="Make synthetic records of files, charged to a ledger.",
    epilog="\b\nExample:\n"
    "  dpfast synthesize people.parquet --columns sex,age,job --values sex:f,m --bins age:0,30,60,120 \\\n"
    "    --values job:none,clerk,farmer --workload marginals:2 --epsilon 1 --rows 50000 \\\n"
    "    --ledger ledger.db --budget-epsilon 4 --out synthetic.parquet",
)
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option("--columns", required=True, metavar="COLUMN,...", help="What the records hold.")
@click.option(
    "--values", "values", multiple=True, metavar="COLUMN:VALUE,...", help="A column's public values; repeatable."
)
@click.option("--bins", multiple=True, metavar="COLUMN:EDGE,...", help="Or a numeric column's public bins; repeatable.")
@click.option(
    "--domain",
    metavar="FILE",
    help='Or all of them: a .json of {"sex": ["f", "m"], "age": {"bins": [0, 30]}}, or a public table (.parquet, '
    ".arrow), whose values they are.",
)
@click.option(
    "--outside",
    type=click.Choice(["drop", "null"]),
    default="drop",
    show_default=True,
    help="Rows with a value that is not declared: left out, or counted under null.",
)
@click.option(
    "--workload",
    metavar="KIND",
    help="What shall be right: marginals:K, cells, or for one column prefix or ranges.  [default: marginals:2]",
)
@click.option("--epsilon", type=float, help="The privacy loss of the whole.")
@click.option("--rho", type=float, help="The same in rho, for a ledger that adds up rho.")
@click.option("--rounds", type=int, default=30, show_default=True, help="How many queries or marginals are measured.")
@click.option("--rows", type=int, metavar="N", help="How many records.  [default: about as many as the data have]")
@click.option("--neighbors", type=click.Choice(["add_remove", "replace"]), default="add_remove", show_default=True)
@click.option(
    "--selection",
    type=click.Choice(["exponential", "permute_and_flip"]),
    default="exponential",
    show_default=True,
    help="How what is measured is chosen.",
)
@click.option("--dataset", metavar="NAME", help="The data's name in the ledger.  [default: FILES]")
@click.option("--schema", metavar="COLUMN=DTYPE,...", help="Dtypes of the CSV columns that are used.")
@click.option("--ledger", required=True, metavar="FILE", help="The budget that is charged.")
@click.option("--budget-epsilon", type=float, help="Create the ledger with this budget if there is none.")
@click.option("--budget-delta", type=float, help="The same for delta.  [default: 0]")
@click.option("--out", required=True, metavar="FILE", help="Where the records go; - for CSV on standard output.")
@click.option("--plot", metavar="FILE", help="Draw the answers to all queries: .png, .svg or .pdf.")
@click.option("--public", is_flag=True, help="The data are public: --plot draws errors against the true answers.")
@click.option("--overwrite", is_flag=True, help="Replace --out and --plot if they exist.")
def synthesize(
    files: tuple[str, ...],
    columns: str,
    values: tuple[str, ...],
    bins: tuple[str, ...],
    domain: str | None,
    outside: str,
    workload: str | None,
    rows: int | None,
    neighbors: str,
    dataset: str | None,
    schema: str | None,
    ledger: str,
    budget_epsilon: float | None,
    budget_delta: float | None,
    out: str,
    plot: str | None,
    public: bool,
    overwrite: bool,
    **given: Any,
) -> None:
    """Make records that answer queries nearly as FILES do, by private measurements, and charge the ledger for them.

    The values that columns may take are public, and declared: nothing of them is read from the data. Whatever is
    wrong with the arguments, the ledger or the output is found before the charge, which comes before any row is
    read. A charge is never given back; interrupted after it, the command writes what was measured so far.
    """
    if given["epsilon"] is None and given["rho"] is None:
        raise CommandError("missing option '--epsilon'; write for example --epsilon 1")
    if rows is not None and not 0 <= rows <= 2**31:
        raise CommandError(f"--rows must be a whole number from 0 to {2**31}, but was {rows}")
    if public and plot is None:
        raise CommandError("--public is for --plot, which is missing; add it: --plot errors.png")
    if neighbors == "replace" and outside == "drop":
        raise CommandError(
            "--neighbors replace needs --outside null: no row may be left out where their number is public"
        )
    with Outputs(out, plot, overwrite=overwrite, keep=(*files, domain or "", ledger)) as outputs:
        source = _open(files, schema)
        axes = _read_domain(_names(columns), values, bins, domain, outside, source.collect_schema())
        queries = _read_workload(workload, axes)
        name = ", ".join(files) if dataset is None else dataset
        opened = axes.open(source)
        account = open_or_create(ledger, name, budget_epsilon, budget_delta)
        source.check()
        exact: list[Any] = []

        def count() -> Any:
            exact.append(opened.count())
            return exact[0]

        with Progress() as progress:
            estimate = _estimated(count, queries, account, told(ledger), neighbors, name, given, progress)
            progress("writing")
            records = axes.records(estimate, rows)
            _save(records, outputs)
            if outputs.chart is not None:
                truth = exact[0] if public else None
                try:
                    outputs.chart.save(lambda path: estimate.plot(path, truth))
                except Exception as error:
                    raise FileTroubleError(
                        f"the chart {str(outputs.chart.path)!r} could not be written ({type(error).__name__}); the "
                        "records were"
                    ) from None
        lines = [f"wrote {outputs.chart.path}"] if outputs.chart is not None else []
        lines += _told(estimate, axes, account, ledger)
        if outputs.frame is not None:
            lines.insert(0, f"wrote {outputs.frame.path}: {records.height:,} records of {records.width} columns")
        click.echo("\n".join(lines), err=outputs.frame is None)


def _estimated(
    count: Callable[[], Any],
    queries: Workload,
    account: Ledger,
    ledger: str,
    neighbors: str,
    name: str,
    given: dict[str, Any],
    progress: Progress,
) -> Estimate:
    """Charge, count and measure; from the count on an interrupt ends the rounds, and what there is is kept."""
    import dpfast as dpf

    interrupted = False

    def interrupt(*_: Any) -> None:
        nonlocal interrupted
        interrupted = True

    def counted() -> Any:
        progress("reading the data")
        with suppress(ValueError):  # not in the main thread, which alone is interrupted
            signal.signal(signal.SIGINT, interrupt)
        return count()

    def measured(number: int) -> bool:
        progress(f"{number} of {min(given['rounds'], _groups(queries))} rounds")
        return not interrupted

    def run() -> Estimate:
        progress("charging the ledger")
        about: dict[str, Any] = {"neighbors": neighbors, "ledger": account, "dataset": name, "privacy_unit": "row"}
        return dpf.mwem(counted, queries, progress=measured, **about, **given)

    cost = f"epsilon {given['epsilon']:.12g}" if given["rho"] is None else f"rho {given['rho']:.12g}"
    return run_charged(run, cost, ledger, progress)


def _groups(workload: Workload) -> int:
    """Return how many queries there are, or groups of them that are measured at once."""
    groups = workload.groups
    return len(workload) if groups is None else len(groups) - 1


def _told(estimate: Estimate, axes: Domain, account: Ledger, ledger: str) -> list[str]:
    """Return what was done, in lines; nothing in them depends on the data but through what was paid for."""
    measured, number = estimate.rounds.height, _groups(estimate.workload)
    kind = "queries" if estimate.workload.groups is None else "marginals"
    reach = estimate.rounds["error95"][0] if measured else 0
    shape = " x ".join(map(str, axes.shape))
    lines = [
        f"measured {measured} of {number} {kind} over {shape} cells, each answer within {reach:,.6g} with "
        "probability 0.95",
        f"charged {told(ledger)} (entry {estimate.entry}): {estimate.spent}; left: {account.remaining}",
    ]
    if not estimate.complete:
        lines.insert(1, "ended early: what was not measured is paid for all the same")
    return lines


def _save(records: Any, outputs: Outputs) -> None:
    if outputs.frame is None:
        click.echo(records.write_csv(), nl=False)
        return
    try:
        outputs.frame.save(lambda path: write_frame(records, path))
    except Exception as error:
        place = rescue_frame(records)
        raise FileTroubleError(
            f"{str(outputs.frame.path)!r} could not be written ({type(error).__name__}); the records were paid for, "
            f"and are {place} instead"
        ) from None


def _names(columns: str) -> list[str]:
    names = [name.strip() for name in columns.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise CommandError("--columns must be different columns with commas between, for example --columns sex,age")
    return names


def _open(files: tuple[str, ...], schema: str | None) -> Source:
    """Return the files, of which nothing but the schema is read."""
    from dpfast.aggregation.sources import open_source

    try:
        return open_source(list(files), schema=read_schema(schema))
    except ColumnError as error:
        if "does not know its dtypes" in str(error):
            raise CommandError(
                "a CSV file does not know its dtypes, and guessing them would look at the data; declare the columns "
                "used: --schema sex=str,age=int64"
            ) from None
        raise


def _read_domain(
    names: list[str],
    values: tuple[str, ...],
    bins: tuple[str, ...],
    domain: str | None,
    outside: str,
    dtypes: Mapping[str, Any],
) -> Domain:
    """Return the domain that a command line declares, its columns in the order of --columns."""
    from dpfast.domain import Domain

    declared: dict[str, Any] = {} if domain is None else _read_domain_file(domain, names)
    options = [("values", text) for text in values] + [("bins", text) for text in bins]
    seen: set[str] = set()
    for option, text in options:
        column = max((name for name in names if text.startswith(f"{name}:")), key=len, default="")
        written = next(csv.reader([text[len(column) + 1 :]]), [])
        example = "sex:f,m" if option == "values" else "age:0,30,60"
        if not column:
            given = text.partition(":")[0]
            raise CommandError(
                f"--{option} {shortened(text)} cannot be read; write COLUMN:..., for example --{option} {example}, of "
                f"one of --columns {','.join(names)}"
                if not given or ":" not in text
                else f"--{option} names {given!r}, which --columns does not; add it"
            )
        if column in seen:
            raise CommandError(f"--values and --bins name {column!r} twice; give all its values at once")
        seen.add(column)
        if not all(written) or not written:
            raise CommandError(f"--{option} {shortened(text)} cannot be read; write for example --{option} {example}")
        what = f"--{option} {shortened(text)}"
        typed = _typed(written, dtypes.get(column), what) if option == "values" else _bins(column, written, what)
        declared[column] = typed
    missing = [name for name in names if name not in declared]
    if missing:
        raise CommandError(f"the values of {', '.join(missing)} are not declared; {_DOMAIN_MEND}")
    try:
        return Domain({name: declared[name] for name in names}, outside=outside)  # type: ignore[arg-type]
    except ParameterError as error:
        raise CommandError(f"the domain does not serve: {error}") from None


def _typed(written: list[str], dtype: Any, what: str) -> list[Any]:
    """Return values as the column's type has them: text, integers, Booleans or dates."""
    import polars as pl

    read: Callable[[str], Any] = str
    if dtype is not None and dtype.is_integer():
        read = int
    elif dtype == pl.Boolean:
        read = {"true": True, "false": False}.__getitem__
    elif dtype == pl.Date:
        read = date.fromisoformat
    try:
        return [read(value) for value in written]
    except (ValueError, KeyError):
        example = {pl.Boolean: "paid:true,false", pl.Date: "day:2026-01-01,2026-01-02"}.get(type(dtype), "year:1,2")
        raise CommandError(f"{what} needs values of the column's type {dtype}; write --values {example}") from None


def _bins(column: str, written: Any, what: str) -> Any:
    import dpfast as dpf

    try:
        return dpf.bins(column, [float(edge) for edge in written])
    except (ValueError, TypeError):
        raise CommandError(f"{what} needs two edges or more, increasing numbers; write --bins age:0,30,60") from None


def _read_domain_file(path: str, names: list[str]) -> dict[str, Any]:
    """Return the values of columns from a public file."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".json", ".parquet", ".arrow", ".ipc", ".feather"):
        raise CommandError(f"--domain {path!r} must end in .json, .parquet, .arrow, .ipc, .feather")
    if not Path(path).is_file():
        raise FileTroubleError(f"there is no file {path!r} for --domain")
    if suffix != ".json":
        import polars as pl

        try:
            frame = pl.read_parquet(path) if suffix == ".parquet" else pl.read_ipc(path)
        except (pl.exceptions.PolarsError, OSError):
            raise FileTroubleError(f"{path!r} cannot be read as {suffix}; see whether it is whole") from None
        return {name: frame[name].drop_nulls().unique(maintain_order=True) for name in names if name in frame.columns}
    mend = 'write {"sex": ["f", "m"], "age": {"bins": [0, 30, 60]}}'
    try:
        read = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise FileTroubleError(f"{path!r} cannot be read as JSON; {mend}") from None
    if not isinstance(read, dict):
        raise CommandError(f"--domain {path!r} must hold columns and their values; {mend}")
    declared: dict[str, Any] = {}
    for name, axis in read.items():
        if isinstance(axis, dict) and list(axis) == ["bins"] and isinstance(axis["bins"], list):
            declared[name] = _bins(name, axis["bins"], f"the column {name!r} of --domain {path!r}")
        elif isinstance(axis, list) and axis:
            declared[name] = axis
        else:
            raise CommandError(f"the column {name!r} of --domain {path!r} must have values; {mend}")
    return {name: axis for name, axis in declared.items() if name in names}


def _read_workload(text: str | None, axes: Domain) -> Workload:
    """Return the workload that is named."""
    import dpfast as dpf
    from dpfast.synthesis.cell_weights import check_cells

    shape = axes.shape
    check_cells(math.prod(shape), "columns")
    text = f"marginals:{min(2, len(shape))}" if text is None else text
    kind, _, number = text.partition(":")
    mend = "write marginals:2, cells, or for one column prefix or ranges"
    if kind == "marginals":
        if not number.isdecimal() or not 1 <= int(number) <= len(shape):
            raise CommandError(
                f"--workload {shortened(text)} must be marginals:K with K from 1 to {len(shape)}; {mend}"
            )
        return dpf.workloads.marginals(shape, int(number))
    if number or kind not in ("cells", "prefix", "ranges"):
        raise CommandError(f"--workload {shortened(text)} is not known; {mend}")
    if kind == "cells":
        return dpf.workloads.identity(shape)
    if len(shape) > 1:
        raise CommandError(f"--workload {kind} is for one column, but --columns names {len(shape)}; {mend}")
    return dpf.workloads.prefix(shape[0]) if kind == "prefix" else dpf.workloads.all_range(shape[0])
