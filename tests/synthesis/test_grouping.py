"""Rare values that count as one: sums are kept, values come back by their shares, and a row is in one cell still."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpfast.synthesis.graphical.grouping import Axis, Grouping, deviations_of
from dpfast.testing import SeededRandom


def some_grouping():
    noisy = [np.array([50.0, 1.0, -3.0, 70.0, 2.0]), np.array([9.0, 80.0, 90.0]), np.array([1.0, 2.0])]
    model = [np.array([50.0, 1.0, 0.0, 70.0, 3.0]), np.array([9.0, 80.0, 90.0]), np.array([1.0, 3.0])]
    return Grouping(tuple(Axis.of(*own, 10.0) for own in zip(noisy, model, strict=True)))


def test_one_rare_value_stands_alone_and_all_of_them_may_be_one():
    grouping = some_grouping()
    assert grouping.sizes == (3, 3, 1)
    assert [axis.rare.tolist() for axis in grouping.axes] == [[1, 2, 4], [], [0, 1]]
    np.testing.assert_allclose(grouping.axes[0].shares, [0.25, 0.0, 0.75], atol=1e-8)
    np.testing.assert_allclose(deviations_of(grouping.axes[0], 2.0), [2.0, 2.0, 2.0 * 3**0.5])


@pytest.mark.parametrize("attributes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_groups_have_the_sums_of_their_values_and_spread_them_again(attributes):
    grouping, generator = some_grouping(), np.random.default_rng(1)
    shape = [grouping.axes[a].values for a in attributes]
    exact = generator.integers(0, 100, shape)
    expected = np.zeros([grouping.sizes[a] for a in attributes], np.int64)
    for cell in itertools.product(*map(range, shape)):
        group = tuple(int(grouping.axes[a].groups[value]) for a, value in zip(attributes, cell, strict=True))
        expected[group] += exact[cell]
    grouped = grouping.counts(attributes, exact.reshape(-1))
    assert grouped.tolist() == expected.reshape(-1).tolist()
    spread = grouping.spread(attributes, grouped.astype(np.float64))
    assert spread.shape == tuple(shape)
    assert grouping.counts(attributes, spread.reshape(-1)) == pytest.approx(grouped)
    alone = [cell for cell in itertools.product(*map(range, shape)) if _all_alone(grouping, attributes, cell)]
    assert all(spread[cell] == exact[cell] for cell in alone)
    rest = float(exact.sum() - sum(exact[cell] for cell in alone))
    assert grouping.grouped_share(attributes, grouped.astype(np.float64)) == rest


def _all_alone(grouping, attributes, cell):
    return all(value in grouping.axes[a].kept for a, value in zip(attributes, cell, strict=True))


def test_a_row_moves_one_grouped_cell_by_one():
    grouping, exact = some_grouping(), np.zeros(15, np.int64)
    for cell in range(15):
        moved = exact.copy()
        moved[cell] += 1
        difference = grouping.counts((0, 1), moved) - grouping.counts((0, 1), exact)
        assert np.abs(difference).sum() == 1


@pytest.mark.parametrize("records", [0, 1, 9, 4000])
def test_records_of_a_group_get_its_values_by_their_shares(records):
    """Each value's number is its share, rounded down or up."""
    grouping = some_grouping()
    codes = np.zeros((3, records), np.uint32)
    codes[0] = np.arange(records) % 3
    drawn = grouping.draw(codes, SeededRandom(3))
    assert drawn.shape == codes.shape
    assert (drawn[1] == codes[1]).all()
    together = drawn[0][codes[0] == 2]
    assert (drawn[0][codes[0] == 0] == 0).all()
    assert (drawn[0][codes[0] == 1] == 3).all()
    assert set(together.tolist()) <= {1, 2, 4}
    assert abs(int((together == 4).sum()) - 0.75 * together.size) <= 1
    assert abs(int((drawn[2] == 1).sum()) - 0.75 * records) <= 1
    assert (codes[0] == np.arange(records) % 3).all(), "what was given stays as it was"


def test_shares_hold_on_average():
    """Of one record a value is drawn as often as its share says. False-failure rate below 1e-11: seven deviations."""
    grouping = some_grouping()
    codes = np.array([[2], [0], [0]], np.uint32)
    source = SeededRandom(6)
    found = np.mean([grouping.draw(codes, source)[2, 0] == 1 for _ in range(2_000)])
    assert abs(found - grouping.axes[2].shares[1]) < 7 * 0.5 / 2_000**0.5
