"""What a mechanism returned, many times -> columns: numbers by place, and what is no number as categories.

An output may be a number, a string, None, an array, a frame, or lists, tuples and dicts of these; an error is an output
too. Numbers at one path of outputs are a column; all else at it, the form of the output, and the output as a whole are
categories. A batch that comes as an array or a frame of numbers is taken apart at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.auditing.batches import rows_of_batch
from dpfast.auditing.leaves import Raised, as_float, frame_columns, leaves
from dpfast.auditing.places import TOTALS, most_places, telling, telling_paths, totals, totals_of_one

__all__ = ["Category", "Columns", "Numbers", "read_columns"]

#: Outputs as a whole are compared in pieces of so many bytes.
_PIECE = 2**24
#: So much of an output is shown.
_SHOWN = 100
#: So much of a text is kept.
_LONGEST = 200


@dataclass(frozen=True)
class Numbers:
    """The numbers at one path: a float64 for every output, NaN where there is none.

    Attributes
    ----------
    there
        Which outputs have a number; it may be NaN.
    whole
        Which of them are whole numbers by their type, of 64 bits.
    integers
        These, exactly.

    """

    path: str
    values: NDArray[np.float64]
    there: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    integers: NDArray[np.int64]

    @property
    def floats(self) -> NDArray[np.float64]:
        """All others, NaN in the place of whole numbers."""
        return np.where(self.whole, np.nan, self.values)


@dataclass(frozen=True)
class Category:
    """A number for what every output is in some respect, and what the numbers stand for; -1 where it does not apply."""

    codes: NDArray[np.int64]
    words: Callable[[int], str]
    #: What is said of several.
    among: str
    size: int


@dataclass
class Columns:
    """All outputs of both inputs, those of x first, as columns."""

    size: int
    numbers: list[Numbers] = field(default_factory=list)
    categories: list[Category] = field(default_factory=list)
    #: How many calls raised an error.
    raised: int = 0
    #: A number for the form of each output, its numbers left out, where outputs may differ in it.
    forms: NDArray[np.int64] | None = None
    #: What is said of all numbers of an output together, by name.
    totals: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def among_first(self, holds: NDArray[np.bool_]) -> bool:
        """Return whether something holds for an output of either first half: these alone say what is looked at."""
        half = self.size // 2
        return bool(holds[: half // 2].any() or holds[half : half + half // 2].any())


def read_columns(first: Any, second: Any) -> Columns:
    """Return the outputs of two inputs as columns; each is a list of outputs, or a batch with one output a row.

    What columns there are is decided by the first half of each, by which events are taught and chosen, as the proof of
    `dpfast.audit` needs: to an output of the second half that does not fit nothing applies.

    Raises
    ------
    ParameterError
        An output is of a type that cannot be taken apart.

    """
    batches = [_as_arrays(one) for one in (first, second)]
    if batches[0] is not None and batches[1] is not None and _fit(batches[0][0], batches[1][0]):
        odd = np.concatenate([batches[0][1], batches[1][1]])
        return _of_arrays(batches[0][0], batches[1][0], odd)
    rows = [*rows_of_batch(first), *rows_of_batch(second)]
    simple = _as_array(rows)
    if simple is not None:
        array, odd = simple
        half = len(rows) // 2
        return _of_arrays({"": array[:half]}, {"": array[half:]}, odd)
    return _of_rows(rows)


def _first_halves(count: int) -> list[int]:
    """Return the places of the first half of either side's outputs."""
    half = count // 2
    return [*range(half // 2), *range(half, half + half // 2)]


def _as_array(rows: list[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
    """Return outputs that are all floats, all whole numbers, or arrays of one shape, and which do not fit after all."""
    taught = _first_halves(len(rows))
    sample = rows[taught[0]]
    if not all(_alike(sample, rows[place]) for place in taught):
        return None
    odd = np.array([not _alike(sample, row) for row in rows])
    kept = [sample if bad else row for row, bad in zip(rows, odd.tolist(), strict=True)]
    array = np.stack(kept) if isinstance(sample, np.ndarray) else np.array(kept)
    return (array, odd) if array.dtype.kind in "biuf" and array.itemsize <= 8 else None


def _alike(sample: Any, row: Any) -> bool:
    """Return whether two outputs are numbers of one type, or arrays of one type and shape."""
    if type(row) is not type(sample):
        return False
    if type(sample) is int:
        return bool(-(2**63) <= row < 2**63)
    if type(sample) is np.ndarray:
        return bool(row.dtype == sample.dtype and row.shape == sample.shape and row.dtype.kind in "biuf")
    return type(sample) in (float, bool) or isinstance(sample, np.generic)


def _as_arrays(batch: Any) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]] | None:
    """Return a batch of numbers as arrays by path, or None if its rows must be looked at one by one."""
    if isinstance(batch, np.ndarray):
        plain = batch.dtype.kind in "biuf" and batch.itemsize <= 8 and not isinstance(batch, np.ma.MaskedArray)
        return ({"": batch}, np.zeros(len(batch), np.bool_)) if plain else None
    columns = frame_columns(batch)
    if not columns:
        return None
    arrays = {}
    odd = np.zeros(len(next(iter(columns.values()))), np.bool_)
    for name, column in columns.items():
        nulls = np.asarray(column.is_null() if hasattr(column, "is_null") else column.isna())
        if nulls[: nulls.size // 2].any():
            return None
        odd |= nulls
        if nulls.any():
            known = column.drop_nulls() if hasattr(column, "drop_nulls") else column.dropna()
            if known.to_numpy().dtype.kind not in "biuf":
                return None
            # Of the type that the others have, whatever stands for those that are missing.
            column = column.fill_null(0) if hasattr(column, "fill_null") else column.fillna(0)
            column = column.to_numpy().astype(known.to_numpy().dtype)
        array = column if isinstance(column, np.ndarray) else column.to_numpy()
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            return None
        arrays[f"[{name!r}]"] = array
    return arrays, odd


def _fit(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> bool:
    return [(name, one.dtype, one.shape[1:]) for name, one in first.items()] == [
        (name, one.dtype, one.shape[1:]) for name, one in second.items()
    ]


def _of_arrays(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]], odd: NDArray[np.bool_]) -> Columns:
    """Return columns of outputs that are numbers, or arrays of one shape, but for those that do not fit."""
    joined = {name: np.concatenate([first[name], second[name]]) for name in first}
    columns = Columns(odd.size)
    flat = [np.ascontiguousarray(array.reshape(odd.size, -1)) for array in joined.values()]
    half = odd.size // 2
    # A quarter of either side teaches, as in `dpfast.auditing.events.Parts`.
    taught = slice(0, half // 4), slice(half, half + half // 4)
    told = [telling(table, taught) for table in flat if table.shape[1]]
    shown = _most_telling([one for one, _ in told], most_places(odd.size))
    wide = [(name, array, table) for (name, array), table in zip(joined.items(), flat, strict=True) if table.shape[1]]
    for (name, array, table), places in zip(wide, shown, strict=True):
        for place in places.tolist():
            path = name if array.ndim == 1 else f"{name}[{_place(place, array.shape[1:])}]"
            columns.numbers.append(_numbers(path, table[:, place], odd))
    if sum(table.shape[1] for table in flat) > 1:
        whole = flat[0] if len(flat) == 1 else np.concatenate([table.astype(np.float64) for table in flat], axis=1)
        found = totals(whole, np.concatenate([weights for _, weights in told]))
        columns.totals = {name: np.where(odd, np.nan, one) for name, one in zip(TOTALS, found, strict=True)}
    if sum(table.nbytes for table in flat):
        columns.categories.append(_whole_rows(flat, odd))
    _add_special(columns)
    return columns


def _most_telling(told: list[NDArray[np.float64]], most: int) -> list[NDArray[np.int64]]:
    """Return the places of the numbers that tell most for each table: all in order, or the most telling first."""
    if not told:
        return []
    everything = np.concatenate(told)
    best = np.zeros(everything.size, np.bool_)
    best[np.argsort(-everything, kind="stable")[:most]] = True
    ends = np.cumsum([one.size for one in told])[:-1]
    places = [np.flatnonzero(one) for one in np.split(best, ends)]
    if everything.size <= most:
        return places
    # Bits are looked at of the first few: of those that tell most.
    return [place[np.argsort(-one[place], kind="stable")] for place, one in zip(places, told, strict=True)]


def _place(number: int, shape: tuple[int, ...]) -> str:
    return ", ".join(str(part) for part in np.unravel_index(number, shape))


def _numbers(path: str, values: NDArray[Any], odd: NDArray[np.bool_]) -> Numbers:
    floats = np.where(odd, np.nan, values.astype(np.float64))
    if values.dtype.kind == "f":
        return Numbers(path, floats, ~odd, np.zeros(values.size, np.bool_), np.zeros(values.size, np.int64))
    whole = ~odd
    if values.dtype == np.uint64:
        whole &= values <= np.uint64(2**63 - 1)
    return Numbers(path, floats, ~odd, whole, np.where(whole, values, 0).astype(np.int64))


def _whole_rows(flat: list[NDArray[Any]], odd: NDArray[np.bool_]) -> Category:
    """Return what outputs are as a whole: bytes, so that 0.0 and -0.0 are two, and each NaN is one."""
    tables = [table.view(np.uint8).reshape(odd.size, -1) for table in flat if table.nbytes]
    step = max(1, _PIECE // sum(table.shape[1] for table in tables))
    hashes = [
        _hashed(np.concatenate([table[start : start + step] for table in tables], axis=1))
        for start in range(0, odd.size, step)
    ]
    _, places, codes = np.unique(np.concatenate(hashes), return_index=True, return_inverse=True)

    def words(code: int) -> str:
        row = int(places[code])
        shown = [number for part in flat for number in part[row, :_SHOWN].tolist()]
        return f"output is {_short(shown[0] if len(shown) == 1 else shown)}"

    codes = np.where(odd, -1, codes.reshape(-1)).astype(np.int64)
    return Category(codes, words, "outputs", len(places))


def _hashed(table: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return a number for each row of bytes; two rows that share one are taken for one output, as any function may."""
    wide = np.zeros((len(table), -(-table.shape[1] // 8) * 8), np.uint8)
    wide[:, : table.shape[1]] = table
    result = np.zeros(len(table), np.uint64)
    for word in wide.view(np.uint64).T:
        result = (result ^ word) * np.uint64(0x9E3779B97F4A7C15)
        result ^= result >> np.uint64(29)
    return result


def _of_rows(rows: list[Any]) -> Columns:
    """Return columns of outputs of any kind."""
    columns = Columns(len(rows), raised=sum(isinstance(row, Raised) for row in rows))
    structures, wholes = _Codes(), _Codes()
    numbers_at: dict[str, _Sparse] = {}
    tokens_at: dict[str, tuple[_Codes, NDArray[np.int64]]] = {}
    held: dict[str, NDArray[np.int64]] = {}
    structure, whole = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    taught = _first_halves(len(rows))
    chosen, weights = telling_paths(rows, most_places(len(rows)))
    summed = [np.full(len(rows), np.nan) for _ in TOTALS]
    others = sorted(set(range(len(rows))) - set(taught))
    for turn, number in enumerate([*taught, *others]):
        # The outputs that measure make no columns of their own.
        opens = turn < len(taught)
        shapes, values, seen = [], [], []
        for path, leaf in leaves(rows[number], ""):
            if isinstance(leaf, (float, int)):
                seen.append((path, as_float(leaf)))
                if path in numbers_at or (opens and chosen.takes(path, len(numbers_at))):
                    numbers_at.setdefault(path, _Sparse()).add(number, leaf)
                if not isinstance(leaf, bool):
                    shapes.append(f"{path}=number" if isinstance(leaf, float) else f"{path}=whole number")
                    values.append(leaf.hex() if isinstance(leaf, float) else str(leaf))
                    continue
            token = leaf if isinstance(leaf, str) else repr(leaf)
            shapes.append(f"{path}={token}")
            if path not in tokens_at:
                if not opens or not chosen.takes(path, len(tokens_at)):
                    continue
                tokens_at[path] = _Codes(), np.full(len(rows), -1, np.int64)
            codes, found = tokens_at[path]
            found[number] = codes.of(token)
            if token not in held and opens and len(held) < chosen.most:
                held[token] = np.zeros(len(rows), np.int64)
            if token in held:
                held[token][number] = 1
        for one, total in zip(summed, totals_of_one(seen, weights), strict=True):
            one[number] = total
        structure[number] = structures.of("; ".join(shapes))
        whole[number] = wholes.of("; ".join([*shapes, *values]))
    columns.forms = structure
    if len(weights) > 1:
        columns.totals = dict(zip(TOTALS, summed, strict=True))
    columns.numbers = [numbers_at[path].numbers(path, len(rows)) for path in chosen.ordered(numbers_at)]
    columns.categories = [
        Category(whole, _whole_words(rows, whole), "outputs", len(wholes.texts)),
        Category(structure, _said("output has the form", structures), "forms of the output", len(structures.texts)),
    ]
    if len(tokens_at) > 1 or columns.numbers:
        for path, (codes, found) in tokens_at.items():
            columns.categories.append(
                Category(found, _said(f"output{path} is", codes), f"values of output{path}", len(codes.texts))
            )
        for token, within in held.items():
            columns.categories.append(Category(within, _held(token), "", 2))
    _add_special(columns)
    return columns


class _Codes:
    """Texts numbered in the order in which they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def of(self, text: str) -> int:
        if len(text) > _LONGEST:  # outputs may be long, and each of its own
            text = f"{text[:_LONGEST]}... (hash {blake2b(text.encode(errors='replace'), digest_size=12).hexdigest()})"
        return self.numbers.setdefault(text, len(self.numbers))

    @property
    def texts(self) -> list[str]:
        return list(self.numbers)


class _Sparse:
    """Numbers of those outputs that have one at a path."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.values: list[float | int] = []

    def add(self, row: int, value: float | int) -> None:
        self.rows.append(row)
        self.values.append(value)

    def numbers(self, path: str, size: int) -> Numbers:
        values = np.full(size, np.nan)
        values[self.rows] = [as_float(value) for value in self.values]
        whole, integers = np.zeros(size, np.bool_), np.zeros(size, np.int64)
        small = [isinstance(value, int) and -(2**63) <= value < 2**63 for value in self.values]
        whole[self.rows] = small
        integers[self.rows] = [value if fits else 0 for value, fits in zip(self.values, small, strict=True)]
        there = np.zeros(size, np.bool_)
        there[self.rows] = True
        return Numbers(path, values, there, whole, integers)


def _said(what: str, codes: _Codes) -> Callable[[int], str]:
    texts = codes.texts
    return lambda code: f"{what} {texts[code].removeprefix('=')}"


def _held(token: str) -> Callable[[int], str]:
    return lambda code: f"output {'has' if code else 'does not have'} {token} in it"


def _whole_words(rows: list[Any], codes: NDArray[np.int64]) -> Callable[[int], str]:
    _, places = np.unique(codes, return_index=True)

    def words(code: int) -> str:
        row = rows[int(places[code])]
        if isinstance(row, Raised):
            return f"output raises {row.kind}: {row.message}"
        return f"output is {_short(row)}"

    return words


def _short(value: Any) -> str:
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _add_special(columns: Columns) -> None:
    """Add a category of what comparisons do not tell: NaN, the infinities, the two zeros."""
    names = ("a finite number", "nan", "inf", "-inf", "-0.0")
    for one in columns.numbers:
        values = one.floats
        zero = (values == 0) & np.signbit(values)
        codes = np.select([one.whole, np.isnan(values), values == np.inf, values == -np.inf, zero], [0, 1, 2, 3, 4], 0)
        codes = np.where(one.there, codes, -1)
        if columns.among_first(codes > 0):
            path = one.path
            columns.categories.append(
                Category(codes.astype(np.int64), _named(path, names), f"kinds of output{path}", len(names))
            )


def _named(path: str, names: Sequence[str]) -> Callable[[int], str]:
    return lambda code: f"output{path} is {names[code]}"
