"""Memory of a DuckDB function, and words for many of its calls.

A key for each vector would cost more than its noise. So words are made at once for many vectors, in blocks of memory
that one thread uses at a time: a call takes one out of its function's slots, and puts it back. Used words are
overwritten, and the key that made them is let go at once; a second key, for further bits, stays with the block.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.encryption import BATCH_BYTES, SCHEDULE_BYTES
from dpfast.kernels.plugin import layout
from dpfast.kernels.plugin.chunks import SCRATCH_BESIDE, SCRATCH_BYTES, ask_python, make_key
from dpfast.kernels.plugin.exchange import clear
from dpfast.kernels.plugin.memory import (
    allocate,
    fill_words,
    free,
    load,
    of_duckdb,
    prepare_key,
    process_id,
    put_block,
    store,
    take_block,
)

__all__ = [
    "JOB",
    "KEY",
    "PARAMETERS",
    "ROWS",
    "SCRATCH",
    "WORDS",
    "forget_block",
    "forget_function",
    "make_function",
    "put",
    "reserve",
    "take",
]

ROWS = 2048
"""How many rows a block has scratch memory for: as many as DuckDB's vectors have."""

_BEGIN, _USED, _EPOCH, _PROCESS = 0, 8, 16, 24
"""Where in a block stands: the address to be freed, how many bytes of words are used, and what said whose they are."""
KEY, _WORDS_KEY, PARAMETERS, JOB = 32, 64, 96, 160
"""The key of further bits, and of words for a moment; what randomized response knows of k and epsilon; a job."""
_SCHEDULE = JOB + 8 * layout.JOB_WORDS
SCRATCH = -(-(_SCHEDULE + SCHEDULE_BYTES) // 64) * 64
WORDS = -(-(SCRATCH + ROWS * SCRATCH_BYTES + SCRATCH_BESIDE) // 64) * 64
_BLOCK_BYTES = WORDS + layout.BYTES_OF_A_KEY


@kernel
def make_function(number):
    """Return the address of what DuckDB keeps for a function: its number in Python, and empty slots; 0 for none."""
    made = allocate(8 * (1 + layout.SLOTS))
    if made != 0:
        clear(made, 8 * (1 + layout.SLOTS))
        store(made, number)
    return made


@kernel
def forget_block(block):
    """Wipe a block and free it."""
    begin = load(block + _BEGIN)
    clear(block, _BLOCK_BYTES)
    free(begin)


@kernel
def forget_function(made):
    """Free what DuckDB kept for a function, and wipe its words."""
    for slot in range(layout.SLOTS):
        block = take_block(made + 8 + 8 * slot)
        if block != 0:
            forget_block(block)
    free(made)
    return 0


@kernel
def take(function):
    """Return a block that no other call uses, 0 without memory."""
    for slot in range(layout.SLOTS):
        place = function + 8 + 8 * slot
        if load(place) != 0:
            block = take_block(place)
            if block != 0:
                return block
    begin = allocate(_BLOCK_BYTES + 64)
    if begin == 0:
        return 0
    block = begin + -begin % 64
    clear(block, _BLOCK_BYTES)
    store(block + _BEGIN, begin)
    store(block + _USED, layout.BYTES_OF_A_KEY)
    return block


@kernel
def put(function, block):
    """Put a block back for other calls."""
    for slot in range(layout.SLOTS):
        place = function + 8 + 8 * slot
        if load(place) == 0 and put_block(place, block) != 0:
            return
    forget_block(block)


@kernel
def _renew(function, block):
    """Fill a block with the words of a new key; return 0, or the number of an error."""
    job, epoch = block + JOB, load(of_duckdb() + 8 * layout.DUCKDB_EPOCH)
    if load(of_duckdb() + 8 * layout.DUCKDB_SEEDED) != 0:
        store(job + 8 * layout.JOB_OPERATION, layout.KEYS)
        store(job + 8 * layout.JOB_START, load(function))
        store(job + 8 * layout.JOB_RELEASED, block + KEY)
        status = ask_python(job)
        if status != layout.OK:
            return status
    elif not (make_key(block + _WORDS_KEY) and make_key(block + KEY)):
        return layout.NO_KEY
    prepare_key(block + _WORDS_KEY, block + _SCHEDULE)
    fill_words(block + _SCHEDULE, 0, block + WORDS, layout.BYTES_OF_A_KEY // BATCH_BYTES)
    clear(block + _WORDS_KEY, 32)
    clear(block + _SCHEDULE, SCHEDULE_BYTES)
    store(block + _USED, 0)
    store(block + _EPOCH, epoch)
    store(block + _PROCESS, np.int64(process_id()))
    return layout.OK


@kernel
def reserve(function, block, size):
    """Count bytes of a block's words as used; return (0 or the number of an error, how far from the first they begin).

    They are counted before they are used. A word has four bytes or more, so that no two of a key have one number.
    """
    ours = load(block + _PROCESS) == process_id()
    known = load(block + _EPOCH) == load(of_duckdb() + 8 * layout.DUCKDB_EPOCH)
    if not (ours and known) or load(block + _USED) + size > layout.BYTES_OF_A_KEY:
        status = _renew(function, block)
        if status != layout.OK:
            return status, np.int64(0)
    first = load(block + _USED)
    store(block + _USED, first + size + -size % 16)
    return layout.OK, first


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
