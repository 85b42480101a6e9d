"""The suites of ``dpfast bench``, each a list of cases."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from dpfast.bench import Case, Wish

__all__ = ["cases"]

#: Where the cases of each suite are made. They are imported when they are asked for.
_HOMES = {
    "speed": ("compared", "own"),
    "accuracy": ("accuracy", "own"),
    "accounting": ("compared", "tightness"),
    "pipeline": ("compared", "pipelines"),
    "privacy": ("privacy", "own"),
    "scaling": ("growth",),
}


def cases(suite: str, wish: Wish) -> list[Case]:
    """Return the cases of a suite; with a mechanism of the user's, those alone in which it runs."""
    homes = _HOMES[suite]
    if wish.own is not None:
        homes = tuple(home for home in homes if home == "own")
    found = (case for home in homes for case in import_module(f".{home}", __package__).cases(suite, wish))
    return [replace(case, is_known=wish.own is None) for case in found]
