"""Cells that are clearly not empty: which they are."""

from __future__ import annotations

import numpy as np
import pytest

from dpfast.synthesis.histograms.clear_cells import clear_cells


def test_a_cell_is_clear_where_at_least_half_of_it_is_no_noise():
    cells, noisy = np.array([30.0, 14.0, 15.0, 0.0]), np.array([30.0, 30.0, 30.0, 30.0])
    assert clear_cells(cells, noisy, 20.0).tolist() == [30.0, 0.0, 15.0, 0.0]


@pytest.mark.parametrize("noisy", [-40.0, 0.0, 0.1])
def test_what_is_expected_of_an_empty_cell_is_left_out(noisy):
    """Over many cells it would add up."""
    shape = (8, 16)
    assert not clear_cells(np.full(shape, 0.1), np.full(shape, noisy), 5.0).any()


def test_what_is_surely_in_the_other_cells_is_spread_over_them():
    """1,000 cells of noise 5: their sum has 158, of which four are 632."""
    cells = np.zeros((25, 40))
    cells[3, 4] = 900.0
    noisy = cells + 2.0
    even = clear_cells(cells, noisy, 5.0)
    assert even[3, 4] == 900.0
    assert np.unique(even).tolist() == [2.0, 900.0]
    few = clear_cells(cells, cells + 0.6, 5.0)
    assert few.sum() == 900.0, "as far as they tell, 600 are nothing"
    assert clear_cells(cells, noisy, 5.0, (2_900.0, 1e12)).sum() == pytest.approx(even.sum(), rel=1e-6)
    known = clear_cells(cells, cells + 0.6, 5.0, (1_600.0, 100.0))
    assert known.sum() == pytest.approx(1_600.0, rel=0.02)
    exact = clear_cells(cells, noisy, 5.0, (900.0, 0.0))
    assert exact.sum() == 900.0, "two thousand by their noise, none by an exact number of records"


@pytest.mark.parametrize("records", [None, (0.0, 0.0), (-1e6, 1.0), (1e18, 1e30)])
def test_any_cells_give_none_below_nothing(records):
    for cells in (np.zeros(1), np.full(7, 50.0), np.array([0.0, 1e15])):
        with np.errstate(all="raise"):
            found = clear_cells(cells, cells - 3.0, 2.0, records)
        assert (found >= 0.0).all()
        assert np.isfinite(found).all()
