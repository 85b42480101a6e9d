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

_BOTH_CORES = (
    "two threads that use nothing but registers gain 1.89 on a Zen 3, kernels in a cache of each core 1.73 to 1.84, and"
    " beyond all caches 1.72 to 1.83, where reading and writing alone gains 1.45 (`benchmarks/parts.py`); in a call"
    " Python hands out the blocks, 4% of one thread's time, which both threads wait for. This row gave 1.2 to 1.8 in"
    " three runs that followed each other"
)

#: A sentence for each row that has been below a goal: what takes the time, in numbers.
LIMITS = {
    "Laplace, int64": (
        "words take .27 (AVX2 .51), arithmetic and bytes .76 (1.07), since short blocks, then of 256 rows, let the"
        " processor fetch the next one's values meanwhile; that is .85 instead of 1.04 in turns"
    ),
    "Laplace, float64": (
        "on AVX-512 the earlier kernels' words took .40, arithmetic 1.05, and with bytes 1.28; "
        "on AVX2 (Zen 3) words of 4 bytes take .31, where they took .46 while all had 6; arithmetic took 1.22 on a grid"
        " of scale / 4,096, and with bytes 1.58, since short blocks let the processor fetch the next one's values"
        " meanwhile; it took 2.25 before noise and values were added in one pass"
    ),
    "Gaussian, int64": (
        "on AVX-512 words and bytes alone stay below the goal; there the earlier kernels' words took .27, arithmetic"
        " .69, bytes .60; "
        "on AVX2 (Zen 3) words take .31, arithmetic takes 1.11, and with bytes 1.55: reading and writing take .76,"
        " half of which is hidden by the arithmetic, since pairs are made within 1,024 rows"
    ),
    "Gaussian, float64": (
        "on AVX-512 words and bytes alone stay below the goal; there the earlier kernels' words took .40 and arithmetic"
        " 1.04, 1.44 together before a byte is read or written, where the goal leaves 1.25 for all; "
        "on AVX2 (Zen 3) words of 4 bytes take .31, arithmetic takes 1.15, and with bytes 1.51. It was .46 with words"
        " of 6 bytes, 1.39 and 1.77 on a grid of scale / 4,096, where float32 leaves one pair in 54 open, and now one"
        " in 215; 2.77 before noise and values were added in one pass. Of it radii take .32, both values of pairs .30,"
        " sums .36; to find the open ones took .1 while they were marked one by one, and takes a third of that since"
        " eight are compared at a time. Streaming stores took .4 more, and prefetches between the parts hid the bytes"
        " but cost as much"
    ),
    "Laplace as a Polars expression, 10^7 rows": (
        "the result's memory and the engine's passing are Polars'; in a later run of the same code 1.05, with AVX2"
        " 1.15, and on a Zen 3 of the processor's time 1.00"
    ),
    "Laplace, int64, two threads": _BOTH_CORES,
    "Laplace, int64, scale 10^4, two threads": _BOTH_CORES,
    "Laplace, float64, two threads": _BOTH_CORES,
    "Gaussian, float64, two threads": _BOTH_CORES,
    "First noisy column, new process": (
        "on a Zen 3, where importing NumPy takes .13 s and Numba .42 in the fastest of nine runs, all takes .68; it is"
        " below its goal on the machine with AVX-512"
    ),
    "One call on 1,000 values": (
        "on a Zen 3, where NumPy takes 34 us for its noise and the sum, our call takes 60 in turns with it, 1.8 times"
        " as long; it is below its goal on the machine with AVX-512"
    ),
    "`dpfast --help`": (
        "on a Zen 3, where Python takes .02 s to do nothing and .07 with click, the fastest of seven runs takes .18"
    ),
    "`dpfast explain FILE`": (
        "on a Zen 3, where importing Polars takes .32 s and Numba .41; it is below its goal on the machine with AVX-512"
    ),
    "Exponential mechanism, 10^5 rows of 100, two threads": (
        "1.7x and 1.8x when nothing else ran; 1.1x and 1.0x while other work had a part of the two cores"
    ),
    "Count, 10^5 units bounded to 10 groups": (
        "to write the rows unit by unit, each to a place of its own, is a third of it, to look up their groups a fifth;"
        " the least processor time of seven runs is 1.20 of the baseline's, with AVX2 1.54, on a Zen 3 .99"
    ),
    "By 100 groups: count of some rows": (
        "of processor time it takes .68 of the baseline's (47 against 70 ms; on a Zen 3 .77), nearly all of it in"
        " Polars' own engine: what is left is how evenly two threads share it"
    ),
    "Scale's distances, 10^7 rows": (
        "NumPy sorts the same numbers here as in the baseline, which is .81 of the processor's time; a pass before it,"
        " which leaves out nulls and copies, takes .11, and two looks at what was sorted .07. On a Zen 3, natively, all"
        " takes 1.48 of the baseline's processor time"
    ),
    "Randomized response, 10^8 bits, int64": (
        "to copy the numbers into memory that is there takes .56 ns a value of processor time, of .79 for all, and the"
        " goal leaves .76; a Zen 3 holds the goal"
    ),
    "Answer 10^6 queries, each its own epsilon": (
        "of the processor's time .36 was the noise, .27 compared charges with what their events cost and added them up,"
        " .16 found scales and amounts, .08 wrote two bounds of each answer; since then amounts are added up without"
        " conversions that AVX2 lacks, 1.7 ns a row instead of 3.1 on a Zen 3, where all takes 2.2 of the baseline's"
        " processor time"
    ),
    "Single durable charges": (
        "bare SQLite with a ledger's journal takes 2.9; the file's lock, a look at its name and state, and the seals .3"
        " to .5 more"
    ),
    "Sum of 10^7 rows by unit, within 300 MB": (
        "of the processor's time .47 is to read all rows a second time, to deal them out by their units and to write"
        " them down encrypted, .22 to read 2,560 pieces back, and the rest is what the baseline does. On a Zen 3,"
        " natively, all takes 2.4 to 2.6 of the baseline's processor time"
    ),
    "10^6 records into cells": (
        "to read seven columns of 64 bits takes 1.9 ms, their arithmetic in a cache 1.4 (AVX2 1.7, which was 3.2 when"
        " products had 64 bits), to add to so many counts 1.2; all takes 6.1 (6.9), and the goal leaves 6.2 (6.5). On a"
        " Zen 3 that others used, reading took 2.9 ms, arithmetic 2.4, additions 1.5 and calls .5, of 8.6 ms of"
        " processor time for all; the baseline took 13.9. Cells of 32 bits, or no look at nulls, changed nothing"
    ),
    "10^6 records counted by 7 columns": (
        "the same work as 10^6 records into cells: reading, arithmetic and additions take 4.5 of 6.1 ms (AVX2"
        " 4.8 of 6.9); a Zen 3 holds the goal"
    ),
    "10^6 records of a file into pairs of 14 columns": (
        "91 pairs are counted in 36 tables: an addition takes .5 ns with AVX2, 18 ms for all, and took .9 when cells"
        " had 16 bits and were read one at a time. With all that belongs to it that is 60 ms of processor time beside"
        " 22 for reading the file (92 before), the least of twelve runs of a busy machine. Threads share it while the"
        " file is read, which one alone did before: 2.4 to 3.8 with AVX2 in five runs of this row, 3.6 to 7.2 before."
        " Since then 131,072 records are counted at a time, and a batch's columns are found without Arrow: a tenth and"
        " a thirtieth less processor time. A second table is kept only where many records have the cell of the one"
        " before: additions take 17 ms on a busy Zen 3, where two tables for each took 20 in the same process. Of 58 ms"
        " of processor time then, 2.8 of the baseline's, 27 are reading in batches (21 at once), 6 codes and columns,"
        " and 5 are opening, planning and sums, which one thread does alone: two threads take 3.0 at best"
    ),
    "dpf_laplace in DuckDB, one thread": (
        "with AVX2 it was measured as on a processor without AES, where nothing is compiled and Python's function"
        " draws; on a Zen 3, which has AVX2 and AES, it takes 1.8"
    ),
    "Noise on an Arrow stream, batches of 2^16": "to copy the batches together takes .2 of the baseline",
    "10 times dpf.multiplicative_weights, 2^20 weights": (
        "no weight can be written before all are summed: the pass that sums takes .82 of the baseline, the one that"
        " writes .90, both 1.75. On a Zen 3 the loop that sums takes .175 ns a weight and the one that writes .20,"
        " where the baseline takes .159: 2.4 together"
    ),
    "10 updates of 2^20 weights": (
        "every weight is read and written once, as in the baseline, and a byte of the query beside it. On a Zen 3 the"
        " loop takes .175 ns a weight in the second-level cache, where the baseline takes .174, and .197 of .158 from"
        " the third: 1.25 at best, before ten calls from Python; its 27 instructions for 16 weights leave nothing to"
        " save"
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
