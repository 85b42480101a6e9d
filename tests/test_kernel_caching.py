"""Compiled code on disk is that of the signature for which it is asked, whoever else compiles at the same time.

And a kernel that is its file's own, which has no way in from Python, can be called from there.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

import numpy as np
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

import dpfast.kernels
from dpfast.kernels.caching import _FilesBySignature, keep_signatures_apart
from dpfast.kernels.compilation import kernel


class Kept:
    """What a dispatcher has of its cache."""

    def __init__(self, folder, stamp="stamp"):
        self._cache = type("Cache", (), {"_cache_file": IndexDataCacheFile(str(folder), "kernel-1.py311", stamp)})()


def files(folder, stamp="stamp"):
    """Return the files of a process, in the middle of its work: it has read the list of what is there."""
    kept = Kept(folder, stamp)
    keep_signatures_apart(kept)
    found = kept._cache._cache_file
    assert type(found) is _FilesBySignature
    before = found._load_index()
    calls = iter([before])
    found._load_index = lambda: next(calls, None) or type(found)._load_index(found)
    return found


def test_two_processes_that_compile_at_once_keep_their_own(tmp_path):
    one, other = files(tmp_path), files(tmp_path)
    one.save(("int64",), "code of int64")
    other.save(("float64",), "code of float64")
    reader = files(tmp_path)
    assert reader.load(("int64",)) in (None, "code of int64")
    assert reader.load(("float64",)) == "code of float64"


def test_numbered_files_would_be_mixed_up(tmp_path):
    """The mutant: Numba's own way gives the code of integers for floats."""
    one, other = (IndexDataCacheFile(str(tmp_path), "kernel-1.py311", "stamp") for _ in range(2))
    other._load_index = dict
    other.save(("float64",), "code of float64")
    one._load_index = dict
    one.save(("int64",), "code of int64")
    other._save_index({("float64",): other._data_name(1)})
    assert IndexDataCacheFile(str(tmp_path), "kernel-1.py311", "stamp").load(("float64",)) == "code of int64"


def test_sources_of_two_times_have_files_of_their_own(tmp_path):
    old, new = files(tmp_path, "old"), files(tmp_path, "new")
    new.save(("int64",), "new code")
    old.save(("int64",), "old code")
    assert files(tmp_path, "new").load(("int64",)) in (None, "new code")


def test_what_was_kept_is_found_again(tmp_path):
    made = files(tmp_path)
    for signature in ("int64", "float64", "int64"):
        made.save((signature,), f"code of {signature}")
    assert [files(tmp_path).load((signature,)) for signature in ("int64", "float64", "int8")] == [
        "code of int64",
        "code of float64",
        None,
    ]
    assert len(list(tmp_path.glob("*.nbc"))) == 2


def test_every_kernel_is_kept_so():
    for module in pkgutil.walk_packages(dpfast.kernels.__path__, "dpfast.kernels."):
        for one in vars(import_module(module.name)).values():
            if isinstance(one, Dispatcher) and type(one._cache).__name__ != "NullCache":
                assert type(one._cache._cache_file) is _FilesBySignature, one


def test_another_cache_is_left_alone():
    keep_signatures_apart(object())
    keep_signatures_apart(type("Dispatcher", (), {"_cache": None})())
    compiled = kernel(lambda values: values.sum())
    assert compiled(np.arange(4)) == 6


@kernel
def _twice(values):
    return 2 * values


@kernel
def four_times(values):
    return _twice(_twice(values))


def test_python_may_call_what_kernels_call():
    """Compiled here or found on disk: were the call not led through another, it would jump to where nothing is."""
    for dispatcher in (_twice, kernel(_twice.py_func)):
        assert dispatcher.targetoptions["no_cpython_wrapper"]
        for _ in range(2):
            assert dispatcher(3) == 6
            assert dispatcher(1.5) == 3.0
            assert four_times(3) == 12
        assert len(dispatcher.signatures) == 2
    assert not four_times.targetoptions["no_cpython_wrapper"]


def test_there_is_one_way_into_a_kernel_at_most():
    """A name of a file's own has none. Each way more is compiled, and kept, with every kernel."""
    seen = 0
    for module in pkgutil.walk_packages(dpfast.kernels.__path__, "dpfast.kernels."):
        for one in vars(import_module(module.name)).values():
            if isinstance(one, Dispatcher) and one._cache.cache_path:
                seen += 1
                assert one.targetoptions["no_cfunc_wrapper"], one
                assert one.targetoptions["no_cpython_wrapper"] == one.__name__.startswith("_"), one
    assert seen > 300
