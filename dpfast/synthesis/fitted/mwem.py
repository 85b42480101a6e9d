"""MWEM: select the queries that the estimate answers worst, measure them, and fit the estimate to all measurements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho, read_budget
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Threads
from dpfast.errors import ParameterError, Words
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.progress import TellCount, read_progress
from dpfast.randomness import Random, RandomSource, random_source
from dpfast.synthesis.cell_weights import Prior, Replays, Total, check_cells, public_weights
from dpfast.synthesis.charging import ledger_charges_whole
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.fitted.exact_workload import ExactWorkload
from dpfast.synthesis.fitted.rounds import PAY, REPEAT, ROUNDS, SELECTION, PaymentByRounds, Rounds
from dpfast.synthesis.shares import SHARE, Share
from dpfast.threads import thread_count
from dpfast.workloads.histograms import Counts, clamped, counted, records
from dpfast.workloads.workload import WORKLOAD, Asked, Workload

__all__ = ["mwem", "plan_rounds", "run_rounds"]


def mwem(
    histogram: Counts | Callable[[], ArrayLike],
    workload: Asked,
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rounds: Annotated[int, ROUNDS] = 30,
    rho: Rho = None,
    selection: Annotated[str, SELECTION] = "exponential",
    neighbors: Neighbors = "add_remove",
    total: Total = None,
    prior: Prior = None,
    replays: Replays = 100,
    selection_share: Annotated[Share | None, replace(SHARE, optional=True)] = None,
    total_share: Share = 0.05,
    repeat: Annotated[bool, REPEAT] = False,
    ledger: Payer = None,
    pay: Annotated[str, PAY] = "at_once",
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
    threads: Threads = None,
    progress: TellCount = None,
) -> Estimate:
    """Estimate a histogram so that many linear queries on it are answered well, measuring few of them.

    Guarantee
        Everything in the result is together (epsilon, delta)-differentially private, or rho-zCDP, for neighbouring
        histograms: "add_remove", one cell more or less by one; "replace", one cell loses one and another gains one, the
        total being public. Selections and measurements are drawn exactly, of integers; the rest is made of what they
        gave. A ``total`` that is given under "add_remove" must be public, known without these data: nobody is protected
        from what is told by a total that was counted in them.

        Proof. A round's scores are, for each query (for marginals: each marginal), the sum of abs(2**8 a - e) over its
        answers a, less a constant, with e the whole number next to 2**8 times the estimate's answer. e and the constant
        are made of public numbers; so neighbours change a score by at most 2**8 D, D being what they change in the
        answers, added up: 1 for add/remove, since a cell is in one query of a group at most; for replace 2 for groups,
        and 1 for single queries of coefficients from 0 to 1 (in general the largest of them and 0, less the least). The
        selection at epsilon_s is private with this sensitivity (McSherry, Talwar 2007), and of bounded range; it shows
        the index alone. The measurement adds discrete Laplace noise of scale D / epsilon_m, or Gaussian noise, to the
        selected answers. With rho, a selection costs at most epsilon_s**2 / 8 (Cesar, Rogers 2021), and a measurement
        D2**2 / (2 sigma**2), D2 being 1, and sqrt(2) for replaced units in groups. With a delta, where a ledger adds up
        epsilons or there is none, exponential selections and Gaussian measurements are calibrated to mu**2 / 2 of the
        mu-GDP that is (epsilon, delta)-private in place of rho: a selection then costs pi epsilon_s**2 / 16, and all of
        them have the root of the sum of the squares as their mu (Dong, Roth, Su 2022, theorem 3.2). The shares are
        whole multiples of 1e-18, rounded down, and add up to no more than the budget, whatever was selected in the
        rounds before. Real coefficients are rounded first, to multiples of about 2**-20 of the largest, and D is that
        of the rounded ones.

    Parameters
    ----------
    histogram
        Exact counts: integers, of the workload's shape or in one dimension, each from 0 to 2**52 / cells (about
        2**40 / cells for real coefficients). Others are refused; with a ledger they count as the nearest that is
        allowed. Or a function without arguments that returns them: it is called after the charge.
    workload
        The queries: `dpfast.workloads`, with coefficients from -1 to 1, over at most 2**28 cells.
    epsilon, delta, rho
        The whole budget: epsilon or rho. A delta beside epsilon, 0 by default, is spent where Gaussian noise is less
        for it: where there are many rounds.
    rounds
        How many queries (or marginals) are measured. Where it is as many as there are, or more, each is measured once
        and nothing is spent on selections, unless ``repeat``.
    selection
        "exponential", or "permute_and_flip", whose errors are no larger for the same epsilon; by rho the first is
        cheaper.
    neighbors
        As above.
    total
        The number of units, if it is public. If not, a ``total_share`` of the budget measures it; for "replace" it is
        public by definition, and read from the histogram.
    prior
        Public weights to start with, one for each cell, all above 0. By default all cells alike.
    replays
        How often every measurement so far is fitted again in each round, at most; it ends when nothing moves any more.
    selection_share
        The part of a round's budget that the selection gets: by default 0.3, and for groups 0.15.
    total_share
        The part of the budget that the total gets.
    repeat
        Whether what was measured may be selected again. Its measurements are averaged.
    ledger
        The budget that is charged, before anything is drawn.
    pay
        "at_once", or "by_round": each round is charged when it comes. Where the ledger refuses a round, the estimate
        made so far is returned, its ``complete`` False.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.
    threads
        How many threads share a selection. The result does not depend on it.
    progress
        Called with the number of rounds done; if it returns False, the run ends early (`Estimate.complete`).

    Returns
    -------
    Estimate
        ``histogram`` (float64), ``answers``, ``to_frame``, ``rounds``, ``spent``, ``complete``.

    Raises
    ------
    ParameterError
        An argument is of another kind or range; nothing is charged.
    DataError
        Without a ledger: a count is negative or too large.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else; nothing is charged.

    Notes
    -----
    Of all estimates p the one of least relative entropy to the prior plus sum (m - <q, p>)**2 / (2 c), over the
    measurements m with c in proportion to their variances (`dpfast.kernels.weights.replay`): multiplying all cells by
    exp(t q) for one measurement after the other finds it. Over four shapes of data, prefixes and random ranges, and
    epsilon 0.1 and 1, the last iterate errs 14% less than that of updates exp(q (m - <q, p>) / 2n) with ten replays,
    and the average of its iterates 40% more. Scaling the data by c and epsilon by 1 / c scales the estimate by c.

    A spike, a cell that holds far more than its neighbours, comes out where a query asks for it. Where all queries sum
    over many cells it is spread over cells that no measurement separates: after ten rounds over the prefixes of 256
    cells, of 300 scales of the noise that the whole budget would buy (300 / epsilon records) mostly less than half was
    in the spike's cell. `dpf.adaptive_hierarchy` and `dpf.ahp` look for spikes.

    References
    ----------
    Hardt, Ligett, McSherry (2012), algorithm 1 and theorem 2.2; Dudik, Phillips, Schapire (2007) for the fit. Liu,
    Vietri, Wu (2021) for whole marginals at once. Dwork, Roth (2014), section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> ages = np.array([90, 310, 420, 500, 380, 260, 120, 20])
    >>> estimate = dpf.mwem(ages, dpf.workloads.prefix(8), epsilon=2.0, rounds=5, random=SeededRandom(1))
    >>> bool(np.abs(estimate.answers - np.cumsum(ages)).mean() < 60), estimate.rounds.height
    (True, 5)
    >>> table = np.array([[[40, 0], [25, 900]], [[10, 500], [0, 60]]])
    >>> pairs = dpf.workloads.marginals((2, 2, 2), k=2)
    >>> dpf.mwem(table, pairs, rho=0.5, rounds=2).to_frame(10, columns=["smokes", "coughs", "old"]).shape
    (10, 3)
    >>> dpf.mwem(ages, dpf.workloads.prefix(8), epsilon=1.0, rounds=0)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: rounds must be a whole number from 1 to 1000000, but was 0; write for example \
rounds=30

    """
    relation = read_neighbors(neighbors)
    plan = plan_rounds(
        workload,
        read_budget(epsilon, delta, rho),
        relation,
        rounds,
        selection,
        total=total,
        replays=replays,
        selection_share=selection_share,
        total_share=total_share,
        repeat=repeat,
        charged_whole=ledger_charges_whole(ledger),
    )
    start = public_weights(prior, workload.cells)
    thread_count(threads, 1)
    show = read_progress(progress, "the number of rounds done")
    payer = read_payment(
        ledger, plan.shared.given, random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit
    )
    source = random_source(random)
    if not callable(histogram):
        counted(histogram, workload.shape)  # what is wrong with its type is found before the charge
    return run_rounds(plan, histogram, start, source, PaymentByRounds(payer, pay, plan), relation, threads, show)


def plan_rounds(
    workload: Workload,
    budget: Budget,
    relation: Neighbors,
    rounds: int,
    selection: str,
    *,
    total: int | None = None,
    replays: int = 100,
    selection_share: Share | None = None,
    total_share: Share = 0.05,
    repeat: bool = False,
    charged_whole: bool = False,
) -> Rounds:
    """Return what `mwem` measures and pays for, which its arguments decide without the data.

    ``charged_whole`` says that a ledger is charged an (epsilon, delta) as it is, and not what is drawn.

    Raises
    ------
    ParameterError
        As `mwem`.

    """
    check_cells(WORKLOAD.read("workload", workload).cells, "workload")
    low, high = workload.range
    if not -1.0 <= low <= high <= 1.0:
        of = Words(f"of coefficients from {low:g} to {high:g}")
        raise ParameterError("workload", of, "of coefficients from -1 to 1", "scale it")
    return Rounds(
        ExactWorkload(workload),
        budget,
        rounds,
        selection=selection,
        neighbors=relation,
        total=total,
        replays=replays,
        selection_share=selection_share,
        total_share=total_share,
        repeat=repeat,
        charged_whole=charged_whole,
    )


def run_rounds(
    plan: Rounds,
    histogram: Counts | Callable[[], ArrayLike],
    start: NDArray[np.float64],
    source: RandomSource,
    payment: PaymentByRounds,
    relation: Neighbors,
    threads: int | None,
    progress: Callable[[int], object],
) -> Estimate:
    """Return the estimate by rounds that are planned and paid for, from weights to start with."""
    given = histogram() if callable(histogram) else histogram
    counts = counted(given, plan.queries.workload.shape)
    cells = clamped(counts, plan.queries.largest_scored, clamp=payment.has_ledger)
    public = records(given) if relation == "replace" and plan.total is None else plan.total
    return plan.run(cells, public, start, source, payment, threads, progress)
