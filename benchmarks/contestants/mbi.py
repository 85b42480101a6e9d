"""mbi: a graphical model fitted to noisy counts of all pairs of columns, and records drawn from it.

The noise is Gaussian, of the least deviation for the whole budget over all pairs (Balle and Wang 2018).
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import polars as pl

from dpfast.mechanisms.noise.calibration import analytic_gaussian_scale

from ..five_columns import DELTA, EPSILON, NAMES, ROWS, SIZES


def records() -> dict[str, Callable[[pl.DataFrame], pl.DataFrame]]:
    """Return what makes synthetic records, if it is installed."""
    try:
        usable = int(version("mbi").partition(".")[0]) >= 2  # before, estimators had another form
    except PackageNotFoundError:
        usable = False
    return {"mbi": _make} if usable else {}


def _make(frame: pl.DataFrame) -> pl.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mbi import Domain, LinearMeasurement, estimation

        pairs = list(itertools.combinations(NAMES, 2))
        sigma = analytic_gaussian_scale(math.sqrt(len(pairs)), EPSILON, DELTA)
        draw = np.random.default_rng()
        size_of = dict(zip(NAMES, SIZES, strict=True))
        measured = []
        for one, other in pairs:
            cells = np.bincount(frame[one] * size_of[other] + frame[other], minlength=size_of[one] * size_of[other])
            measured.append(LinearMeasurement(cells + draw.normal(0, sigma, cells.size), (one, other), stddev=sigma))
        model = estimation.MirrorDescent().estimate(Domain(NAMES, SIZES), measured, iters=500)
        columns = model.synthetic_data(ROWS).to_dict()
    return pl.DataFrame({name: np.asarray(columns[name]).astype(np.int64) for name in NAMES})
