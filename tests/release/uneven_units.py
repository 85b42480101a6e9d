"""Tables of units that differ very much in what they have: of one group or many, with a few rows or dozens."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import polars as pl

KEYS = pl.DataFrame({"k": ["a", "b", "c", "e"]})


def rows_of(units, seed=0):
    """Return rows of units, of public keys and others, with null units and missing values."""
    generator = np.random.default_rng(seed)
    found = []
    for unit in units:
        for _ in range(int(generator.integers(0, 6)) if unit % 3 else int(generator.integers(1, 90))):
            key = "abcdz"[generator.integers(0, 5)] if unit % 2 else "a"
            x = [None, math.nan, *generator.normal(0, 9, 8).tolist()][generator.integers(0, 10)]
            found.append({"u": unit if generator.random() < 0.95 else None, "k": key, "x": x})
    return pl.DataFrame(found, schema={"u": pl.Int64, "k": pl.String, "x": pl.Float64})


def rows_by_group(data, keys):
    """Return for each unit how many rows it has in each of its groups, of these keys or of all."""
    data = data.filter(pl.col("u").is_not_null())
    data = data if keys is None else data.filter(pl.col("k").is_in(keys["k"].to_list()))
    had = {}
    for unit, key in data.select("u", "k").rows():
        had.setdefault(unit, Counter())[key] += 1
    return had
