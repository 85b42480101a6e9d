"""Libraries beside ours whose import fails, in whatever way: the others are measured, and a line says why."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import contestants
from benchmarks.contestants import diffprivlib, opendp, python_dp
from dpfast.bench import running
from dpfast.bench.cases import Case
from dpfast.cli import main
from tests.bench.made_up import measured

RAISED = {
    "raise RuntimeError('built for\\n another NumPy')": "raised RuntimeError: built for another NumPy",
    "raise SystemExit(3)": "raised SystemExit: 3",
    "import sys\nsys.exit()": "raised SystemExit",
    "raise ImportError('no symbol')": "raised ImportError: no symbol",
    "class Odd(BaseException): pass\nraise Odd": "raised Odd",
    "1 +": "raised SyntaxError: invalid syntax",
}


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Write libraries whose import runs these lines."""
    monkeypatch.setattr(contestants, "FAILED", {})
    monkeypatch.syspath_prepend(tmp_path)

    def write(lines):
        for root in ("opendp", "diffprivlib", "pydp"):
            for name in [name for name in sys.modules if name.partition(".")[0] == root]:
                monkeypatch.delitem(sys.modules, name)
            (tmp_path / root).mkdir()
            (tmp_path / root / "__init__.py").write_text(lines)

    return write


@pytest.mark.parametrize("lines", RAISED)
def test_a_library_whose_import_raises_is_left_out_with_a_line(broken, lines, monkeypatch):
    broken(lines)
    values = np.arange(10.0)
    for adapter in (opendp, diffprivlib, python_dp):
        assert adapter.noise(values, "laplace", 10.0) == {}
        assert adapter.statistics(values, (0.0, 10.0), 1.0) == {}
        assert adapter.noisy(1.0) is None
    told = contestants.failed_lines()
    assert [line.split()[2] for line in told] == ["OpenDP", "diffprivlib", "python-dp"]
    assert f"not run: OpenDP (its import {RAISED[lines]}" in told[0]
    assert "mend it by pip install opendp)" in told[0]
    case = Case("speed", "a", lambda wish: measured([1.0] * 7, [2.0] * 7))
    monkeypatch.setattr(running, "cases_of", lambda suites, wish, only="": [case])
    done = CliRunner().invoke(main, ["bench"])
    assert done.exit_code == 0
    assert told[0] in done.stdout


def test_an_interrupt_while_a_library_is_imported_is_no_failure_of_it(broken):
    broken("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        opendp.noise(np.arange(10.0), "laplace", 10.0)
    assert contestants.failed_lines() == []


def test_what_is_not_installed_has_no_line_of_a_failure(monkeypatch):
    monkeypatch.setattr(contestants, "FAILED", {})
    monkeypatch.setattr(contestants, "find_spec", lambda name: None)
    assert contestants.imported("no_such_library_at_all.part") is None
    assert contestants.failed_lines() == []
