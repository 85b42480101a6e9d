"""How many different values a column has, in a small private summary that can be merged with those of other places.

A value sets one bit: of a bucket and a level that its hash names, level l with probability 2**-(l + 1). The bits say
nothing else of the data, and each is answered at random: a bit that is set is shown as 1 with probability 1/2, another
one with probability q < 1/2. (Flajolet, Martin 1985; Hehir, Ting, Cormode 2023: Sketch-Flip-Merge, the asymmetric
answers whose merge is an exclusive or.)

Privacy. A bit that becomes set has the probability of each answer changed by the factors (1/2) / q = r and
(1/2) / (1 - q) = 1 / (2 - 1 / r), which lie within a factor r of 1, since (r - 1)**2 >= 0 is 2 - 1 / r <= r. Answers
are independent. So

- a unit of at most b values, added or removed, changes at most b bits, all in one direction: a factor of r**b at most,
  and q = exp(-epsilon / b) / 2 makes it exp(epsilon);
- a unit that is replaced sets at most b bits and unsets at most b. One of each has the factor r (2 - 1 / r) = 2 r - 1
  at most, and fewer have less: (2 r - 1)**b, and q = 1 / (1 + exp(epsilon / b)) makes it exp(epsilon).

q is rounded up to a multiple of 2**-64, which only makes both factors smaller, and is drawn exactly. Which of a unit's
values count, where it has more than b, depends on its own rows and a seed alone. The hash's key is public: a hash that
is known sets known bits, and the proof holds for any.

Merging. Let two sketches have answers y and y', q and q'. If either bit is set, its answer is a fair coin, and so is
the exclusive or with anything that is independent of it. If neither is, y xor y' is 1 with probability
q (1 - q') + q' (1 - q), so that contrasts c = 1 - 2 q multiply. So the exclusive or is a sketch of both places' values
together, answered at random with the contrast c c'. It is made of two released sketches, and costs nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import EPSILON, read_budget
from dpfast.accounting.events import Pure
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.aggregation.guarding import check_rows, read_guarded
from dpfast.aggregation.scatter import feed
from dpfast.aggregation.sources import Data, Schema, Source, missing_column, open_source, refuse_pattern
from dpfast.aggregation.units import express_unit
from dpfast.arguments import Instance, Number, Real, Whole
from dpfast.errors import ParameterError, Words
from dpfast.exact.balls import as_written, written_below
from dpfast.ledger import Charge, Ledger
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import LEDGER, read_payment
from dpfast.progress import forgetting
from dpfast.queries import NAME, Name
from dpfast.randomness import SystemRandom
from dpfast.showing import Facts, Shown, number_of
from dpfast.sketches.bitmap import LEVELS, answer_at_random, estimate_values, false_answers, places_of
from dpfast.sketches.hashing import KINDS, hash_values, kind_of_values, readable
from dpfast.threads import share, thread_count

__all__ = ["DistinctSketch", "distinct_sketch", "merge_sketches"]

ROW = "row"
BUCKETS = Whole(2, 2**20, mend="write a power of two, for example {name}=4096")
VALUES = Whole(1, 2**32, optional=True, mend="write for example {name}=1")
KEY = Whole(0, 2**64 - 1, mend="write the same number in every place")
MISS = Number(1e-9, 1, below=True, mend="write for example {name}=0.05")
#: With less for a value, an answer hardly depends on its bit.
_LEAST_EPSILON = Fraction(1, 10**6)
_BLOCK_ROWS = 1 << 16
#: What a file of one sketch has, one row of it for each.
_SCHEMA = pl.Schema(
    {
        "kind": pl.String(),
        "buckets": pl.Int64(),
        "key": pl.UInt64(),
        "contrast": pl.Float64(),
        "sources": pl.List(pl.String()),
        "bits": pl.Binary(),
    }
)


FRAME = Instance(pl.DataFrame, "a Polars DataFrame of sketches", mend="write pl.read_ipc(path)")


@dataclass(frozen=True, eq=False, repr=False)
class DistinctSketch(Shown):
    """How many different values there are, as bits that were answered at random: what `distinct_sketch` releases.

    Guarantee
        It is made of one release, or of several, and nothing else; whatever is done with it costs nothing more.

    Attributes
    ----------
    kind
        What values are: "number", "text" and so on. Only equal kinds are merged.
    buckets, key
        How many bits a level has, and the key of the hash.
    contrast
        A bit that no value sets is shown as 1 with probability (1 - contrast) / 2, one that is set with 1/2.
    sources
        A random name for each release that it is made of.
    bits
        The bits, of each bucket those of all levels.

    Examples
    --------
    >>> import dpfast as dpf
    >>> frame, ledger = pl.DataFrame({"visitor": range(50_000)}), dpf.Ledger(epsilon=4.0)
    >>> here, there = (
    ...     dpf.distinct_sketch(part, "visitor", epsilon=2.0, privacy_unit="row", ledger=ledger)
    ...     for part in (frame[:30_000], frame[20_000:])
    ... )
    >>> low, high = here.merge(there).interval(miss=1e-9)
    >>> low < 50_000 < high
    True

    """

    kind: str
    buckets: int
    key: int
    contrast: float
    sources: tuple[str, ...]
    bits: NDArray[np.bool_]

    @cached_property
    def _ones(self) -> NDArray[np.int64]:
        ones: NDArray[np.int64] = self.bits.reshape(self.buckets, LEVELS).sum(axis=0)
        return ones

    def estimate(self) -> float:
        """Return about how many different values there are: the likeliest number."""
        return estimate_values(self._ones, self.buckets, self.contrast, 0.5)[0]

    def interval(self, miss: Annotated[Real, MISS] = 0.05) -> tuple[float, float]:
        """Return two numbers between which that of different values lies, but for a probability of about ``miss``.

        It allows for the noise and for the hash, by which values may share a bit: approximately, as sums of thousands
        of bits are close to normal.

        Raises
        ------
        ParameterError
            The probability is out of range.

        """
        _, low, high = estimate_values(self._ones, self.buckets, self.contrast, MISS.read("miss", miss))
        return low, high

    def merge(self, other: Annotated[DistinctSketch, SKETCH]) -> DistinctSketch:
        """Return the sketch of all values that either has: those that both have count once.

        Each place has paid for its own; a unit with values in several of them is protected as their charges add up.
        Every merge is less exact than its parts, as their contrasts multiply: of ten sketches each needs more epsilon
        than of two.

        Raises
        ------
        ParameterError
            The other one is no sketch of the same kind of values, number of buckets and key; or a release is in both,
            which would cancel it.

        """
        SKETCH.read("other", other)
        for name in ("kind", "buckets", "key"):
            own, given = getattr(self, name), getattr(other, name)
            if own != given and not (name == "kind" and "nothing" in (own, given)):
                raise ParameterError("other", given, f"a sketch whose {name} is {own!r}", "make both alike")
        if shared := set(self.sources) & set(other.sources):
            raise ParameterError("other", sorted(shared)[0], "made of other releases: each is merged once")
        return DistinctSketch(
            other.kind if self.kind == "nothing" else self.kind,
            self.buckets,
            self.key,
            self.contrast * other.contrast,
            (*self.sources, *other.sources),
            self.bits ^ other.bits,
        )

    def to_frame(self) -> pl.DataFrame:
        """Return the sketch as a frame of one row, to be written in the Arrow format: `merge_sketches` reads it."""
        packed = np.packbits(self.bits).tobytes()
        row = (self.kind, self.buckets, self.key, self.contrast, list(self.sources), packed)
        return pl.DataFrame([row], schema=_SCHEMA, orient="row")

    def _facts(self) -> Facts:
        """Return the estimate and its interval, and what the bits are of; not the bits."""
        low, high = self.interval()
        shown = Words(f"about {self.estimate():,.0f}"), Words(f"{low:,.0f} to {high:,.0f}")
        about = [("different values", shown[0]), ("95% interval", shown[1]), ("releases", len(self.sources))]
        return [*about, ("kind", self.kind), ("buckets", self.buckets)]

    def __repr__(self) -> str:
        """Show the estimate and its interval."""
        low, high = self.interval()
        releases = number_of(len(self.sources), "release")
        return f"DistinctSketch(about {self.estimate():,.0f} values, 95% [{low:,.0f}, {high:,.0f}], of {releases})"


SKETCH = Instance(DistinctSketch, "a dpfast.DistinctSketch")


def merge_sketches(frame: Annotated[pl.DataFrame, FRAME]) -> DistinctSketch:
    """Return the sketch that a frame holds, one row of it for each sketch; those of several rows are merged.

    Guarantee
        Of what was released before: it costs nothing more.

    Parameters
    ----------
    frame
        What `DistinctSketch.to_frame` made, or several of these on top of each other: read from a file, say.

    Returns
    -------
    DistinctSketch
        The values of all.

    Raises
    ------
    ParameterError
        The frame has other columns, no row, or a row that is no sketch; or rows cannot be merged.

    Examples
    --------
    >>> import dpfast as dpf
    >>> shops = [pl.DataFrame({"visitor": range(first, first + 30_000)}) for first in (0, 20_000)]
    >>> made = [
    ...     dpf.distinct_sketch(shop, "visitor", epsilon=2.0, privacy_unit="row", ledger=dpf.Ledger(epsilon=2.0))
    ...     for shop in shops
    ... ]
    >>> low, high = merge_sketches(pl.concat([sketch.to_frame() for sketch in made])).interval(miss=1e-9)
    >>> low < 50_000 < high
    True

    """
    given = FRAME.read("frame", frame)
    if given.schema != _SCHEMA or not given.height:
        raise ParameterError("frame", given.columns[:8], "made by DistinctSketch.to_frame, of a row or more")
    return reduce(DistinctSketch.merge, map(_read, given.iter_rows()))


def _read(row: tuple[Any, ...]) -> DistinctSketch:
    """Return the sketch of a row of `DistinctSketch.to_frame`, or refuse it."""
    allowed = "of rows that DistinctSketch.to_frame made"
    if None in row:
        raise ParameterError("frame", Words("a row with null"), allowed)
    kind, buckets, key, contrast, sources, packed = row
    known = kind in KINDS and buckets > 1 and buckets.bit_count() == 1 and 0 < contrast < 1
    if not known or not sources or None in sources or 8 * len(packed) != buckets * LEVELS:
        raise ParameterError("frame", Words("a row of other contents"), allowed)
    bits = np.unpackbits(np.frombuffer(packed, np.uint8)).view(np.bool_)
    return DistinctSketch(kind, buckets, key, contrast, tuple(sources), bits)


def distinct_sketch(
    data: Data,
    column: Name,
    *,
    epsilon: Annotated[Real, EPSILON],
    privacy_unit: Name,
    max_values: Annotated[int | None, VALUES] = None,
    ledger: Annotated[Ledger, LEDGER],
    buckets: Annotated[int, BUCKETS] = 4096,
    key: Annotated[int, KEY] = 0,
    neighbors: Neighbors = "add_remove",
    dataset: OwnName = None,
    schema: Schema = None,
) -> DistinctSketch:
    """Sketch the different values of a column: how many there are, here or together with those of other places.

    Where all data are in one place, `count_distinct` is far more accurate. A sketch is for what no place has as a
    whole: each makes one of its own rows, and the merged sketches count a value once that several places have.

    Guarantee
        epsilon-differentially private, all of the sketch, for the privacy units of the data: proved in
        `dpfast.sketches.distinct`. The ledger is charged before any row is read, whatever the data, and no error after
        that depends on values. A unit that has values in several places is protected by what these charge together.

    Parameters
    ----------
    data
        As for `dpfast.plan`, but for engines: frames, tables and paths of files.
    column
        A column of integers, floats, strings, categories, Booleans, dates or moments. Null and NaN are no values.
    epsilon
        What the sketch costs; at least 1e-6 for each value of a unit.
    privacy_unit
        The column that says whose a row is, or "row" if nobody has two rows. Rows whose unit is null are left out.
    max_values
        How many different values of a unit count at most, chosen at random from what it has; with a column as unit.
        All pairs of a unit and a value are in memory then.
    ledger
        The budget.
    buckets
        How many bits a level has, a power of two; there are 32 levels. Of many values the error falls with the root of
        the buckets: with 4096 it is 3% at epsilon 1, and 2% at epsilon 3. Of few it grows with that root: there 70 at
        epsilon 1, and 20 at epsilon 3.
    key
        The key of the hash. Sketches that are to be merged need the same key and number of buckets.
    neighbors
        What neighbouring data differ in: a unit that is added or removed, or one that is replaced by another.
    dataset, schema
        As for `dpfast.plan`.

    Returns
    -------
    DistinctSketch
        The bits, with `DistinctSketch.estimate`, `DistinctSketch.interval` and `DistinctSketch.merge`.

    Raises
    ------
    ParameterError, ColumnError
        An argument is of another kind or range, or a column is missing or of a dtype that does not serve; nothing is
        charged.
    BudgetExceededError, LedgerError
        The charge does not fit; nothing is charged.
    DpfastError
        The data cannot be read to their end, after the charge; the message shows nothing of them.

    References
    ----------
    Flajolet, Martin (1985). Hehir, Ting, Cormode (2023).

    Examples
    --------
    >>> import dpfast as dpf
    >>> frame = pl.DataFrame({"visitor": range(100_000)})
    >>> sketch = distinct_sketch(
    ...     frame, "visitor", epsilon=1.0, privacy_unit="row", ledger=dpf.Ledger(epsilon=1.0)
    ... )
    >>> low, high = sketch.interval(miss=1e-9)
    >>> low < 100_000 < high
    True

    """
    ledger, read = LEDGER.read("ledger", ledger), NAME.read("column", column)
    budget, relation = read_budget(epsilon, None, None), read_neighbors(neighbors)
    most, unit = VALUES.read_optional("max_values", max_values), NAME.read("privacy_unit", privacy_unit)
    size, key = BUCKETS.read("buckets", buckets), KEY.read("key", key)
    if size.bit_count() != 1:
        raise ParameterError("buckets", size, "a power of two", "write for example buckets=4096")
    source = open_source(data, schema=schema)
    columns = source.schema()
    alone = unit == ROW and most is None
    if alone and ROW in columns:
        allowed = f"given with max_values= where the data have a column {ROW!r}"
        raise ParameterError("privacy_unit", ROW, allowed, "rename that column if each row is a unit")
    if not alone and most is None:
        raise ParameterError("max_values", None, "given where a column is the unit", "write for example max_values=1")
    for name in (read,) if alone else (read, unit):
        if name not in columns:
            raise missing_column(name, columns.names(), "privacy_unit" if name == unit else "column")
        refuse_pattern(name)
    source.require([read, None if alone else unit])
    kind = kind_of_values(read, columns[read])
    owner = None if alone else express_unit(unit, columns[unit]).alias("unit")
    event = Pure(written_below(budget.units))
    each = as_written(event.epsilon) / (most or 1)
    if each < _LEAST_EPSILON:
        allowed = f"at least {float(_LEAST_EPSILON):g} for each of the {most or 1} values of a unit"
        raise ParameterError("epsilon", epsilon, allowed, "raise epsilon, or lower max_values")
    false = false_answers(as_written(event.epsilon), most or 1, relation)
    payment = read_payment(ledger, budget, None, neighbors=relation, dataset=dataset, privacy_unit=unit)
    source.check()
    payment.charge([Charge(budget.units, 0, f"sketch of the different values of {read}", event)])

    sketched = _Sketched(source, readable(pl.col(read), kind).alias("value"), kind, key, size)
    with forgetting():
        shown, name = _answered(sketched, owner, most or 1, false)
    contrast = float(1 - Fraction(2 * false, 2**64))
    return DistinctSketch(kind, size, key, contrast, (name,), shown)


def _answered(sketched: _Sketched, owner: pl.Expr | None, most: int, false: int) -> tuple[NDArray[np.bool_], str]:
    """Return the bits of all values, answered at random, and a random name for them."""
    bits = read_guarded(sketched.source, lambda: sketched.rows() if owner is None else sketched.units(owner, most))
    fresh = SystemRandom()
    return answer_at_random(bits, false, fresh), fresh.key()[:16].hex()


@dataclass(frozen=True)
class _Sketched:
    """A column whose values set bits."""

    source: Source
    value: pl.Expr
    kind: str
    key: int
    buckets: int

    def rows(self) -> NDArray[np.bool_]:
        """Return the bits of all values."""
        bits = np.zeros(self.buckets * LEVELS, np.bool_)

        def add(batch: pl.DataFrame) -> None:
            places = self._places(batch["value"])
            bits[places[places >= 0]] = True

        self._feed([self.value], add)
        return bits

    def units(self, owner: pl.Expr, most: int) -> NDArray[np.bool_]:
        """Return the bits of so many different values of each unit.

        Values that set one bit are one. Which of a unit's bits count is a function of these and of a fresh seed.
        """
        found: list[pl.DataFrame] = []

        def add(batch: pl.DataFrame) -> None:
            pairs = pl.DataFrame({"unit": batch["unit"].to_physical(), "place": self._places(batch["value"])})
            found.append(pairs.filter(pl.col("unit").is_not_null() & (pl.col("place") >= 0)).unique())

        self._feed([owner, self.value], add)
        bits = np.zeros(self.buckets * LEVELS, np.bool_)
        if found:
            seed = int.from_bytes(SystemRandom().key()[:8], "little")
            rank = pl.struct("unit", "place").hash(seed)
            pairs = pl.concat(found).unique().sort(rank, "place")
            bits[pairs.group_by("unit").head(most)["place"].to_numpy()] = True
        return bits

    def _feed(self, exprs: list[pl.Expr], add: Any) -> None:
        check_rows(self.source, feed(self.source, exprs, add))

    def _places(self, values: pl.Series) -> NDArray[np.int64]:
        """Return the bit of every value, -1 for those that are missing, by blocks that stay in the cache."""
        places = np.empty(len(values), np.int64)
        valid = values.is_not_null()

        def work(blocks: Iterator[int]) -> None:
            for block in blocks:
                rows = slice(block * _BLOCK_ROWS, (block + 1) * _BLOCK_ROWS)
                places[rows] = places_of(hash_values(values[rows], self.kind, self.key), self.buckets)

        share(work, -(-len(values) // _BLOCK_ROWS), thread_count(None, len(values)))
        if values.null_count():
            places[~valid.to_numpy()] = -1
        return places
