"""Values that are found in the data: their numbers of rows with noise, and of these the largest of every group.

A pair of a group and a value that some row holds has a number of rows, which gets noise, and is shown where the noisy
number reaches a threshold. Of the pairs that are shown each group keeps the k largest numbers: post-processing, so that
k costs nothing. All pairs together cost what one noisy count by group costs, as a row adds 1 to one pair only, and the
delta of the threshold; k draws by the exponential mechanism over a known domain, or over the observed values (Durfee,
Rogers 2019), have noise k times as wide for the same epsilon, and show no counts.

Proof. That pairs are the keys of `dpfast.mechanisms.keys.thresholds`, which has the proof that the noise's event and a
delta are true of what is shown, needs two facts.

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


@dataclass(frozen=True)
class DrawnValues(Charged):
    """Numbers of rows by value with noise, of which the largest are shown.

    Attributes
    ----------
    measure
        What is counted.
    unit
        It fixes the sensitivity.
    noise, threshold
        What every number gets, and what it must reach then.
    charge
        What the noise costs.
    lonely
        What the threshold costs.
    winners
        How many values of a group are shown at most.

    """

    measure: Measure
    unit: PrivacyUnit
    noise: IntegerNoise
    threshold: int
    charge: Charge
    lonely: Charge
    winners: int

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it costs: the noise, then the threshold."""
        return self.charge, self.lonely

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
    """What is shown of found values, group by group.

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
    found: FoundValues, part: DrawnValues, add_noise: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> ShownValues:
    """Return the values of every group whose noisy numbers of rows reach the threshold, the k largest in order.

    Guarantee
        Every pair of a group and a value that some row holds gets noise once. What is returned has no byte of a value
        that is not shown (Soundness rule 20), and depends on the values and their noisy numbers alone: equal numbers
        are in the order of values, and not in that in which the data have them.

    Parameters
    ----------
    found
        The exact numbers of rows.
    part
        The threshold, and how many are shown.
    add_noise
        Returns whole numbers with fresh noise.

    """
    owners, places, rows = found.pairs()
    noisy = add_noise(rows)
    shown = np.flatnonzero(noisy >= part.threshold)
    shown = shown[np.lexsort((places[shown], -noisy[shown], owners[shown]))]
    owners = owners[shown]
    # The place of each among those of its group, which stand together.
    ranks = np.arange(owners.size) - np.searchsorted(owners, owners)
    chosen = ranks < part.winners
    kept, owners = shown[chosen], owners[chosen]
    values = rebuilt(as_shown(found.values[places[kept]].to_frame()).to_series())
    return ShownValues(values, noisy[kept], owners, len(found))


def no_values(part: DrawnValues) -> ShownValues:
    """Return what is shown of no groups."""
    values = as_shown(pl.Series("value", [], dtype=part.measure.dtype).to_frame()).to_series()
    nothing = np.empty(0, np.int64)
    return ShownValues(values, nothing, nothing, 0)
