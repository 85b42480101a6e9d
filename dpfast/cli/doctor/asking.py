"""The calls that `dpfast doctor` makes, and its findings from what they tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from dpfast.cli.doctor.workers import Message, told_death

if TYPE_CHECKING:
    from dpfast.cli.doctor.checks import Check

__all__ = ["Findings", "calls", "collect"]

#: These two calls return facts; all others return a list of what is wrong.
_PROCESSOR, _KEYSTREAM = "processor", "keystream"


@dataclass
class Findings:
    """What was found.

    Attributes
    ----------
    processor
        What is known of the processor, by name.
    right, not_asked
        The names of what is as it must be, and of what there was no time for.
    number
        How many checks there are.
    wrong
        What is wrong, a line each; a check may give several.
    keystream
        Random bytes a second, or None where there was no time for it.
    kernels
        How many were loaded, how many compiled, and where they are kept.

    """

    processor: dict[str, str] = field(default_factory=dict)
    right: list[str] = field(default_factory=list)
    not_asked: list[str] = field(default_factory=list)
    number: int = 0
    wrong: list[str] = field(default_factory=list)
    keystream: float | None = None
    kernels: tuple[int, int, str | None] = (0, 0, None)


def calls() -> dict[str, Callable[[], Any]]:
    """Return all calls by name: noise, which most people draw first; then what compiles fast; then the rest."""
    from dpfast.cli.doctor.checks import CHECKS
    from dpfast.cli.doctor.machine import keystream_speed, processor
    from dpfast.cli.doctor.noise import KINDS, wrong_noise

    def wrong_draws(kind: str) -> list[str]:
        return list(wrong_noise(kind))

    def wrong_answer(check: Check) -> list[str]:
        return [] if check.answer() == check.expected() else ["another answer than it must be"]

    found: dict[str, Callable[[], Any]] = {_PROCESSOR: processor}
    for kind in KINDS:
        found[f"{kind} noise with fresh keys"] = partial(wrong_draws, kind)
        found.setdefault(_KEYSTREAM, keystream_speed)  # after the noise that nearly everybody draws
    return found | {check.name: partial(wrong_answer, check) for check in CHECKS}


def collect(messages: Iterable[Message], begin: Callable[[str, int], None]) -> Findings:
    """Return the findings; call ``begin`` with the name of each call as it begins, and how many calls there are."""
    found, number = Findings(), 0
    for kind, what in messages:
        if kind == "names":
            found.not_asked, number = [name for name in what if name not in (_PROCESSOR, _KEYSTREAM)], len(what)
            found.number = len(found.not_asked)
        elif kind == "kernels":
            found.kernels = what
        elif kind == "begin":
            begin(what, number)
        else:
            name, told = what
            if kind == "died":
                found.wrong.append(told_death(name, told))
            elif kind == "raised":
                found.wrong.append(f"{name}: {told}")
            elif name == _PROCESSOR:
                found.processor = told
            elif name == _KEYSTREAM:
                found.keystream = told
            else:
                found.wrong += [f"{name}: {line}" for line in told]
                found.right += [name] * (not told)
            if name in found.not_asked:
                found.not_asked.remove(name)
    return found
