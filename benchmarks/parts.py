"""What noise on a column consists of, part by part: how far a row of benchmarks/measured.md could come at all.

    python benchmarks/parts.py

Prints nanoseconds a value: making the random words, reading values and writing a result beyond all caches, and what the
kernels compute in a cache, apart and together. All are run in turns, a chunk at a time, and a tenth of the chunks took
no longer than what is printed, so that a loaded machine changes it little. As for another processor: NUMBA_CPU_NAME and
NUMBA_CPU_FEATURES, with a NUMBA_CACHE_DIR of its own.

Then how much faster two threads are than one, the median over pairs: a loop that uses nothing but registers, what only
reads and writes, and kernels in a cache of each core and beyond all caches. No noise gains more than such a loop does.
"""

from __future__ import annotations

import math
import statistics
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dpfast.columns import BLOCK_ROWS
from dpfast.kernels.noise import gaussian_f32, joining, narrow_gaussian, narrow_laplace, sums
from dpfast.randomness import Keystream, Purpose

ROWS, CHUNKS, ROUNDS, PAIRS = BLOCK_ROWS, 60, 6, 15
SCALE, GRID, LEAST, MOST = 10.0, 2.0**-7, -(2**63), 2**63 - 1
Part = Callable[[slice], object]


def parts() -> dict[str, Part]:
    """Return what is run for the rows of a chunk, by name; what is "in a cache" gets the first chunk's rows alone."""
    generator = np.random.default_rng(15)
    integers, first = generator.integers(0, 1000, ROWS * CHUNKS), slice(0, ROWS)
    floats = integers.astype(np.float64)
    for values in (integers, floats):
        values.setflags(write=False)  # as columns are
    released, released_floats = np.zeros_like(integers), np.zeros_like(floats)
    words, low = generator.integers(0, 2**32, ROWS, np.uint32), generator.integers(0, 2**16, ROWS, np.uint16)
    stream, buffer = Keystream(bytes(32)).words(Purpose.NOISE), np.empty(6 * ROWS, np.uint8)
    # Second parts of words are made where they are needed if kernels make words, else they are there.
    blocks = stream.single_blocks(1, 4 * ROWS)
    second = low if blocks is None else (low[:0], *blocks)
    noise = np.zeros(ROWS, np.int32)
    drawn, roots, spreads, limits = (np.zeros(ROWS, np.float32) for _ in range(4))
    undecided, half = np.empty(ROWS, np.int64), ROWS // 2
    work, work_of_pairs = (
        np.empty(narrow_laplace.WORK_WORDS, np.uint64),
        np.empty(narrow_gaussian.WORK_WORDS, np.uint64),
    )
    offset = -0.5 - SCALE * math.log1p(math.expm1(-1 / SCALE) / 2)
    on_grid, largest = (SCALE / GRID, 1 / GRID, GRID), float(np.finfo(np.float64).max)

    def laplace_ones(rows: slice) -> object:
        given = words, None, SCALE, offset, integers[rows], LEAST, MOST
        return narrow_laplace.release_laplace_on_ones(*given, work, released[rows], undecided)

    def laplace_grids(rows: slice) -> object:
        given = words, second, *on_grid, floats[rows], largest
        return narrow_laplace.release_laplace_on_grids(*given, work, released_floats[rows], undecided)

    def gaussian_ones(rows: slice) -> object:
        given = words, None, SCALE, integers[rows], LEAST, MOST
        return narrow_gaussian.release_gaussian_on_ones(*given, work_of_pairs, released[rows], undecided)

    def gaussian_grids(rows: slice) -> object:
        given = words, second, *on_grid, floats[rows], largest
        return narrow_gaussian.release_gaussian_on_grids(*given, work_of_pairs, released_floats[rows], undecided)

    def pairs_of_floats(rows: slice) -> object:
        of_pairs = roots[:half], spreads[:half], np.float32(SCALE / GRID), None, drawn[:half], drawn[half:]
        return gaussian_f32.draw_values(words[:half], *of_pairs, limits[:half], None)

    def in_cache(run: Part) -> Part:
        return lambda rows: run(first)

    kernels: dict[str, Part] = {
        "Laplace, int64": laplace_ones,
        "Laplace, float64": laplace_grids,
        "Gaussian, int64": gaussian_ones,
        "Gaussian, float64": gaussian_grids,
    }
    return {
        "words of 4 bytes": lambda rows: stream.fill(1, buffer[: 4 * ROWS]),
        "words of 6 bytes": lambda rows: stream.fill(1, buffer),
        "values read and written": lambda rows: np.copyto(released[rows], integers[rows]),
        **kernels,
        **{f"{name}, in a cache": in_cache(run) for name, run in kernels.items()},
        "of it: radii of pairs": lambda rows: gaussian_f32.find_roots(words[:half], roots[:half], spreads[:half]),
        "of it: both values of pairs": pairs_of_floats,
        "of it: noise and floats added": lambda rows: sums._sum_close(
            floats[first], 1 / GRID, GRID, drawn, largest, released_floats[first], spreads
        ),
        "of it: integers joined": lambda rows: joining.add_noise(integers[first], noise, LEAST, MOST, released[first]),
    }


def measure() -> dict[str, float]:
    """Return the nanoseconds a value of each part."""
    taken: dict[str, list[float]] = {}
    runs = parts()
    for part in runs.values():
        part(slice(0, ROWS))  # compiles
    for _ in range(ROUNDS):
        for name, part in runs.items():
            for chunk in range(CHUNKS):
                rows = slice(chunk * ROWS, (chunk + 1) * ROWS)
                start = time.perf_counter()
                part(rows)
                taken.setdefault(name, []).append((time.perf_counter() - start) / ROWS * 1e9)
    return {name: sorted(times)[len(times) // 10] for name, times in taken.items()}


@njit(nogil=True)
def _spin(steps: int) -> np.uint64:
    """Compute in registers alone (xorshift, Marsaglia 2003)."""
    x = np.uint64(88_172_645_463_325_252)
    for _ in range(steps):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
    return x


def gains() -> dict[str, float]:
    """Return how much faster two threads are, each with memory of its own."""
    of_threads = [parts(), parts()]
    names = ["values read and written", *(name for name in of_threads[0] if name.startswith(("Laplace", "Gaussian")))]

    def chunks(number: int, name: str) -> None:
        for chunk in range(CHUNKS):
            of_threads[number][name](slice(chunk * ROWS, (chunk + 1) * ROWS))

    runs: dict[str, Callable[[int], object]] = {"registers alone": lambda number: _spin(10**7)}
    runs |= {name: partial(chunks, name=name) for name in names}
    found: dict[str, list[float]] = {name: [] for name in runs}
    for work in runs.values():
        for number in range(2):
            work(number)  # compiles
    for _ in range(PAIRS):
        for name, work in runs.items():
            found[name].append(2 * _seconds(work, 1) / _seconds(work, 2))
    return {name: statistics.median(ratios) for name, ratios in found.items()}


def _seconds(work: Callable[[int], object], threads: int) -> float:
    """Return how long it takes until all threads have done the same work."""
    others = [threading.Thread(target=work, args=(number,)) for number in range(1, threads)]
    start = time.perf_counter()
    for other in others:
        other.start()
    work(0)
    for other in others:
        other.join()
    return time.perf_counter() - start


if __name__ == "__main__":
    for name, nanoseconds in measure().items():
        print(f"{name:32} {nanoseconds:.2f}")
    print("\nTwo threads")
    for name, ratio in gains().items():
        print(f"{name:32} {ratio:.2f}x")
