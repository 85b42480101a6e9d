"""Rows of the table: noise as Polars expressions, by the compiled plugin."""

from __future__ import annotations

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.integrations.plugin.calls import pack_scale
from dpfast.integrations.plugin.fallback import call_python
from dpfast.integrations.polars_plugin import laplace

from .prepared import Prepared

__all__ = [
    "prepare_plugin_agg",
    "prepare_plugin_column",
    "prepare_plugin_few_rows",
    "prepare_plugin_streaming",
]

_SCALE = 2.0


def _column(size: int) -> pl.DataFrame:
    return pl.DataFrame({"n": np.random.default_rng(1).integers(0, 1000, size)})


def prepare_plugin_column(size: int) -> Prepared:
    """Laplace noise on a column: `pl.col("n").dpf.laplace` beside `dpf.laplace` with one thread."""
    frame = _column(size)
    column, noisy = frame["n"], laplace(pl.col("n"), _SCALE)
    python = call_python("laplace", [pl.col("n")], pack_scale(_SCALE))
    return Prepared(
        ours=lambda: frame.select(noisy).to_series(),
        baseline=lambda: dpf.laplace(column, _SCALE, threads=1),
        peers={"map_batches": (lambda: frame.select(python).to_series(), size)},
        values=column.to_numpy(),
    )


def prepare_plugin_few_rows(size: int) -> Prepared:
    """A few rows, where calling costs more than drawing: the plugin beside `map_batches`."""
    frame = _column(size)
    noisy, python = laplace(pl.col("n"), _SCALE), call_python("laplace", [pl.col("n")], pack_scale(_SCALE))
    return Prepared(
        ours=lambda: frame.select(noisy).to_series(),
        baseline=lambda: frame.select(python).to_series(),
        values=frame["n"].to_numpy(),
    )


def prepare_plugin_streaming(size: int) -> Prepared:
    """Laplace noise in the streaming engine: the plugin beside `map_batches`."""
    frame = _column(size)
    python = call_python("laplace", [pl.col("n")], pack_scale(_SCALE))
    ours, baseline = (frame.lazy().select(expr) for expr in (laplace(pl.col("n"), _SCALE), python))
    return Prepared(
        ours=lambda: ours.collect(engine="streaming").to_series(),
        baseline=lambda: baseline.collect(engine="streaming").to_series(),
        values=frame["n"].to_numpy(),
    )


def prepare_plugin_agg(size: int) -> Prepared:
    """A noisy sum of each of a thousand groups in one `group_by.agg`, beside the bare sum."""
    frame = _column(size).with_columns(g=pl.int_range(size) % 1000)
    total = pl.col("n").sum()
    return Prepared(
        ours=lambda: frame.group_by("g").agg(laplace(total, _SCALE)).height,
        baseline=lambda: frame.group_by("g").agg(total).height,
        agree=lambda mine, theirs: mine == theirs,
    )
