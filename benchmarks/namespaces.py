"""What the namespace of Polars' frames costs beyond the functions that it calls."""

from __future__ import annotations

import numpy as np
import polars as pl

import dpfast as dpf
import dpfast.integrations.polars

from .prepared import Prepared

#: So small a part of it that a ledger in memory lasts for any number of runs.
_EPSILON = 1e-6


def prepare_namespace(size: int) -> Prepared:
    """Return ``lf.dpf.release`` with queries from expressions, beside `dpf.release` of the same LazyFrame.

    The data are few, so that what is compared is the way there: goal, under 1 ms a release.
    """
    rows = pl.LazyFrame({"k": np.arange(size) % 10, "x": np.ones(size)})
    keys = pl.DataFrame({"k": np.arange(10)})
    ledgers = [dpf.Ledger(epsilon=1000), dpf.Ledger(epsilon=1000)]

    def ours() -> pl.DataFrame:
        return rows.dpf.release(
            by="k",
            n=pl.col("x").dpf.count(),
            s=pl.col("x").dpf.sum(bounds=(0, 1)),
            keys=keys,
            privacy_unit="row",
            epsilon=_EPSILON,
            ledger=ledgers[0],
        ).frame

    def baseline() -> pl.DataFrame:
        return dpf.release(
            rows,
            by="k",
            n=dpf.count(),
            s=dpf.sum("x", bounds=(0, 1)),
            keys=keys,
            privacy_unit="row",
            epsilon=_EPSILON,
            ledger=ledgers[1],
        ).frame

    return Prepared(ours, baseline, agree=lambda ours, other: ours.schema == other.schema)


def prepare_lazy_release(size: int) -> Prepared:
    """Return a query over ``release.lazy()``, beside the same over the frame that was released."""
    rows = pl.LazyFrame({"k": np.arange(size)})
    release = rows.dpf.release(
        by="k", n=dpf.count(), keys=rows.collect(), privacy_unit="row", epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0)
    )
    frame = release.frame

    def total(lazy: pl.LazyFrame) -> int:
        chosen = lazy.filter(pl.col("k") % 2 == 0).select(pl.col("n").sum())
        return int(chosen.collect().item())

    return Prepared(lambda: total(release.lazy()), lambda: total(frame.lazy()), agree=lambda a, b: bool(a == b))
