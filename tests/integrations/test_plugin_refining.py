"""Python's part in the compiled plugin: what counts as success, how the process ends, and whose memory it is."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from dpfast.integrations.plugin import refining
from dpfast.integrations.plugin.calls import pack_scale
from dpfast.integrations.plugin.library import library
from dpfast.integrations.polars_plugin import laplace
from dpfast.kernels.plugin import layout

from .plugin_calls import under_key

pytestmark = pytest.mark.usefixtures("plugin")

KEY, ROWS = bytes(range(32)), 2_000_000
#: Under this key each leaves some of two million rows undecided.
CALLS = {
    "laplace": ([pa.array(np.arange(ROWS))], pack_scale(2.0**24.9)),
    "gaussian": ([pa.array(np.arange(ROWS))], pack_scale(2.0**24.9)),
}


def set_callback(address):
    library().functions.dpfast_set_callback(address)


@pytest.fixture
def calling():
    """A function that puts another callback in Python's place; it is put back at the end."""
    kept = []

    def put(function):
        kept.append(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(function))
        set_callback(ctypes.cast(kept[-1], ctypes.c_void_p).value)

    yield put
    set_callback(ctypes.cast(refining.CALLBACK, ctypes.c_void_p).value)


def words_of(address):
    return (ctypes.c_int64 * layout.JOB_WORDS).from_address(address)


def raises(address):
    raise KeyboardInterrupt


def stores_alone(address):
    words_of(address)[layout.JOB_FINISHED] = layout.FINISHED
    return 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "function",
    [raises, stores_alone, *(lambda address, n=n: n for n in (0, 1, -1, layout.FINISHED, layout.FINISHED - 1))],
)
@pytest.mark.parametrize("operation", CALLS)
def test_nothing_but_the_refinement_itself_is_success(operation, function, calling):
    """A callback that raised at its entry returns whatever stood in memory: no such number lets rows out."""
    calling(function)
    assert under_key(operation, *CALLS[operation], KEY) == (None, layout.NOT_REFINED)
    with pytest.raises(pl.exceptions.ComputeError, match="was not finished in Python"):
        pl.DataFrame({"n": np.zeros(6_000_000, np.int64)}).select(laplace(pl.col("n"), 2.0**24.9))


def test_no_callback_says_what_to_do(calling):
    set_callback(0)
    for operation, call in CALLS.items():
        assert under_key(operation, *call, KEY) == (None, layout.NO_CALLBACK)
    assert "import dpfast.integrations.polars_plugin first" in layout.ERRORS[layout.NO_CALLBACK]


@pytest.mark.parametrize("operation", CALLS)
def test_undecided_rows_are_zero_before_python_sees_them(operation, monkeypatch):
    seen = []

    def look(job):
        count, released = job[layout.JOB_COUNT], job[layout.JOB_RELEASED]
        for row in (ctypes.c_int64 * count).from_address(job[layout.JOB_UNDECIDED]):
            seen.append(ctypes.c_int64.from_address(released + 8 * row).value)

    monkeypatch.setattr(refining, "_draw", look)
    assert under_key(operation, *CALLS[operation], KEY)[1] == 0
    assert len(seen) >= 2
    assert set(seen) == {0}


def run(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


ENDING = """
import sys, threading, time
import numpy as np, polars as pl
from dpfast.integrations.polars_plugin import laplace
expr = laplace(pl.col("n"), 255.0)
lazy = pl.LazyFrame({"n": np.zeros(4_000_000, np.int64)}).select(expr)
started = [lazy.collect(background=True) for _ in range(4)]
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("seconds", ["0", "0.05", "0.15", "0.3"])
def test_a_process_may_end_while_a_query_draws(seconds):
    """A thread that called Python while it ended would have the process aborted."""
    ended = run(ENDING, seconds)
    assert (ended.returncode, ended.stderr) == (0, "")


FORKED = """
import os
import numpy as np, polars as pl
from dpfast.integrations.polars_plugin import laplace
laplace(pl.col("n"), 1.0)
child = os.fork()
if child:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_ends_too():
    assert run(FORKED).returncode == 0


ELSEWHERE = """
import gc, sys
import polars as pl
lazy = pl.LazyFrame.deserialize(sys.argv[1])
if sys.argv[2] == "imported":
    import dpfast.integrations.polars_plugin
kept = []
for _ in range(20):
    try:
        kept.append(lazy.collect())
    except pl.exceptions.ComputeError as error:
        assert sys.argv[2] == "alone" and "import dpfast.integrations.polars_plugin first" in str(error)
from dpfast.integrations.polars_plugin import laplace
laplace(pl.col("n"), 1.0)
del kept
gc.collect()
assert lazy.collect().height == 4_000_000
"""


@pytest.mark.parametrize("way", ["imported", "alone"])
def test_a_query_from_elsewhere(way, tmp_path):
    """The module's import is enough for it; and what it drew before is given back to where it came from."""
    if library().path.parent.name != "dpfast":
        pytest.skip("the library is not kept")
    lazy = pl.LazyFrame({"n": np.zeros(4_000_000, np.int64)}).select(laplace(pl.col("n"), 2.0**24.9))
    (tmp_path / "plan").write_bytes(lazy.serialize())
    ended = run(ELSEWHERE, os.fspath(tmp_path / "plan"), way)
    assert (ended.returncode, ended.stderr) == (0, "")
