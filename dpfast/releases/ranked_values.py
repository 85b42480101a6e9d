"""The most common values of every group: the numbers of rows of all values with noise, and the largest of these.

Every pair of a group and a value has a number of rows, which gets noise; of each group the k largest noisy numbers are
shown, which is post-processing, so that k costs nothing. All pairs together cost what one noisy count by group costs,
as a row adds 1 to one pair only. k draws by the exponential mechanism, over public candidates or over the observed
values (Durfee, Rogers 2019), have noise about k times as wide for the same epsilon, and show no counts. Public
candidates are all counted, those without a row too. Of values that are found in the data, those pairs are counted that
some row holds, and shown where the noisy number reaches a threshold.

Proof, of public candidates by the first fact alone. That pairs found in the data are the keys of
`dpfast.mechanisms.keys.thresholds`, which has the proof that the noise's event and a delta are true of what is shown,
needs both.

The numbers move no further than the sensitivity. In a group the rows of a unit, at most R, make a vector a >= 0 over
values, with L1 norm R at most, and so with L2 norm R at most; over G groups G R and sqrt(G) R. A replaced unit moves
them by a - b, both of that kind: L1 2 G R, and L2 squared at most |a|**2 + |b|**2 <= 2 G R**2, since a b >= 0.

The delta. Let p(c) be the chance that a lonely pair of c rows, held by one unit alone, is shown, and f(c) =
-log(1 - p(c)); any of its pairs is shown with probability 1 - exp(-sum f(c_i)). For c up to R below the threshold, f is
increasing and convex: of Laplace noise p = A exp(c / b), and f' = p / (b (1 - p)) rises; of Gaussian noise f is -log of
a normal distribution function, which is log-concave. So of j pairs in one group with R rows in all, the sum is largest
where one has R - j + 1 rows and the others one: f(R - j + 1) + (j - 1) f(1). This is convex in j, and so largest for
j = 1, f(R), or for j = R, R f(1). Over G groups the largest is that of G pairs of R rows, or of G R pairs of one row,
and the threshold is held to both.

Which keys are shown, where keys are private, is a mechanism of its own; pairs of keys that are not shown are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.aggregation.found_values import FoundValues
from dpfast.aggregation.grouped_points import GroupedPoints
from dpfast.columns.candidates import as_series
from dpfast.kernels.grouping.by_group import count_points
from dpfast.ledger import Charge
from dpfast.mechanisms.keys.thresholds import Lonely
from dpfast.mechanisms.noise.gaussian import gaussian_kernel
from dpfast.mechanisms.noise.half_widths import half_width
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, NoiseKind
from dpfast.mechanisms.noise.laplace import laplace_kernel
from dpfast.queries import Measure
from dpfast.releases.charged import Charged
from dpfast.releases.rebuilding import as_shown, rebuilt

__all__ = ["DrawnValues", "ShownValues", "largest_values", "lonely_pairs", "no_values"]


def lonely_pairs(unit: PrivacyUnit) -> list[Lonely]:
    """Return what pairs a unit may hold alone: the worst of every case, as the module's docstring proves."""
    groups, rows = unit.max_groups, unit.max_rows_per_group
    return [Lonely(groups, rows), Lonely(groups * rows, 1)]


#: Candidates are counted and get noise in stretches of so many numbers.
_STRETCH_CELLS = 1 << 22


@dataclass(frozen=True)
class DrawnValues(Charged):
    """Numbers of rows by value with noise, of which the largest are shown.

    Attributes
    ----------
    measure
        What is counted.
    unit
        It fixes the sensitivity.
    noise, charge
        What every number gets, and what that costs.
    winners
        How many values of a group are shown at most.
    threshold, lonely
        What a noisy number must reach where values are found in the data, and what that costs; else None.

    """

    measure: Measure
    unit: PrivacyUnit
    noise: IntegerNoise
    charge: Charge
    winners: int
    threshold: int | None = None
    lonely: Charge | None = None

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it costs: the noise, then the threshold."""
        return (self.charge,) if self.lonely is None else (self.charge, self.lonely)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far all numbers can move between neighbours."""
        return self.measure.sensitivity(self.unit)

    @property
    def kernel(self) -> str:
        """The kernel that will draw the noise."""
        return laplace_kernel(self.scale) if self.mechanism == "laplace" else gaussian_kernel(self.scale)

    @property
    def mechanism(self) -> NoiseKind:
        """The noise."""
        return self.noise.mechanism

    @property
    def scale(self) -> float:
        """Its scale, in rows."""
        return self.noise.scale

    def steps(self, miss: float) -> int:
        """Return a bound of the noise of one number that holds with probability at least 1 - ``miss``."""
        return half_width(self.noise.mechanism, self.noise.scale, miss)

    def reach(self, miss: float) -> float:
        """Return the same."""
        return self.steps(miss)

    def explain(self) -> str:
        """Return in words what is shown."""
        return f"a value is shown from a noisy count of {self.threshold} on"


@dataclass(frozen=True)
class ShownValues:
    """What is shown of values, group by group.

    Attributes
    ----------
    values, rows
        The values, and their noisy numbers of rows.
    owners
        The group of each, as its place among so many ``groups``.

    """

    values: pl.Series
    rows: NDArray[np.int64]
    owners: NDArray[np.int64]
    groups: int

    def lists(self, shown: pl.Series) -> pl.Series:
        """Return what stands beside the values as a list for every group."""
        frame = pl.DataFrame({"group": self.owners, "value": shown})
        lists = frame.group_by("group", maintain_order=True).agg("value")
        every = pl.DataFrame({"group": np.arange(self.groups)})
        joined = every.join(lists, on="group", how="left", maintain_order="left")["value"]
        return joined.fill_null(pl.Series([[]], dtype=pl.List(shown.dtype)))


def largest_values(
    exact: FoundValues | GroupedPoints | NDArray[np.int64],
    part: DrawnValues,
    add_noise: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> ShownValues:
    """Return the values of every group with the k largest noisy numbers of rows, in order.

    Guarantee
        Every public candidate of every group gets noise once, or every pair of a group and a value that some row holds,
        of which those below the threshold are left out. What is returned has no byte of a value that is not shown
        (Soundness rule 20), and depends on the values and their noisy numbers alone: equal numbers are in the order of
        candidates or of values, and not in that in which the data have them.

    Parameters
    ----------
    exact
        The exact numbers of rows: of public candidates a row of numbers for each group, or each row's candidate.
    part
        How many are shown, and the threshold.
    add_noise
        Returns whole numbers with fresh noise.

    """
    if not isinstance(exact, FoundValues):
        return _largest_candidates(exact, part, add_noise)
    owners, places, rows = exact.pairs()
    noisy = add_noise(rows)
    assert part.threshold is not None
    shown = np.flatnonzero(noisy >= part.threshold)
    # The complement turns the order round, and no number leaves int64.
    order = shown[np.lexsort((places[shown], ~noisy[shown], owners[shown]))]
    owners = owners[order]
    # The place of each among those of its group, which stand together.
    chosen = np.arange(owners.size) - np.searchsorted(owners, owners) < part.winners
    kept = order[chosen]
    values = rebuilt(as_shown(exact.values[places[kept]].to_frame()).to_series())
    return ShownValues(values, noisy[kept], owners[chosen], len(exact))


def _largest_candidates(
    exact: GroupedPoints | NDArray[np.int64],
    part: DrawnValues,
    add_noise: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> ShownValues:
    """Return the candidates of every group with the k largest noisy numbers of rows, so many groups at a time."""
    candidates, groups = part.measure.points, len(exact)
    places, rows = np.empty((2, groups, part.winners), np.int64)
    step = max(_STRETCH_CELLS // candidates, 1)
    for first in range(0, groups, step):
        stretch = slice(first, first + step)
        some = exact[stretch]
        if isinstance(some, GroupedPoints):
            table = np.zeros((len(some), candidates), np.int64)
            count_points(some.points, some.starts, some.stops, table)
            some = table
        noisy = add_noise(np.ascontiguousarray(some).ravel()).reshape(some.shape)
        places[stretch] = np.argsort(~noisy, axis=1, kind="stable")[:, : part.winners]
        rows[stretch] = np.take_along_axis(noisy, places[stretch], axis=1)
    owners = np.repeat(np.arange(groups), part.winners)
    return ShownValues(as_series(part.measure.candidates)[places.ravel()], rows.ravel(), owners, groups)


def no_values(part: DrawnValues) -> ShownValues:
    """Return what is shown of no groups."""
    candidates = part.measure.candidates
    values = as_series(candidates).clear() if candidates else pl.Series("value", [], dtype=part.measure.dtype)
    values = as_shown(values.to_frame()).to_series()
    nothing = np.empty(0, np.int64)
    return ShownValues(values, nothing, nothing, 0)
