"""The commands that say whether dpfast works here, and that compile it beforehand."""

from __future__ import annotations

import math
import time
from typing import Any

import click

from dpfast.cli.documents import JSON, wants_document, write_document
from dpfast.cli.errors import ExitCode
from dpfast.cli.terminal import counted_bar, print_table

__all__ = ["doctor", "warmup"]

#: With the start of the command that is less than ten, also where the machine is busy.
_SECONDS = 8.5


@click.command(
    short_help="Say whether dpfast works on this machine, and how fast.",
    epilog="\b\nExample:\n  dpfast doctor --json",
)
@click.option("--all", "ask_all", is_flag=True, help="Ask everything, however long it takes to compile it.")
@JSON
def doctor(ask_all: bool) -> int:
    """Compare what dpfast draws here with what it must draw.

    It draws millions of values with fresh keys, whose frequencies must be those of their law; makes small calls whose
    answers are known on every processor; and shows versions, the processor's vectors, the speed of the keystream, and
    where compiled kernels are kept. It exits with 1 if an answer is wrong.

    It takes less than ten seconds. In a new installation kernels have to be compiled first, as many at once as there
    are cores: it then names what there was no time for, and goes further the next time. What is being compiled when it
    ends is finished all the same, and kept.
    """
    from dpfast.cli.doctor import asking, workers
    from dpfast.cli.doctor.machine import versions

    begun = time.perf_counter()
    with counted_bar() as begin:
        found = asking.collect(workers.make_calls(asking.__name__, math.inf if ask_all else _SECONDS), begin)
    known, (loaded, compiled, place), wrong = versions() | found.processor, found.kernels, found.wrong
    kept = {"loaded": loaded, "compiled": compiled, "place": place}
    seconds = time.perf_counter() - begun
    if wants_document():
        more: dict[str, Any] = {
            "checks": found.number - len(found.not_asked),
            "wrong": wrong,
            "not_asked": found.not_asked,
            "keystream_bytes_a_second": found.keystream,
            "kernels": kept,
        }
        write_document(machine=known, **more, seconds=seconds)
        return int(ExitCode.REFUTED if wrong else ExitCode.DONE)
    if found.keystream is not None:
        made_by = f"{known['keystream']}, " if "keystream" in known else ""
        known["keystream"] = made_by + f"{found.keystream / 1e9:.1f} GB a second in one thread"
    known["kernels"] = f"{loaded} loaded from the cache, {compiled} compiled now" + (
        f"; kept in {place}" if place else ""
    )
    print_table(["what", "found"], known.items(), left=2)
    for line in wrong:
        click.echo(f"WRONG: {line}")
    if wrong:
        click.echo("do not release anything with this installation; please report this, with what is above")
        return int(ExitCode.REFUTED)
    if found.right:
        click.echo(f"{len(found.right)} of {len(found.right) + len(found.not_asked)} as they must be ({seconds:.1f} s)")
    else:
        click.echo(f"nothing could be asked within {seconds:.1f} s; nothing wrong was found either")
    if found.not_asked:
        click.echo(f"there was no time to compile and ask: {', '.join(found.not_asked)}")
    if found.not_asked or not found.right:
        click.echo(
            "run dpfast warmup, which compiles all, then dpfast doctor again; or dpfast doctor --all, which waits"
        )
    return int(ExitCode.DONE)


@click.command(
    short_help="Compile what is compiled at its first use, now.",
    epilog="\b\nExample:\n  dpfast warmup",
)
@JSON
def warmup() -> int:
    """Make small calls of everything with compiled loops, for the types of columns that are common.

    As many are made at once as there are cores. Compiled code is kept, and later processes load it: where nobody may
    write to the folder of the package, in the user's cache folder, or where NUMBA_CACHE_DIR says.

    Exit code 1: a call failed, or its process died.
    """
    from dpfast.cli.doctor import warming, workers

    begun = time.perf_counter()
    kernels: tuple[int, int, str | None] = (0, 0, None)
    number, failed = 0, list[str]()
    with counted_bar() as begin:
        for kind, what in workers.make_calls(warming.__name__):
            if kind == "names":
                number = len(what)
            elif kind == "begin":
                begin(what, number)
            elif kind == "kernels":
                kernels = what
            elif kind == "raised":
                failed.append(f"{what[0]}: {what[1]}")
            elif kind == "died":
                failed.append(workers.told_death(*what))
    (loaded, compiled, place), seconds = kernels, time.perf_counter() - begun
    if wants_document():
        kept = {"loaded": loaded, "compiled": compiled, "place": place}
        write_document(kernels=kept, failed=failed, seconds=seconds)
    else:
        click.echo(f"{compiled} kernels compiled, {loaded} were ready ({seconds:.0f} s); kept in {place}")
        for line in failed:
            click.echo(f"FAILED: {line}")
    return int(ExitCode.REFUTED if failed else ExitCode.DONE)
