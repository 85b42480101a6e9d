"""Soundness rule 20: no byte of a rejected key or of a masked row leaves with a release."""

from __future__ import annotations

import datetime
import traceback
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import DpfastError

from .oracles import exported_bytes

MARK = 0x5EC2E7C0FFEE4B1D
DAY = datetime.date(1970, 1, 1) + datetime.timedelta(days=0x2B1D4E)
MOMENT = datetime.datetime(2091, 3, 7, 11, 13, 17, 123457)
LONG = "a long key that is rejected, SECRET-0123456789"

#: dtype -> (shown keys in the order of the release, rejected keys, their bytes)
KINDS = {
    "short strings": (pl.String, ["alpha", "beta"], ["SECRET-7"], [b"SECRET-7"]),
    "long strings": (pl.String, ["a key that is shown, and longer than twelve", "beta"], [LONG], [b"SECRET-0123"]),
    "both": (pl.String, ["a key that is shown, and longer than twelve", "beta"], [LONG, "SECRET-7"], [b"SECRET"]),
    "categories": (pl.Categorical, ["alpha", "a shown category of some length"][::-1], [LONG, "SECRET-7"], [b"SECRET"]),
    "own categories": (pl.Categorical(pl.Categories("held")), ["alpha", "beta"], [LONG, "SECRET-7"], [b"SECRET"]),
    "enum": (pl.Enum(["zebra", "SECRET-7", "mango", LONG]), ["mango", "zebra"], ["SECRET-7", LONG], [b"SECRET"]),
    "enum of one byte": (pl.Enum(["zebra", "SECRET-7"]), ["zebra"], ["SECRET-7"], [b"SECRET"]),
    "int64": (pl.Int64, [-3, 5], [MARK], [MARK.to_bytes(8, "little")]),
    "uint64": (pl.UInt64, [3, 5], [2**64 - MARK], [(2**64 - MARK).to_bytes(8, "little")]),
    "dates": (pl.Date, [datetime.date(2000, 1, 1)], [DAY], [(0x2B1D4E).to_bytes(4, "little")]),
    "moments": (
        pl.Datetime("us"),
        [datetime.datetime(2000, 1, 1)],
        [MOMENT],
        [int((MOMENT - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1)).to_bytes(8, "little")],
    ),
    "booleans": (pl.Boolean, [False], [True], []),
    "short bytes": (pl.Binary, [b"alpha", b"beta"], [b"SECRET-7"], [b"SECRET-7"]),
    "long bytes": (pl.Binary, [b"beta", b"shown bytes, more than twelve"], [LONG.encode()], [b"SECRET-0123"]),
    "decimals": (
        pl.Decimal(38, 2),
        [Decimal("-1.25"), Decimal(3)],
        [Decimal(MARK).scaleb(-2)],
        [MARK.to_bytes(8, "little")],
    ),
    "int128": (pl.Int128, [-3, 2**100], [MARK], [MARK.to_bytes(8, "little")]),
    "durations": (
        pl.Duration("us"),
        [datetime.timedelta(1)],
        [datetime.timedelta(microseconds=0x5EC2E7C0FFEE)],
        [(0x5EC2E7C0FFEE).to_bytes(8, "little")],
    ),
    "times": (
        pl.Time,
        [datetime.time(1)],
        [datetime.time(11, 13, 17, 123457)],
        [((11 * 3600 + 13 * 60 + 17) * 10**9 + 123457000).to_bytes(8, "little")],
    ),
}  # fmt: skip


def frame_of(kind, *, null):
    """Return 200 units for every shown key (and for null, if it is to be shown), one for every rejected one."""
    dtype, shown, rejected, _ = KINDS[kind]
    keys = [key for key in shown for _ in range(200)] + rejected + [None] * (200 if null else 1)
    # The rejected stand in the middle, and everything is out of order.
    order = np.random.default_rng(7).permutation(len(keys))
    return pl.DataFrame({"k": pl.Series([keys[i] for i in order], dtype=dtype), "u": np.arange(len(keys))})


def assert_absent(frame, needles):
    for exported in exported_bytes(frame):
        for needle in needles:
            assert needle not in exported


def released_dtype(kind):
    """Return the dtype of selected keys: dtypes that carry values in themselves become strings."""
    dtype = KINDS[kind][0]
    return pl.String if dtype == pl.Categorical or isinstance(dtype, (pl.Categorical, pl.Enum)) else dtype


UNITS = {"rows": {}, "units": {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 3}}


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
def test_rejected_keys_leave_no_bytes(kind, unit, lazy, null, without_noise, released):
    """And the shown ones come sorted, null first, in the type they had (categories and enums as strings)."""
    _, shown, _, needles = KINDS[kind]
    frame = frame_of(kind, null=null)
    release = released(frame.lazy() if lazy else frame, "k", n=dpf.count(), **UNITS[unit])
    assert release.frame["k"].to_list() == [None] * null + shown
    assert release.frame["n"].to_list() == [200] * (len(shown) + null)
    assert release.frame["k"].dtype == released_dtype(kind)
    assert_absent(release.frame, needles)
    assert_absent(release.lazy().collect(), needles)
    assert_absent(release.frame.head(1), needles)
    told = f"{release!r} {release.explain()} {release.frame.schema} {vars(release)}".encode()
    assert not any(needle in told for needle in needles)


def test_the_search_finds_what_filtering_leaves():
    """The control: the bytes that these tests look for do leave a frame that is only filtered."""
    frame = frame_of("long strings", null=False)
    kept = frame.group_by("k").len().filter(pl.col("len") > 100).sort("k")
    assert any(b"SECRET-0123" in exported for exported in exported_bytes(kept))
    masked = masked_integers(MARK)
    assert any(MARK.to_bytes(8, "little") in exported for exported in exported_bytes(masked.to_frame("k")))


@pytest.mark.parametrize("unit", UNITS)
def test_several_key_columns(unit, without_noise, released):
    """Every column is rebuilt; rows are sorted by the columns in their order, nulls first."""
    frames = [frame_of(kind, null=True).select(pl.col("k").alias(kind)) for kind in ("long strings", "int64", "enum")]
    height = min(frame.height for frame in frames)
    crossed = pl.concat([frame.head(height) for frame in frames], how="horizontal")
    crossed = pl.concat([crossed] * 40).with_columns(u=pl.int_range(pl.len()))
    crossed = crossed.filter(
        pl.col("u").is_in([0, 1, 2]) | (pl.col("long strings") != LONG) | pl.col("long strings").is_null()
    )
    crossed = crossed.filter((pl.col("int64") != MARK) | pl.col("int64").is_null())
    by = ["long strings", "int64", "enum"]
    release = released(crossed, by, n=dpf.count(), **UNITS[unit])
    expected = crossed.with_columns(pl.col("enum").cast(pl.String)).group_by(by).len()
    expected = expected.filter(pl.col("len") >= 100).sort(by)
    assert release.frame.select(by).rows() == expected.select(by).rows()
    assert release.frame["n"].to_list() == expected["len"].to_list()
    assert release.frame.select(by).dtypes == [pl.String, pl.Int64, pl.String]
    assert_absent(release.frame, [b"SECRET", MARK.to_bytes(8, "little")])


def masked_integers(mark):
    """Return 200 ones and then 200 nulls, under each of which stands the mark."""
    values = np.array([1] * 200 + [mark] * 200, np.int64)
    mask = np.packbits(np.arange(400) < 200, bitorder="little")
    return pl.Series("k", pa.Array.from_buffers(pa.int64(), 400, [pa.py_buffer(mask), pa.py_buffer(values)]))


def masked_strings():
    """Return the same in strings: the text under the nulls is in the buffer."""
    offsets = np.concatenate([np.arange(0, 201) * 5, 1000 + np.arange(1, 201) * 20]).astype(np.int64)
    text = b"alpha" * 200 + b"SECRET-UNDER-A-NULL." * 200
    mask = np.packbits(np.arange(400) < 200, bitorder="little")
    buffers = [pa.py_buffer(mask), pa.py_buffer(offsets), pa.py_buffer(text)]
    return pl.Series("k", pa.Array.from_buffers(pa.large_string(), 400, buffers))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("masked", [masked_integers(MARK), masked_strings()], ids=["integers", "strings"])
def test_what_stands_under_nulls_leaves_no_bytes(masked, unit, lazy, without_noise, released):
    frame = masked.to_frame("k").with_columns(u=pl.int_range(pl.len()))
    frame = frame.with_columns(v=masked_integers(MARK), f=pl.col("u") * 1.0)
    source = frame.lazy() if lazy else frame
    release = released(
        source, "k", n=dpf.count(), s=dpf.sum("v", bounds=(0, 10)), m=dpf.mean("v", bounds=(0, 10)), **UNITS[unit]
    )
    assert release.frame["n"].to_list() == [200, 200]
    assert release.frame["s"].to_list() == [0, 200]
    assert_absent(release.frame, [b"SECRET", MARK.to_bytes(8, "little")])


def test_bins_are_called_by_public_labels(without_noise, released):
    frame = pl.DataFrame({"k": [0.5] * 200 + [float(MARK)] * 200 + [7.25] * 3 + [float("nan")] * 50})
    release = released(frame, dpf.bins("k", [0, 5, 10]), n=dpf.count())
    assert release.frame["k"].to_list() == [None, 0]
    assert release.frame["n"].to_list() == [250, 200]
    assert_absent(release.frame, [np.float64(MARK).tobytes(), np.float64(7.25).tobytes()])


def test_private_columns_that_are_only_measured_leave_no_bytes(without_noise, released):
    """Units, measured values and unused columns: with public keys too."""
    frame = pl.DataFrame(
        {
            "k": ["a", "b"] * 200,
            "u": [f"unit SECRET number {i}" for i in range(400)],
            "v": [MARK] * 400,
            "unused": ["SECRET, and unused"] * 400,
        }
    )
    arguments = {"n": dpf.count(), "s": dpf.sum("v", bounds=(0, 3)), **UNITS["units"]}
    for keys in (None, pl.DataFrame({"k": ["b", "missing"]})):
        release = released(frame, "k", keys=keys, **arguments)
        assert_absent(release.frame, [b"SECRET", MARK.to_bytes(8, "little")])


def test_a_release_of_no_key_is_an_empty_frame(without_noise, released):
    for kind in KINDS:
        frame = frame_of(kind, null=True).unique("k")
        release = released(frame, "k", n=dpf.count(), m=dpf.mean("u", bounds=(0, 1)))
        assert release.frame.height == 0
        assert release.frame["k"].dtype == released_dtype(kind)
        assert_absent(release.frame, [b"SECRET", MARK.to_bytes(8, "little")])


def test_given_keys_keep_their_dtype(without_noise, released):
    """They are public, and so is all that their dtype holds; of the data's own dtype nothing is taken."""
    data = pl.DataFrame({"k": pl.Series(["zebra", "SECRET-7"] * 200, dtype=pl.Enum(["SECRET-7", "zebra"]))})
    own = pl.Enum(["zebra", "unused"])
    for dtype in (own, pl.String, pl.Categorical):
        keys = pl.DataFrame({"k": pl.Series(["zebra"], dtype=dtype)})
        release = released(data, "k", keys=keys, n=dpf.count())
        assert release.frame.select("k").equals(keys)
        assert release.frame["k"].dtype == dtype
        assert release.frame["n"].to_list() == [200]
        assert_absent(release.frame, [b"SECRET"])


#: What is refused before anything is charged, because of the dtype of a column.
REFUSED = {
    "a sum": lambda data: dpf.plan(data, s=dpf.sum("k", bounds=(0, 1)), privacy_unit="row", epsilon=1),
    "a quantile": lambda data: dpf.plan(data, s=dpf.quantile("k", 0.5, bounds=(0, 1)), privacy_unit="row", epsilon=1),
    "bins": lambda data: dpf.plan(
        data, dpf.bins("k", [0, 1]), n=dpf.count(),
        privacy_unit="row", epsilon=1, delta=1e-6
    ),
    "other keys": lambda data: dpf.plan(
        data, "k", keys=pl.DataFrame({"k": ["b"]}), n=dpf.count(),
        privacy_unit="row", epsilon=1
    ),
    "integer keys": lambda data: dpf.plan(
        data, "k", keys=pl.DataFrame({"k": [1]}), n=dpf.count(),
        privacy_unit="row", epsilon=1
    ),
    "other candidates": lambda data: dpf.plan(data, o=dpf.mode("k", candidates=["b"]), privacy_unit="row", epsilon=1),
    "integer candidates": lambda data: dpf.plan(data, o=dpf.mode("k", candidates=[1]), privacy_unit="row", epsilon=1),
    "a list as key": lambda data: dpf.plan(
        data.with_columns(pl.concat_list("k")), "k", n=dpf.count(), privacy_unit="row", epsilon=1, delta=1e-6
    ),
    "a list as unit": lambda data: dpf.plan(
        data.with_columns(pl.concat_list("k")), privacy_unit="k", max_groups=1, max_rows_per_group=1, n=dpf.count(),
        epsilon=1,
    ),
    "codes": lambda data: dpf.Domain({"k": 3}).count(data),
    "bins of a domain": lambda data: dpf.Domain({"k": dpf.bins("k", [0, 1])}).count(data),
    "integers of a domain": lambda data: dpf.Domain({"k": [1, 2]}).count(data),
    "noise": lambda data: dpf.laplace(data["k"], 1.0),
    "a table of queries": lambda data: dpf.answer(data, value="k", epsilon=1, ledger=dpf.Ledger(epsilon=9)),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_errors_about_a_dtype_do_not_show_what_it_holds(what):
    """Soundness rule 3: an enum is often made of the values of the data."""
    data = pl.DataFrame({"k": pl.Series(["zebra", "SECRET-7"] * 3, dtype=pl.Enum(["SECRET-7", "zebra"]))})
    with pytest.raises(DpfastError) as caught:
        REFUSED[what](data)
    told = "".join(traceback.format_exception(caught.value))
    assert "SECRET" not in told
    assert "Enum" in told or "String" in told


def test_errors_about_files_that_differ_do_not_show_what_a_dtype_holds(tmp_path):
    data = pl.DataFrame({"k": pl.Series(["zebra", "SECRET-7"], dtype=pl.Enum(["SECRET-7", "zebra"]))})
    data.with_columns(x=1).write_parquet(tmp_path / "0.parquet")
    pl.DataFrame({"k": [1, 2], "x": 1}).write_parquet(tmp_path / "1.parquet")
    with pytest.raises(DpfastError, match=r"of dtype Enum in the file .*of Int64 in") as caught:
        dpf.plan(str(tmp_path / "*.parquet"), "k", n=dpf.count(), privacy_unit="row", epsilon=1, delta=1e-6)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))
