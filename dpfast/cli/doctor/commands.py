"""The commands that say whether dpfast works here, and that compile it beforehand."""

from __future__ import annotations

import time
from typing import Any

import click

from dpfast.cli.documents import JSON, wants_document, write_document
from dpfast.cli.errors import ExitCode
from dpfast.cli.terminal import counted_bar, print_table

__all__ = ["doctor", "warmup"]


@click.command(
    short_help="Say whether dpfast works on this machine, and how fast.",
    epilog="\b\nExample:\n  dpfast doctor --json",
)
@JSON
def doctor() -> int:
    """Compare what dpfast draws here with what it must draw.

    It shows versions, the processor's vectors, the speed of the keystream, and where compiled kernels are kept; makes
    small calls whose answers are known on every processor; and draws two million values with fresh keys, whose
    frequencies must be those of their law. It exits with 1 if an answer is wrong.
    """
    from dpfast.cli.doctor.checks import CHECKS
    from dpfast.cli.doctor.machine import compiled_kernels, facts, keystream_speed
    from dpfast.cli.doctor.noise import wrong_noise

    begun = time.perf_counter()
    wrong = []
    with counted_bar(len(CHECKS) + 1) as begin:
        for check in CHECKS:
            begin(check.name)
            try:
                if check.answer() != check.expected():
                    wrong.append(f"{check.name}: another answer than it must be")
            except Exception as error:
                wrong.append(f"{check.name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
        begin("noise with fresh keys")
        wrong += wrong_noise()
        speed = keystream_speed()
    known, (loaded, compiled, place) = facts(), compiled_kernels()
    kept = {"loaded": loaded, "compiled": compiled, "place": place}
    seconds = time.perf_counter() - begun
    if wants_document():
        more: dict[str, Any] = {
            "checks": len(CHECKS),
            "wrong": wrong,
            "keystream_bytes_a_second": speed,
            "kernels": kept,
        }
        write_document(machine=known, **more, seconds=seconds)
        return int(ExitCode.REFUTED if wrong else ExitCode.DONE)
    known["keystream"] += f", {speed / 1e9:.1f} GB a second in one thread"
    known["kernels"] = f"{loaded} loaded from the cache, {compiled} compiled now; kept in {place}"
    print_table(["what", "found"], known.items(), left=2)
    for line in wrong:
        click.echo(f"WRONG: {line}")
    if wrong:
        click.echo("do not release anything with this installation; please report this, with what is above")
        return int(ExitCode.REFUTED)
    click.echo(f"{len(CHECKS)} answers as they must be, noise as its law says ({seconds:.1f} s)")
    if compiled:
        click.echo("kernels were compiled: dpfast warmup compiles the others, so that no first call waits for it")
    return int(ExitCode.DONE)


@click.command(
    short_help="Compile what is compiled at its first use, now.",
    epilog="\b\nExample:\n  dpfast warmup",
)
@JSON
def warmup() -> None:
    """Make small calls of everything with compiled loops, for the types of columns that are common.

    Compiled code is kept, and later processes load it: where nobody may write to the folder of the package, in the
    user's cache folder, or where NUMBA_CACHE_DIR says.
    """
    from dpfast.cli.doctor.checks import CHECKS
    from dpfast.cli.doctor.machine import compiled_kernels
    from dpfast.cli.doctor.warming import CALLS
    from dpfast.testing import SeededRandom

    begun = time.perf_counter()
    with counted_bar(len(CHECKS) + len(CALLS)) as begin:
        for check in CHECKS:
            begin(check.name)
            check.draw(SeededRandom(1))
        for name, call in CALLS.items():
            begin(name)
            call()
    (loaded, compiled, place), seconds = compiled_kernels(), time.perf_counter() - begun
    if wants_document():
        write_document(kernels={"loaded": loaded, "compiled": compiled, "place": place}, seconds=seconds)
    else:
        click.echo(f"{compiled} kernels compiled, {loaded} were ready ({seconds:.0f} s); kept in {place}")
