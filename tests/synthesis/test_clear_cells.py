"""Cells that are clearly not empty: which they are."""

from __future__ import annotations

import numpy as np
import pytest

from dpfast.synthesis.histograms.clear_cells import clear_cells


def test_a_cell_is_clear_where_at_least_half_of_it_is_no_noise():
    cells, noisy = np.array([30.0, 14.0, 15.0, 0.0]), np.array([30.0, 30.0, 30.0, 30.0])
    assert clear_cells(cells, noisy, 5.0).tolist() == [30.0, 0.0, 15.0, 0.0]


@pytest.mark.parametrize("noisy", [-40.0, 0.0, 0.1])
def test_what_is_expected_of_an_empty_cell_is_left_out(noisy):
    """Over many cells it would add up."""
    shape = (8, 16)
    assert not clear_cells(np.full(shape, 0.1), np.full(shape, noisy), 5.0).any()
