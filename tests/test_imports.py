"""What a new process imports, which decides how long it takes to start: nothing that it does not use."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

#: Libraries that take long to import.
LARGE = {"numba", "polars", "pyarrow", "numpy", "flint", "scipy", "matplotlib", "pandas"}


def imported(code):
    """Return the modules that a new process has imported after some code."""
    program = textwrap.dedent(code) + "\nimport sys\nprint('imported', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("imported")[2].split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["release", "--help"], ["ledger", "--help"]])
def test_the_command_line_helps_without_large_libraries(arguments):
    program = f"""
    from dpfast.cli import main
    try:
        main({arguments})
    except SystemExit as ended:
        assert not ended.code
    """
    assert not imported(program) & LARGE


def test_the_package_imports_none_of_them():
    assert not imported("import dpfast") & LARGE


def test_noise_on_an_array_imports_no_columns_of_other_kinds():
    program = "import numpy as np, dpfast as dpf; dpf.laplace(np.arange(1000), 2.0)"
    assert not imported(program) & {"polars", "pyarrow", "pandas", "matplotlib", "scipy.linalg"}
    # The second time the kernel is on the disk, and nothing is compiled.
    assert not imported(program) & {"numba.np.arraymath", "numba.np.linalg"}


def test_a_plan_loads_no_compiled_function():
    found = imported(
        """
        import dpfast as dpf, polars as pl
        rows = pl.LazyFrame({"k": [1], "u": [2]})
        limits = dict(max_groups=1, max_rows_per_group=1)
        dpf.plan(rows, by="k", n=dpf.count(), privacy_unit="u", epsilon=1, delta=1e-7, **limits)
        """
    )
    assert not found & {"numba.np.arraymath", "scipy.linalg"}


@pytest.mark.parametrize("missing", [False, True])
def test_numba_asks_for_a_blas_when_it_matters(missing):
    """Inner products of floats within NumPy's functions come from a BLAS where there is one, as without dpfast."""
    pytest.importorskip("scipy")
    found = imported(
        f"""
        import sys
        import numpy as np, dpfast as dpf
        if {missing}:
            sys.modules["scipy.linalg.cython_blas"] = None
        dpf.laplace(np.arange(10), 2.0)
        assert "scipy.linalg" not in sys.modules
        import numba
        from numba.np import arraymath, linalg

        assert linalg.ensure_blas is arraymath.ensure_blas and linalg.ensure_blas.__module__ == "numba.np.linalg"
        assert bool(arraymath._HAVE_BLAS) is arraymath._check_blas() is (not {missing})
        convolved = numba.njit(lambda a, b: np.convolve(a, b))(np.arange(4.0), np.arange(3.0))
        assert convolved.tolist() == [0.0, 0.0, 1.0, 4.0, 7.0, 6.0]
        if not {missing}:
            assert numba.njit(lambda a, b: np.dot(a, b))(np.arange(4.0), np.arange(4.0)) == 14.0
        """
    )
    assert missing or "scipy.linalg" in found


def test_numba_that_has_asked_already_is_left_alone():
    imported(
        """
        import numba, numpy as np
        assert numba.njit(lambda a: a.sum())(np.arange(3)) == 3
        from numba.np import arraymath
        before = arraymath._HAVE_BLAS
        import dpfast as dpf
        dpf.laplace(np.arange(10), 2.0)
        assert arraymath._HAVE_BLAS is before
        """
    )
