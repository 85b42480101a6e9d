"""How sure the regret of a choice is: ratios without the luck of the least mean, with intervals, and what they say.

The least of several noisy means is lucky, and so a ratio to it is too large. Two answers to that are here.

**Cross-fitted ratios.** The best mechanism is found in one half of the trials, and its error taken from the other half;
and the reverse. That has no luck in it; it errs a little the other way, as the best in one half is not always the best.

**Intervals.** All mechanisms of a trial get the same sample, so that their errors are paired. The error of the choice
is less than r times that of a mechanism where the mean of the differences e - r e' is less than 0: all r that Student's
test does not refuse are the interval of a ratio of two means (Fieller 1954). The ratio R to the best of k mechanisms is
the largest of k such ratios. It is at least each of them, so that its lower end is the largest of k lower ends, each
at a k-th of the level (Bonferroni). It is one of them, so that its upper end is the largest of k upper ends, each at
the whole level. Means of heavy-tailed errors follow Student's law only about. Where more trials are measured of those
combinations alone that are undecided, each look must have its part of the level: `certainty` divides by ``looks``.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .judging import CELL, CLOSE
from .mechanisms import BASELINE, CHOICE
from .questions import one_record

__all__ = ["FAR", "certainty", "contested", "interval", "shares_by"]

FAR = 2.0
"""What counts as far: more than so many times the best mechanism's mean error."""
_HALVES = 2

Floats = NDArray[np.float64]


def interval(one: Floats, other: Floats, lower: float, upper: float) -> tuple[float, float]:
    """Return between what the ratio of two means lies, of paired numbers of 0 or more.

    Each end is wrong with about the probability that is given for it. Fewer than two pairs tell nothing.

    Parameters
    ----------
    one, other
        The numbers, pair by pair.
    lower, upper
        How often the ratio may be below the lower end, and above the upper one.

    """
    if one.size < _HALVES or not other.any():
        return 0.0, math.inf
    return _end(one, other, lower, -1.0), _end(one, other, upper, 1.0)


def _end(one: Floats, other: Floats, level: float, side: float) -> float:
    """Return the lower (-1) or the upper (1) end: where mean(one) - r mean(other) is ``reach`` standard errors off.

    (m - r m')**2 = q (v - 2 r c + r**2 v'), a quadratic equation in r, with q = t**2 / n.
    """
    from scipy import stats

    reach = stats.t.isf(level, one.size - 1) ** 2 / one.size
    (own, shared), (_, others) = np.cov(one, other)
    mean, least = one.mean(), other.mean()
    square = least**2 - reach * others
    half = mean * least - reach * shared
    constant = mean**2 - reach * own
    if square <= 0:  # the other mean is not told from 0: no upper end, and a lower one only where the root says so
        return 0.0 if side < 0 else math.inf
    return float(max(half + side * math.sqrt(max(half**2 - square * constant, 0.0)), 0.0) / square)


def certainty(rows: pl.DataFrame, error: str = "l2", level: float = 0.05, looks: int = 1) -> pl.DataFrame:
    """Return for each combination the cross-fitted ratio of the choice to the best of all others, and its interval.

    The ratio is below 1 where the choice is better than all others. An error of a trial that is smaller than what a
    single wrong record makes counts as that (`one_record`). The baseline is no contestant. ``lower`` and ``upper`` are
    the ends of an interval that has the ratio with probability 1 - ``level``, also after so many ``looks``. ``rivals``
    are the others that the choice is not surely better than. A mechanism with fewer trials than others counts for the
    interval, and not for the ratio.
    """
    found = []
    for key, group in rows.filter(pl.col("mechanism") != BASELINE).group_by(CELL, maintain_order=True):
        about = dict(zip(CELL, key, strict=True))
        shape = tuple(map(int, str(about["shape"]).split(" x ")))
        least = one_record(str(about["workload"]), shape, int(str(about["scale"])))[error == "l1"]
        pairs = _pairs(group, error, least)
        if not pairs:
            continue
        each = level / (2 * looks)
        ends = [interval(one, other, each / len(pairs), each) for one, other in pairs.values()]
        ratio = _crossfitted(pairs)
        trials = max(one.size for one, _ in pairs.values())
        lower, upper = max(end[0] for end in ends), max(end[1] for end in ends)
        rivals = [name for name, end in zip(pairs, ends, strict=True) if end[1] > 1.0]
        found.append({**about, "trials": trials, "ratio": ratio, "lower": lower, "upper": upper, "rivals": rivals})
    numbers: dict[str, pl.DataType | type[pl.DataType]] = {
        "trials": pl.Int64,
        "ratio": pl.Float64,
        "lower": pl.Float64,
        "upper": pl.Float64,
    }
    numbers["rivals"] = pl.List(pl.String)
    return pl.DataFrame(found, {**{name: rows.schema[name] for name in CELL}, **numbers})


def contested(rows: pl.DataFrame, error: str = "l2", looks: int = 1) -> pl.DataFrame:
    """Return the combinations of which more trials may say more, each with the mechanisms that these need: ``names``.

    They are those whose interval has `CLOSE` or `FAR` within it. The choice and its ``rivals`` need trials; others are
    surely worse, and stay so.
    """
    found = certainty(rows, error, looks=looks)
    within = [pl.col("lower").le(bound) & pl.col("upper").gt(bound) for bound in (CLOSE, FAR)]
    names = pl.concat_list(pl.lit(CHOICE), "rivals").alias("names")
    return found.filter(pl.any_horizontal(within)).select(*CELL, names)


def _pairs(group: pl.DataFrame, error: str, least: float) -> dict[str, tuple[Floats, Floats]]:
    """Return for each other mechanism the errors of the choice and its own, of the trials that both have."""
    refused = group.filter(pl.col(error).is_null())["mechanism"].unique()
    kept = group.filter(~pl.col("mechanism").is_in(refused.implode())).with_columns(
        pl.col(error).clip(lower_bound=least)
    )
    own = kept.filter(mechanism=CHOICE).select("trial", one=error)
    others = kept.filter(pl.col("mechanism") != CHOICE).join(own, on="trial").sort("mechanism", "trial")
    return {
        str(name): (pairs["one"].to_numpy(), pairs[error].to_numpy())
        for (name,), pairs in others.group_by("mechanism", maintain_order=True)
    }


def _crossfitted(pairs: dict[str, tuple[Floats, Floats]]) -> float:
    """Return the geometric mean of both halves' ratios to the mechanism that is the best in the other half."""
    most = max(one.size for one, _ in pairs.values())
    full = {name: pair for name, pair in pairs.items() if pair[0].size == most}
    if most < _HALVES:
        return float("nan")
    logarithms = []
    for half in range(_HALVES):
        best = min(full, key=lambda name: full[name][1][1 - half :: _HALVES].mean())
        one, other = (errors[half::_HALVES].mean() for errors in full[best])
        logarithms.append(math.log(one / other))
    return math.exp(sum(logarithms) / _HALVES)


def shares_by(found: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return for each group how many combinations are within `CLOSE` of the best, beyond it, and beyond `FAR`.

    ``close`` and ``far`` are by the cross-fitted ratios, and ``low`` and ``high`` the 95% interval of the share that is
    close, were the combinations drawn from many (Clopper, Pearson 1934); others are by the intervals of `certainty`.
    """
    from scipy import stats

    counted = found.group_by(columns).agg(
        combinations=pl.len(),
        close=(pl.col("ratio") <= CLOSE).sum(),
        surely_close=(pl.col("upper") <= CLOSE).sum(),
        surely_beyond=(pl.col("lower") > CLOSE).sum(),
        within_far=(pl.col("ratio") <= FAR).sum(),
        surely_far=(pl.col("lower") > FAR).sum(),
        mean=pl.col("ratio").clip(lower_bound=1.0).log().mean().exp(),
        largest_lower=pl.col("lower").max(),
    )
    count, close = counted["combinations"].to_numpy(), counted["close"].to_numpy()
    low = np.where(close > 0, stats.beta.ppf(0.025, close, count - close + 1), 0.0)
    high = np.where(close < count, stats.beta.ppf(0.975, close + 1, count - close), 1.0)
    return counted.with_columns(
        pl.col("close") / pl.col("combinations"),
        pl.col("within_far") / pl.col("combinations"),
        low=pl.Series(low),
        high=pl.Series(high),
    ).sort(columns)
