"""Subsample and aggregate: any function, run on disjoint blocks of the data, and one private value of its answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

from dpfast.accounting.budget import Budget, Delta
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Choice, Number, Real, Special, Text, Whole
from dpfast.columns.grid import Bounds, check_bounds
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.parameters import Epsilon
from dpfast.progress import TellCount, forgetting
from dpfast.randomness import Random, random_source
from dpfast.stability import aggregators
from dpfast.stability.answers import Paid, StableAnswer
from dpfast.stability.blocks import assign_blocks
from dpfast.stability.named import OptionalGrid
from dpfast.stability.passing import TEST, Test, read_delta, read_test
from dpfast.stability.processes import FixedTime, Function, Timeout, Workers, prepare_calls
from dpfast.stability.rows import Data, read_rows
from dpfast.stability.smooth import smooth_noise
from dpfast.stability.trimming import TRIM, Trim
from dpfast.stability.worker import label_of

__all__ = ["BLOCKS", "DATASET", "UNIT_NAME", "Dataset", "Unit", "subsample_and_aggregate"]

BLOCKS = Whole(1, 2**20, mend="write for example {name}=100")
_NAMES = ("median", "mean", "trimmed_mean", "winsorized_mean", "mode")
_AGGREGATOR, _SENSITIVITY = Choice(_NAMES), Choice(("global", "smooth"))
_DEFAULT = Number(optional=True)


def _no_candidates() -> Iterator[object]:
    yield from (5, True, "ab", b"ab", [], {"a": 1}, object(), [None], ["a", "a"], [1, 1.0], [math.nan], [object()])


def _no_bounds() -> Iterator[object]:
    yield from (5, "01", (), (1,), (0, 1, 2), (5, 5), (9, 0), (0, math.nan), (0, 1e301), object())


_Candidates: TypeAlias = Annotated[Sequence[object] | None, Special(_no_candidates, optional=True)]
_OptionalBounds: TypeAlias = Annotated[Bounds | None, Special(_no_bounds, optional=True)]
DATASET = Text(optional=True)
#: A name of the data, or of the privacy unit, in a ledger.
Dataset: TypeAlias = Annotated[str | None, DATASET]
UNIT_NAME = Special(lambda: (5, True, "", b"a", ["a"], object()), optional=True)
#: The column that names the privacy unit, or None if each row is one.
Unit: TypeAlias = Annotated[str | None, UNIT_NAME]


def subsample_and_aggregate(
    data: Data,
    function: Function,
    *,
    blocks: Annotated[int, BLOCKS],
    epsilon: Epsilon,
    delta: Delta = None,
    aggregator: Annotated[Literal["median", "mean", "trimmed_mean", "winsorized_mean", "mode"], _AGGREGATOR] = "median",
    bounds: _OptionalBounds = None,
    candidates: _Candidates = None,
    default: Annotated[Real | None, _DEFAULT] = None,
    grid: OptionalGrid = None,
    trim: Trim = 0.25,
    sensitivity: Annotated[Literal["global", "smooth"], _SENSITIVITY] = "global",
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
    """Run any function on disjoint random blocks of the data, and release one private value of its answers.

    Guarantee
        (epsilon, delta)-differentially private, whatever the function does; delta is 0 unless one is given. Neighbours
        differ in one row, or with ``unit`` in the rows of one unit: added or removed, or exchanged for others.

        Proof. A row's block is drawn without a look at the rows (`dpfast.stability.blocks`), so that neighbours differ
        in one block; and the answer of a block depends on its rows alone, since each call runs in a process of its own.
        So one answer of ``blocks`` is exchanged for another. A mean over the grid then moves by the distance of the
        bounds times its largest weight, over the divisor; the median's scores by one rank; each count of votes by 1;
        the lead of the first by 2. The mechanisms are private for that.

        A call that raises, dies, takes longer than ``timeout`` or gives something else than asked for is a value of its
        block: ``default``, or no vote. What remains visible is time: how long the whole takes, and when ``progress`` is
        called, depends on the data. ``fixed_time`` makes the whole take as long as if every call ran into its timeout.

    Parameters
    ----------
    data
        A column or a frame: Polars DataFrame, LazyFrame or Series; PyArrow Table, RecordBatch, Array or ChunkedArray;
        pandas DataFrame or Series, without its index; NumPy array, by its first axis; list. Categoricals and
        dictionaries become plain values, as their categories tell of other rows; metadata are left out; text of NumPy
        is as wide as its block needs.
    function
        Takes the rows of one block, as the kind that was given (Polars frames for a LazyFrame), which may be none;
        returns a finite number, or for "mode" a candidate, or any plain value: a string, number, truth value or bytes,
        or a tuple or list of these. Try it on made-up rows first: nothing will tell that it fails,
        or that a block holds objects that cannot be pickled.
    blocks
        How many. The answers of so many independent samples of n / blocks rows are made one.
    epsilon
        A number from 1e-18 to 1e6.
    delta
        For "mode" without ``candidates`` a number above 0. With ``sensitivity="smooth"``: noise is then Laplace, and
        without it Cauchy noise, whose tails are heavy.
    aggregator
        ``"median"``: the exponential mechanism over the grid. ``"mean"``, ``"trimmed_mean"``, ``"winsorized_mean"``:
        with noise. ``"mode"``: the value that most blocks agree on.
    bounds
        The lowest and the highest answer, for all but "mode"; others are clipped. Public.
    candidates
        The answers that "mode" may give, by permute-and-flip. Without them the mode is released if it leads by enough.
    default
        What counts for an answer that is no number: by default the middle of the bounds.
    grid
        The distance between the points that the median is drawn from, a power of two: by default the bounds are parted
        into 2,048 to 4,096 steps.
    trim
        The part of the answers that is cut off, or pulled in, at each end.
    sensitivity
        ``"global"``: noise for the most that one answer can ever change. ``"smooth"``, for the trimmed mean: noise
        that follows how much one can change these answers; much less where they agree.
    test
        Of "mode" without candidates; see `dpfast.release_if_stable`.
    neighbors
        ``"add_remove"`` or ``"replace"``, for which blocks are of equal sizes.
    unit
        The column of a frame that names the privacy unit, all rows of which lie in one block: strings, integers,
        dates. Rows without one are left out.
    timeout
        Seconds that one call may take, loading its rows included. Public.
    workers
        How many processes; by default one for each core. 0 calls the function in this process: without a timeout, and
        what it keeps from one block to the next breaks the guarantee.
    fixed_time
        Whether to wait, in the end, until ceil(blocks / workers) timeouts have passed.
    progress
        Called with the number of blocks done.
    ledger
        The budget that is charged, before the function is called.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row", or the name of ``unit``.
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    StableAnswer
        Its ``value`` is a float; with "mode" a candidate, or None if no answer led by enough.

    Raises
    ------
    ParameterError, ColumnError
        An argument is not as above, or the function cannot be sent to another process; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else; nothing is charged.
    DpfastError
        The data cannot be read, after the charge.

    Notes
    -----
    A mode among c candidates needs about 2 ln(c) / epsilon blocks, even if all agree. The median's rank is off by no
    more than 2 ln(20 * points) / epsilon with probability 0.95: with few blocks, a coarser grid is better. The trimmed
    and winsorised means have a *larger* global sensitivity than the mean; they are meant for ``sensitivity="smooth"``.

    References
    ----------
    Nissim, Raskhodnikova, Smith (2007); Smith (2011). Dwork, Roth (2014), section 7.1. Bun, Steinke (2019) for trimmed
    means.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> delays = np.arange(40_000) % 200
    >>> answer = dpf.subsample_and_aggregate(delays, np.median, blocks=200, bounds=(0, 1000), epsilon=1.0, workers=0)
    >>> bool(abs(answer.value - 100) < 25)
    True
    >>> dpf.subsample_and_aggregate(delays, np.median, blocks=200, epsilon=1.0)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: bounds must be given for numbers, but was None; write for example bounds=(0, 600)

    """
    number, kind, relation = BLOCKS.read("blocks", blocks), _AGGREGATOR.read("aggregator", aggregator), neighbors
    relation = read_neighbors(neighbors)
    amounts = budget_units(epsilon, "epsilon"), 0 if delta is None else budget_units(delta, "delta")
    rows = read_rows(data, unit)
    chosen = _aggregator(kind, number, amounts, bounds, candidates, default, grid, trim, sensitivity, test)
    labels = (
        None if not isinstance(chosen, aggregators.VotedMode) else [str(label_of(one)) for one in chosen.candidates]
    )
    calls = prepare_calls(
        function,
        timeout=timeout,
        workers=workers,
        progress=progress,
        fixed_time=fixed_time,
        choices=labels,
        numeric=kind != "mode",
        data=data,
    )
    about = privacy_unit if privacy_unit is not None or unit is None else unit
    budget = Budget("epsilon", *amounts)
    payment = read_payment(ledger, budget, random, neighbors=relation, dataset=dataset, privacy_unit=about)
    source = random_source(random)
    paid = Paid(payment, [chosen.cost])

    def draw() -> StableAnswer:
        loaded = rows.load()
        assigned = assign_blocks(loaded, number, source, equal=relation == "replace")
        answers = calls.run(lambda block: (loaded.take(assigned.rows(block)),), number)
        per = "each row" if unit is None else f"each {unit}"
        told = [
            f"subsample and aggregate: {number} blocks, {per} in one of them, drawn at random; neighbours {relation}",
            chosen.told(),
            "time is not hidden"
            if not calls.fixed_time
            else "the whole takes as long as if every block ran into its timeout",
        ]
        return paid.give(chosen.run(answers, source), told)

    with forgetting():
        return draw()


def _aggregator(
    kind: str,
    blocks: int,
    amounts: tuple[int, int],
    bounds: Any,
    candidates: Any,
    default: Any,
    grid: Any,
    trim: Any,
    sensitivity: Any,
    test: Any,
) -> aggregators.Aggregator:
    """Return the mechanism that was asked for."""
    epsilon, delta = amounts
    cut, smooth = TRIM.read("trim", trim), _SENSITIVITY.read("sensitivity", sensitivity) == "smooth"
    if smooth and kind != "trimmed_mean":
        raise ParameterError("sensitivity", sensitivity, 'left out, or "global", for all but the trimmed mean')
    needs_delta = kind == "mode" and candidates is None
    if delta and not needs_delta and not smooth:
        mend = "" if kind != "mode" else "leave out delta, or the candidates"
        raise ParameterError("delta", delta / UNITS_PER_ONE, "left out: this aggregator is of pure epsilon", mend)
    TEST.read("test", test)
    tested = None
    if needs_delta:
        tested = read_test(test, epsilon, read_delta(Fraction(delta, UNITS_PER_ONE) if delta else None))
    if kind == "mode":
        for name, given in (("bounds", bounds), ("default", default), ("grid", grid)):
            if given is not None:
                raise ParameterError(name, given, "left out for the mode, which is of votes")
        if tested is not None:
            tested.prepare()
            return aggregators.UnlistedMode(tested)
        return aggregators.VotedMode(_read_candidates(candidates), epsilon)
    if candidates is not None:
        given = Words(f"a {type(candidates).__name__}")
        raise ParameterError("candidates", given, "left out for all but the mode")
    if bounds is None:
        raise ParameterError("bounds", None, "given for numbers", "write for example bounds=(0, 600)")
    lower, upper = check_bounds(bounds)
    middle = _DEFAULT.read("default", lower / 2 + upper / 2 if default is None else default)
    if grid is not None and kind != "median":
        raise ParameterError("grid", grid, "left out for all but the median")
    if kind == "median":
        return aggregators.Median(aggregators.grid_of_medians((lower, upper), grid), middle, epsilon)
    fine = aggregators.grid_of_means((lower, upper))
    if smooth:
        noise = smooth_noise(Fraction(epsilon, UNITS_PER_ONE), Fraction(delta, UNITS_PER_ONE))
        return aggregators.SmoothMean(fine, middle, epsilon, delta, blocks, cut, noise)
    return aggregators.Mean(fine, middle, epsilon, kind, blocks, cut)  # type: ignore[arg-type]


def _read_candidates(candidates: Any) -> tuple[Any, ...]:
    """Return candidates that are plain values, each once."""
    allowed = "a list of different strings, numbers, truth values or tuples of these"
    listed: tuple[Any, ...] = ()
    if hasattr(candidates, "__len__") and not isinstance(candidates, (str, bytes, dict)):
        listed = tuple(candidates)
    labels = [label_of(one) for one in listed]
    if not labels or None in labels or len({*labels}) != len(labels):
        raise ParameterError("candidates", candidates, allowed, 'write for example candidates=["linear", "tree"]')
    return listed
