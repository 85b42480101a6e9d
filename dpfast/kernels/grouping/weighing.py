"""Share what a privacy unit adds among the groups that it holds."""

from __future__ import annotations

from dpfast.kernels.compilation import kernel

__all__ = ["weigh_groups"]


@kernel
def weigh_groups(stops, groups, done, weights, out):
    """Add to each group the weight that every unit which holds it has for one of its groups.

    Parameters
    ----------
    stops : int64, units
        Where each unit's groups end in ``groups``; they begin where those of the unit before end.
    groups : int32
        Distinct groups 0 <= g < len(out), unit by unit.
    done : uint8, one per group
        1 for groups that count for nothing: no unit holds them any more.
    weights : int64
        What a unit of j groups, of those that are not done, adds to each: entry j, from 0 to the most that occur.
    out : int64, one per group
        The sums; added to.
    """
    start = 0
    for unit in range(len(stops)):
        stop = stops[unit]
        held = 0
        for place in range(start, stop):
            if done[groups[place]] == 0:
                held += 1
        if held > 0:
            weight = weights[held]
            for place in range(start, stop):
                if done[groups[place]] == 0:
                    out[groups[place]] += weight
        start = stop


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
