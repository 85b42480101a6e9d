"""Counters of streams: noisy running totals at every step, for one charge."""

from __future__ import annotations

import os
from typing import Annotated, TypeAlias

from dpfast.accounting.budget import Delta, Epsilon, Rho, read_budget
from dpfast.accounting.privacy_unit import Bound, Neighbors, read_neighbors
from dpfast.arguments import Special, Threads, Whole
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.randomness import Random, random_source
from dpfast.streaming.counter import ContinualCounter
from dpfast.streaming.keeping import PATH, StateFile, check_new_path, read_path
from dpfast.streaming.planning import MECHANISM, Asked, plan_method
from dpfast.streaming.unit import Bounds, StreamUnit, read_bounds
from dpfast.threads import thread_count

__all__ = ["continual_count", "continual_sum", "restore_counter"]

HORIZON = Whole(1, 2**32, mend="write for example {name}=1000")
COUNTERS = Whole(1, 2**32)
NewPath: TypeAlias = Annotated[str | os.PathLike[str] | None, Special(PATH.wrong, optional=True)]


def continual_count(
    horizon: Annotated[int, HORIZON],
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    mechanism: Annotated[str, MECHANISM] = "auto",
    counters: Annotated[int, COUNTERS] = 1,
    neighbors: Neighbors = "add_remove",
    max_counters: Bound = 1,
    max_steps: Bound = 1,
    max_rows_per_step: Bound = 1,
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    path: NewPath = None,
    random: Random = None,
    threads: Threads = None,
) -> ContinualCounter:
    """Make a counter that publishes how many rows there have been, after every step of a stream.

    Guarantee
        (epsilon, 0)-differentially private with epsilon alone, (epsilon, delta) with a delta, rho-zCDP with rho: all
        figures of the whole horizon together, whenever they are read, and also if the stream goes on in a way that
        depends on them. Neighbouring streams differ by one privacy unit, which has rows in at most ``max_counters``
        counters, ``max_steps`` steps and ``max_rows_per_step`` rows in each step of each counter. With 1, 1 and 1, a
        unit is a row, and the guarantee is the book's event-level privacy. With ``max_steps=horizon`` a unit may have a
        row in every step: user-level privacy. Nothing here checks these numbers. A ledger is charged once, here, for
        the whole horizon. What is kept between steps is private (exact counts are in it), except for "pan_private":
        there, one look at the state at any time, after the first step, is part of the same epsilon.

    Parameters
    ----------
    horizon
        How many steps there will be at most, up to 2**32 (2**20 for "square_root").
    epsilon, delta, rho
        The budget: epsilon, with a delta for Gaussian noise, or rho.
    mechanism
        ``"auto"``: with epsilon alone "honaker", else the one of "honaker" and "blt" with less error. ``"tree"``: a
        binary tree over the steps (the book's figure 12.1). ``"honaker"``: the same tree with better estimates.
        ``"square_root"``: Gaussian noise with the least error, where a step costs as much as there were steps.
        ``"blt"``: Gaussian noise, within about 1% of that, from 2 to 6 numbers a counter. ``"pan_private"``: epsilon
        alone, a state that is private (figure 12.2).
    counters
        How many are counted side by side.
    neighbors
        ``"add_remove"``: one unit more or fewer; ``"replace"``: one unit's rows exchanged for another's.
    max_counters, max_steps, max_rows_per_step
        As above.
    ledger, dataset, privacy_unit
        The ledger that is charged, and what its guarantee is about; by default its own, or "data" and "row".
    path
        A new file in which the counter keeps itself: every step is on the disk before its figures are returned, and
        `restore_counter` continues after whatever happened. See `ContinualCounter.save`.
    random
        None for fresh keys from the operating system, or a `dpfast.testing.SeededRandom` in tests.
    threads
        How many threads share a step; None uses all cores where that pays. The result does not depend on it.

    Returns
    -------
    ContinualCounter
        With ``step``, ``step_rows``, ``run``, ``error``, ``save``.

    Raises
    ------
    ParameterError
        An argument is not as above; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else, or there is a file of that name.

    Notes
    -----
    Where all increments are there beforehand, `dpfast.matrix_mechanism` with `dpfast.workloads.prefix` errs less: it
    may use later steps for earlier prefixes.

    References
    ----------
    Dwork, Naor, Pitassi, Rothblum (2010); Chan, Shi, Song (2011); Honaker (2015); Fichtenberger, Henzinger, Upadhyay
    (2023); Dvijotham, McMahan, Pillutla, Steinke, Thakurta (2024). Dwork, Roth (2014), sections 12.2 and 12.3.

    Examples
    --------
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> visits = dpf.continual_count(365, rho=0.5, random=SeededRandom(1))
    >>> [visits.step(day) for day in (120, 80, 100)]
    [119, 202, 302]
    >>> round(visits.error(), 1), visits.mechanism, visits.steps
    (2.8, 'blt', 3)
    >>> shops = dpf.continual_count(365, epsilon=1.0, counters=3, random=SeededRandom(1))
    >>> shops.step([40, 0, 7]).size
    3

    """
    return continual_sum(
        horizon,
        (0, 1),
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mechanism=mechanism,
        counters=counters,
        neighbors=neighbors,
        max_counters=max_counters,
        max_steps=max_steps,
        max_rows_per_step=max_rows_per_step,
        ledger=ledger,
        dataset=dataset,
        privacy_unit=privacy_unit,
        path=path,
        random=random,
        threads=threads,
    )


def continual_sum(
    horizon: Annotated[int, HORIZON],
    bounds: Bounds,
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    mechanism: Annotated[str, MECHANISM] = "auto",
    counters: Annotated[int, COUNTERS] = 1,
    neighbors: Neighbors = "add_remove",
    max_counters: Bound = 1,
    max_steps: Bound = 1,
    max_rows_per_step: Bound = 1,
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    path: NewPath = None,
    random: Random = None,
    threads: Threads = None,
) -> ContinualCounter:
    """Make a counter that publishes the sum of all rows' values so far, after every step of a stream.

    Guarantee
        As for `continual_count`, where every row's value lies within ``bounds``: `ContinualCounter.step_rows` moves
        values there, and who gives sums to `ContinualCounter.step` has done so.

    Parameters
    ----------
    horizon
        As for `continual_count`.
    bounds
        The least and the largest value of a row: whole numbers within 2**40 of 0. Fractions are counted in smaller
        units, cents for example.
    epsilon, delta, rho, mechanism, counters, neighbors, max_counters, max_steps, max_rows_per_step
        As for `continual_count`.
    ledger, dataset, privacy_unit, path, random, threads
        As for `continual_count`.

    Returns
    -------
    ContinualCounter
        As for `continual_count`.

    Raises
    ------
    ParameterError, BudgetExceededError, LedgerError
        As for `continual_count`.

    Examples
    --------
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> spent = dpf.continual_sum(52, (0, 50), rho=0.5, counters=2, random=SeededRandom(1))
    >>> week = spent.step_rows([0, 1, 1, 0, 1], [20, 35, 900, 10, 5])
    >>> week.size, bool(abs(week - [30, 90]).max() < 500)
    (2, True)

    """
    limits = read_bounds(bounds)
    steps, columns = HORIZON.read("horizon", horizon), COUNTERS.read("counters", counters)
    name, relation = MECHANISM.read("mechanism", mechanism), read_neighbors(neighbors)
    budget = read_budget(epsilon, delta, rho)
    most = max_counters, max_steps, max_rows_per_step
    unit = StreamUnit.read(limits, relation, *most, counters=columns, horizon=steps)
    asked = Asked(steps, columns, name, budget, unit)
    thread_count(threads, 1)
    payment = read_payment(ledger, budget, random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit)
    source = random_source(random)
    place = None if path is None else read_path(path)
    if place is not None:
        check_new_path(place)
    method = plan_method(asked)
    state = method.begin(columns)
    what = "counts" if limits == (0, 1) else "sums"
    description = f"{what} of {columns:,} streams over {steps:,} steps ({method.name})"
    counter = ContinualCounter(asked, method, state, source, threads, None)
    counter._pay(lambda: payment.charge([method.charge(budget, description)]), place)
    return counter


def restore_counter(
    path: Annotated[str | os.PathLike[str], PATH], *, random: Random = None, threads: Threads = None
) -> ContinualCounter:
    """Continue a counter that was kept in a file.

    Guarantee
        Nothing is charged: the horizon was paid for when the counter was made. If the process that had it ended in a
        step, the file has the state before that step, whose figures nobody has seen, or the state after it, whose
        figures are in ``released``. Steps that were not written are taken again: with the same increments they give
        the same figures, bit for bit, and with others their noise is independent (`dpfast.streaming.step_keys`;
        "pan_private" keeps no secret, so that its noise is always new). One process at a time can have the file. To
        continue a copy of it as well is a second release that nothing has paid for.

    Parameters
    ----------
    path
        The file.
    random, threads
        As for `continual_count`; only a pan-private counter draws from ``random``.

    Returns
    -------
    ContinualCounter
        At the step where it was: ``steps`` says how many there have been.

    Raises
    ------
    ParameterError
        The path is none.
    LedgerError
        There is no such file, another process has it, or it is damaged.

    Examples
    --------
    >>> import dpfast as dpf, tempfile, pathlib
    >>> from dpfast.testing import SeededRandom
    >>> place = pathlib.Path(tempfile.mkdtemp()) / "visits.arrow"
    >>> visits = dpf.continual_count(365, rho=0.5, path=place, random=SeededRandom(1))
    >>> first = visits.step(120)
    >>> visits.close()
    >>> again = dpf.restore_counter(place)
    >>> again.steps, again.released == first
    (1, True)

    """
    thread_count(threads, 1)
    source = random_source(random)
    return ContinualCounter._from_file(StateFile(read_path(path)), source, threads)
