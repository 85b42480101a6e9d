"""Workloads over more cells than any array has: what depends on no data is there, all else is refused at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError

SHAPE = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
make = dpf.workloads
KINDS = {
    "marginals": lambda shape: make.marginals(shape, k=2),
    "sets": lambda shape: make.marginals(shape, attributes=[(0, 1), (2,), ()]),
    "total": make.total,
    "rectangles": lambda shape: make.random_rectangles(shape, count=7, seed=3),
    "ranges": lambda shape: make.kronecker(*[(make.prefix if n in (9, 5) else make.total)(n) for n in shape]),
    "union": lambda shape: make.total(shape) + make.marginals(shape, k=1),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [SHAPE, (1_000,) * 20, (2,) * 63])
def test_what_depends_on_no_data_is_there(kind, shape):
    workload = KINDS[kind](shape)
    assert workload.cells == math.prod(shape) > 2**59
    assert workload.shape == shape
    assert len(workload) >= 1
    assert workload.range[1] == 1.0
    assert workload.binary
    assert repr(workload)
    if workload.groups is not None:
        assert workload.groups[-1] == len(workload)
    if len(workload) < 10**5:
        assert workload.frame().height == len(workload)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "call",
    [
        lambda workload: workload.answer([1, 2, 3]),
        lambda workload: workload.transposed(np.zeros(len(workload))),
        lambda workload: workload.rows(0, 1),
        lambda workload: workload.query(0),
        lambda workload: list(workload.blocks()),
        lambda workload: workload.gram(),
        lambda workload: dpf.mwem([1], workload, epsilon=1.0),
        lambda workload: dpf.matrix_mechanism([1], workload, epsilon=1.0),
        lambda workload: dpf.projection_mechanism([1], workload, epsilon=1.0),
        lambda workload: dpf.estimate_histogram([1], workload, epsilon=1.0),
        lambda workload: dpf.strategies.optimal(workload),
    ],
)
def test_what_needs_cells_is_refused_at_once(kind, call):
    workload = KINDS[kind](SHAPE)
    with pytest.raises(ParameterError, match="641,263,392,000,000,000 cells"):
        call(workload)


def test_a_product_of_more_factors_than_numpy_has_axes():
    workload = make.kronecker(make.prefix(3), *[make.total(5)] * 98, make.prefix(4))
    frame = workload.frame()
    assert frame.shape == (12, 200)
    # The last factor's queries run fastest, as in a product of few.
    few = make.kronecker(make.prefix(3), make.prefix(4)).frame()
    ends = [*frame.columns[:2], *frame.columns[-2:]]
    assert frame.select(ends).rows() == few.rows()
    with pytest.raises(ParameterError, match="cells"):
        workload.rows(0, 1)


def test_nothing_is_charged_for_a_histogram_that_cannot_be():
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(ParameterError):
        dpf.mwem(lambda: 1 / 0, make.marginals(SHAPE, k=1), epsilon=1.0, ledger=ledger)
    assert ledger.spent.epsilon == 0.0


def test_errors_of_marginals_are_known_beforehand():
    """Measured with Gaussian noise of deviation s, all 91 pairs once: each count's variance is below s**2."""
    pairs = make.marginals(SHAPE, k=2)
    tables = dpf.strategies.marginals(SHAPE, pairs.attributes)
    assert (tables.l1, tables.l2_squared, len(tables)) == (91, 91, len(pairs))
    variances = tables.variances(pairs)
    assert variances.shape == (len(pairs),)
    assert 0.0 < variances.min() <= variances.max() <= 1.0
    assert tables.error(pairs) == pytest.approx(variances.sum(), rel=1e-9)
    # The same in closed form as by matrices, where these are small.
    small = (4, 3, 2)
    few = make.marginals(small, k=2)
    strategy = dpf.strategies.marginals(small, few.attributes)
    rows = few.rows(0, len(few)).astype(float)
    expected = np.diag(rows @ np.linalg.pinv(rows.T @ rows) @ rows.T)
    np.testing.assert_allclose(strategy.variances(few), expected, rtol=1e-9)


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-9}])
def test_a_strategy_is_chosen_with_its_error(budget):
    choice = dpf.strategies.choose(make.marginals(SHAPE, k=2), **budget)
    assert choice.best.rmse > 0.0
    assert choice.best.strategy.shape == SHAPE
    with pytest.raises(ParameterError, match="cells"):
        dpf.strategies.choose(make.random_rectangles(SHAPE, 3, 1), **budget)


def test_answers_of_records_are_counted_without_cells():
    generator = np.random.default_rng(4)
    codes = [generator.integers(0, size, 500) for size in SHAPE]
    domain = dpf.Domain({f"x{place}": size for place, size in enumerate(SHAPE)})
    pairs = make.marginals(domain.shape, k=2)
    frame = dict(zip(domain.names, codes, strict=True))
    for table, (a, b) in zip(domain.open(frame).count_marginals(pairs.attributes), pairs.attributes, strict=True):
        assert (table == np.bincount(codes[a] * SHAPE[b] + codes[b], minlength=table.size)).all()
