"""Compiled code on disk is that of the signature for which it is asked, whoever else compiles at the same time.

And a kernel that is its file's own, which has no way in from Python, can be called from there.
"""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import textwrap
from importlib import import_module

import numpy as np
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

import dpfast.kernels
from dpfast.kernels.caching import _FilesBySignature, _LightCache, keep_signatures_apart, load_lightly
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
                assert type(one._cache) is _LightCache, one
                assert type(one._cache._cache_file) is _FilesBySignature, one


def test_another_cache_is_left_alone():
    for change in (keep_signatures_apart, load_lightly):
        change(object())
        change(type("Dispatcher", (), {"_cache": None})())
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


def test_all_that_is_kept_is_loaded_without_the_compiler():
    """A symbol that only the compiler would bring ends the process. What a process may find on the disk differs from
    run to run; the first lines see to it that noise is there.
    """
    program = """
    import pkgutil, sys
    from importlib import import_module
    import numpy as np
    import dpfast as dpf
    import dpfast.kernels
    from numba.core.dispatcher import Dispatcher

    if sys.argv[1:] == ["first"]:
        dpf.laplace(np.arange(10), scale=2.0)
        dpf.gaussian(np.arange(10.0), scale=2.0)
        raise SystemExit
    loaded = 0
    for module in pkgutil.walk_packages(dpfast.kernels.__path__, "dpfast.kernels."):
        for one in vars(import_module(module.name)).values():
            # What is of the plugin calls functions that only its library has.
            if isinstance(one, Dispatcher) and one._cache.cache_path and ".plugin." not in module.name:
                for signature, *_ in list(one._cache._cache_file._load_index()):
                    loaded += one._cache.load_overload(signature, one.targetctx) is not None
    print(loaded)
    """
    for arguments in (["first"], []):
        command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5


def test_a_function_that_is_not_kept_is_compiled_after_one_that_is():
    """The compiler asks for what it needs itself, also of what users compile."""
    program = """
    import numba, numpy as np
    import dpfast as dpf
    from numba.experimental import jitclass

    dpf.laplace(np.arange(10), scale=2.0)
    of_users = numba.njit(lambda a: np.sort(a)[::-1].cumsum())
    assert of_users(np.arange(4)).tolist() == [3, 5, 6, 6]

    @jitclass([("value", numba.float64)])
    class OfUsers:
        def __init__(self, value):
            self.value = value

    assert OfUsers(2.0).value == 2.0
    """
    for _ in range(2):
        subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=1200, check=True)
