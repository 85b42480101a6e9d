"""Linear regression: what one row moves, what is left out, how far coefficients are off, and scikit-learn's ways."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.accounting.accountants import basic, zcdp
from dpfast.accounting.budget import read_budget
from dpfast.accounting.events import Gaussian
from dpfast.errors import BudgetExceededError, ColumnError, LedgerError, ParameterError
from dpfast.learning.linear_regression import LinearRegression, NotFittedError
from dpfast.learning.normal_equations import Products, product_sensitivity, solve
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.testing import SeededRandom


@pytest.fixture
def no_noise(monkeypatch):
    monkeypatch.setattr(IntegerNoise, "add", lambda self, values, random, threads=1: values)


def triangle(row):
    outer = np.outer(row, row)
    return outer[np.triu_indices(len(row))]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(
    ("features", "intercept", "norm"), [(1, True, None), (3, True, None), (2, False, None), (3, True, 1.3)]
)
def test_no_row_moves_the_products_further(features, intercept, norm, neighbors, seed):
    """All corners and thousands of random rows against the planned L1 and L2 (soundness rule 14); corners reach L2."""
    products = Products.planned(
        features, intercept=intercept, norm=norm, neighbors=neighbors, budget=read_budget(1.0, None, None)
    )
    entries = features + intercept + 1
    limit = Fraction(entries - 1) if norm is None else min(Fraction(norm) ** 2, Fraction(entries - 1))
    planned = product_sensitivity(entries, products.bits, limit, neighbors)
    generator = np.random.default_rng(seed)
    corners = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=features + 1)))
    wild = generator.choice([-1, 1], (2000, features + 1)) * generator.random((2000, features + 1)) ** 0.2
    given = np.concatenate([corners, wild])
    rows = products.steps(given[:, :-1], given[:, -1:]).astype(np.int64).astype(object)
    moved = np.array([triangle(row) for row in rows])
    if neighbors == "replace":
        first, second = generator.integers(0, len(moved), (2, 3000))
        pairs = [(i, j) for i, j in itertools.product(range(len(corners)), repeat=2)][:: 1 if features < 3 else 7]
        # A row in which something is missing counts for nothing.
        replaced = [moved[i] - moved[j] for i, j in pairs]
        moved = np.concatenate([moved, moved[first] - moved[second], np.array(replaced)])
    l2, l1 = (moved**2).sum(axis=1).max(), np.abs(moved).sum(axis=1).max()
    assert l1 <= planned.l1
    assert l2 <= planned.l2_squared
    if norm is None:
        assert l1 == planned.l1
    if neighbors == "add_remove" and norm is None:
        assert l2 == planned.l2_squared
        # Without the diagonal's own share, s**2 / 2, a bound would be broken here.
        assert l2 > (entries * 4**products.bits) ** 2 // 2
    else:
        assert l2 > 0.5 * planned.l2_squared


@pytest.mark.parametrize("entries", [1, 2, 3, 4, 5])
def test_replacing_a_row_moves_no_further_than_adding_one(entries, seed):
    """All pairs of sign vectors with zeros, and a search uphill from random pairs, against the planned L1."""

    def moved(z, w):
        return np.abs(triangle(z) - triangle(w)).sum()

    planned = product_sensitivity(entries, 4, Fraction(entries - 1), "replace")
    assert planned.l1 == product_sensitivity(entries, 4, Fraction(entries - 1), "add_remove").l1
    most = planned.l1 / 4**4
    rows = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=entries)))
    upper = np.triu_indices(entries)
    products = np.array([np.outer(row, row)[upper] for row in rows])
    largest = max(np.abs(products - one).sum(axis=1).max() for one in products)
    assert largest == most == entries * (entries + 1) / 2
    generator = np.random.default_rng(seed)
    for _ in range(30):
        pair = generator.uniform(-1, 1, (2, entries))
        best = moved(*pair)
        for step in np.repeat([1.0, 0.3, 0.1], 60):
            other = np.clip(pair + generator.normal(0, step, pair.shape) * (generator.random(pair.shape) < 0.5), -1, 1)
            if moved(*other) > best:
                pair, best = other, moved(*other)
        assert best <= most * (1 + 1e-12)


@pytest.mark.parametrize("norm", [0.3, 1.0, 1.5, 2.0])
def test_limited_rows_move_no_further_by_replacement(norm, seed):
    """Pairs of rows at the limit, in many directions: the planned L1 is the lesser of two bounds, never exceeded."""
    entries, generator = 5, np.random.default_rng(seed)
    planned = product_sensitivity(entries, 16, Fraction(norm) ** 2, "replace")
    s = norm**2 + 1
    assert planned.l1 / 4**16 == pytest.approx(min((entries + 1) * s, entries * (entries + 1) / 2), rel=1e-6)
    for _ in range(3000):
        rows = np.sign(generator.normal(size=(2, entries - 1))) * generator.random((2, entries - 1)) ** 0.1
        rows *= np.minimum(1.0, norm / np.linalg.norm(rows, axis=1, keepdims=True))
        z, w = np.column_stack([rows, generator.choice([-1, 1], 2)])
        assert np.abs(triangle(z) - triangle(w)).sum() <= planned.l1 / 4**16


def test_rows_are_scaled_down_to_the_limit_exactly(seed):
    generator = np.random.default_rng(seed)
    for norm in (0.3, 1.0, 1.7):
        products = Products.planned(
            4, intercept=True, norm=norm, neighbors="add_remove", budget=read_budget(1.0, None, None)
        )
        features = generator.uniform(-1, 1, (5000, 4)) * 10.0 ** -generator.integers(0, 9, (5000, 1))
        rows = products.steps(features, np.ones((5000, 1))).astype(np.int64).astype(object)
        assert max((row[:-1] ** 2).sum() for row in rows) <= Fraction(norm) ** 2 * 4**products.bits
        assert np.abs(rows[:, -1]).max() <= 2**products.bits


def data(rows, generator, features=3):
    x = generator.normal(size=(rows, features)) * [1.0, 10.0, 0.1][:features] + [0.0, 50.0, 1.0][:features]
    y = 3 + x @ [1.0, -0.2, 8.0][:features] + generator.normal(size=rows) * 0.5
    return x, y


BOUNDS = [(-3.0, 3.0), (20.0, 80.0), (0.7, 1.3)]
TARGETS = (-10.0, 10.0)


@pytest.mark.parametrize("intercept", [True, False])
def test_without_noise_it_is_least_squares_of_what_is_clipped(no_noise, seed, intercept):
    x, y = data(5000, np.random.default_rng(seed))
    x[0] = [np.inf, -np.inf, 1.0]
    model = LinearRegression(BOUNDS, TARGETS, rho=0.5, ridge=0, fit_intercept=intercept).fit(x, y)
    low, high = np.array(BOUNDS).T
    design = np.clip(x, low, high)
    if intercept:
        design = np.column_stack([design, np.ones(len(x))])
    expected = np.linalg.lstsq(design, np.clip(y, *TARGETS), rcond=None)[0]
    np.testing.assert_allclose(model.coef_, expected[:3], rtol=3e-3)
    if intercept:
        assert model.intercept_ == pytest.approx(expected[3], rel=3e-3)
        assert model.score(x[1:], y[1:]) > 0.9
    else:
        assert model.intercept_ == model.intercept_standard_error_ == 0


def test_weights_of_rows_do_not_bias_a_linear_model(no_noise, seed):
    x, _ = data(20_000, np.random.default_rng(seed))
    wide = [(-6.0, 6.0), (0.0, 100.0), (0.4, 1.6)]
    exact = 3 + x @ [1.0, -0.2, 8.0]
    for norm in (0.5, 1.1):
        model = LinearRegression(wide, (-30, 30), rho=0.5, ridge=0, max_row_norm=norm).fit(x, exact)
        np.testing.assert_allclose(model.coef_, [1.0, -0.2, 8.0], rtol=2e-2)


def kinds_of(x, y):
    frame = pl.DataFrame(x, schema=["a", "b", "c"])
    missing = frame.with_columns(pl.when(pl.col("a").is_nan()).then(None).otherwise(pl.col("a")).alias("a"))
    return [
        (x, y),
        (x.tolist(), y.tolist()),
        (np.asfortranarray(x), y.reshape(-1, 1)),
        (frame, pl.Series(y)),
        (missing, pl.Series(y)),
        (pl.concat([missing[:5], missing[5:]], rechunk=False), pa.chunked_array([y[:7], y[7:]])),
        (frame.to_pandas(), pd.Series(y, index=np.arange(len(y))[::-1])),
        (frame.to_arrow(), pa.array(y)),
        (frame.to_arrow().to_batches()[0], pd.Series(y, dtype="Float64")),
    ]


def test_all_kinds_of_tables_are_one(no_noise, seed):
    """Bit for bit; rows in which anything is missing count for nothing."""
    generator = np.random.default_rng(seed)
    x, y = data(500, generator)
    x[3, 0] = np.nan
    results = [LinearRegression(BOUNDS, TARGETS, epsilon=1.0).fit(*given) for given in kinds_of(x, y)]
    beside = np.arange(500) != 3
    results.append(LinearRegression(BOUNDS, TARGETS, epsilon=1.0).fit(x[beside], y[beside]))
    assert {tuple(model.coef_.tolist()) for model in results} == {tuple(results[0].coef_.tolist())}
    assert [hasattr(model, "feature_names_in_") for model in results] == [False] * 3 + [True] * 6 + [False]


def test_features_by_name(no_noise, seed):
    x, y = data(500, np.random.default_rng(seed))
    frame = pl.DataFrame(x, schema=["a", "b", "c"]).with_columns(pl.lit("text").alias("d"))
    by_name = {"c": BOUNDS[2], "a": BOUNDS[0]}
    model = LinearRegression(by_name, TARGETS, epsilon=1.0).fit(frame, y)
    other = LinearRegression([BOUNDS[2], BOUNDS[0]], TARGETS, epsilon=1.0).fit(x[:, [2, 0]], y)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.predict(frame), other.predict(x[:, [2, 0]]))
    assert model.feature_names_in_.tolist() == ["c", "a"]
    for wrong, data_given in (({"none": (0, 1)}, frame), ({"d": (0, 1)}, frame), (by_name, x)):
        ledger = dpf.Ledger(epsilon=1.0)
        with pytest.raises(ColumnError):
            LinearRegression(wrong, TARGETS, epsilon=1.0, ledger=ledger).fit(data_given, y)
        assert ledger.history().is_empty()


@pytest.mark.parametrize(
    "budget", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.01}, {"epsilon": 1e-9}]
)
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_any_data_is_fitted(budget, rows, seed):
    """Nothing at all, one row, missing values alone, constants, what is outside of all bounds: finite, and charged."""
    tables = [np.full((rows, 2), value) for value in (np.nan, np.inf, -np.inf, 0.0, 1e308, 5.0)]
    for number, x in enumerate(tables):
        for more in ({}, {"fit_intercept": False}, {"max_row_norm": 0.5}, {"ridge": 0}):
            model = LinearRegression((-1, 5), (0, 1e150), random=SeededRandom(seed + number), **budget, **more)
            model.fit(x, np.zeros(rows))
            everything = [*model.coef_, model.intercept_, *model.standard_errors_, model.intercept_standard_error_]
            assert np.isfinite(everything).all()


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("budget", [{"epsilon": 0.7}, {"epsilon": 0.7, "delta": 1e-6}, {"rho": 0.01}])
def test_the_event_costs_no_more_than_the_budget(budget, neighbors):
    zero = np.zeros((3, 4))
    model = LinearRegression((-1, 1), (-1, 1), neighbors=neighbors, **budget, random=SeededRandom(1)).fit(
        zero, zero[:, 0]
    )
    if "rho" in budget:
        assert zcdp.cost(model.event_)[0] <= 10**16
    elif isinstance(model.event_, Gaussian):
        from dpfast.mechanisms.noise.calibration import analytic_gaussian_scale

        assert model.event_.scale >= analytic_gaussian_scale(model.event_.sensitivity, 0.7, 1e-6) * (1 - 1e-12)
    else:
        assert basic.cost(model.event_)[0] <= 7 * 10**17


def test_it_is_paid_before_a_value_is_read():
    class Unreadable:
        columns = ("a",)

    ledger = dpf.Ledger(epsilon=1.0, dataset="visits")
    x, y = np.zeros((5, 1)), np.zeros(5)
    model = LinearRegression((0, 1), (0, 1), epsilon=0.75, ledger=ledger, dataset="visits").fit(x, y)
    assert ledger.spent.epsilon == 0.75
    assert model.entry_ == 1
    with pytest.raises(BudgetExceededError):
        model.fit(x, y)
    with pytest.raises(LedgerError):
        LinearRegression((0, 1), (0, 1), epsilon=0.1, ledger=ledger, dataset="others").fit(x, y)
    for wrong_x, wrong_y in (
        (x, y[:3]),
        (x[:, 0], y),
        (x, np.array(["a"] * 5)),
        (Unreadable(), y),
        (np.zeros((5, 2)), y[:4]),
    ):
        with pytest.raises((ColumnError, ParameterError)) as caught:
            LinearRegression((0, 1), (0, 1), epsilon=0.1, ledger=ledger).fit(wrong_x, wrong_y)
        assert "5" not in str(caught.value).replace("'Unreadable'", "")
    assert ledger.spent.epsilon == 0.75


def test_the_noise_of_parameters_is_as_predicted(seed):
    """The covariance of the noise against 7,000 draws of it: entries within 8 standard errors and 3 in 100.

    The prediction is off by 1 in 100 (20,000 draws): what is left are 6.8 deviations of a variance, 1e-11.
    """
    generator = np.random.default_rng(seed)
    rows = np.column_stack([np.ones(400), generator.uniform(-1, 1, (400, 2)), generator.uniform(-1, 1, 400)])
    exact = rows.T @ rows
    upper = np.triu_indices(4)
    found, deviation = [], 0.5
    for _ in range(7000):
        noise = np.zeros((4, 4))
        noise[upper] = generator.normal(0, deviation, 10)
        found.append(solve(exact + noise + np.triu(noise, 1).T, deviation, 0.0, intercept=True).parameters)
    spread = np.cov(np.array(found).T)
    predicted = solve(exact, deviation, 0.0, intercept=True).covariance
    without = solve(exact, 0.0, 0.0, intercept=True).covariance
    scale = np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
    assert np.abs(spread - (predicted - without)).max() < (8 / np.sqrt(7000) + 0.03) * scale.max()


@pytest.mark.parametrize("rows", [5_000, 50_000])
def test_standard_errors_cover(seed, rows):
    """Of 220 fits to fresh samples, 95% intervals hold the truth in more than 179: false-failure rate 4e-13 each.

    Were it in 94% of them, it would be 1e-10.
    """
    generator, truth, held = np.random.default_rng(seed), np.array([1.0, -0.2, 8.0]), []
    random = SeededRandom(seed)
    for _ in range(220):
        x, y = data(rows, generator)
        x = np.clip(x, *np.array(BOUNDS).T)
        y = 3 + x @ truth + generator.uniform(-1, 1, rows)
        model = LinearRegression(BOUNDS, (-20, 20), rho=2.0, ridge=0.05, random=random).fit(x, y)
        held.append(np.abs(model.coef_ - truth) < 1.96 * model.standard_errors_)
    share = np.mean(held, axis=0)
    assert (share > 179 / 220).all(), share
    assert share.mean() < 0.995


def test_shrinkage_pays_where_noise_drowns_the_data():
    """The mean error of fits to 300 rows, and to 300,000: shrinking wins the one, and costs the other little.

    The seeds are fixed: errors of what is not shrunk have heavy tails, so that one run in 50 would fail.
    """
    generator, random = np.random.default_rng(3), SeededRandom(3)
    truth = np.array([1.0, -0.2, 8.0])
    for rows, most in ((300, 0.8), (300_000, 1.2)):
        missed = {ridge: [] for ridge in (0.0, 1.0)}
        x, y = data(rows, generator)
        for ridge, errors in missed.items():
            for _ in range(40 if rows == 300 else 5):
                model = LinearRegression(BOUNDS, (-20, 20), rho=0.1, ridge=ridge, random=random).fit(x, y)
                errors.append(np.abs((model.coef_ - truth) * [3.0, 30.0, 0.3]).mean())
        assert np.mean(missed[1.0]) < most * np.mean(missed[0.0]) + 0.02


def test_what_it_says_and_refuses():
    model = LinearRegression((0, 1), (0, 1), epsilon=1.0)
    assert repr(model) == "LinearRegression(feature_bounds=(0, 1), target_bounds=(0, 1), epsilon=1.0)"
    with pytest.raises(NotFittedError, match="fit"):
        model.predict([[1.0]])
    model.set_params(epsilon=None, rho=0.1)
    assert model.get_params()["rho"] == 0.1
    with pytest.raises(ParameterError, match="rho"):
        model.set_params(rho=-1)
    assert model.rho == 0.1
    with pytest.raises(ParameterError, match="names among"):
        model.set_params(none=1)
    model.random = SeededRandom(1)
    model.fit([[0.5], [1.0]], [0, 1])
    assert np.isnan(model.predict([[np.nan], [1.0]])).tolist() == [True, False]
    assert np.isnan(model.score([[1.0]], [1.0]))
    with pytest.raises(ParameterError, match="2 features"):
        model.predict(np.array([[0.5, 1.0]]))
    assert np.isnan(model.predict([[0.5, 1.0], [0.5]])).tolist() == [True, False]


class TestScikitLearn:
    """Its tools take the estimator; each fit is charged."""

    def test_tools(self, seed):
        sklearn = pytest.importorskip("sklearn")
        from sklearn.base import clone, is_regressor
        from sklearn.model_selection import GridSearchCV, cross_val_score
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        assert sklearn.__version__
        x, y = data(4000, np.random.default_rng(seed))
        ledger = dpf.Ledger(epsilon=100.0)
        model = LinearRegression(BOUNDS, (-20, 20), epsilon=3.0, ledger=ledger)
        assert is_regressor(model)
        assert clone(model).ledger is ledger
        assert cross_val_score(model, x, y, cv=3).mean() > 0.3
        assert ledger.spent.epsilon == 9.0
        search = GridSearchCV(model, {"ridge": [0.5, 1.0]}, cv=2).fit(x, y)
        assert ledger.spent.epsilon == 24.0
        assert search.best_params_["ridge"] in (0.5, 1.0)
        make_pipeline(FunctionTransformer(), model).fit(x, y).predict(x)
        assert ledger.spent.epsilon == 27.0

    def test_its_own_checks(self):
        pytest.importorskip("sklearn", minversion="1.6")
        from sklearn.utils.estimator_checks import check_estimator

        # Of the rest, what would make errors depend on values, what would need our words to be others, and what would
        # need two fits to be alike.
        not_taken = """estimators_nan_inf supervised_y_no_nan estimators_empty_data_messages dtype_object complex_data
            estimator_sparse_tag estimator_sparse_array estimator_sparse_matrix estimators_unfitted requires_y_none
            n_features_in_after_fitting parameters_default_constructible do_not_raise_errors_in_init_or_set_params
            supervised_y_2d regressor_data_not_an_array regressors_int fit_idempotent estimators_overwrite_params"""
        expected = {f"check_{name}": "not taken" for name in not_taken.split()}
        model = LinearRegression((-10, 10), (-100, 100), epsilon=1e5)
        results = check_estimator(model, expected_failed_checks=expected, on_fail=None, on_skip=None)
        failed = {one["check_name"]: str(one["exception"])[:200] for one in results if one["status"] == "failed"}
        assert failed == {}
        assert sum(one["status"] == "passed" for one in results) > 20
