"""The matrix mechanism: a strategy is measured with noise, and a workload answered from what it says of the cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho, read_budget
from dpfast.accounting.events import DiscreteLaplace, Gaussian, Laplace
from dpfast.accounting.privacy_unit import Bound, Neighbors
from dpfast.arguments import Flag, Number, Special, Threads
from dpfast.errors import ParameterError
from dpfast.ledger import Charge
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, declared_amounts
from dpfast.progress import TellStages, read_progress
from dpfast.randomness import Random, RandomSource, random_source
from dpfast.showing import Card, Shown, number_of
from dpfast.strategies.choosing import Choice, choose_for, consider, read_unit
from dpfast.strategies.strategy import Strategy
from dpfast.threads import thread_count
from dpfast.workloads.histograms import Counts, counted
from dpfast.workloads.workload import WORKLOAD, Asked, Workload

__all__ = ["MatrixRelease", "charge_of", "draw_cells", "draw_columns", "matrix_mechanism"]

CONFIDENCE = Number(0, 1, above=True, below=True)
NONNEGATIVE = Flag()
STRATEGY = Special(lambda: (5, True, "identity", "", b"auto", ["auto"], object(), Strategy, np.ones(2), {}))


@dataclass(frozen=True)
class MatrixRelease(Shown):
    """What the matrix mechanism released, and all that follows from it without further cost.

    Attributes
    ----------
    workload, strategy, noise
        What was asked, what was measured, and with which noise.
    histogram
        The cells, float64 of the workload's shape. They answer only what was measured: for strategies of marginals,
        these marginals alone.
    choice
        All strategies that were considered, with their predicted errors.
    entry
        The charge's number in the ledger, None without one.

    """

    workload: Workload
    strategy: Strategy
    noise: IntegerNoise
    histogram: NDArray[np.float64]
    choice: Choice
    entry: int | None = None

    @cached_property
    def answers(self) -> NDArray[np.float64]:
        """The answers to the workload's queries, float64."""
        return np.asarray(self.workload.answer(self.histogram), np.float64)

    @cached_property
    def scale(self) -> NDArray[np.float64]:
        """The standard deviation of every answer, float64: from public parameters alone."""
        return self.noise.deviation * np.sqrt(self.strategy.variances(self.workload))

    @property
    def event(self) -> DiscreteLaplace | Laplace | Gaussian:
        """What was done to the data, for an accountant."""
        return self.noise.event

    @property
    def rmse(self) -> float:
        """The predicted root mean squared error of an answer."""
        return self.choice.best.rmse

    def half_width(self, confidence: Annotated[float, CONFIDENCE] = 0.95) -> NDArray[np.float64]:
        """Return h for every answer: the true one lies within h of it with probability at least ``confidence``.

        It means nothing where the histogram was made non-negative.

        Parameters
        ----------
        confidence
            Between 0 and 1; it holds for each answer by itself.

        """
        return self.scale * self.noise.reach(1 - CONFIDENCE.read("confidence", confidence))

    def frame(self, confidence: Annotated[float, CONFIDENCE] = 0.95) -> pl.DataFrame:
        """Return a row for each query: what it asks, ``answer``, ``scale``, ``answer_lower`` and ``answer_upper``."""
        half = self.half_width(confidence)
        bounds = {"answer_lower": self.answers - half, "answer_upper": self.answers + half}
        columns = {"answer": self.answers, "scale": self.scale, **bounds}
        return self.workload.frame().with_columns(pl.Series(name, column) for name, column in columns.items())

    def __repr__(self) -> str:
        """Show the strategy, the noise and the predicted error, but not the answers."""
        return f"MatrixRelease({self.choice.best})"

    def _card(self) -> Card:
        facts = [("workload", self.workload), ("event", self.event), ("entry", self.entry)]
        more = ["answers with their intervals: frame()"]
        return replace(self.choice._card(), lines=[repr(self)], facts=facts, more=more)


def matrix_mechanism(
    histogram: Counts,
    workload: Asked,
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    strategy: Annotated[Strategy | str, STRATEGY] = "auto",
    neighbors: Neighbors = "add_remove",
    max_groups: Bound = 1,
    max_rows_per_group: Bound = 1,
    nonnegative: Annotated[bool, NONNEGATIVE] = False,
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
    threads: Threads = None,
    progress: TellStages = None,
) -> MatrixRelease:
    """Answer all queries of a workload over a histogram from few noisy measurements.

    Guarantee
        (epsilon, 0)-differentially private with epsilon alone, (epsilon, delta) with a delta, rho-zCDP with rho: for
        all answers together and whatever is computed from them. A strategy's matrix A of whole numbers is measured
        exactly in int64, Laplace or Gaussian noise (`dpf.laplace`, `dpf.gaussian`) scaled to the largest L1 or L2 norm
        of what a unit moves A h by is added, and the rest is post-processing. The strategy is chosen from the workload
        and the budget, not from the histogram. The histogram's shape is public; under "replace" so is the number of
        rows. A ledger is charged before the histogram is read.

    Parameters
    ----------
    histogram
        Exact counts: integers, of the workload's shape or as many in one dimension. Counts beyond the strategy's
        ``largest_count`` (2**62 over the largest sum of magnitudes in a row of A) are moved to it.
    workload
        The queries, of `dpf.workloads`.
    epsilon, delta
        The budget; a delta allows Gaussian noise as well, and the better one is taken. Floats are read as the decimals
        they were written as.
    rho
        Or the budget in zero-concentrated differential privacy: Gaussian noise.
    strategy
        ``"auto"`` for the one with the least predicted error (`dpf.strategies.choose`), or one of `dpf.strategies`.
    neighbors
        ``"add_remove"``: neighbouring histograms differ by a unit more or fewer; ``"replace"``: by a unit's rows
        exchanged for others.
    max_groups, max_rows_per_group
        In how many cells a unit has rows at most, and how many in each, up to 2**40. By default a unit is one row.
    nonnegative
        Whether cells below 0 are released as 0: it often lowers the error of sparse histograms' cells, but it biases
        sums, and the scales and intervals no longer hold.
    ledger
        A `dpfast.Ledger`, charged with the measurements' event, or None.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for fresh keys from the operating system, or a `dpfast.testing.SeededRandom` in tests.
    threads
        How many threads share the work; None uses all cores where that pays. The result does not depend on it.
    progress
        Called with the name of each stage as it begins.

    Returns
    -------
    MatrixRelease
        With ``answers`` and ``scale`` (standard deviations), the ``histogram``, the ``strategy`` and the ``choice``.

    Raises
    ------
    ParameterError
        An argument is not as above, or the histogram is not of integers or of another shape.

    References
    ----------
    Li, Miklau, Hay, McGregor, Rastogi (2015) for the mechanism; Hay, Rastogi, Miklau, Suciu (2010) for consistency.

    Examples
    --------
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> counts = np.arange(1024) % 10
    >>> release = matrix_mechanism(counts, dpf.workloads.prefix(1024), epsilon=1, random=SeededRandom(1))
    >>> release
    MatrixRelease(weighted blocks of 1, 16, 256: root mean squared error 10.907 (laplace noise))
    >>> bool(abs(release.answers - counts.cumsum()).max() < 60)
    True
    >>> bool(release.scale.max() < 20), release.event.sensitivity
    (True, 702)

    """
    WORKLOAD.read("workload", workload)
    show = read_progress(progress, "the name of a stage")
    budget, unit = read_budget(epsilon, delta, rho), read_unit(neighbors, max_groups, max_rows_per_group)
    if isinstance(strategy, Strategy):
        choice = Choice((consider(strategy, workload, budget, unit),))
    elif isinstance(strategy, str) and strategy == "auto":
        show("choosing a strategy")
        choice = choose_for(workload, budget, unit)
    else:
        raise ParameterError("strategy", strategy, '"auto", or a strategy of dpf.strategies')
    chosen, noise = choice.best.strategy, choice.best.noise
    payment = read_payment(ledger, budget, random, neighbors=unit.neighbors, dataset=dataset, privacy_unit=privacy_unit)
    counts = counted(histogram, chosen.shape)  # what is wrong with it is found before the charge
    source, _ = random_source(random), thread_count(threads, 1)
    nonnegative = NONNEGATIVE.read("nonnegative", nonnegative)
    entry = payment.charge(
        [charge_of(budget, noise, f"{number_of(len(workload), 'query', 'queries')} from {chosen.name}")]
    )
    show("measuring cells")
    cells = draw_cells(chosen, noise, counts, source, threads)
    if nonnegative:
        np.maximum(cells, 0.0, out=cells)
    return MatrixRelease(workload, chosen, noise, cells, choice, entry)


def charge_of(budget: Budget, noise: IntegerNoise, description: str) -> Charge:
    """Return the charge for noise that a budget bought: the very event that is drawn, which costs no more."""
    if budget.kind == "rho":
        return Charge(*declared_amounts(noise.event), description, noise.event)
    return Charge(budget.units, budget.delta_units if noise.mechanism == "gaussian" else 0, description, noise.event)


def draw_cells(
    strategy: Strategy, noise: IntegerNoise, histogram: NDArray[np.int64], random: RandomSource, threads: int | None
) -> NDArray[np.float64]:
    """Measure a histogram with noise, and return the least-squares cells; every call costs the noise's event."""
    return strategy.reconstruct(draw_columns(strategy, noise, histogram, random, threads), threads=threads)


def draw_columns(
    strategy: Strategy, noise: IntegerNoise, histogram: NDArray[np.int64], random: RandomSource, threads: int | None
) -> list[NDArray[np.int64]]:
    """Measure a histogram with noise, and return what was measured; every call costs the noise's event."""
    # Exact columns are let go as soon as they have their noise.
    exact = strategy.measure(histogram, threads=threads)
    return [noise.add(exact.pop(0), random, threads) for _ in range(len(exact))]
