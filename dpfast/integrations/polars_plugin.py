"""Noise as Polars expressions, for the local model and for finished columns: importing this registers ``pl.Expr.dpf``.

The kernels of dpfast are compiled into a shared library at the first use, which takes up to half a minute; the library
is kept in the user's cache folder (``$XDG_CACHE_HOME/dpfast`` or ``~/.cache/dpfast``), and opened by this import from
then on. Polars calls it without Python, on all its threads. Where it cannot be built (no C compiler and no ``ld``, no
AES instructions, not Linux on x86-64), `polars.map_batches` draws the same, more slowly, one column at a time, and a
warning says so once. Randomized response runs in Python everywhere. Where a query runs Python in the background, as
with ``collect(background=True)``, wait for it before the process ends: Polars aborts else.

A few samples in a million need Python after all. A process that runs a query which another one made imports this
module first. Where a signal's handler raises while Python works on such a sample, the query fails with Polars'
``ComputeError``.

**An expression is drawn every time that Polars evaluates it**, under a fresh key each time, and nothing here can count
that. Where the column holds a statistic of several people's data, every further draw is a further release: whoever sees
two draws of one number knows it better than its noise allows, and the mean of a thousand is the number itself. These
are drawn several times:

- a lazy frame that is collected twice, or written and then collected, or joined or concatenated with itself;
- one expression that stands twice, as in ``pl.when(e > 0).then(e).otherwise(-e)``;
- a sum or count that is repeated over rows, by ``.over(...)`` or beside a longer column: every row, or every piece of
  rows, may get a draw of its own.

So aggregate with ``group_by``, draw once, at the end of one ``collect``, and go on with the frame that comes back::

    noisy = (
        trips.lazy().group_by("city").agg(pl.len().alias("n"))
        .select("city", pl.col("n").dpf.laplace(scale=2.0))
        .collect()
    )
    noisy.write_parquet("totals.parquet")    # go on with `noisy` or with the file, never with the lazy frame

No ledger is charged. `dpfast.release` is for data of which several answers are asked: it draws once whatever the
engine does, and accounts for it.

Examples
--------
>>> import polars as pl
>>> import dpfast.integrations.polars_plugin
>>> counts = pl.DataFrame({"city": ["Oslo", "Rome"], "n": [1200, 87]})
>>> noisy = counts.select("city", pl.col("n").dpf.laplace(scale=2.0))  # type: ignore[attr-defined]
>>> noisy["n"].dtype, noisy.height
(Int64, 2)

"""

from __future__ import annotations

from dpfast.integrations.expressions import Expressions
from dpfast.integrations.plugin.functions import gaussian, laplace, randomized_response
from dpfast.integrations.plugin.library import open_kept

__all__ = ["Expressions", "gaussian", "laplace", "randomized_response"]

open_kept()
