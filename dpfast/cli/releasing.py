"""One release from plan to file: charge, draw, write, and tell what an interruption has cost."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import click

from dpfast.cli.errors import CommandError, ExitCode, FileTroubleError, described, exit_code, tell
from dpfast.cli.output import FRAME_SUFFIXES, Target, rescue_frame, write_frame
from dpfast.cli.terminal import Progress
from dpfast.errors import BudgetExceededError, DpfastError

if TYPE_CHECKING:
    import polars as pl

    from dpfast.ledger import Ledger
    from dpfast.releases.plan import Plan
    from dpfast.releases.release import Release

__all__ = ["Outputs", "release_to", "run_charged", "run_plan"]

_Result = TypeVar("_Result")


class _StoppedError(CommandError):
    """A release that ended early, with the exit code of its reason."""

    def __init__(self, message: str, code: ExitCode) -> None:
        self.code = code
        super().__init__(message)


class Outputs:
    """The places of a release and of its chart, taken before the charge and given back if nothing comes."""

    def __init__(self, out: str, plot: str | None, *, overwrite: bool, keep: Sequence[str]) -> None:
        self.frame: Target | None = None
        self.chart: Target | None = None
        if plot is not None:
            from dpfast.charts import CHART_SUFFIXES, check_chart

            self.chart = Target(plot, "--plot", CHART_SUFFIXES, overwrite=overwrite, keep=keep)
        try:
            if plot is not None:
                check_chart(plot)
            if out != "-":
                self.frame = Target(out, "--out", FRAME_SUFFIXES, overwrite=overwrite, keep=keep)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Give the places back."""
        for target in (self.frame, self.chart):
            if target is not None:
                target.discard()

    def __enter__(self) -> Outputs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


def run_plan(plan: Plan, ledger: Ledger, ledger_path: str, progress: Progress) -> Release:
    """Run a plan; whatever stops it says what that has cost."""
    loss = f"epsilon {plan.epsilon:.12g}" if plan.rho is None else f"rho {plan.rho:.12g}"
    cost = f"{loss} and delta {plan.delta:.12g}"
    return run_charged(lambda: plan.run(ledger, progress=progress), cost, ledger_path, progress)


def run_charged(run: Callable[[], _Result], cost: str, ledger_path: str, progress: Progress) -> _Result:
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
        raise _StoppedError(message, ExitCode.INTERRUPTED) from None
    except BudgetExceededError as error:
        mend = f"dpfast ledger show {ledger_path} lists what was spent"
        raise _StoppedError(f"{described(error)}; {mend}", ExitCode.BUDGET) from None
    except (DpfastError, OSError, MemoryError) as error:
        if not progress.is_charged:
            raise
        reason = "there is not enough memory" if isinstance(error, MemoryError) else described(error)
        code = ExitCode.FILES if isinstance(error, MemoryError) else exit_code(error)
        raise _StoppedError(
            f"{reason}; {cost} were charged before and stay spent in {ledger_path}: "
            "mend this before another run, which is charged anew",
            code,
        ) from None


def release_to(plan: Plan, ledger: Ledger, ledger_path: str, outputs: Outputs) -> None:
    """Run a plan, write its release and chart, and say what it cost."""
    with Progress() as progress:
        released = run_plan(plan, ledger, ledger_path, progress)
        progress("writing")
        if outputs.frame is None:
            _print_frame(released.frame)
        else:
            _save_frame(released.frame, outputs.frame)
        if outputs.chart is not None:
            try:
                outputs.chart.save(released.plot)
            except Exception as error:
                what = described(error) if isinstance(error, (OSError, DpfastError)) else type(error).__name__
                raise FileTroubleError(
                    f"the chart {str(outputs.chart.path)!r} could not be written ({what}); the release was"
                ) from None
        spent, left = released.spent, ledger.remaining
    lines = []
    if outputs.frame is not None:
        lines.append(f"wrote {outputs.frame.path}: {released.frame.height:,} groups")
    if outputs.chart is not None:
        lines.append(f"wrote {outputs.chart.path}")
    lines.append(f"charged {ledger_path} (entry {released.entry}): {spent}; left: {left}")
    if outputs.frame is not None:
        click.echo("\n".join(lines))
    elif sys.stderr.isatty():
        click.echo("\n".join(lines), err=True)


def _save_frame(frame: pl.DataFrame, target: Target) -> None:
    try:
        target.save(lambda part: write_frame(frame, part))
    except Exception as error:
        reason = described(error) if isinstance(error, OSError) else type(error).__name__
        place = rescue_frame(frame)
        raise FileTroubleError(
            f"{str(target.path)!r} could not be written ({reason}); the release was charged, and is {place} instead"
        ) from None


def _print_frame(frame: pl.DataFrame) -> None:
    try:
        sys.stdout.write(frame.write_csv())
        sys.stdout.flush()
    except OSError as error:
        place = rescue_frame(frame)
        # Whoever read standard output is gone; the interpreter must not try to flush it once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        tell(f"standard output could not be written ({error.strerror}); the release was charged, and is {place}")
        raise _StoppedError("ended early", ExitCode.FILES) from None
