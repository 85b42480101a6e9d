"""Private multiplicative weights, online: queries come one after the other, and few of them cost anything."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NoReturn

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from dpfast.accounting.budget import Delta, Epsilon, Rho, read_budget
from dpfast.accounting.privacy_unit import Neighbors, moved_cells, read_neighbors
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.arguments import Flag, Number, Special, Threads, Whole
from dpfast.errors import LedgerError, ParameterError, Words
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.ledger.receipt import entry_of
from dpfast.mechanisms.thresholds.runs import calibrate
from dpfast.mechanisms.thresholds.sparse_vector import SparseVector
from dpfast.progress import TellCount, forgetting, read_progress
from dpfast.randomness import Random, random_source
from dpfast.showing import Facts, Shown
from dpfast.synthesis.cell_weights import REPLAYS, TOTAL, Prior, Replays, Total, histogram_shape, public_weights
from dpfast.synthesis.fitted.exact_workload import ExactWorkload, public_steps
from dpfast.synthesis.shares import Share, SharedBudget, noise_for, positive_share, read_share, selection_for
from dpfast.threads import thread_count
from dpfast.turns import Turns
from dpfast.weights.model import FittedRows
from dpfast.workloads import Workload
from dpfast.workloads.histograms import CountsOfAnyShape, clamped, counted, no_arrays, numbers_of, records
from dpfast.workloads.matrix import Matrix
from dpfast.workloads.workload import WORKLOAD, Asked

__all__ = ["Answer", "PrivateMultiplicativeWeights"]

#: All answers are counted in steps of 2**-_BITS, whatever the coefficients.
_BITS = 20
_LARGEST_SUM_BITS = 60
#: Rows of measured queries may take so many bytes.
_MOST_BYTES = 2**32
UPDATES = Whole(1, 10**6, mend="write for example {name}=20")
SIGNED = Flag()
#: An error, or a softness.
POSITIVE = Number(0, 2**40, above=True, below=True)
QUERY = Special(lambda: (*no_arrays(), 3.0, [1.0] * 5, [2.0] * 4, [-2.0] * 4, [np.nan] * 4, [np.inf] * 4))
QUERIES = Whole(1, 2**62, mend="write for example {name}=1000")
BETA = Number(0, 1, above=True, below=True, mend="write for example {name}=0.05")
#: A query without any error is measured with this probability, where no threshold is given.
_FALSE_ALARM = 1e-3


@dataclass(frozen=True, slots=True)
class Answer(Shown):
    """An answer, and where it comes from.

    Attributes
    ----------
    value
        The answer.
    source
        "measured", with fresh noise, or "hypothesis", from the weights.
    exhausted
        Whether no update was left: nothing compares the hypothesis with the data any more.

    """

    value: float
    source: Literal["measured", "hypothesis"]
    exhausted: bool


class PrivateMultiplicativeWeights(Shown):
    """Answer linear queries as they come, from weights that learn from the few that they answer badly.

    Guarantee
        All answers of one object together are (epsilon, delta)-differentially private, or rho-zCDP, however many
        queries are asked and even if each is chosen after seeing the answers before it. The budget is charged whole at
        creation.

        Proof. For every query a sparse vector tests abs(a - e): a, the exact answer in steps of 2**-20, is a whole
        number, and e, made of the public weights, another. Neighbours move a, and so abs(a - e), by at most 2**20 s,
        s = 1 (2 for signed queries and replaced units, whose coefficients differ by up to 2). At most ``updates``
        positives are reported, for epsilon_v in all (`dpfast.SparseVector`); each of them is measured with Laplace
        noise of scale 2**20 s updates / epsilon_m, epsilon_m in all, or with Gaussian noise of a rho each. The rest is
        post-processing of these, and of the noisy total. Comparisons and measurements take turns, each query being
        chosen after all that came before; their shares add up all the same, for epsilon since the sparse vector's loss
        is bounded for every sequence of queries, for rho by concurrent composition (Lyu 2022). Shares are rounded down
        to units of 1e-18. A ``total`` that is given under "add_remove" must be public, known without these data: nobody
        is protected from what is told by a total that was counted in them.

    Parameters
    ----------
    histogram
        Exact counts: integers of any shape, each from 0 to 2**40 / cells. Others are refused; with a ledger they count
        as the nearest that is allowed.
    epsilon, delta, rho
        The whole budget: epsilon or rho. A delta beside epsilon, 0 by default, is spent where updates cost less by the
        largest rho that is (epsilon, delta)-private: where there may be many.
    updates
        How many queries may be measured. Then every answer comes from the weights, and says so.
    threshold
        The error from which on a query is measured, in units. By default a query without error is measured with
        probability 1/1000.
    signed
        Whether coefficients may be negative, from -1 to 1; else they lie between 0 and 1.
    neighbors
        "add_remove" or "replace".
    total
        The number of units, if it is public; for "replace" it is, by definition. Otherwise a ``total_share`` of the
        budget measures it.
    prior
        Public weights to start with, above 0, of the histogram's shape.
    test_share, total_share
        The part of the budget that the sparse vector gets, of what the total leaves, and the total's.
    softness
        How softly measurements hold the weights, in deviations of their noise.
    replays
        How often all measurements are fitted again after each, at most.
    ledger, dataset, privacy_unit, random
        As for `dpfast.mwem`.
    threads
        As all methods on histograms have it. Queries come one after the other, and nothing here is shared among
        threads: no result, and no time, depends on it.
    progress
        Called with the number of updates that were made: 0 before the charge, and after each one. What it returns
        changes nothing.

    Attributes
    ----------
    remaining
        How many updates are left.
    answered
        How many queries were answered.
    spent, entry
        What it cost, and the number of the first charge in the ledger.

    Raises
    ------
    ParameterError
        An argument is of another kind or range; nothing is charged.
    DataError
        Without a ledger: a count is negative or too large.
    BudgetExceededError, LedgerError
        The charge does not fit.

    Notes
    -----
    An update fits the weights to all measurements, as `dpfast.mwem` does. It belongs to one process, and cannot be
    copied or pickled: the copy would answer again for the same budget.

    References
    ----------
    Hardt, Rothblum (2010); Gupta, Roth, Ullman (2012); Dwork, Roth (2014), section 4.2. Lyu (2022), for interactive
    mechanisms side by side.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.testing import SeededRandom
    >>> ages = np.array([900, 3100, 4200, 5000, 3800, 2600, 1200, 200])
    >>> online = PrivateMultiplicativeWeights(ages, epsilon=1.0, updates=4, random=SeededRandom(1))
    >>> online.answer([1, 1, 1, 0, 0, 0, 0, 0]).source, online.remaining
    ('measured', 3)
    >>> online.answer([1, 1, 1, 0, 0, 0, 0, 0]).source, online.remaining
    ('hypothesis', 3)

    """

    def __init__(
        self,
        histogram: CountsOfAnyShape,
        *,
        epsilon: Epsilon = None,
        delta: Delta = 0,
        rho: Rho = None,
        updates: Annotated[int, UPDATES] = 20,
        threshold: Annotated[float | None, replace(POSITIVE, optional=True)] = None,
        signed: Annotated[bool, SIGNED] = False,
        neighbors: Neighbors = "add_remove",
        total: Total = None,
        prior: Prior = None,
        test_share: Share = 0.5,
        total_share: Share = 0.05,
        softness: Annotated[float, POSITIVE] = 0.3,
        replays: Replays = 100,
        ledger: Payer = None,
        dataset: OwnName = None,
        privacy_unit: OwnName = None,
        random: Random = None,
        threads: Threads = None,
        progress: TellCount = None,
    ) -> None:
        thread_count(threads, 1)
        self._show = read_progress(progress, "the number of updates made")
        self._neighbors = read_neighbors(neighbors)
        given = read_budget(epsilon, delta, rho)
        self.updates = UPDATES.read("updates", updates)
        shared = SharedBudget.of(given, self.updates, moved_cells(self._neighbors))
        budget = shared.split
        kind, units = budget.kind, budget.units
        self._replays = REPLAYS.read("replays", replays)
        self._signed = SIGNED.read("signed", signed)
        self._softness = POSITIVE.read("softness", softness)
        self.shape = histogram_shape(histogram)
        cells = math.prod(self.shape)
        start = public_weights(prior, cells)
        public = TOTAL.read_optional("total", total)
        self._public_total = neighbors == "replace" or total is not None
        charges, total_noise, name = [], None, f"multiplicative weights over {cells:,} cells"
        if not self._public_total:
            own = positive_share(int(units * read_share(total_share, "total_share")), budget, "lower updates")
            units -= own
            total_noise, charge = noise_for(kind, own, Sensitivity(1, 1), 1, f"{name}: total")
            charges.append(charge)
        testing = positive_share(int(units * read_share(test_share, "test_share")), budget, "lower updates")
        test = selection_for(kind, testing, "sparse_vector", 1, f"{name}: comparisons")
        measuring = positive_share((units - testing) // self.updates, budget, "lower updates")
        width = (2 if self._signed and neighbors == "replace" else 1) << _BITS
        moved = Sensitivity.of_answers(1, width, width**2)
        self._noise, charge = noise_for(kind, measuring, moved, self.updates, f"{name}: measurements")
        # Noise far below 1 is 0 almost surely, but a measurement needs a weight.
        self._deviation = max(self._noise.deviation, self._noise.scale)
        charges += [test.charge, charge]
        scales = calibrate(test.epsilon, width, False, self.updates, None).scales
        self._scales = scales[0] * 2.0**-_BITS, scales[1] * 2.0**-_BITS
        self.threshold = self._default_threshold() if threshold is None else POSITIVE.read("threshold", threshold)
        payment = read_payment(
            ledger, given, random, neighbors=self._neighbors, dataset=dataset, privacy_unit=privacy_unit
        )
        source = random_source(random)
        self._show(0)  # before the charge: nothing is lost where it raises
        counts = counted(histogram, self.shape)  # what is wrong with its type is found before the charge
        self.entry = entry_of(shared.charge(payment, charges, name))
        largest = 2 ** (_LARGEST_SUM_BITS - _BITS) // cells
        self._cells: NDArray[np.int64] | None = clamped(counts, largest, clamp=ledger is not None)
        self._source = source
        self._sparse = SparseVector(
            math.ldexp(self.threshold, _BITS), test.epsilon, width, count=self.updates, random=random
        )
        if total_noise is not None:
            size = int(total_noise.add(self._cells.sum(keepdims=True), source)[0])
        else:
            size = records(histogram) if public is None else public
        self._size = float(min(max(size, 1), 2 ** (_LARGEST_SUM_BITS - _BITS)))
        start *= self._size / float(start.sum())
        self._least = float(start.min())
        deviation = total_noise.deviation if total_noise else 0.0
        soft = self._softness / (self._deviation * 2.0**-_BITS)
        self._fitted = FittedRows(start, (self._size, deviation), soft)
        self.spent = shared.charged.shown
        self.answered = 0
        self._turns = Turns("multiplicative weights do not outlive a fork: both processes would answer for one charge")

    def _default_threshold(self) -> float:
        """Return T with P(N >= T + N0) = exp(-T / b) b / (b0 + b) = 1/1000, N0 and N of scales b0 and b."""
        base, scale = self._scales
        return max(scale * math.log(scale / (base + scale) / _FALSE_ALARM), scale)

    @property
    def remaining(self) -> int:
        """How many updates are left."""
        return self._sparse.remaining

    @property
    def histogram(self) -> NDArray[np.float64]:
        """The weights of all cells as they are now: public."""
        return self._fitted.weights.reshape(self.shape).copy()

    def answer(self, query: Annotated[ArrayLike, QUERY]) -> Answer:
        """Answer one query.

        Parameters
        ----------
        query
            An array of the histogram's shape, or of as many cells in one dimension, with coefficients from 0 to 1.

        Returns
        -------
        Answer
            ``value``, ``source`` and ``exhausted``.

        Raises
        ------
        ParameterError
            The query has another length or a coefficient out of range.

        """
        cells = math.prod(self.shape)
        allowed = f"numbers or Booleans of shape {self.shape}, or {cells:,} in one dimension"
        row = numbers_of(query, "query", [self.shape, (cells,)], allowed)
        if row.dtype.kind == "f" and not np.isfinite(row).all():
            raise ParameterError("query", Words("NaN or infinite somewhere"), "finite")
        frame = self._answer_all(Matrix(row.reshape(1, *self.shape)), "query")
        value, source, exhausted = frame.row(0)
        return Answer(value, source, exhausted)

    def answer_all(self, workload: Asked) -> pl.DataFrame:
        """Answer all queries of a workload, in their order.

        Parameters
        ----------
        workload
            Queries over the histogram's shape, with coefficients from 0 to 1.

        Returns
        -------
        polars.DataFrame
            For each query ``value``, ``source`` ("measured" or "hypothesis") and ``exhausted``.

        Raises
        ------
        ParameterError
            The workload has another shape or a coefficient out of range.

        """
        return self._answer_all(workload, "workload")

    def _answer_all(self, workload: Workload, argument: str) -> pl.DataFrame:
        """Answer all queries of what errors call by this name."""
        WORKLOAD.read(argument, workload)
        if workload.shape != self.shape:
            raise ParameterError(argument, Words(f"over the shape {workload.shape}"), f"over the shape {self.shape}")
        low, high = workload.range
        least = -1.0 if self._signed else 0.0
        if not (least <= low and high <= 1.0):
            mend = "" if self._signed else "scale it, or make the object with signed=True"
            given = Words(f"of coefficients from {low:g} to {high:g}")
            raise ParameterError(argument, given, f"of coefficients from {least:g} to 1", mend)
        needed = 8 * self.updates * workload.cells
        if not workload.binary and needed > _MOST_BYTES:
            allowed = f"zeros and ones over so many cells (rows of {self.updates} measured ones take {needed:,} bytes)"
            raise ParameterError(
                argument, Words("of real coefficients"), allowed, "make cells coarser, or updates fewer"
            )
        with self._turns.turn(), forgetting():
            return self._answered(workload, ExactWorkload(workload, _BITS))

    def _answered(self, workload: Workload, queries: ExactWorkload) -> pl.DataFrame:
        values = np.empty(len(workload))
        measured = np.zeros(len(workload), np.bool_)
        exhausted = np.ones(len(workload), np.bool_)
        exact = None
        place = 0
        while place < len(workload):
            estimates = np.asarray(workload.answer(self._fitted.weights), dtype=np.float64)
            values[place:] = estimates[place:]
            if self._sparse.remaining == 0 or self._cells is None:
                self._cells = None  # nothing needs the data any more
                break
            if exact is None:
                exact = queries.answers(self._cells) << (_BITS - queries.bits)
            with np.errstate(over="ignore"):
                public = public_steps(np.ldexp(estimates[place:], _BITS), 2.0**61)
            above = self._sparse.test(np.abs(exact[place:] - public), most=1)
            exhausted[place : place + above.size] = False
            place += above.size
            if above.size and above[-1]:
                query = place - 1
                values[query] = self._update(workload.rows(query, query + 1), exact[query : query + 1])
                measured[query] = True
        self.answered += len(workload)
        source = pl.Series("source", np.where(measured, "measured", "hypothesis"), dtype=pl.String)
        return pl.DataFrame({"value": values, "source": source, "exhausted": exhausted})

    def _update(self, row: NDArray[Any], exact: NDArray[np.int64]) -> float:
        """Measure a query, fit the weights, and return its noisy answer."""
        noisy = self._noise.add(exact, self._source) * 2.0**-_BITS
        binary = bool(((row == 0) | (row == 1)).all())
        place = self._fitted.append(row, binary=binary)
        self._fitted.measure(place, np.asarray(noisy, dtype=np.float64), self._deviation * 2.0**-_BITS)
        self._fitted.replay(1, place)  # the step that `utility` counts on comes first
        self._fitted.replay(self._replays)
        self._show(self.updates - self._sparse.remaining)
        return float(noisy[0])

    def utility(self, queries: Annotated[int, QUERIES], beta: Annotated[float, BETA] = 0.05) -> float:
        """Return an error that no answer to so many queries exceeds with probability at least 1 - beta.

        It is infinite where there is no such bound.

        Guarantee
            For a public total n. Let b be the scale of the noise on each of k comparisons, b0 that of the noise on the
            threshold T, and A a bound of the noise of the measurements. With probability at least 1 - beta, no noise of
            a comparison is above b ln(3k / beta), that of the threshold is below b0 ln(3 / beta), and that of the
            measurements is within A. Then a query is measured only if the weights err by T - b ln(3k / beta) or more,
            so that its noisy answer is at least g = T - b ln(3k / beta) - A away from theirs. The step that fits it
            raises the dual, a concave function that starts at 0, by max over t <= 1 of t g - t**2 c / 2 - n (exp(t) - 1
            - t), which is g**2 / (2 c + 2.88 n) or more for g <= n, as exp(t) - 1 - t <= 0.72 t**2; c is the softness
            in units. Replays raise it too. It never exceeds the primal at the true histogram: its relative entropy to
            the start, at most n ln(n / least weight), and A**2 / (2 c) for each measurement. If ``updates`` such steps
            would be more than that, the updates never end, and all answers err by T + b0 ln(3 / beta) at most, or by A.

        Parameters
        ----------
        queries
            How many are asked.
        beta
            The probability that it fails.

        Notes
        -----
        The potential argument of Hardt, Rothblum (2010), for this step. It is far from what happens with few updates:
        with softness = n / (the deviation of the noise) it takes about 6 n**2 ln(cells) / T**2 of them.

        """
        count, beta = QUERIES.read("queries", queries), BETA.read("beta", beta)
        if not self._public_total:
            raise ParameterError("total", None, "public for this bound", "make the object with total=")
        base, scale = self._scales
        grid = 2.0**-_BITS
        largest_noise = self._noise.half_width(beta / (3 * self.updates)) * grid
        gap = self.threshold - scale * math.log(3 * count / beta) - largest_noise - grid
        soft = self._softness * self._deviation * grid
        size = self._size
        if gap <= 0.0:
            return math.inf
        gain = min(gap, size) ** 2 / (2 * soft + 2.88 * size)
        if self.updates * (gain - largest_noise**2 / (2 * soft)) <= size * math.log(size / self._least):
            return math.inf
        return max(self.threshold + base * math.log(3 / beta) + grid, largest_noise)

    def __reduce__(self) -> NoReturn:
        raise LedgerError("private multiplicative weights cannot be pickled or copied: each copy would answer again")

    def _facts(self) -> Facts:
        """Return what is left."""
        return [("updates", self.updates), ("remaining", self.remaining), ("spent", self.spent)]
