"""Record batches joined and cut into blocks of rows, which get their noise as they are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from dpfast.columns.compact import compact
from dpfast.columns.of_arrow import arrow_array, borrow_chunks
from dpfast.columns.scale import borrow_scale
from dpfast.errors import DataError, DpfastError, ParameterError
from dpfast.local.responses import Weights, answer_rows
from dpfast.mechanisms.noise.additive import Buffers
from dpfast.mechanisms.noise.by_kind import NOISE_OF
from dpfast.mechanisms.noise.lattice import LARGEST_INTEGER_SCALE
from dpfast.randomness import RandomSource
from dpfast.turns import Turns

__all__ = ["Blocks", "NoisyColumn", "PublicColumn", "short_name"]

#: Chunks of fewer rows are joined by PyArrow: of the many that a kernel's block would cross, each takes its time.
_ROWS_OF_CHUNKS = 1 << 15

#: Batches of fewer rows are joined when so many wait, to take less memory.
_SMALL_ROWS, _SMALL_BATCHES = 4096, 1024

_UNREADABLE = "the stream cannot be read to its end: what it is read from failed"
_FORKED = "a stream belongs to the process that made it; make one in this process, of rows that no other stream reads"


@dataclass(frozen=True, slots=True)
class NoisyColumn:
    """A column that gets noise.

    Attributes
    ----------
    name, place, released
        Its name and number in the reader, and its type when it has its noise.
    kind
        The noise.
    scale, scales_place
        The scale of additive noise; or None, and the number of the column that has the scales.
    weights, categories
        What randomized response draws with, and the strings that it answers, None where it answers numbers.

    """

    name: str
    place: int
    released: Any
    kind: Literal["laplace", "gaussian", "randomized_response"]
    scale: float | None = None
    scales_place: int | None = None
    weights: Weights | None = None
    categories: Any = None

    @property
    def places(self) -> tuple[int, ...]:
        """The columns that are read."""
        return (self.place,) if self.scales_place is None else (self.place, self.scales_place)


@dataclass(frozen=True, slots=True)
class PublicColumn:
    """A column that leaves as it is; the attributes are as of `NoisyColumn`."""

    name: str
    place: int
    released: Any

    @property
    def places(self) -> tuple[int, ...]:
        """The columns that are read."""
        return (self.place,)


class _Rows:
    """Some columns of a reader's batches, cut anew into tables of as many rows each.

    Parameters
    ----------
    reader
        The reader.
    places
        The numbers of the columns, ascending.
    rows
        The rows of a table; the last one may have fewer.

    """

    def __init__(self, reader: Any, places: list[int], rows: int) -> None:
        self._reader = reader
        self._places = {place: number for number, place in enumerate(places)}
        self._selected = None if len(places) == len(reader.schema) else places
        self._schema = pa.schema([reader.schema.field(place) for place in places])
        self._rows = rows
        self._waiting: deque[Any] = deque()
        self._small: list[Any] = []
        self._waiting_rows = 0

    def column(self, table: Any, place: int) -> Any:
        """Return the column of a table that has this number in the reader."""
        return table.column(self._places[place])

    def forget(self) -> None:
        """Let go of all rows."""
        self._waiting.clear()
        self._small.clear()

    def next_table(self) -> Any:
        """Return the next rows, None if there are no more."""
        while self._reader is not None and self._waiting_rows < self._rows:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                self._reader = None
                break
            if batch.num_rows:
                self._wait(batch)
        self._waiting.extend(self._small)
        self._small.clear()
        taken, wanted = [], self._rows
        while self._waiting and wanted:
            batch = self._waiting.popleft()
            if batch.num_rows > wanted:
                self._waiting.appendleft(batch.slice(wanted))
                batch = batch.slice(0, wanted)
            taken.append(batch)
            wanted -= batch.num_rows
            self._waiting_rows -= batch.num_rows
        # A reader may give batches of another schema than its own, which is checked here.
        return pa.Table.from_batches(taken, self._schema) if taken else None

    def _wait(self, batch: Any) -> None:
        self._waiting_rows += batch.num_rows
        if self._selected is not None:
            batch = batch.select(self._selected)
        if batch.num_rows >= _SMALL_ROWS:
            self._waiting.extend(self._small)
            self._small.clear()
            self._waiting.append(batch)
            return
        self._small.append(batch)
        if len(self._small) == _SMALL_BATCHES:
            # A batch takes a kilobyte however few rows it has.
            joined = pa.Table.from_batches(self._small, self._schema)
            with suppress(pa.ArrowException):
                joined = joined.combine_chunks()
            self._waiting.extend(joined.to_batches())
            self._small.clear()


class Blocks:
    """The batches of a noisy stream, drawn one by one; see `dpfast.integrations.arrow.noisy_stream`.

    Guarantee
        Each row is read once, and drawn once for each noisy column, with a fresh key for each column and block
        (Soundness rule 1). Blocks begin at multiples of ``rows`` whatever the sizes of the reader's batches. After
        a failure every further call fails with the same words.

    Parameters
    ----------
    reader
        The PyArrow reader; nobody else reads it from here on.
    columns
        What leaves, in order.
    schema
        The schema of what leaves.
    rows
        The rows of a block.
    source, threads
        Where keys come from, and how many threads share a block.

    """

    def __init__(
        self,
        reader: Any,
        columns: Sequence[NoisyColumn | PublicColumn],
        schema: Any,
        rows: int,
        source: RandomSource,
        threads: int | None,
    ) -> None:
        self.schema = schema
        self._columns = columns
        self._rows = _Rows(reader, sorted({place for column in columns for place in column.places}), rows)
        self._source = source
        self._threads = threads
        self._scratch: list[Buffers] = []
        self._failure: DpfastError | None = None
        self._turns = Turns(_FORKED)

    def __iter__(self) -> Blocks:
        return self

    def __next__(self) -> Any:
        with self._turns.turn():
            if self._failure is not None:
                # Afresh, so that tracebacks do not grow.
                raise type(self._failure)(*self._failure.args)
            # Whatever ends this call early, an interrupt too, ends the stream.
            self._failure = DpfastError(_UNREADABLE)
            block = self._next_block()
            self._turns.refuse_other_process()  # a reader may fork
            self._failure = None
            if block is None:
                raise StopIteration
            return block

    def _next_block(self) -> Any:
        failure: DpfastError | None = None
        memory = False
        try:
            rows = self._rows.next_table()
            if rows is None:
                return None
            arrays = [self._array(column, rows) for column in self._columns]
            return pa.record_batch(arrays, schema=self.schema)
        except (KeyboardInterrupt, SystemExit):
            raise
        except DpfastError as error:
            failure = DataError(str(error)) if isinstance(error, DataError) else DpfastError(str(error))
        except MemoryError:
            memory = True
        except BaseException:  # also what panics in another library raise
            failure = DpfastError(_UNREADABLE)
        finally:
            if memory or failure is not None:
                self._rows.forget()
        # Out here no traceback holds the reader's error, which may quote values.
        if failure is None:
            raise MemoryError("not enough memory for a block of the stream; lower block_rows")
        self._failure = failure
        raise type(failure)(*failure.args)

    def _array(self, column: NoisyColumn | PublicColumn, rows: Any) -> Any:
        given = self._rows.column(rows, column.place)
        if isinstance(column, PublicColumn):
            fitting: Any = None
            with suppress(pa.ArrowException):
                fitting = compact(given)
            if fitting is None:
                raise DpfastError(
                    f"the public column {short_name(column.name)} does not fit into one batch of {len(rows)} rows; "
                    "lower block_rows, or cast it to large_string or to the values of its dictionary"
                )
            return fitting
        return self._noisy(column, given, rows)

    def _answers(self, column: NoisyColumn, weights: Weights, given: Any) -> Any:
        """Return the answers of randomized response."""
        if column.categories is not None:
            given = pc.index_in(given.cast(column.categories.type), column.categories)
        borrowed = borrow_chunks(given.chunks, given.type, "values", "a column", arrow_array)
        numbers = answer_rows(borrowed, weights, self._source, self._threads)
        if column.categories is None:
            return borrowed.rebuild_without_nulls(numbers)
        return column.categories.take(pa.array(numbers)).cast(column.released)

    def _noisy(self, column: NoisyColumn, given: Any, rows: Any) -> Any:
        if column.weights is not None:
            return self._answers(column, column.weights, given)
        if given.num_chunks > 1 and len(given) < given.num_chunks * _ROWS_OF_CHUNKS:
            given = pa.chunked_array([given.combine_chunks()])
        borrowed = borrow_chunks(given.chunks, given.type, "values", "a column", arrow_array)
        scale: Any = column.scale
        if column.scales_place is not None:
            scale = _scales(column, self._rows.column(rows, column.scales_place))
        noised: Any = None
        with suppress(DataError):
            noised = NOISE_OF[column.kind](borrowed, scale, self._source, self._threads, kept=self._scratch)
        if noised is None:
            raise DataError(
                f"the column {short_name(column.name)} has a NaN or an infinity; replace it first by a fixed number"
            )
        return borrowed.rebuild(noised)


def _scales(column: NoisyColumn, given: Any) -> Any:
    """Return a number for each row of a block."""
    scales: Any = None
    with suppress(ParameterError):
        scales = borrow_scale(given, len(given))
        if pa.types.is_integer(column.released) and scales.max() > LARGEST_INTEGER_SCALE:
            scales = None
    if scales is None:
        raise DataError(
            f"the scales of {short_name(column.name)} must be numbers from 2**-960 to 2**960, for integers at most "
            "2**60, in every row; mend the column that has them"
        )
    return scales


def short_name(name: str) -> str:
    """Return a column's name as an error shows it.

    Examples
    --------
    >>> short_name("n")
    "'n'"

    """
    return repr(name if len(name) <= 60 else name[:57] + "...")
