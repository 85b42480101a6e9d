"""Records of five columns that hang together, and how far others are from them in pairs of columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
import polars as pl

import dpfast as dpf

from .cells import OURS, Cell, Errors

__all__ = ["DELTA", "EPSILON", "NAMES", "ROWS", "SIZES", "cells", "error_of", "made_up", "ours"]

EPSILON, DELTA = 1.0, 1e-6
ROWS = 10_000
SIZES = (4, 8, 3, 10, 6)
NAMES = tuple("abcde")
_SEED = 20_261_123


@cache
def made_up() -> pl.DataFrame:
    """Return codes: two hidden numbers of a record decide on its columns, with noise."""
    draw = np.random.default_rng(_SEED)
    hidden = draw.normal(size=(ROWS, 2))
    columns = {}
    for name, size in zip(NAMES, SIZES, strict=True):
        value = hidden @ draw.normal(size=2) + 0.7 * draw.normal(size=ROWS)
        edges = np.quantile(value, np.sort(draw.uniform(0.05, 0.95, size - 1)))
        columns[name] = np.searchsorted(edges, value).astype(np.int64)
    return pl.DataFrame(columns)


def ours(frame: pl.DataFrame) -> pl.DataFrame:
    """Return synthetic records by `dpf.synthesize`."""
    domain = dpf.Domain(dict(zip(NAMES, SIZES, strict=True)))
    return dpf.synthesize(
        frame, domain, epsilon=EPSILON, delta=DELTA, ledger=dpf.Ledger(epsilon=EPSILON, delta=DELTA)
    ).frame


def error_of(make: Callable[[pl.DataFrame], pl.DataFrame]) -> float:
    """Return the mean total variation distance of all pairs of columns."""
    frame = made_up()
    found = make(frame)
    return float(np.mean([_distance(frame, found, pair) for pair in itertools.combinations(range(len(SIZES)), 2)]))


def _distance(one: pl.DataFrame, other: pl.DataFrame, pair: tuple[int, int]) -> float:
    shares = []
    for frame in (one, other):
        codes = [frame[NAMES[place]].to_numpy().astype(np.int64) for place in pair]
        cells = np.bincount(codes[0] * SIZES[pair[1]] + codes[1], minlength=SIZES[pair[0]] * SIZES[pair[1]])
        shares.append(cells / cells.sum())
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def cells() -> Iterator[Cell]:
    """Yield the one cell, with the libraries that are installed."""
    yield Cell("Records of five columns, pairs", "total variation", _errors, is_quick=True)


def _errors(is_quick: bool) -> Errors:
    from .contestants import mbi, smartnoise

    makers = {OURS: ours, **mbi.records(), **smartnoise.records()}
    return {name: partial(error_of, make) for name, make in makers.items()}
