"""Linear regression by noisy sums of products, with the interface of scikit-learn's estimators."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho, read_budget
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Flag, Number, Real
from dpfast.columns.grid import Bounds, check_bounds
from dpfast.errors import DpfastError, ParameterError, Words
from dpfast.learning.features import (
    FeatureBounds,
    Features,
    Target,
    is_one_pair,
    read_bounds,
    read_features,
    read_target,
)
from dpfast.learning.normal_equations import Fit, Products, Scaling, solve
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, Payment, read_payment
from dpfast.randomness import Random, random_source
from dpfast.showing import Facts, Shown
from dpfast.strategies.matrix_mechanism import charge_of

__all__ = ["LinearRegression", "NotFittedError"]

INTERCEPT, DEEP = Flag(), Flag()
NORM = Number(0, 1e6, above=True, optional=True, mend="write for example {name}=1.5")
RIDGE = Number(0, 1e6, mend="write for example {name}=1.0")
_Self = TypeVar("_Self", bound="LinearRegression")


class NotFittedError(DpfastError, ValueError, AttributeError):
    """An estimator predicts before it was fitted."""


@dataclass(frozen=True)
class _Settings:
    """The parameters of an estimator, read."""

    bounds: list[tuple[float, float]]
    names: tuple[str, ...] | None
    target: tuple[float, float]
    budget: Budget
    payment: Payment
    #: How many features there are, None where one pair for all does not say it.
    width: int | None


class LinearRegression(Shown):
    """Fit a linear function to private examples by least squares.

    Guarantee
        Everything that `fit` leaves in the estimator is together (epsilon, 0)-differentially private with epsilon
        alone, (epsilon, delta) with a delta, rho-zCDP with rho: neighbours differ in one row of X and y, added or
        removed, or replaced by any other. Every value is clipped to its bounds and becomes a whole number of small
        steps from -1 to 1; the products of all pairs of these, of 1 and of the target are added up over all rows,
        exactly, and one draw of Gaussian or Laplace noise (`dpf.gaussian`, `dpf.laplace`) is added to the sums, scaled
        to how far one row moves all of them together. Coefficients are made of the noisy sums alone. A ledger is
        charged before a value is read, and no error depends on values. `score` is exact, and private to whoever owns
        the rows that it is given; `predict` tells of the rows that it is given only.

    Parameters
    ----------
    feature_bounds
        What features are clipped to: one pair (lower, upper) for all of them; or a list with a pair for each column; or
        a dictionary by names, for frames, of which these columns alone are read. Choose them without looking at the
        data. The tighter they are, the less noise.
    target_bounds
        The pair for the target.
    epsilon, delta, rho
        The budget: epsilon, perhaps with a delta, which allows Gaussian noise; or rho.
    fit_intercept
        Whether the function has a constant. Without one the bounds should lie about 0.
    max_row_norm
        None, or a limit for how much one row may weigh, which lowers the noise. Let a feature be -1 at its lower and 1
        at its upper bound: a row, the constant's 1 in it, whose Euclidean norm is above this limit is scaled down to
        it, together with its target. Least squares are weighted so, which does not bias a model that is linear indeed.
        The norm is at most sqrt(features + 1), and often much less.
    ridge
        How strongly coefficients are shrunk, in units of the noise: 0 for not at all.
    neighbors
        "add_remove": neighbouring data have a row more or fewer; "replace": one row is exchanged.
    ledger
        The `dpfast.Ledger` that each `fit` is charged to, or None.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for fresh keys from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Attributes
    ----------
    coef_, intercept_
        The function, in the units that were given.
    standard_errors_, intercept_standard_error_
        Roughly how far these are off, because of the noise and because the rows are a sample. Shrinkage is not in it:
        where noise drowns the data, coefficients near 0 have small errors.
    n_features_in_, feature_names_in_
        The number of features, and their names where X was a frame.
    event_, entry_
        What was done to the data, for accountants; the charge's number in the ledger, or None.

    Raises
    ------
    ParameterError
        A parameter is not as above.

    Notes
    -----
    A row in which a feature or the target is missing (null or NaN) counts for nothing; infinite values are clipped.
    How many rows there are is private, and takes part in the noise. In lists whatever is no number is missing, and so
    is a row that is not as long as there are pairs of bounds, so that none is needed. One pair for all does not say how
    many features there are: in `fit` the first row of lists says it then, so that it must be public and the same for
    all rows. Columns and arrays of Python objects are refused, whatever they hold.

    With p features, a constant and the target there are q = p + 2 entries in a row and q (q + 1) / 2 products, and the
    noise of all of them is scaled to their root. It grows with the number of features and not with that of rows: some
    ten thousand rows make little of 30 features at epsilon 0.3. See `dpfast.learning.normal_equations` for the
    shrinkage and the standard errors. All products are statistical queries
    (`dpfast.StatisticalQueryOracle`), which are cheaper together than one by one.

    References
    ----------
    Dwork, Roth (2014), section 11.1, for statistical queries. Vu, Slavkovic (2009), and Wang (2018) for the shrinkage
    to the level of the noise. Dwork, Talwar, Thakurta, Zhang (2014) for noise on the products.

    Examples
    --------
    >>> import polars as pl
    >>> from dpfast.testing import SeededRandom
    >>> ages = np.arange(40_000) % 60 + 20
    >>> frame = pl.DataFrame({"age": ages, "smokes": ages % 2})
    >>> pressure = 100 + 0.5 * frame["age"] + 8 * frame["smokes"]
    >>> bounds = {"age": (18, 90), "smokes": (0, 1)}
    >>> model = LinearRegression(bounds, (80, 200), epsilon=1.0, random=SeededRandom(1)).fit(frame, pressure)
    >>> bool(abs(model.coef_ - [0.5, 8]).max() < 0.2), bool(abs(model.intercept_ - 100) < 2)
    (True, True)
    >>> model.predict(frame.head(1)).round(-1), round(model.score(frame, pressure), 2)
    (array([110.]), 1.0)

    """

    _estimator_type = "regressor"

    def __init__(
        self,
        feature_bounds: FeatureBounds,
        target_bounds: Bounds,
        *,
        epsilon: Epsilon = None,
        delta: Delta = 0,
        rho: Rho = None,
        fit_intercept: Annotated[bool, INTERCEPT] = True,
        max_row_norm: Annotated[Real | None, NORM] = None,
        ridge: Annotated[Real, RIDGE] = 1.0,
        neighbors: Neighbors = "add_remove",
        ledger: Payer = None,
        dataset: OwnName = None,
        privacy_unit: OwnName = None,
        random: Random = None,
    ) -> None:
        self.feature_bounds = feature_bounds
        self.target_bounds = target_bounds
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.fit_intercept = fit_intercept
        self.max_row_norm = max_row_norm
        self.ridge = ridge
        self.neighbors = neighbors
        self.ledger = ledger
        self.dataset = dataset
        self.privacy_unit = privacy_unit
        self.random = random
        self._settings()

    def _settings(self) -> _Settings:
        """Read all parameters, which scikit-learn may have set since; they stay as they were given."""
        bounds, names = read_bounds(self.feature_bounds)
        try:
            target = check_bounds(self.target_bounds)
        except ParameterError:
            allowed = "two finite numbers, the lower one first"
            raise ParameterError("target_bounds", self.target_bounds, allowed) from None
        INTERCEPT.read("fit_intercept", self.fit_intercept)
        NORM.read_optional("max_row_norm", self.max_row_norm)
        RIDGE.read("ridge", self.ridge)
        budget = read_budget(self.epsilon, self.delta, self.rho)
        random_source(self.random)
        payment = read_payment(
            self.ledger,
            budget,
            self.random,
            neighbors=read_neighbors(self.neighbors),
            dataset=self.dataset,
            privacy_unit=self.privacy_unit,
        )
        width = None if is_one_pair(self.feature_bounds) else len(bounds)
        return _Settings(bounds, names, target, budget, payment, width)

    def fit(self: _Self, X: Features, y: Target) -> _Self:  # noqa: N803  # scikit-learn's name
        """Fit the function; every call costs the whole budget again.

        Parameters
        ----------
        X
            A row for each example: a NumPy array of two dimensions, a frame of Polars or pandas, a table of PyArrow, or
            lists; of integers, floats or Booleans.
        y
            The target, one for each row: a column of any of these libraries.

        Returns
        -------
        LinearRegression
            Itself.

        Raises
        ------
        ParameterError, ColumnError
            X or y is of another kind or shape; nothing is charged.
        BudgetExceededError, LedgerError
            The charge does not fit, or the ledger is about something else.

        """
        settings = self._settings()
        features, target = read_features(X, settings.names, settings.width), read_target(y)
        bounds = settings.bounds * features.width if settings.width is None else settings.bounds
        if len(bounds) != features.width:
            shown = Words(f"{len(bounds)} pairs for {features.width} columns")
            raise ParameterError("feature_bounds", shown, "one pair for all columns of X, or one for each")
        if target.length != features.length:
            # How many rows there are is private.
            raise ParameterError("y", Words("of another length"), "a column with one number for each row of X")
        intercept = INTERCEPT.read("fit_intercept", self.fit_intercept)
        products = Products.planned(
            features.width,
            intercept=intercept,
            norm=NORM.read_optional("max_row_norm", self.max_row_norm),
            neighbors=read_neighbors(self.neighbors),
            budget=settings.budget,
        )
        description = f"linear regression on {features.width} features"
        charge = charge_of(settings.budget, products.noise, description)
        entry = settings.payment.charge([charge])
        of_x = Scaling.of(bounds, centered=intercept)
        of_y = Scaling.of([settings.target], centered=intercept)
        matrix = products.measure(features, target, of_x, of_y, self.random)
        fitted = solve(matrix, products.deviation, RIDGE.read("ridge", self.ridge), intercept=intercept)
        self._keep(fitted, of_x, of_y, intercept)
        self.n_features_in_ = features.width
        self.__dict__.pop("feature_names_in_", None)
        if features.names is not None:
            self.feature_names_in_ = np.array(features.names, object)
        self.event_, self.entry_ = products.noise.event, entry
        return self

    def _keep(self, fitted: Fit, of_x: Scaling, of_y: Scaling, intercept: bool) -> None:
        """Keep a function of numbers from -1 to 1 as one of what was given, with its standard errors."""
        # In units of half the target's width, so that no square overflows.
        back, unit = np.diag(1 / of_x.halves), of_y.halves[0]
        if intercept:
            one = np.concatenate([[1.0], -of_x.centers / of_x.halves])
            back = np.concatenate([one[None, :], np.pad(back, ((0, 0), (1, 0)))])
        parameters = unit * (back @ fitted.parameters)
        errors = unit * np.sqrt(np.maximum(np.diag(back @ fitted.covariance @ back.T), 0.0))
        first = int(intercept)
        self.coef_: NDArray[np.float64] = parameters[first:]
        self.standard_errors_: NDArray[np.float64] = errors[first:]
        self.intercept_ = float(parameters[0] + of_y.centers[0]) if intercept else 0.0
        self.intercept_standard_error_ = float(errors[0]) if intercept else 0.0

    def predict(self, X: Features) -> NDArray[np.float64]:  # noqa: N803  # scikit-learn's name
        """Return the function's value for each row, NaN where a feature is missing; values are not clipped.

        Raises
        ------
        ParameterError, ColumnError
            X is of another kind, or has other columns than the one that was fitted.
        NotFittedError
            Nothing was fitted yet.

        """
        if "coef_" not in self.__dict__:
            message = "this LinearRegression has no coefficients yet; call fit first"
            raise NotFittedError(message)
        rows = read_features(X, self._settings().names, self.n_features_in_)
        if rows.width != self.n_features_in_:
            raise ParameterError(
                "X", Words(f"of {rows.width} features"), f"of {self.n_features_in_} features, as in fit"
            )
        values = np.empty(rows.length)
        with np.errstate(all="ignore"):
            for start, stop in rows.blocks():
                values[start:stop] = rows.read(start, stop) @ self.coef_ + self.intercept_
        return values

    def score(self, X: Features, y: Target) -> float:  # noqa: N803  # scikit-learn's name
        """Return the share of the target's variance that the function explains (R squared), exactly.

        It is as private as the rows given. Rows in which anything is missing count for nothing; NaN if too few remain.

        Raises
        ------
        ParameterError, ColumnError
            X or y is of another kind, or they are of other lengths.

        """
        predicted, target = self.predict(X), read_target(y)
        if target.length != len(predicted):
            raise ParameterError("y", Words("of another length"), "a column with one number for each row of X")
        values = target.read(0, target.length)[:, 0]
        held = np.isfinite(values) & np.isfinite(predicted)
        values, predicted = values[held], predicted[held]
        if len(values) < 2:
            return math.nan
        with np.errstate(all="ignore"):
            around = float(((values - values.mean()) ** 2).sum())
            missed = float(((values - predicted) ** 2).sum())
        return 1.0 - missed / around if around else float(missed == 0.0)

    def get_params(self, deep: Annotated[bool, DEEP] = True) -> dict[str, Any]:
        """Return the parameters by name, as they were given."""
        DEEP.read("deep", deep)
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self: _Self, **parameters: Any) -> _Self:
        """Set parameters by name, all of them or, where one is not allowed, none."""
        before = self.get_params()
        for name in parameters:
            if name not in before:
                raise ParameterError("parameters", name, f"names among {', '.join(before)}")
        type(self)(**{**before, **parameters})
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self: _Self) -> _Self:
        """Return an estimator that is not fitted, of the same parameters and the same ledger."""
        return type(self)(**self.get_params())

    def __sklearn_tags__(self) -> Any:  # of scikit-learn's own type, imported by scikit-learn alone
        """Say what scikit-learn asks of every estimator."""
        tags = import_module("sklearn.utils")
        return tags.Tags(
            estimator_type="regressor",
            target_tags=tags.TargetTags(required=True),
            regressor_tags=tags.RegressorTags(poor_score=True),
            input_tags=tags.InputTags(allow_nan=True),
            non_deterministic=True,
        )

    def _facts(self) -> Facts:
        """Return the parameters that are not as by default, and no coefficient."""
        defaults = {name: one.default for name, one in signature(type(self)).parameters.items()}
        return [(name, value) for name, value in self.get_params().items() if value is not defaults[name]]
