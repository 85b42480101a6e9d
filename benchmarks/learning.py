"""Rows of the table about learning from private examples."""

from __future__ import annotations

from typing import Any

import numpy as np

import dpfast as dpf

from .prepared import Prepared

_FEATURES = 10


def regression(size: int) -> Prepared:
    """A linear function fitted to rows of 10 features, beside scikit-learn's least squares without privacy."""
    from sklearn.linear_model import LinearRegression

    generator = np.random.default_rng(20_261_122)
    rows = max(1, size // _FEATURES)
    x = generator.uniform(-1.0, 1.0, (rows, _FEATURES))
    y = x @ np.linspace(-0.1, 0.1, _FEATURES) + generator.uniform(-0.1, 0.1, rows)

    def agree(ours: Any, theirs: Any) -> bool:
        # Noise of 10**4 rows at this epsilon is off by a few hundredths.
        return bool(np.abs(ours.coef_ - theirs.coef_).max() < 0.5)

    return Prepared(
        lambda: dpf.LinearRegression((-1, 1), (-1, 1), epsilon=10.0).fit(x, y),
        lambda: LinearRegression().fit(x, y),
        agree=agree,
    )
