"""A value that most random subsamples agree on, released as it is (algorithm 14), with far fewer runs than there."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Choice, Number, Real, Whole
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.parameters import Epsilon
from dpfast.progress import TellCount, forgetting
from dpfast.randomness import Keystream, Purpose, Random, RandomSource, random_source
from dpfast.showing import Shown
from dpfast.stability.aggregators import UnlistedMode
from dpfast.stability.answers import Paid, StableAnswer
from dpfast.stability.blocks import assign_blocks
from dpfast.stability.passing import Delta, Test, read_delta, read_test
from dpfast.stability.processes import FixedTime, Function, Timeout, Workers, prepare_calls
from dpfast.stability.rows import Data, Loaded, read_rows
from dpfast.stability.subsample_and_aggregate import Dataset, Unit

__all__ = ["SubsamplingConstants", "passing_distance", "release_if_subsamples_agree", "subsampling_constants"]

_REPEATS = Whole(1, 2**20)
_BLOCKS = Whole(2, 2**20, optional=True, mend="write for example {name}=100")
_SUBSAMPLES = Whole(2, 2**31, optional=True)
_RATE = Number(0, 1, above=True, optional=True)
_CONSTANTS = Choice(("book",), optional=True)
_ROWS = Whole(1, 2**62)
_Rows: TypeAlias = Annotated[int, _ROWS]


@dataclass(frozen=True)
class SubsamplingConstants(Shown):
    """The reference's constants of algorithm 14.

    Attributes
    ----------
    rate
        q: each row is in a subsample with this probability, apart from all others.
    subsamples
        m: how many subsamples, each of which takes a run of the function.

    """

    rate: float
    subsamples: int


def subsampling_constants(epsilon: Epsilon, delta: Delta, rows: _Rows) -> SubsamplingConstants:
    """Return q = epsilon / (64 ln(1 / delta)) and m = ln(n / delta) / q**2 of the reference's algorithm 14.

    Guarantee
        None is needed: no data are involved. The number of rows is taken to be public.

    Parameters
    ----------
    epsilon, delta
        Of `dpfast.release_if_subsamples_agree`.
    rows
        n.

    Returns
    -------
    SubsamplingConstants
        ``rate`` and ``subsamples``, rounded up.

    Raises
    ------
    ParameterError
        An argument is not as above, or the rate would be above 1.

    References
    ----------
    Dwork, Roth (2014), algorithm 14 and lemma 7.4.

    Examples
    --------
    >>> subsampling_constants(1.0, 1e-6, 10**6).subsamples
    21601841

    """
    share, rare = budget_units(epsilon, "epsilon") / UNITS_PER_ONE, read_delta(delta) / UNITS_PER_ONE
    number = _ROWS.read("rows", rows)
    rate = share / (64.0 * -math.log(rare))
    if not rate <= 1.0:
        raise ParameterError("epsilon", epsilon, "at most 64 ln(1 / delta) for these constants")
    subsamples = math.ceil((math.log(number) - math.log(rare)) / rate**2) if rate > 1e-100 else math.inf
    if not subsamples <= 2**62:
        raise ParameterError("epsilon", epsilon, "larger: the constants ask for more than 2**62 subsamples")
    return SubsamplingConstants(rate, int(subsamples))


def release_if_subsamples_agree(
    data: Data,
    function: Function,
    *,
    epsilon: Epsilon,
    delta: Delta,
    blocks: Annotated[int | None, _BLOCKS] = None,
    repeats: Annotated[int, _REPEATS] = 1,
    subsamples: Annotated[int | None, _SUBSAMPLES] = None,
    rate: Annotated[Real | None, _RATE] = None,
    constants: Annotated[Literal["book"] | None, _CONSTANTS] = None,
    test: Test = "optimal",
    neighbors: Neighbors = "add_remove",
    unit: Unit = None,
    timeout: Timeout = 60.0,
    workers: Workers = None,
    fixed_time: FixedTime = False,
    progress: TellCount = None,
    ledger: Payer = None,
    dataset: Dataset = None,
    privacy_unit: Dataset = None,
    random: Random = None,
) -> StableAnswer:
    """Run a function on random subsamples; release what most of them give, without noise, if it leads by enough.

    Guarantee
        (epsilon, delta)-differentially private, whatever the function does, for neighbours that differ in one row, or
        with ``unit`` in the rows of one unit.

        Proof. The subsamples that a row is in are drawn without a look at the rows, and it is in at most L: with
        ``blocks`` in one block of each of L = ``repeats`` partitions; with ``subsamples`` and ``rate`` in the first
        L = floor(2 m q) that it was drawn for. So neighbours differ in the answers of at most L subsamples, and the
        lead of the first answer over the second by at most 2 L; where the first one changes, it is at most 2 L on both
        sides. So ceil(lead / 2 L) - 1, and 0 at least, is a distance to instability for the test
        (`dpfast.stability.passing`). The text's form stops where a row is in more than 2 m q subsamples, which costs
        the probability of that under add/remove; leaving the row out of the rest costs nothing.

        Calls that fail are no votes; time is not hidden: see `dpfast.subsample_and_aggregate`.

    Parameters
    ----------
    data, function
        As for `dpfast.subsample_and_aggregate` with the mode: the function returns any plain value.
    epsilon, delta
        Of the test; delta above 0.
    blocks
        Into how many blocks the rows are parted. Even if all agree, a distance of more than blocks / 2 is not to be
        had: by default there are four times as many as would pass the test with probability 0.95 if all agreed, so
        that a lead of half of them is enough.
    repeats
        How many partitions. More of them make the lead less a matter of chance, and cost runs, but no privacy.
    subsamples, rate
        Instead of blocks: so many independent subsamples, to which each row belongs with this probability.
    constants
        ``"book"``: `dpfast.stability.subsampling_constants` for the number of rows, which must be public:
        ``neighbors="replace"``.
    test
        As for `dpfast.release_if_stable`.
    neighbors, unit, timeout, workers, fixed_time, progress, ledger, dataset, privacy_unit, random
        As for `dpfast.subsample_and_aggregate`.

    Returns
    -------
    StableAnswer
        Its ``value`` is exact; None where the test did not pass.

    Raises
    ------
    ParameterError, ColumnError
        An argument is not as above; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else; nothing is charged.
    DpfastError
        The data cannot be read, after the charge.

    Notes
    -----
    For epsilon 1, delta 1e-6 and a million rows the text's constants ask for 21,601,841 runs on 1,131 rows each; by
    default 64 runs on 15,625 rows each do.

    References
    ----------
    Smith, Thakurta (2013). Dwork, Roth (2014), algorithm 14, theorem 7.3 and lemma 7.4.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> def best_column(rows: np.ndarray) -> int:
    ...     return int(rows.sum(axis=0).argmax())
    >>> votes = np.tile([3, 9, 4], (5_000, 1))
    >>> dpf.release_if_subsamples_agree(votes, best_column, epsilon=1.0, delta=1e-6, workers=0).value
    1
    >>> dpf.release_if_subsamples_agree(votes, best_column, epsilon=1.0, delta=0)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: delta must be a number from 1e-18 to below 1, but was 0; write for example delta=1e-6

    """
    relation = read_neighbors(neighbors)
    amounts = budget_units(epsilon, "epsilon"), read_delta(delta)
    passing = read_test(test, *amounts)
    passing.prepare()
    rows = read_rows(data, unit)
    times = _REPEATS.read("repeats", repeats)
    parts = _BLOCKS.read_optional("blocks", blocks)
    chosen = _read_samples(subsamples, rate, constants, parts, times, relation)
    if parts is None:
        parts = 4 * (passing_distance(passing.probability) + 1)
        if chosen is None and constants is None and parts > 2**20:
            raise ParameterError("epsilon", epsilon, "larger: more than 2**20 blocks would have to agree")
    if chosen is None and constants is None and parts * times > 2**31:
        raise ParameterError("repeats", repeats, "fewer: there would be more than 2**31 calls")
    calls = prepare_calls(
        function,
        timeout=timeout,
        workers=workers,
        progress=progress,
        fixed_time=fixed_time,
        numeric=False,
        data=data,
    )
    about = privacy_unit if privacy_unit is not None or unit is None else unit
    payment = read_payment(
        ledger, Budget("epsilon", *amounts), random, neighbors=relation, dataset=dataset, privacy_unit=about
    )
    source = random_source(random)
    cost = passing.cost("value that subsamples agree on")
    paid = Paid(payment, [cost])

    def draw() -> StableAnswer:
        nonlocal chosen
        loaded = rows.load()
        if constants is not None:
            given = subsampling_constants(epsilon, delta, max(loaded.count, 1))
            chosen = given.subsamples, Fraction(given.rate)
        if chosen is None:
            each = [assign_blocks(loaded, parts, source, equal=relation == "replace") for _ in range(times)]
            number, changed = parts * times, times
            what = f"{times} random partition{'s' * (times > 1)} into {parts} blocks"

            def rows_of(place: int) -> NDArray[np.int64]:
                return each[place // parts].rows(place % parts)
        else:
            number, changed = chosen[0], math.floor(2 * chosen[0] * chosen[1])
            rows_of = _Subsamples(loaded, chosen[1], changed, source).rows
            what = f"{number} subsamples of rate {float(chosen[1]):.6g}, each row in at most {changed}"
        answers = calls.run(lambda place: (loaded.take(rows_of(place)),), number)
        value = UnlistedMode(passing, changed).run(answers, source)
        told = [f"release if subsamples agree: {what}; neighbours {relation}", passing.told()]
        return paid.give(value, told)

    with forgetting():
        return draw()


def passing_distance(probability: Callable[[int], float]) -> int:
    """Return the least distance that passes with probability 0.95."""
    low, high = -1, 1
    while probability(high) < 0.95:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if probability(middle) < 0.95 else (low, middle)
    return high


def _read_samples(
    subsamples: Any, rate: Any, constants: Any, blocks: int | None, repeats: int, relation: str
) -> tuple[int, Fraction] | None:
    """Return the number of independent subsamples and their rate, if these were asked for."""
    number, share = _SUBSAMPLES.read_optional("subsamples", subsamples), _RATE.read_optional("rate", rate)
    book = _CONSTANTS.read_optional("constants", constants)
    independent = "subsamples" if number is not None else "rate" if share is not None else "constants"
    if (number is not None or share is not None or book is not None) and (blocks is not None or repeats > 1):
        named, given = ("blocks", blocks) if blocks is not None else ("repeats", repeats)
        raise ParameterError(named, given, f"left out where {independent} is given")
    if book is not None:
        if number is not None or share is not None:
            raise ParameterError("constants", book, "left out where subsamples or rate is given")
        if relation != "replace":
            raise ParameterError(
                "constants", book, 'left out unless neighbors="replace"', "they depend on the number of rows"
            )
        return None
    if number is None and share is None:
        return None
    if number is None or share is None:
        missing, other = ("subsamples", "rate") if number is None else ("rate", "subsamples")
        raise ParameterError(missing, None, f"given where {other} is")
    exact = Fraction(share)
    if 2 * number * exact < 1:
        raise ParameterError("rate", Words(f"{share:g}"), "such that 2 * subsamples * rate is at least 1")
    return number, exact


class _Subsamples:
    """Subsamples drawn one after the other, each row in the first so many of those that it was drawn for."""

    def __init__(self, rows: Loaded, rate: Fraction, most: int, source: RandomSource) -> None:
        units = np.arange(rows.count) if rows.units is None else rows.units
        self._units, self._rate, self._most = units, math.floor(rate * 2**64), most
        self._used = np.zeros(int(units.max(initial=-1)) + 1, np.int64)
        self._words = Keystream(source.key()).words(Purpose.BOUNDING)
        self._drawn = 0
        self._waiting: dict[int, NDArray[np.int64]] = {}
        self._lock = threading.Lock()

    def rows(self, place: int) -> NDArray[np.int64]:
        """Return the rows of a subsample; each is asked for once."""
        with self._lock:
            while place not in self._waiting:
                self._waiting[self._drawn] = self._draw()
                self._drawn += 1
            return self._waiting.pop(place)

    def _draw(self) -> NDArray[np.int64]:
        words = np.empty(self._used.size, np.uint64)
        self._words.fill(self._drawn, words)
        drawn = words < np.uint64(self._rate) if self._rate < 2**64 else np.ones(words.size, bool)
        drawn &= self._used < self._most
        self._used += drawn
        return np.flatnonzero(np.append(drawn, False)[self._units])
