"""A classifier that tells two inputs by all numbers of an output at once: its score is one more feature.

Logistic regression by Newton's method, with a ridge, on the numbers, their squares and whether they are there. It is
taught by the outputs that teach, and by no others. Every number is first brought to [-4, 4] by the median and the
quartiles of those, so that no heavy tail decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.auditing.events import Parts
from dpfast.auditing.features import Feature

__all__ = ["classifier_score"]

Floats = NDArray[np.float64]

_MOST_FEATURES = 128
_MOST_ROWS = 10_000
_STEPS = 8
_WIDEST = 4.0


def classifier_score(features: list[Feature], parts: Parts) -> Feature | None:
    """Return the score of a classifier of these features, or None if there is nothing to combine."""
    if len(features) < 2:
        return None
    taught = [slice(part.start, min(part.stop, part.start + _MOST_ROWS)) for part in parts.teach]
    blocks = [_standardized(feature.values, taught) for feature in features[:_MOST_FEATURES]]
    columns = [column for block in blocks for column in block]
    table = np.column_stack([np.concatenate([column[part] for part in taught]) for column in columns])
    weights = _fitted(table, np.repeat([1.0, 0.0], taught[0].stop - taught[0].start))
    score = np.zeros(features[0].values.size)
    for column, weight in zip(columns, weights.tolist(), strict=True):
        score += weight * column
    count = min(len(features), _MOST_FEATURES)
    name = f"score of a classifier of {count} numbers"
    return Feature(
        score,
        lambda t: f"the {name} of the output is at most {t:.6g}",
        lambda t: f"the {name} of the output is at least {t:.6g}",
        f"the {name}",
    )


def _standardized(values: Floats, taught: list[slice]) -> list[Floats]:
    known = np.concatenate([values[part] for part in taught])
    there = np.isfinite(known)
    missing = (~np.isfinite(values)).astype(np.float64)
    if not there.any():
        return [missing]
    low, middle, high = np.quantile(known[there], [0.25, 0.5, 0.75])
    width = high - low if 0 < high - low < np.inf else max(float(np.ptp(known[there])), 1e-300)
    with np.errstate(all="ignore"):
        scaled = np.clip((np.where(missing > 0, middle, values) - middle) / width, -_WIDEST, _WIDEST)
    scaled = np.nan_to_num(scaled)
    return [scaled, scaled**2] if there.all() else [scaled, scaled**2, missing]


def _fitted(table: Floats, labels: Floats) -> Floats:
    """Return the weights of a logistic regression whose intercept is taken from the table's means."""
    centred = table - table.mean(axis=0)
    weights = np.zeros(table.shape[1])
    ridge = 1e-3 * len(labels) * np.eye(table.shape[1])
    for _ in range(_STEPS):
        likely = 1.0 / (1.0 + np.exp(-np.clip(centred @ weights, -30.0, 30.0)))
        slope = centred.T @ (labels - likely) - ridge @ weights
        curve = (centred * (likely * (1.0 - likely))[:, None]).T @ centred + ridge
        step = np.linalg.solve(curve, slope)
        weights += step
        if np.abs(step).max() < 1e-6:
            break
    return weights
