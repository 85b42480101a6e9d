"""Products of strategies, the parts of workloads that they answer, and the search for the best."""

from __future__ import annotations

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.strategies.axes import terms_of
from dpfast.strategies.axis_search import best_product
from dpfast.strategies.weighting import best_weights, ladder, largest_weight
from dpfast.testing import SeededRandom

from .dense import matrix_of, parts_like

made, workloads = dpf.strategies, dpf.workloads

PRODUCTS = {
    "hierarchies": made.product(made.hierarchy(4, 2), made.hierarchy(6, (3, 2), weights=(2, 1, 3))),
    "three": made.product(made.identity(3), made.wavelet(4), made.hierarchy(2, 2, root=True)),
    "square roots": made.product(made.square_root(5), made.square_root(4)),
    "one": made.product(made.hierarchy(8, 2)),
}
every = pytest.mark.parametrize("strategy", PRODUCTS.values(), ids=PRODUCTS)


def asked_of(shape):
    asked = [
        workloads.identity(shape),
        workloads.total(shape),
        workloads.random_rectangles(shape, 40, 2),
        workloads.kronecker(*(workloads.prefix(size) for size in shape)),
        workloads.marginals(shape, k=1),
        workloads.marginals(shape, k=1) + workloads.total(shape),
        workloads.matrix(np.arange(2 * np.prod(shape)).reshape(2, *shape) % 5),
    ]
    if len(shape) > 2:
        both = workloads.kronecker(workloads.marginals(shape[:2], k=1), workloads.prefix(shape[2]))
        asked += [both, workloads.kronecker(workloads.prefix(shape[0]), workloads.marginals(shape[1:], k=1))]
    return asked


@every
def test_errors_and_variances_are_those_of_the_matrices(strategy):
    A = matrix_of(strategy).astype(float)
    covariance = np.linalg.inv(A.T @ A)
    for asked in asked_of(strategy.shape):
        W = asked.rows(0, len(asked)).astype(float)
        true = np.einsum("qi,ij,qj->q", W, covariance, W)
        np.testing.assert_allclose(strategy.variances(asked), true, rtol=1e-6, atol=1e-12, err_msg=repr(asked))
        assert strategy.error(asked) == pytest.approx(true.sum(), rel=1e-6), asked


@every
def test_terms_have_the_workloads_rows_in_their_order(strategy):
    for asked in asked_of(strategy.shape):
        terms = terms_of(asked)
        if terms is not None:
            rows = []
            for term in terms:
                product = np.ones((1, 1))
                for axis in term:
                    product = np.kron(product, axis.rows(0, len(axis)))
                rows.append(product)
            assert (np.concatenate(rows) == asked.rows(0, len(asked))).all(), asked


@every
def test_noise_goes_back_to_the_cells_by_least_squares(strategy, seed):
    A = matrix_of(strategy).astype(float)
    noisy = np.random.default_rng(seed).normal(0.0, 1e6, len(A))
    found = strategy.reconstruct(parts_like(strategy, noisy))
    np.testing.assert_allclose(found.reshape(-1), np.linalg.lstsq(A, noisy, rcond=None)[0], rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "workload",
    [
        workloads.random_rectangles((32, 20), 100, 1),
        workloads.kronecker(workloads.prefix(64), workloads.identity(5)),
        workloads.marginals((4, 3, 5), k=2),
    ],
    ids=repr,
)
def test_the_best_product_is_better_than_those_of_one_kind(workload, order):
    best = best_product(workload, order)

    def cost(strategy):
        return strategy.norm(order) ** 2 * strategy.error(workload)

    others = [made.identity(workload.shape)]
    others += [made.product(*(made.hierarchy(n, b) for n in workload.shape)) for b in (2, 4, 16)]
    if best is None:
        best = others[0]
    assert cost(best) <= min(map(cost, others)) * (1 + 1e-9)
    assert best.largest_count >= 2**31


def test_the_best_product_of_one_factor_a_dimension_is_each_dimensions_own():
    best = best_product(workloads.kronecker(workloads.prefix(64), workloads.identity(5)), 2)
    alone = best_product(workloads.kronecker(workloads.prefix(64), workloads.total(1)), 2)
    assert best.factors[1].name == "identity"
    assert best.factors[0].error(workloads.prefix(64)) * best.factors[0].l2_squared == pytest.approx(
        alone.factors[0].error(workloads.prefix(64)) * alone.factors[0].l2_squared, rel=1e-3
    )


@pytest.mark.parametrize("kind", [workloads.prefix, workloads.all_range])
def test_weights_under_gaussian_noise_are_the_best(kind):
    """The least error in closed form: (sum over groups of sqrt(E c))**2, pooling neighbours until E / c increases."""
    asked, sizes = kind(512), ladder(512, 2)
    details = made.nested.details_of(asked, sizes)
    costs = [1 / size - 1 / above for size, above in zip(sizes, [*sizes[1:], np.inf], strict=True)]
    groups = []
    for detail, cost in zip(details, costs, strict=True):
        groups.append([detail, cost])
        while len(groups) > 1 and groups[-2][0] * groups[-1][1] >= groups[-1][0] * groups[-2][1]:
            last = groups.pop()
            groups[-1] = [groups[-1][0] + last[0], groups[-1][1] + last[1]]
    least = sum(np.sqrt(detail * cost) for detail, cost in groups) ** 2
    best = made.hierarchy(512, (2,) * 9)
    found, weights = best_weights(details, sizes, 2, 255)
    best = type(best)(512, found, weights, "best")
    assert least * (1 - 1e-9) <= best.l2_squared * best.error(asked) <= 1.001 * least


def test_weights_leave_room_for_counts():
    for shape in [(10,), (10**6,), (10**9,), (256, 256), (2,) * 20, (1000, 1000, 1000)]:
        weight = largest_weight(shape)
        assert weight >= 1
        assert weight == 1 or weight ** len(shape) * np.prod(np.array(shape, float)) <= 2**31


def test_a_release_in_two_dimensions():
    workload = workloads.random_rectangles((50, 40), 300, 3)
    counts = np.random.default_rng(1).integers(0, 100, (50, 40))
    release = dpf.matrix_mechanism(counts, workload, rho=1, random=SeededRandom(1))
    assert release.histogram.shape == (50, 40)
    errors = release.answers - workload.answer(counts)
    # 300 answers: their mean square is within a factor of 4 of its mean but with probability below 1e-6.
    assert 0.25 < (errors**2).mean() / release.rmse**2 < 4
    assert release.scale.shape == (300,)
    assert np.sqrt((release.scale**2).mean()) == pytest.approx(release.rmse)


@pytest.mark.parametrize("factors", [(), (3,), (made.identity((2, 3)),), (PRODUCTS["one"],)])
def test_what_is_no_product_is_refused(factors):
    with pytest.raises(ParameterError, match="factors"):
        made.product(*factors)


def test_products_whose_sums_leave_int64_are_refused():
    """Else all counts would be moved to a small one, or to 0, and the answers be of another histogram."""
    steps = made.square_root(1024)
    with pytest.raises(ParameterError, match="counts up to 65,536 fit"):
        made.product(steps, steps)
    assert made.product(steps, made.hierarchy(1024, 16)).largest_count > 2**16
