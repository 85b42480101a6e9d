"""The commands and their options; what they do stands in the modules beside this one.

Modules that take long to import are imported by the commands that need them, so that help comes at once.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from dpfast.cli.answering import answer
from dpfast.cli.arguments import draw_plan
from dpfast.cli.attacking import attack
from dpfast.cli.auditing import audit
from dpfast.cli.benching import bench
from dpfast.cli.doctor.commands import doctor, warmup
from dpfast.cli.documents import JSON
from dpfast.cli.errors import ExitCode, described, exit_code, tell
from dpfast.cli.ledgers import ledger, open_or_create, shown_path
from dpfast.cli.marginals import marginals
from dpfast.cli.options import (
    DATASET,
    EPSILON,
    FILES,
    LIMIT,
    NEIGHBORS,
    RHO,
    SCHEMA,
    Destination,
    choice,
    combined,
    complete_files,
    dataset_name,
    destination_options,
)
from dpfast.cli.output import Outputs
from dpfast.cli.previewing import preview_options, preview_to
from dpfast.cli.proposing import domain
from dpfast.cli.releasing import release_to, show_plan
from dpfast.cli.reporting import report
from dpfast.cli.selecting import select
from dpfast.cli.starting import completion, init
from dpfast.cli.synthesizing import synthesize
from dpfast.cli.terminal import replace_closed_streams, until_readers_leave
from dpfast.cli.wishes import wish_options
from dpfast.errors import DpfastError

__all__ = ["main"]


class _Commands(click.Group):
    """A group of commands whose errors are one line each."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run a command and exit."""
        replace_closed_streams()
        extra["standalone_mode"] = False
        code: Any = ExitCode.DONE
        running = self._named(sys.argv[1:] if args is None else args)
        handler = signal.getsignal(signal.SIGINT)
        with until_readers_leave():
            try:
                code = super().main(args, "dpfast", **extra)
            except click.exceptions.NoArgsIsHelpError as error:
                click.echo(error.format_message(), err=True)
                code = ExitCode.USAGE
            except (click.UsageError, click.Abort, KeyboardInterrupt, DpfastError, OSError, MemoryError) as error:
                tell(described(error, running))
                code = exit_code(error)
            finally:
                with suppress(ValueError):  # not in the main thread, where nothing was changed
                    signal.signal(signal.SIGINT, handler)
        sys.exit(int(code) if isinstance(code, int) else 0)

    def _named(self, words: Sequence[str]) -> click.Command:
        """Return the command that the first words name, for messages that call its options by their names."""
        command: click.Command = self
        for word in words:
            if not isinstance(command, click.Group) or word not in command.commands:
                break
            command = command.commands[word]
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Turn an interrupt into what click leaves alone: it would print an empty line first."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Every command takes --json. Exit codes: 0 done, 1 a claim is refuted, 2 usage or parameters, 3 budget too "
    "small, 4 files or ledger, 130 interrupted.",
)
@click.version_option(package_name="dpfast", prog_name="dpfast", message="%(prog)s %(version)s")
def main() -> None:
    """Differentially private statistics from files, charged to a ledger.

    Start with: dpfast demo
    """


def _query(kind: str, form: str, asked: str) -> Callable[[Any], Any]:
    metavar = "[NAME=]CONDITION" if form == "CONDITION" else f"[NAME=]COLUMN:{form}".removesuffix(":")
    return click.option(
        f"--{kind}", f"{kind.replace('-', '_')}s", multiple=True, metavar=metavar, help=f"Ask for {asked}; repeatable."
    )


_release_options = combined(
    FILES,
    click.option(
        "--by",
        multiple=True,
        metavar="COLUMN,...",
        help="Group by these columns; none for one group. Of dates, COLUMN:month and other parts: year, quarter, week, "
        "weekday, day, hour, date.",
    ),
    click.option(
        "--where",
        multiple=True,
        metavar="CONDITION",
        help='Count only rows that pass, as in \'delay > 15 and carrier in ("AA", "UA")\'; repeatable.',
    ),
    click.option(
        "--cast",
        multiple=True,
        metavar="COLUMN=DTYPE,...",
        help="Read columns as other dtypes; what does not fit is null, as 2.7 is no integer.",
    ),
    click.option("--count", is_flag=False, flag_value="count", metavar="[NAME]", help="Ask for the number of rows."),
    _query("sum", "LOW:HIGH", "a sum"),
    _query("mean", "LOW:HIGH", "a mean"),
    _query("unit-sum", "LOW:HIGH", "a sum, bounds being of what one unit adds to a group, not of single values"),
    _query("unit-mean", "LOW:HIGH", "the mean over units of the mean of each one's values"),
    click.option("--units", is_flag=False, flag_value="units", metavar="[NAME]", help="Ask for the number of units."),
    _query("variance", "LOW:HIGH", "a variance"),
    _query("std", "LOW:HIGH", "a standard deviation"),
    _query("covariance", "LOW:HIGH:OTHER:LOW:HIGH", "a covariance of two columns"),
    _query("proportion", "CONDITION", "the part of rows in which a condition as that of --where holds"),
    _query("count-where", "CONDITION", "the number of rows in which a condition as that of --where holds"),
    _query("count-distinct", "", "the number of different values"),
    _query("top-k", "K[:CANDIDATE,...]", "the K most common values, or public candidates, in order"),
    _query("histogram", "EDGE,...", "the number of values in each bin; a list in .csv is text such as [3, 5]"),
    _query("cdf", "POINT,...", "the part of values at or below each point"),
    _query("minimum", "LOW:HIGH", "a low quantile in place of the minimum, which cannot be private"),
    _query("maximum", "LOW:HIGH", "a high quantile in place of the maximum"),
    _query("quantile", "LOW:HIGH:Q,...", "quantiles, numbers from 0 to 1"),
    _query("mode", "CANDIDATE,...", "the most common of public candidates, quoted as in CSV files if they hold commas"),
    click.option(
        "--bins",
        multiple=True,
        metavar="COLUMN:EDGE,...",
        help="Cut a --by column of numbers, dates or times into bins; repeatable.",
    ),
    click.option(
        "--unit", "privacy_unit", metavar="COLUMN|row", help="Whose privacy is kept; row where each row is a unit."
    ),
    click.option(
        "--max-groups",
        type=LIMIT,
        metavar="N",
        help="Keep at most N groups of each unit, at random; auto: chosen privately, first.",
    ),
    click.option(
        "--max-rows",
        "max_rows_per_group",
        type=LIMIT,
        metavar="N",
        help="Keep at most N rows of each unit in each group; or auto. Of --unit-sum, --unit-mean, --units all count.",
    ),
    click.option(
        "--report-cut",
        type=float,
        metavar="SHARE",
        help="Tell what these limits cut, for this share of the budget, such as 0.05.",
    ),
    EPSILON,
    RHO,
    wish_options,
    click.option("--delta", type=float, default=0.0, show_default=True, help="Needed to select keys or values."),
    click.option("--keys", metavar="FILE", help="Public keys, all shown; by default, keys are selected privately."),
    NEIGHBORS,
    choice("--mechanism", "auto", "laplace", "gaussian", text="The noise; auto takes the smaller."),
    choice(
        "--key-selection",
        "auto",
        "optimal",
        "count",
        "threshold",
        "weighted",
        "iterated",
        "policy",
        text="How keys are selected; auto takes the rule that shows a key with the fewest units.",
    ),
    click.option(
        "--split",
        default="even",
        show_default=True,
        metavar="RULE",
        help="How epsilon is shared: even, optimal (least total variance), NAME=WEIGHT,... or optimal:NAME=WEIGHT,...",
    ),
    choice(
        "--interval",
        "noise",
        "population",
        text="What intervals cover; population adds those for units that were drawn from a population.",
    ),
    click.option(
        "--plot-groups",
        type=click.IntRange(1, 500),
        default=30,
        show_default=True,
        metavar="N",
        help="How many groups --plot shows.",
    ),
    click.option("--population", type=int, metavar="N", help="The public number of units, to judge delta and keys by."),
    DATASET,
    SCHEMA,
)


@main.command(
    short_help="Release statistics of files, charged to a ledger.",
    epilog="\b\nExample:\n"
    "  dpfast release flights.parquet --by carrier,dest --count --mean dep_delay:-20:60 --unit tailnum \\\n"
    "    --max-groups 8 --max-rows 8 --epsilon 1 --delta 1e-7 --ledger ledger.db --budget-epsilon 4 \\\n"
    "    --budget-delta 1e-6 --out routes.parquet --plot routes.png",
)
@_release_options
@destination_options("release", plot="the first query", report="the release")
@JSON
def release(**given: Any) -> None:
    """Release statistics of FILES by group, once, and charge the ledger for them.

    FILES - is CSV on standard input, which is read once.
    Mistakes in the arguments, the ledger or the output are found before the charge. A charge is never given back.
    """
    destination = Destination.taken(given)
    with Outputs(destination, keep=(*given["files"], given["keys"] or "")) as outputs:
        plan = draw_plan(given, destination.ledger)
        account = open_or_create(destination, dataset_name(given["files"], given["dataset"]))
        release_to(plan, account, shown_path(destination.ledger), outputs, top=given["plot_groups"])


@main.command(
    short_help="Show what a release would do; charges nothing.",
    epilog="\b\nExample:\n"
    "  dpfast explain flights.parquet --by carrier,dest --count --unit tailnum --max-groups 8 --max-rows 8 \\\n"
    "    --epsilon 1 --delta 1e-7",
)
@_release_options
@destination_options("release", plot="the first query", report="the release", required=False)
@JSON
def explain(**given: Any) -> None:
    """Show what `dpfast release` with the same arguments would do.

    It reads the schema and the public keys, no row of the data. It charges nothing, and ignores --out. Of --ledger it
    looks at what adds up there, if --error is given.
    """
    destination = Destination.taken(given)
    show_plan(draw_plan(given, destination.ledger))


@main.command(
    short_help="Draw what noise would do to public or made-up rows; charges nothing.",
    epilog="\b\nExample:\n"
    "  dpfast preview flights.parquet --by carrier,dest --count --unit tailnum --max-groups 8 --max-rows 8 \\\n"
    "    --epsilon 1 --delta 1e-7 --rows 300000 --groups 400 --made-up-units 4000",
)
@_release_options
@preview_options
@JSON
def preview(**given: Any) -> None:
    """Show what noise, clipping and the selection of keys would do to rows of the shape of FILES.

    Of FILES it reads the schema, no row. The rows are made up, or those of --sample, which must be public. It charges
    nothing, and what it shows is no release.
    """
    preview_to(given)


@main.command(
    short_help="Release 336,776 real flights, beside the truth.",
    epilog="\b\nExample:\n  dpfast demo --out ./dpfast-demo --epsilon 4",
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("dpfast-demo"), show_default=True)
@click.option("--epsilon", type=float, default=4.0, show_default=True, help="The privacy loss of the demonstration.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Only write the tables that README works with to this folder; no file of yours is replaced.",
)
@JSON
def demo(out: Path, epsilon: float, data: Path | None) -> None:
    """Release 336,776 real flights by carrier and destination, beside the true values.

    Writes a table, charts and a ledger to the folder --out, over those of an earlier run and over no file of yours.
    Needs pip install "dpfast[demo]".
    """
    from dpfast.cli.demo.routes import run_demo
    from dpfast.cli.demo.tables import write_tables

    if data is not None:
        write_tables(data)
    else:
        run_demo(out, epsilon)


for _command in (
    ledger,
    report,
    answer,
    select,
    domain,
    marginals,
    synthesize,
    attack,
    audit,
    bench,
    doctor,
    warmup,
    init,
    completion,
):
    main.add_command(_command)
complete_files(main)
