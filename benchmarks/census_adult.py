"""A real table of a census's shape: the training part of Adult, a sample of the United States census of 1994.

The package `fairness` 0.1.8 (Apache 2.0) ships it as `fairness/data/raw/adult.csv`. It is read from the wheel, which
`pip download --no-deps fairness==0.1.8` brings with pip before 24.1 (later ones refuse the package's own
requirements). Nothing of the package is installed or run.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .census import SIZES

__all__ = ["read_adult"]

_FILE = "fairness/data/raw/adult.csv"
#: Of each attribute: what its first bin begins with, and how wide bins are; None where it has words, in their order.
#: All but the words, which the survey's own description lists, is fixed here and not taken from the records.
_BINS: dict[str, tuple[int, int] | None] = {
    "age": (17, 1),
    "workclass": None,
    "fnlwgt": (0, 15_000),
    "education-num": (1, 1),
    "marital-status": None,
    "occupation": None,
    "relationship": None,
    "race": None,
    "sex": None,
    "capital-gain": (0, 1_000),
    "capital-loss": (0, 50),
    "hours-per-week": (1, 1),
    "native-country": None,
    "income-per-year": None,
}


def read_adult(wheel: Path) -> NDArray[np.uint8]:
    """Return codes, a row for each of the 14 attributes, of the sizes that benchmarks/census.py has."""
    with zipfile.ZipFile(wheel) as held:
        frame = pl.read_csv(held.read(_FILE))
    codes = np.empty((len(SIZES), len(frame)), np.uint8)
    for place, ((name, bins), size) in enumerate(zip(_BINS.items(), SIZES, strict=True)):
        values = frame[name].to_numpy()
        found = np.unique(values, return_inverse=True)[1] if bins is None else (values - bins[0]) // bins[1]
        codes[place] = np.clip(found, 0, size - 1)
    return codes
