"""What a person at a terminal sees: progress, tables. A pipe gets plain text and no progress."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "Progress",
    "console",
    "counted_bar",
    "is_closed",
    "is_left",
    "print_table",
    "replace_closed_streams",
    "until_readers_leave",
]

_PIPE_WIDTH = 160
_PATIENCE_SECONDS = 1.0

#: What stands in place of streams that were closed.
_replaced: list[IO[Any]] = []


def replace_closed_streams() -> None:
    """Put a stream that nobody reads in place of each that the caller has closed, as a shell does by ``>&-``.

    Python has None in its place, and the next file that is opened, a ledger perhaps, would get its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115  # as long as the process lives
            _replaced.append(stream)
            setattr(sys, name, stream)


def is_closed(stream: IO[Any]) -> bool:
    """Return whether a stream stands in place of one that was closed."""
    return any(getattr(stream, "stream", stream) is one for one in _replaced)


class _Outlet:
    """A stream whose reader may leave, as ``head -1`` does: what is written after that goes nowhere."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self.left = False

    def write(self, text: str) -> int:
        try:
            return self.stream.write(text)
        except BrokenPipeError:
            return self._leave(len(text))

    def flush(self) -> None:
        try:
            self.stream.flush()
        except BrokenPipeError:
            self._leave(0)

    def _leave(self, written: int) -> int:
        self.left = True
        with suppress(OSError, ValueError):  # what waits in the stream's buffer is flushed there at the exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def is_left(stream: IO[Any]) -> bool:
    """Return whether the reader of a stream has left before all was written."""
    return bool(getattr(stream, "left", False))


@contextmanager
def until_readers_leave() -> Iterator[None]:
    """Let a command run to its end, and end as it would, when nobody reads its output to the end."""
    before = sys.stdout, sys.stderr
    outlets = _Outlet(before[0]), _Outlet(before[1])
    sys.stdout, sys.stderr = outlets
    try:
        yield
    finally:
        for outlet in outlets:
            with suppress(OSError, ValueError):
                outlet.flush()
        sys.stdout, sys.stderr = before


def console(*, err: bool = False) -> Console:
    """Return a console that takes text as it is: keys and descriptions may hold brackets."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False, soft_wrap=True)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> None:
    """Print a table to standard output, its first ``left`` columns aligned left, the others right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for place, header in enumerate(headers):
        table.add_column(Text(header), justify="left" if place < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table, soft_wrap=False)


class Progress:
    """Follow a release through its stages, show them on a terminal, and know what an interrupt would mean.

    A stage's name reveals nothing of the data. Only the person who runs the command sees the elapsed time.
    From the drawing of the noise to the end of the command, an interrupt is ignored: what has been paid for is
    written first.
    """

    def __init__(self) -> None:
        self._stages = 0
        self._shown: Any = None
        self._task: Any = None
        self._timer: threading.Timer | None = None

    @property
    def is_charging(self) -> bool:
        """Whether the charge had begun and its end was not seen."""
        return self._stages == 1

    @property
    def is_charged(self) -> bool:
        """Whether the ledger has been charged."""
        return self._stages > 1

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.progress import Progress as Display
            from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
            self._shown = Display(*columns, console=console(err=True), transient=True)
            self._task = self._shown.add_task("starting", total=None)
            # What is done at once needs no display.
            self._timer = threading.Timer(_PATIENCE_SECONDS, self._shown.start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __call__(self, stage: str) -> None:
        """Begin a stage."""
        self._stages += 1
        if self._shown is not None:
            self._shown.update(self._task, description=stage)
        if stage == "drawing the noise":
            with suppress(ValueError):  # not in the main thread, which alone is interrupted
                signal.signal(signal.SIGINT, signal.SIG_IGN)

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._shown.stop()


@contextmanager
def counted_bar(total: int | None = None) -> Iterator[Callable[..., None]]:
    """Show a bar on a terminal; yield what is told the name of each part as it begins, and how many there are if known.

    With ``step=False`` it is told what a part is at, which does not move the bar.
    """
    if not sys.stderr.isatty():
        yield lambda name, total=None, *, step=True: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Display

    columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Display(*columns, console=console(err=True), transient=True) as shown:
        task = shown.add_task("", total=total)
        begun = 0

        def begin(name: str, total: int | None = None, *, step: bool = True) -> None:
            nonlocal begun
            shown.update(task, description=name, completed=begun, total=total)
            begun += step

        yield begin
