"""Heavy hitters: the frequent values of a domain that is too large to go through."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.arguments import Number, Threads, Whole
from dpfast.columns import Column
from dpfast.columns.fresh import fresh_array
from dpfast.errors import ColumnError
from dpfast.kernels.local.hashing import PRIME
from dpfast.local.categories import Responses, borrow_responses
from dpfast.local.estimates import frame_of, support_spread
from dpfast.local.local_hashing import OptimizedLocalHashing, count_supports, hash_block
from dpfast.local.oracle import CONFIDENCE, Confidence, Reports
from dpfast.local.reports import codes_of, give_reports, read_numbers
from dpfast.mechanisms.parameters import Epsilon
from dpfast.randomness import Keystream, Purpose, Random, random_source
from dpfast.showing import Shown
from dpfast.threads import share, thread_count

__all__ = ["HeavyHitters"]

_DOMAIN_BITS, _MOST, _KEY = Whole(1, 62), Whole(1, 10_000), Whole(0, 2**63 - 1)
_FAILURE = Number(0, 1, above=True, below=True, mend="write for example {name}=0.05")
#: Bits of the first prefixes, all of which are tried, and bits by which prefixes grow.
_FIRST, _STEP = 16, 8
#: A prefix is hashed by limbs of so many bits.
_LIMB = 28
_ROWS = 2**14
_LEVEL_SHIFT = 58


@dataclass(frozen=True)
class HeavyHitters(Shown):
    """Find the values that many people have, among up to 2**62, and how many have them.

    Guarantee
        Every row is (epsilon, 0)-differentially private in the local model: which prefix of its value a row reports on
        is drawn whatever the value is, and the report is that of `dpfast.OptimizedLocalHashing` for the prefix: see its
        guarantee. Rows of no value (nulls, and numbers outside the domain) are included.

        What is found: a value whose share of the rows is at least ``detectable(rows)`` is found with probability at
        least 1 - ``failure``, and no value is found of which no row has the first bits, with probability at least
        1 - ``failure``, where reports of each level are many (estimates are then normal), and at most ``most`` prefixes
        of any length are frequent.

    Parameters
    ----------
    bits
        Values are whole numbers from 0 to 2**bits - 1; 1 to 62.
    epsilon
        The privacy of one row: a number from 1e-18 to 1e6.
    most
        How many values are found at most; as many prefixes are kept at each level.
    failure
        See above.
    key
        A public number that fixes how prefixes are hashed. With another one for each collection nobody can choose
        values beforehand that collide.

    Raises
    ------
    ParameterError
        A parameter is not as above.

    Notes
    -----
    A row reports on the first 16 bits of its value, or on the first 24, 32 and so on, each with the same probability.
    Prefixes that are frequent enough are extended, level by level. A report is one int64: level * 2**58 and a report of
    local hashing. Prefixes of more than 28 bits are first hashed to 29, by a linear function that makes two of them
    equal with probability 2**-29. A value's frequency is estimated from the reports of the last level.

    References
    ----------
    Bassily, Nissim, Stemmer, Thakurta (2017), TreeHist. Wang, Li, Jha (2021), the prefix extending method. Bassily,
    Smith (2015).

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> search = HeavyHitters(bits=32, epsilon=4.0, most=10)
    >>> ages = np.where(np.arange(60_000) % 3 == 0, 123_456_789, np.arange(60_000))
    >>> found = search.find(search.randomize(ages, random=SeededRandom(1)))
    >>> found["value"].to_list(), round(found["frequency"][0], 1)
    ([123456789], 0.3)
    >>> search.detectable(60_000) < 0.2
    True

    """

    bits: Annotated[int, _DOMAIN_BITS]
    epsilon: Epsilon
    most: Annotated[int, _MOST] = 64
    failure: Annotated[float, _FAILURE] = 0.05
    key: Annotated[int, _KEY] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", _DOMAIN_BITS.read("bits", self.bits))
        object.__setattr__(self, "most", _MOST.read("most", self.most))
        object.__setattr__(self, "failure", _FAILURE.read("failure", self.failure))
        object.__setattr__(self, "key", _KEY.read("key", self.key))
        _ = self._hashing

    @cached_property
    def prefixes(self) -> tuple[int, ...]:
        """How many bits the prefixes of each level have."""
        return (*range(min(_FIRST, self.bits), self.bits, _STEP), self.bits)

    @cached_property
    def _hashing(self) -> OptimizedLocalHashing:
        return OptimizedLocalHashing(PRIME, self.epsilon)

    @cached_property
    def _multipliers(self) -> NDArray[np.uint64]:
        """Three numbers below p for each level."""
        places = [(level, limb) for level in range(len(self.prefixes)) for limb in range(3)]
        drawn = [
            int.from_bytes(hashlib.sha256(f"dpfast heavy hitters {self.key} {level} {limb}".encode()).digest())
            for level, limb in places
        ]
        return np.array([number % PRIME for number in drawn], np.uint64).reshape(-1, 3)

    def detectable(self, rows: Annotated[int, Whole(1, 2**40)]) -> float:
        """Return the share of so many rows from which on a value is found: see the Guarantee.

        Parameters
        ----------
        rows
            How many rows there are.

        """
        rows = Whole(1, 2**40).read("rows", rows)
        levels, normal = len(self.prefixes), NormalDist()
        error = math.sqrt(self._hashing.variance * levels / rows)
        lost = -normal.inv_cdf(self.failure / levels)
        # An estimate of a frequent value varies more: by f (1 - f) at most, and by the choice of the level's rows.
        spread = error + 0.5 * math.sqrt(levels / rows)
        return min(self._threshold(max(map(self._candidates, range(levels)))) * error + lost * spread, 1.0)

    def randomize(self, values: Responses, *, random: Random = None, threads: Threads = None) -> Any:
        """Return a report for every row, drawn by that row alone.

        Parameters
        ----------
        values
            A column of whole numbers of any kind that `dpfast.randomized_response` takes, or one number.
        random
            None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.
        threads
            How many threads share the work; None uses all cores where that pays. The result does not depend on it.

        Returns
        -------
        same kind as ``values``
            A column of int64, without nulls; lists come back as NumPy arrays.

        """
        column = borrow_responses(values, 2**self.bits)
        keystream = Keystream(random_source(random).key())
        released = fresh_array(column.length, np.dtype(np.int64))

        def work(numbers: Iterator[int]) -> None:
            words = keystream.words(Purpose.NOISE)
            buffer = np.empty(3 * min(_ROWS, column.length), np.uint64)
            for block in numbers:
                start = block * _ROWS
                rows = codes_of(column, start, min(start + _ROWS, column.length)).astype(np.int64)
                drawn, reports = buffer[: 3 * rows.size], released[start : start + rows.size]
                words.fill(block, drawn)
                # The slope takes the first 29 bits of the third word, the level the others.
                levels = ((drawn[2::3] & np.uint64(2**35 - 1)) * np.uint64(len(self.prefixes)) >> np.uint64(35)).astype(
                    np.int64
                )
                inside = (rows >= 0) & (rows < 2**self.bits)
                hashed = self._hashed(
                    np.where(inside, rows, 0) >> (self.bits - np.array(self.prefixes))[levels], levels
                )
                hashed[~inside] = -1
                hashed.setflags(write=False)
                hash_block(self._hashing, drawn, hashed, keystream, start, reports)
                reports |= levels << _LEVEL_SHIFT

        share(work, -(-column.length // _ROWS), thread_count(threads, column.length))
        return give_reports(values, released)

    def find(self, reports: Reports, *, confidence: Confidence = 0.95, threads: Threads = None) -> pl.DataFrame:
        """Return the frequent values. Reports are public, and so is all that is made of them.

        Parameters
        ----------
        reports
            What `randomize` returned, all rows of it, in any kind of column.
        confidence
            How often an interval holds the share of rows that it is for.
        threads
            As for `randomize`.

        Returns
        -------
        polars.DataFrame
            A row a value found, the most frequent first, with the columns of `dpfast.OptimizedLocalHashing.estimate`.

        """
        confidence = CONFIDENCE.read("confidence", confidence)
        column = read_numbers(reports)
        numbers = column.block(0, column.length).astype(np.int64)
        levels = numbers >> _LEVEL_SHIFT
        if numbers.size and not 0 <= int(levels.min()) <= int(levels.max()) < len(self.prefixes):
            raise ColumnError("reports must be numbers as randomize returns them; filter the others out")
        support = self._hashing.support
        spread = support_spread(support, population=True)
        kept, frequencies, rows = np.zeros(1, np.int64), np.zeros(1), 0
        for level in range(len(self.prefixes)):
            own = numbers[levels == level] & (2**_LEVEL_SHIFT - 1)
            own.setflags(write=False)
            rows = own.size
            more = self.prefixes[level] - (self.prefixes[level - 1] if level else 0)
            candidates = (kept[:, None] << more | np.arange(2**more)).reshape(-1)
            # The first prefixes are their own hashes, all of them in turn, which are counted faster.
            hashed = self._hashed(candidates, np.full(candidates.size, level)) if level else None
            counts = np.zeros(candidates.size, np.int64)
            count_supports(Column(own.dtype, (own,), lambda *_: None), self._hashing.width, hashed, counts, threads)
            frequencies = (counts / max(rows, 1) - support.other) / support.gap
            error = (self._hashing.variance / max(rows, 1)) ** 0.5
            order = np.argsort(-frequencies, kind="stable")[: self.most]
            order = order[frequencies[order] > self._threshold(self._candidates(level)) * error]
            kept, frequencies = candidates[order], frequencies[order]
        return frame_of(pl.Series(kept), frequencies, rows, spread, confidence)

    def _candidates(self, level: int) -> int:
        """Return how many prefixes are tried at a level at most."""
        if level == 0:
            return 1 << self.prefixes[0]
        return self.most << (self.prefixes[level] - self.prefixes[level - 1])

    def _threshold(self, candidates: int) -> float:
        """Return how many standard deviations a prefix must reach, so that few without rows do at all levels."""
        return -NormalDist().inv_cdf(self.failure / (candidates * len(self.prefixes)))

    def _hashed(self, prefixes: NDArray[np.int64], levels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return prefixes as numbers below p: themselves if they are short, else by the level's linear function."""
        given, short = prefixes.astype(np.uint64), np.array(self.prefixes)[levels] <= _LIMB
        mixed = np.zeros(given.size, np.uint64)
        for limb in range(3):
            part = given >> np.uint64(_LIMB * limb) & np.uint64(2**_LIMB - 1)
            mixed += part * self._multipliers[levels, limb] % np.uint64(PRIME)
        hashed: NDArray[np.int64] = np.where(short, given, mixed % np.uint64(PRIME)).astype(np.int64)
        return hashed
