"""The command that measures many marginals at once."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import click

from dpfast.cli.documents import JSON, ledger_facts, say, wants_document, write_document
from dpfast.cli.domains import domain_options, left_out_lines, names_of, read_domain
from dpfast.cli.errors import CommandError, shortened
from dpfast.cli.files import open_files
from dpfast.cli.ledgers import open_or_create, shown_path
from dpfast.cli.options import EPSILON, FILES, RHO, Destination, dataset_name, destination_options, reading_options
from dpfast.cli.output import Outputs
from dpfast.cli.releasing import charge_line, cost_words, run_charged
from dpfast.cli.terminal import Progress
from dpfast.showing import number_of

if TYPE_CHECKING:
    import polars as pl

    from dpfast.domain.domain import Domain
    from dpfast.synthesis.relaxed.estimate import PseudoMarginals
    from dpfast.synthesis.residuals.marginals import MarginalsPlan, MarginalsRelease
    from dpfast.workloads.workload import Workload

__all__ = ["marginals"]

#: Columns of what is written, beside the data's own.
_OWN = ("marginal", "count", "deviation")
_MOST_SETS = 20_000
#: What is asked along a column, beside its counts.
_KINDS = ("prefix", "ranges")


@click.command(
    short_help="Count all pairs of columns at once, with errors that are known beforehand.",
    epilog="\b\nExample:\n"
    "  dpfast marginals people.parquet --columns sex,age,job --values sex:f,m --bins age:0,30,60,120 \\\n"
    "    --values job:none,clerk,farmer --epsilon 1 --delta 1e-9 --ledger ledger.db --budget-epsilon 4 \\\n"
    "    --budget-delta 1e-6 --out marginals.parquet",
)
@FILES
@click.option("--columns", required=True, metavar="COLUMN,...", help="What is counted.")
@domain_options
@click.option(
    "--workload",
    metavar="KIND",
    multiple=True,
    help="marginals:K, or columns as sex,age; age:prefix asks for running sums along a column in place of its counts, "
    "age:ranges for all its ranges; repeatable.  [default: marginals:2 of at most 2**22 cells]",
)
@EPSILON
@click.option("--delta", type=float, help="Beside epsilon: the noise is Gaussian, and much smaller.")
@RHO
@reading_options
@click.option("--explain", is_flag=True, help="Only show how far each count will be off: nothing is read or charged.")
@click.option(
    "--fit", is_flag=True, help="Write counts that are nonnegative and agree: approximate, and without deviations."
)
@destination_options("counts", required=False)
@click.option("--budget-epsilon", type=float, help="Create the ledger with this budget if there is none.")
@click.option("--budget-delta", type=float, help="The same for delta.  [default: 0]")
@JSON
def marginals(
    files: tuple[str, ...],
    columns: str,
    values: tuple[str, ...],
    bins: tuple[str, ...],
    domain: str | None,
    outside: str | None,
    nulls: str | None,
    workload: tuple[str, ...],
    dataset: str | None,
    schema: str | None,
    explain: bool,
    fit: bool,
    **given: Any,
) -> None:
    """Count the rows of FILES over all pairs of columns at once, and charge the ledger for it.

    The counts are unbiased and agree with each other; how far they are off is known beforehand: --explain. A charge is
    never given back.
    """
    from dpfast.synthesis.relaxed.fitting import read_shared
    from dpfast.synthesis.residuals.marginals import plan_marginals
    from dpfast.workloads.marginals import Marginals

    destination = Destination.taken(given)
    if given["epsilon"] is None and given["rho"] is None:
        raise CommandError("missing option '--epsilon'; write for example --epsilon 1 --delta 1e-9")
    if not explain and not (destination.ledger and destination.out):
        raise CommandError("missing option '--ledger' or '--out'; give both, or --explain")
    names = names_of(columns)
    source = open_files(files, schema, names)
    declared = {"values": values, "bins": bins}
    axes = read_domain(names, declared, domain, outside, nulls, source.schema())
    if taken := [name for name in _OWN if name in axes.names]:
        raise CommandError(f"--columns cannot name {taken[0]!r}, which is a column of the result; rename it")
    plan = plan_marginals(axes, _read_workload(workload, axes), **given)
    if fit:
        read_shared(plan.cliques)  # what is too much to be fitted is not paid for
    axes.open(source)
    if explain:
        if wants_document():
            write_document(out=None, text=plan.explain(), marginals=plan.to_frame().to_dicts(), ledger=None)
        else:
            say(plan.explain())
        return
    name = dataset_name(files, dataset)
    with Outputs(destination, keep=(*files, domain or "")) as outputs:
        account, place = open_or_create(destination, name), shown_path(destination.ledger)
        cost = cost_words(given["epsilon"], given["rho"], given["delta"])
        with Progress() as progress:
            made = run_charged(
                lambda: plan.run(source, ledger=account, dataset=name, progress=progress),
                cost,
                account,
                place,
                progress,
            )
        fitted, stopped = None, None
        if fit:
            try:
                fitted = made.fit()
            except (KeyboardInterrupt, MemoryError) as error:
                stopped = error  # what was paid for is written all the same
        counts = fitted is not None or isinstance(plan.workload, Marginals)
        frame = _listed(plan, fitted or made) if counts else made.answers_frame()
        outputs.save_frame(frame)
    content = (
        f"{number_of(frame.height, 'count' if counts else 'answer')} of {number_of(len(plan.columns), 'marginal')}"
    )
    charged = charge_line(account, place, made.entry, made.spent)
    if not wants_document():
        about = [] if fitted is None else [f"{fitted.guarantee}; they differ by at most {fitted.residual:.3g}"]
        if stopped is not None:
            about = ["the fit was stopped: these are the counts as they were measured, which are paid for"]
        said = [*outputs.written(content), *about, charged, *plan.left_out_lines(), *left_out_lines(axes)]
        say("\n".join(said), err=outputs.frame is None)
        if stopped is not None:
            raise stopped
        return
    facts: dict[str, Any] = {}
    if fitted is not None:
        facts["fit"] = {"approximate": fitted.approximate, "guarantee": fitted.guarantee, "residual": fitted.residual}
    write_document(
        out=destination.out,
        text=plan.explain(),
        marginals=plan.to_frame().to_dicts(),
        ledger=ledger_facts(account, place, entry=made.entry, charged=made.spent),
        **facts,
    )
    if stopped is not None:
        raise stopped


def _read_workload(written: tuple[str, ...], domain: Domain) -> list[tuple[str, ...]] | Workload | None:
    """Return the sets of columns that are named, or what is asked along them; None for all pairs."""
    from dpfast.workloads import about, all_range, identity, prefix, stack

    names, asked = domain.names, list[dict[str, str]]()
    for text in written:
        kind, colon, number = text.partition(":")
        if not colon or "," in text or kind in names:
            asked.append(_read_columns(text, names))
            continue
        if kind != "marginals" or not number.isdecimal() or not 1 <= int(number) <= len(names):
            raise CommandError(
                f"--workload {shortened(text)} must be marginals:K with K from 1 to {len(names)}, or columns as "
                f"{','.join(names[:2])}"
            )
        if comb(len(names), int(number)) > _MOST_SETS:
            raise CommandError(f"--workload {shortened(text)} names more than {_MOST_SETS:,} sets; lower K")
        asked += [dict.fromkeys(one, "") for one in combinations(names, int(number))]
    if not any(kind for one in asked for kind in one.values()):
        return list(dict.fromkeys(tuple(one) for one in asked)) or None
    made = {"": identity, "prefix": prefix, "ranges": all_range}
    sizes = dict(zip(names, domain.shape, strict=True))
    return stack(*(about(domain, {name: made[kind](sizes[name]) for name, kind in one.items()}) for one in asked))


def _read_columns(text: str, names: tuple[str, ...]) -> dict[str, str]:
    """Return what is asked along each of some columns: nothing for its counts, else "prefix" or "ranges"."""
    asked, kinds = list[str](), list[str]()
    for own in map(str.strip, text.split(",")):
        name, colon, kind = own.rpartition(":")
        if own in names or not colon:  # a column may have a colon in its name
            name, kind = own, ""
        elif kind not in _KINDS:
            raise CommandError(f"--workload {shortened(text)} must ask for a column as age, age:prefix or age:ranges")
        asked.append(name)
        kinds.append(kind)
    asked = names_of(",".join(asked), "--workload")
    if unknown := [name for name in asked if name not in names]:
        mend = "add it, or write marginals:2 for all pairs"
        raise CommandError(f"--workload names {unknown[0]!r}, which --columns does not; {mend}")
    return dict(zip(asked, kinds, strict=True))


def _listed(plan: MarginalsPlan, made: MarginalsRelease | PseudoMarginals) -> pl.DataFrame:
    """Return a row for each count: its marginal, the values of its columns, null for all others."""
    import polars as pl

    parts = [
        made.to_frame(list(columns)).select(pl.lit(", ".join(columns)).alias("marginal"), pl.all())
        for columns in plan.columns
    ]
    listed = pl.concat(parts, how="diagonal")
    names = ["marginal", *plan.domain.names, *(name for name in ("count", "deviation") if name in listed.columns)]
    empty = [pl.lit(None).alias(name) for name in names if name not in listed.columns]
    return listed.with_columns(empty).select(names)
