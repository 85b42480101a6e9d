"""One release from plan to file: charge, draw, write, and tell what an interruption has cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dpfast.cli.documents import ledger_facts, say, wants_document, write_document
from dpfast.cli.errors import CommandError, ExitCode, described, exit_code
from dpfast.cli.output import Outputs
from dpfast.cli.terminal import Progress, console, print_table
from dpfast.errors import BudgetExceededError, DpfastError
from dpfast.showing import number_of

if TYPE_CHECKING:
    from dpfast.ledger import Ledger
    from dpfast.releases.plan import Plan
    from dpfast.releases.release import Release

__all__ = ["charge_line", "cost_words", "release_to", "run_charged", "run_plan", "show_plan"]

_Result = TypeVar("_Result")

_HEADERS = ("query", "measure", "sensitivity", "noise", "scale", "95% within", "epsilon", "delta")


def run_plan(plan: Plan, ledger: Ledger, ledger_path: str, progress: Progress) -> Release:
    """Run a plan; whatever stops it says what that has cost."""
    cost = cost_words(plan.epsilon, plan.rho, plan.delta)
    return run_charged(lambda: plan.run(ledger, progress=progress), cost, ledger, ledger_path, progress)


def cost_words(epsilon: float | None, rho: float | None, delta: float | None = None) -> str:
    """Return what is asked of a ledger, for messages: epsilon or rho, and delta where there is one to tell of.

    Examples
    --------
    >>> cost_words(0.5, None, 1e-9), cost_words(None, 0.1)
    ('epsilon 0.5 and delta 1e-09', 'rho 0.1')

    """
    from dpfast.accounting.budget import amount_text

    name, amount = ("epsilon", epsilon) if rho is None else ("rho", rho)
    assert amount is not None
    loss = f"{name} {amount_text(float(amount))}"
    return loss if delta is None else f"{loss} and delta {amount_text(float(delta))}"


def charge_line(ledger: Ledger, place: str, entry: int | None, spent: object) -> str:
    """Return what was charged to a ledger, and what it has left."""
    return f"charged {place} (entry {entry}): {spent}; left: {ledger.remaining}"


def run_charged(run: Callable[[], _Result], cost: str, ledger: Ledger, ledger_path: str, progress: Progress) -> _Result:
    """Run what charges a ledger and then draws; whatever stops it says what that has cost.

    Raises
    ------
    DpfastError
        It was refused, interrupted, or failed.

    """
    try:
        return run()
    except KeyboardInterrupt:
        if progress.is_charged:
            message = (
                f"interrupted after the charge: {cost} stay spent in {ledger_path}, and nothing was released; "
                "another run is charged anew"
            )
        elif progress.is_charging:
            message = f"interrupted in the charge; dpfast ledger show {ledger_path} tells whether it was made"
        else:
            message = "interrupted; nothing was charged"
        raise CommandError(message, ExitCode.INTERRUPTED) from None
    except BudgetExceededError as error:
        if not ledger._state().entries:  # one row is read for it, not the whole history
            mend = f"{ledger_path} holds no charge: if its budget is a mistake, delete it, and create it again"
        else:
            mend = f"dpfast ledger show {ledger_path} lists what was spent"
        raise CommandError(f"{described(error)}; {mend}", ExitCode.BUDGET) from None
    except (DpfastError, OSError, MemoryError) as error:
        if not progress.is_charged:
            raise
        raise CommandError(
            f"{described(error)}; {cost} were charged before and stay spent in {ledger_path}: "
            "mend this before another run, which is charged anew",
            exit_code(error),
        ) from None


def release_to(plan: Plan, ledger: Ledger, ledger_path: str, outputs: Outputs, *, top: int) -> None:
    """Run a plan, write its release, a chart of ``top`` groups and a page, and say what it cost."""
    with Progress() as progress:
        released = run_plan(plan, ledger, ledger_path, progress)
        progress("writing")
        outputs.save_frame(released.frame)
        outputs.save_chart(partial(released.plot, top=top))
        outputs.save_page(lambda: released._page().html())
        charged = charge_line(ledger, ledger_path, released.entry, released.spent)
    frame = released.frame
    if wants_document():
        write_document(
            out=str(outputs.frame.path) if outputs.frame is not None else None,
            plot=str(outputs.chart.path) if outputs.chart is not None else None,
            report=str(outputs.page.path) if outputs.page is not None else None,
            rows=frame.height,
            columns=frame.columns,
            why_empty=released.why_empty,
            cut=None if released.cut is None else asdict(released.cut),
            chosen={name: _plain(value) for name, value in released.chosen.items()},
            warnings=plan.warnings,
            ledger=ledger_facts(ledger, ledger_path, entry=released.entry, charged=released.spent),
        )
        return
    lines = outputs.written(f"{number_of(frame.height, 'group')}")
    lines.extend(f"chosen for {name}: {_plain(value)}" for name, value in released.chosen.items())
    if released.cut is not None:
        lines.extend(" ".join(line.split()) for line in released.cut.lines())
    lines.append(charged)
    if released.why_empty is not None:
        lines.append(released.why_empty)
    say("\n".join(lines), err=outputs.frame is None)


def _plain(value: Any) -> Any:
    """Return what was chosen as numbers, text and lists of these."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, (int, float)) else str(value)


#: Of noise that depends on what is drawn first.
_LATER = "known when it is drawn"


def show_plan(plan: Plan) -> None:
    """Print a plan to standard output."""
    if wants_document():
        write_document(
            epsilon=plan.epsilon,
            delta=plan.delta,
            rho=plan.rho,
            warnings=plan.warnings,
            measures=plan.to_frame().to_dicts(),
            text=plan.explain(),
        )
        return
    from dpfast.accounting.budget import amount_text

    console().print(plan.explain(measures=False))
    rows = [
        (
            row["query"],
            row["measure"],
            _LATER if row["sensitivity"] is None else f"{row['norm']} {row['sensitivity']:g} = {row['reason']}",
            row["kernel"] or "",
            "" if row["scale"] is None else f"{row['scale']:g}",
            "" if row["error95"] is None else f"{row['error95']:g}",
            amount_text(row["epsilon"], digits=6),
            amount_text(row["delta"], digits=6),
        )
        for row in plan.to_frame().iter_rows(named=True)
    ]
    print_table(_HEADERS, rows, left=4)
