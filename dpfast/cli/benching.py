"""The commands that measure dpfast beside others on this machine, and compare two such measurements."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from dpfast.cli.auditing import found_function, working_folder_first
from dpfast.cli.documents import JSON, wants_document, write_document
from dpfast.cli.errors import CommandError, ExitCode, FileTroubleError, tell
from dpfast.cli.output import Target, page_target
from dpfast.cli.terminal import counted_bar, print_table
from dpfast.showing import number_of

if TYPE_CHECKING:
    from dpfast.bench.cases import Case, Wish
    from dpfast.bench.own import Mechanism
    from dpfast.bench.running import Run

__all__ = ["bench"]


class _Bench(click.Command):
    """A command whose first word may be that of another one: ``dpfast bench compare``."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> click.Context:
        """Return the context of the command that is meant."""
        if args[:1] == ["compare"]:
            return compare.make_context(f"{info_name} compare", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(
    short_help="Compare two files of results; exit code 1 if something got worse, 4 if they share no row.",
    epilog="\b\nExample:\n  dpfast bench compare before.parquet after.parquet",
)
@click.argument("old")
@click.argument("new")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, min_open=False),
    default=0.1,
    show_default=True,
    help="A figure that is worse by a smaller share is called the same.",
)
@JSON
def compare(old: str, new: str, tolerance: float) -> ExitCode:
    """Say which rows of NEW are worse than in OLD, files that `dpfast bench --out` wrote.

    A row is worse if the interval of its ratio to ours lies wholly below that in OLD, and the median is lower by more
    than --tolerance. If nothing changed and rounds are exchangeable, that happens by chance to one row of 3,432 with
    seven rounds each; what all rows add up to is said. Of different machines ratios alone are compared.

    Exit code 4: the files share no row, so that nothing was compared.
    """
    from dpfast.bench.compare import compare as compared
    from dpfast.bench.results import read_results

    found = compared(read_results(old, "OLD"), read_results(new, "NEW"), tolerance)
    if not found.shared:
        raise FileTroubleError(
            "nothing was compared: OLD and NEW share no row; measure the same suites, --only and --mechanism for both"
        )
    code = ExitCode.REFUTED if found.is_worse else ExitCode.DONE
    if wants_document():
        write_document(worse=found.is_worse, false_alarms=found.false_alarms, notes=found.notes, changes=found.changes)
        return code
    told = [change for change in found.changes if change.verdict in ("worse", "better", "not judged")]
    if told:
        rows = (
            [change.verdict, change.suite, change.name, change.contestant, _short(change.old), _short(change.new),
             _short(change.factor), change.note]
            for change in sorted(told, key=lambda change: change.verdict != "worse")
        )  # fmt: skip
        print_table(["verdict", "suite", "what", "who", "old", "new", "times as good", "note"], rows, left=4)
    click.echo(found.explain())
    return code


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


@click.command(
    cls=_Bench,
    short_help="Measure dpfast beside other libraries, and mechanisms of your own beside it.",
    epilog="\b\nExamples:\n"
    "  dpfast bench --quick --out before.parquet --page before.html\n"
    "  dpfast bench speed --only Laplace\n"
    "  dpfast bench privacy --mechanism mine.py:my_mechanism\n"
    "  dpfast bench compare before.parquet after.parquet",
)
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option("--quick", is_flag=True, help="Small sizes and few rounds: all suites take less than two minutes.")
@click.option("--only", default="", metavar="TEXT", help="Only cases whose names contain this text.")
@click.option("--list", "is_list", is_flag=True, help="Show the cases and measure none.")
@click.option(
    "--mechanism", metavar="FILE.py:FUNCTION", help="Run a mechanism of your own beside ours: see the documentation."
)
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="The budget of --mechanism.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="Its delta.")
@click.option(
    "--largest", type=click.IntRange(10**3, 10**9), default=10**7, show_default=True, help="Rows of the suite scaling."
)
@click.option("--out", metavar="FILE.parquet", help="Write a row for each contestant that was measured.")
@click.option("--page", metavar="FILE.html", help="Write a page that needs no network.")
@click.option("--overwrite", is_flag=True, help="Replace --out and --page if they exist.")
@JSON
def bench(suites: tuple[str, ...], **given: Any) -> ExitCode:
    """Measure SUITEs, all without any: speed, accuracy, accounting, pipeline, privacy, scaling.

    Contestants run in turns; a ratio is the median over rounds of their figure beside ours in the same round, with an
    interval for it. Libraries that are not installed are skipped with a line. Ctrl-C keeps what was measured.

    Exit code 1: a contestant raised an error, or a claim of dpfast or of --mechanism is refuted.
    `dpfast bench compare OLD NEW` compares two files of --out.
    """
    from dpfast.bench.running import Run, cases_of

    with ExitStack() as stack:
        stack.enter_context(working_folder_first())
        targets = _targets(stack, given["out"], given["page"], overwrite=given["overwrite"])
        with redirect_stdout(sys.stderr):  # what a module prints when it is imported
            wish = _wish(given)
            try:
                cases = cases_of(suites, wish, given["only"])
            except ValueError as error:
                raise CommandError(str(error)) from None
        if given["is_list"]:
            return _list(cases)
        run = Run()
        interrupted = _measure(cases, wish, run)
        _write(run, targets)
        _tell_end(run, wish, targets, interrupted=interrupted)
    if interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.REFUTED if _failed(run, wish) else ExitCode.DONE


def _targets(stack: ExitStack, out: str | None, page: str | None, *, overwrite: bool) -> dict[str, Target | None]:
    """Return the places of results and of a page, which replace nothing but what an earlier run wrote there."""
    from dpfast.bench.page import holds_page
    from dpfast.bench.results import holds_results

    targets: dict[str, Target | None] = {"out": None, "page": None}
    stack.callback(_discard, targets)
    if out is not None:
        if Path(out).is_file() and not holds_results(out):
            raise FileTroubleError(f"--out {out!r} exists and is no file of results; give another name")
        targets["out"] = Target(out, "--out", (".parquet",), overwrite=overwrite)
    if page is not None:
        if Path(page).is_file() and not holds_page(Path(page)):
            raise FileTroubleError(f"--page {page!r} exists and is no page of dpfast bench; give another name")
        targets["page"] = page_target(page, "--page", overwrite=overwrite)
    return targets


def _discard(targets: dict[str, Target | None]) -> None:
    for target in targets.values():
        if target is not None:
            target.discard()


def _wish(given: dict[str, Any]) -> Wish:
    from dpfast.bench.cases import Wish
    from dpfast.bench.own import Budget

    if not 0 < given["epsilon"] < math.inf or not 0 <= given["delta"] < 1:
        raise CommandError("--epsilon must be above 0 and finite, and --delta from 0 to below 1")
    context = click.get_current_context()
    for option in ("epsilon", "delta"):
        if given["mechanism"] is None and context.get_parameter_source(option) is not ParameterSource.DEFAULT:
            raise CommandError(f"--{option} is for a mechanism of yours: give --mechanism too, or leave --{option} out")
    own = None
    if given["mechanism"] is not None:
        name = given["mechanism"].rpartition(":")[2]
        own = f"{name} of yours" if name in ("dpfast", "NumPy") else name, _mechanism(given["mechanism"])
    return Wish(
        is_quick=given["quick"], own=own, budget=Budget(given["epsilon"], given["delta"]), largest=given["largest"]
    )


def _mechanism(text: str) -> Mechanism:
    """Import the user's mechanism; an error of what holds it is told with its file and line."""
    from dpfast.bench.places import place_of

    try:
        return found_function(text)
    except CommandError as error:
        cause = error.__context__
        place = None if cause is None else place_of(cause)
        if cause is None or place is None:
            raise
        told = getattr(cause, "msg", None) if isinstance(cause, SyntaxError) else str(cause)
        why = " ".join(f"{type(cause).__name__}: {told}".split())[:160] if told else type(cause).__name__
        raise CommandError(f"--mechanism cannot be imported: {place}: {why}; mend it there") from None


def _list(cases: Sequence[Case]) -> ExitCode:
    if wants_document():
        write_document(cases=[{"suite": case.suite, "name": case.name, "quick": case.is_quick} for case in cases])
    else:
        print_table(
            ["suite", "case", "--quick"], ([c.suite, c.name, "yes" if c.is_quick else ""] for c in cases), left=3
        )
    return ExitCode.DONE


def _measure(cases: Sequence[Case], wish: Wish, run: Run) -> bool:
    """Measure the cases into a run, and return whether somebody interrupted it."""
    from dataclasses import replace

    from dpfast.bench.finding import CHECKOUT, suite_module
    from dpfast.bench.machine import commit_of, this_machine, versions_of
    from dpfast.bench.results import About
    from dpfast.bench.running import run_cases

    contestants = suite_module("contestants")
    versions = versions_of(one.package for one in contestants.CONTESTANTS)
    about = About(this_machine(), versions, commit_of(CHECKOUT))
    if not wants_document():
        click.echo(f"{about.machine}\n{', '.join(f'{name} {found}' for name, found in versions.items())}")
        for line in contestants.missing_lines() if wish.own is None else ():
            click.echo(line)
    with counted_bar(len(cases)) as begin:
        done: list[Case] = []

        def told(text: str) -> None:
            begin(text, step=False)

        def shown(case: Case, rows: list[dict[str, Any]]) -> None:
            begin(case.name)
            done.append(case)
            following = cases[len(done)] if len(done) < len(cases) else None
            if following is None or following.suite != case.suite:
                _show(case.suite, run.rows)

        try:
            run_cases(cases, replace(wish, tell=told), about, run, shown)
        except KeyboardInterrupt:
            if done and len(done) < len(cases):
                _show(cases[len(done)].suite, run.rows)
            return True
    return False


def _show(suite: str, rows: Sequence[dict[str, Any]]) -> None:
    from dpfast.bench.showing import HEADERS, cells, noted

    shown = [row for row in rows if row["suite"] == suite]
    if shown and not wants_document():
        click.echo(f"\n{suite}")
        print_table(HEADERS, map(cells, shown), left=2)
        for row in shown:
            if row["note"]:
                click.echo(noted(row))


def _write(run: Run, targets: dict[str, Target | None]) -> None:
    from dpfast.bench.page import write_page
    from dpfast.bench.results import to_frame

    frame = to_frame(run.rows)
    out, page = targets["out"], targets["page"]
    if out is not None and run.rows:
        out.save(frame.write_parquet)
    if page is not None and run.rows:
        page.save(lambda part: write_page(frame, part))


def _failed(run: Run, wish: Wish) -> bool:
    """Whether a contestant raised, or a claim of ours or of the user's mechanism is refuted."""
    judged = {"dpfast", wish.own[0] if wish.own else "dpfast"}
    return any(
        row["failure"] == "raised" or (row["failure"] == "refuted" and row["contestant"] in judged) for row in run.rows
    )


def _tell_end(run: Run, wish: Wish, targets: dict[str, Target | None], *, interrupted: bool) -> None:
    from dpfast.bench.finding import suite_module
    from dpfast.bench.results import to_frame

    contestants = suite_module("contestants")
    failed = contestants.failed_lines()
    written = [str(target.path) for target in targets.values() if target is not None and run.rows]
    if wants_document():
        not_run = [*contestants.missing_lines(), *failed]
        write_document(is_whole=run.is_whole, written=written, not_run=not_run, rows=to_frame(run.rows).to_dicts())
    else:
        for line in failed:
            click.echo(line)
        for path in written:
            click.echo(f"wrote {path}")
    if interrupted:
        tell(f"interrupted after {number_of(len(run.rows), 'row')}" + (", which the files hold" if written else ""))
    elif _failed(run, wish):
        count = sum(bool(row["failure"]) for row in run.rows)
        tell(f"{count:,} of {number_of(len(run.rows), 'row')} failed, by an error or refuted; the lines above say how")
