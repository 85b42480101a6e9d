"""Why rows of benchmarks/measured.md stay below their goals: for each, the limit that was measured.

`scripts/measure.py` writes these sentences below the table, for the rows that are below a goal there. Parts are those
of `python benchmarks/parts.py`: "words", "bytes" (values read and a result written, beyond all caches) and "arithmetic"
(in a cache), in nanoseconds a value, on AVX-512 and on AVX2 alone.
"""

from __future__ import annotations

import re

__all__ = ["LIMITS", "is_below_goal"]

_SPEEDUP = re.compile(r"([\d,.]+)x .*?\(goal ([\d,.]+)x")
_SHARE = re.compile(r"([\d,.]+) .*?\(goal ([\d,.]+)[;)]")

_BOTH_CORES = "the cores share their way to memory: what words and bytes alone gain stands in the row"

#: A sentence for each row that has been below a goal: what takes the time, in numbers.
LIMITS = {
    "Laplace, int64": (
        "words take .27 (AVX2 .51), arithmetic and bytes .76 (1.07), since blocks of 256 rows let the processor fetch"
        " the next one's values meanwhile; that is .85 instead of 1.04 in turns"
    ),
    "Laplace, float64": (
        "on AVX2 (Zen 3) words of 6 bytes take .70, arithmetic 1.22, and with bytes 1.61, since short blocks let the"
        " processor fetch the next one's values meanwhile; to add noise and values in one pass made it 1.66 from 2.25"
    ),
    "Gaussian, int64": (
        "on AVX2 (Zen 3) words take .50, arithmetic 1.2, and with bytes 1.6: reading and writing alone take .8, half of"
        " it meanwhile, since pairs are made within 1,024 rows"
    ),
    "Gaussian, float64": (
        "on AVX2 (Zen 3) words of 6 bytes take .70, arithmetic 1.36, and with bytes 1.80, which was 2.77. Of the"
        " arithmetic .34 is for the one pair in 65 that float32 leaves open; a grid of scale / 1,024 would make it .10"
    ),
    "Laplace as a Polars expression, 10^7 rows": (
        "the result's memory and the engine's passing are Polars'; in a later run of the same code 1.05, with AVX2 1.15"
    ),
    "Laplace, int64, two threads": _BOTH_CORES,
    "Laplace, int64, scale 10^4, two threads": _BOTH_CORES,
    "Laplace, float64, two threads": _BOTH_CORES,
    "Gaussian, float64, two threads": _BOTH_CORES,
    "Exponential mechanism, 10^5 rows of 100, two threads": (
        "1.7x and 1.8x when nothing else ran; 1.1x and 1.0x while other work had a part of the two cores"
    ),
    "Count, 10^5 units bounded to 10 groups": (
        "to write the rows unit by unit, each to a place of its own, is a third of it, to look up their groups a fifth;"
        " the least processor time of seven runs is 1.20 of the baseline's, with AVX2 1.54"
    ),
    "By 100 groups: count of some rows": (
        "of processor time it takes .68 of the baseline's (47 against 70 ms), nearly all of it in Polars' own engine:"
        " what is left is how evenly two threads share it"
    ),
    "Scale's distances, 10^7 rows": (
        "NumPy sorts the same numbers here as in the baseline, which is .81 of the processor's time; a pass before it,"
        " which leaves out nulls and copies, takes .11, and two looks at what was sorted .07"
    ),
    "Randomized response, 10^8 bits, int64": (
        "to copy the numbers into memory that is there takes .56 ns a value of processor time, of .79 for all, and the"
        " goal leaves .76"
    ),
    "Answer 10^6 queries, each its own epsilon": (
        "of the processor's time .36 is the noise, .27 holds charges against what their events cost and adds them up,"
        " .16 finds scales and amounts, .08 writes two bounds of each answer"
    ),
    "Single durable charges": (
        "bare SQLite with a ledger's journal takes 2.9; the file's lock, a look at its name and state, and the seals .3"
        " to .5 more"
    ),
    "10^6 records into cells": (
        "to read seven columns of 64 bits takes 1.9 ms, their arithmetic in a cache 1.4 (AVX2 1.7, which was 3.2 when"
        " products had 64 bits), to add to so many counts 1.2; all takes 6.1 (6.9), and the goal leaves 6.2 (6.5)"
    ),
    "10^6 records counted by 7 columns": (
        "the same work as 10^6 records into cells: reading, arithmetic and additions take 4.5 of 6.1 ms (AVX2"
        " 4.8 of 6.9)"
    ),
    "10^6 records of a file into pairs of 14 columns": (
        "91 pairs are counted in 36 tables, 36 million additions to cells: 57 ms of processor time with AVX-512 and 65"
        " with AVX2, all included, where reading the file takes 18; codes took AVX2 .88 ns a value, and take .53 since"
        " products have 32 bits"
    ),
    "Noise on an Arrow stream, batches of 2^16": "to copy the batches together takes .2 of the baseline",
    "10 times dpf.multiplicative_weights, 2^20 weights": (
        "no weight can be written before all are summed: the pass that sums takes .82 of the baseline, the one that"
        " writes .90, both 1.75"
    ),
}


def is_below_goal(cell: str) -> bool:
    """Return whether a cell of the table has a ratio that is worse than its goal."""
    if found := _SPEEDUP.match(cell):
        ratio, goal = (float(number.replace(",", "")) for number in found.groups())
        return ratio < goal
    if found := _SHARE.match(cell):
        ratio, goal = (float(number.replace(",", "")) for number in found.groups())
        return ratio > goal
    return False
