"""Noisy answers to many queries, projected onto what a histogram can answer (Dwork, Roth 2014, algorithm 18)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho, read_budget
from dpfast.accounting.events import Event
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.arguments import Choice, Real, Threads, Whole
from dpfast.errors import ParameterError
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.progress import TellStages, read_progress
from dpfast.randomness import Random, random_source
from dpfast.synthesis.charging import charge_events
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.fitted.answer_noise import CALIBRATION, AnswerNoise, Calibration, noise_of_epsilon, noise_of_rho
from dpfast.synthesis.fitted.boosting_bounds import BETA, COUNT
from dpfast.synthesis.fitted.exact_workload import ExactWorkload
from dpfast.synthesis.fitted.projection import Body, Iterations, Projection, Tolerance, check_limits, project_answers
from dpfast.threads import thread_count
from dpfast.workloads.cells import Total as TotalCount
from dpfast.workloads.histograms import Counts, clamped, counted
from dpfast.workloads.histograms import records as records_of
from dpfast.workloads.matrix import Matrix
from dpfast.workloads.workload import WORKLOAD, Asked

__all__ = ["ProjectedAnswers", "calibrate_noise", "check_total", "projection_error", "projection_mechanism"]

#: The projection is stopped where it is certainly no farther away than this part of the noise, root mean square.
_TOLERANCE = 0.05
#: The probability that a histogram has more records than the fitted one may have.
_MISSED = 1e-6

MECHANISM = Choice(("auto", "laplace", "gaussian"))
#: How many records there are, where that is public.
TOTAL = Whole(1, 2**53 - 1, optional=True)


class ProjectedAnswers(Estimate):
    """What `projection_mechanism` releases: an `Estimate`, with the noisy answers that it was made of.

    Attributes
    ----------
    noisy
        The answers with noise, before the projection.
    total
        The public number of records, or the one that was fitted to all answers.
    mechanism
        "laplace" or "gaussian".
    scale
        The noise's scale in the answers' unit: Laplace b or Gaussian sigma.
    events
        What was spent, as events.
    projection
        The certificate: ``gap``, ``distance``, ``iterations``, ``complete``.

    """

    noisy: NDArray[np.float64]
    total: float
    mechanism: str
    scale: float
    events: tuple[Event, ...]
    projection: Projection


def calibrate_noise(change: Sensitivity, budget: Budget, mechanism: object, calibration: Calibration) -> AnswerNoise:
    """Return noise for a budget; "auto" takes the one of less variance: Gaussian, or Laplace by basic composition."""
    CALIBRATION.read("calibration", calibration)
    MECHANISM.read("mechanism", mechanism)
    if mechanism == "auto":
        kinds: list[Literal["laplace", "gaussian"]] = ["laplace", "gaussian"]
        if budget.kind == "rho":
            options = [noise_of_rho(change, kind, budget.units) for kind in kinds]
        else:
            options = [noise_of_epsilon(change, "laplace", budget.units, 0)]
            if budget.delta_units:
                options.append(noise_of_epsilon(change, "gaussian", budget.units, budget.delta_units, calibration))
        return min(options, key=lambda noise: noise.each.deviation)
    kind: Literal["laplace", "gaussian"] = "laplace" if mechanism == "laplace" else "gaussian"
    if budget.kind == "rho":
        return noise_of_rho(change, kind, budget.units)
    return noise_of_epsilon(change, kind, budget.units, budget.delta_units, calibration)


def check_total(total: object, neighbors: Neighbors) -> None:
    """Refuse a number of records that is none, or given where the histogram has it."""
    if TOTAL.read_optional("total", total) is not None and neighbors == "replace":
        raise ParameterError(
            "total", total, 'left out for neighbors="replace"', "the histogram has it, and it is public"
        )


def projection_mechanism(
    histogram: Counts,
    workload: Asked,
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    mechanism: Annotated[Literal["auto", "laplace", "gaussian"], MECHANISM] = "auto",
    calibration: Calibration = "tight",
    neighbors: Neighbors = "add_remove",
    total: Annotated[int | None, TOTAL] = None,
    body: Body = "simplex",
    tolerance: Tolerance = None,
    iterations: Iterations = 1000,
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
    threads: Threads = None,
    progress: TellStages = None,
) -> ProjectedAnswers:
    """Answer all queries of a workload with noise, and move the answers to the nearest that a histogram can have.

    Guarantee
        (epsilon, delta)-differentially private, or rho-zCDP, for histograms that differ in one record: one more or
        less of it ("add_remove"), or one in another cell ("replace", the number of records is public then). Proof. The
        exact answers of the queries, rounded to fixed point, are integers. Neighbours' answers differ by no more than
        `dpfast.accounting.sensitivity.Sensitivity` says, with the number of records as one more answer where that
        is measured too. Each gets independent noise, sampled exactly, of the scale that `noise_of_epsilon` or
        `noise_of_rho` proves sufficient. The rest is post-processing. A ``total`` that is given under "add_remove" must
        be public, known without these data: nobody is protected from what is told by a total that was counted in them.

    Parameters
    ----------
    histogram
        Counts of the workload's cells: integers of its shape, or in one dimension.
    workload
        The queries, public. Real coefficients are rounded to multiples of about 2**-20 of the largest.
    epsilon, delta
        The budget: epsilon from 1e-18 to 1e6; delta from 0 to below 1, above 0 for Gaussian noise.
    rho
        The budget in zero-concentrated terms instead.
    mechanism
        "laplace", "gaussian", or "auto": whichever has less variance, by basic composition and with delta.
    calibration
        "tight": the least noise that is proved sufficient (privacy loss distributions for Laplace, the analytic
        mechanism for Gaussian noise). "zcdp": by rho. "book": the formulas of Dwork, Roth (2014), for epsilon below 1.
    neighbors
        "add_remove" or "replace".
    total
        The number of records if it is public under "add_remove"; None measures it, as one more answer, and fits it to
        all answers with the histogram.
    body
        "simplex" or "capped": histograms without negative cells, of the number of records or of at most that many.
        "ball": the text's.
    tolerance, iterations
        When the projection stops, as for `project_answers`; by default within a hundredth of the noise.
    ledger
        A `dpfast.Ledger`, charged before anything is computed; counts outside the bounds are then moved to them.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.
    threads
        How many threads draw the noise. The result does not depend on it.
    progress
        Called with the name of each stage as it begins.

    Returns
    -------
    ProjectedAnswers
        An `Estimate` (``answers``, ``histogram``, ``to_frame``, ``plot``, ``spent``) with ``noisy``, ``total``,
        ``scale``, ``events`` and the ``projection``'s certificate.

    Raises
    ------
    ParameterError
        An argument is not as above.
    DataError
        Without a ledger: a count is negative, or so large that answers could overflow.
    BudgetExceededError, LedgerError
        The ledger refuses the charge.

    Notes
    -----
    The squared error is at most <p - a, noise>, p the projection and a the true answers, so at most 2 n max over
    cells of abs(<column, noise>): it grows with the root of the number of queries where noise alone grows with that
    number. `projection_error` has it in figures.

    A spike, a cell that holds far more than its neighbours, comes out of queries that sum over many cells blurred: over
    the prefixes of 256 cells, one of 300 scales (300 / epsilon records) within a tenth in the middle only if it is
    alone, and one of 30 not at all. `dpf.adaptive_hierarchy` and `dpf.ahp` look for spikes.

    References
    ----------
    Nikolov, Talwar, Zhang (2013); Dwork, Roth (2014), algorithm 18 and theorem 12.8, whose constant should be 16.
    Balle, Wang (2018); Bun, Steinke (2016).

    Examples
    --------
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> counts = [40, 0, 0, 0, 0, 0, 25, 0]
    >>> released = projection_mechanism(counts, dpf.workloads.all_range(8), epsilon=1.0, delta=1e-6, total=65,
    ...                                 random=SeededRandom(1))
    >>> released.mechanism, released.histogram.round(1).sum().round(6).item()
    ('gaussian', 65.0)
    >>> projection_mechanism(counts, dpf.workloads.all_range(8), epsilon=-1)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: epsilon must be a number from 1e-18 to 1e6, but was -1; write for example epsilon=0.5

    """
    exact = ExactWorkload(WORKLOAD.read("workload", workload))
    budget = read_budget(epsilon, delta, rho)
    relation = read_neighbors(neighbors)
    check_total(total, relation)
    show = read_progress(progress, "the name of a stage")
    payment = read_payment(ledger, budget, random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit)
    cells = counted(histogram, workload.shape)
    source = random_source(random)
    thread_count(threads, 1)
    check_limits(body, tolerance, iterations)
    change = exact.sensitivity(relation)
    measured = relation == "add_remove" and total is None
    if measured:
        change = change.and_total(exact.largest)
    noise = calibrate_noise(change, budget, mechanism, calibration)
    description = f"{len(workload)} projected answers"
    paid = charge_events(payment, budget, (noise.event,), description)
    known = records_of(histogram) if total is None else total
    show("measuring answers")
    counts = clamped(cells, exact.largest_count, clamp=ledger is not None)
    answers = exact.answers(counts)
    if measured:
        answers = np.append(answers, counts.sum() * exact.largest)
    drawn = noise.each.add(answers, source, threads)
    noisy = np.asarray(drawn[: len(workload)] * exact.step, np.float64)
    # Noise far below 1 is 0 almost surely, and so is its deviation, but a tolerance must not be.
    spread = max(noise.each.deviation, noise.scale) * exact.step
    wanted = _TOLERANCE * spread if tolerance is None else tolerance
    rest: dict[str, Any] = {"tolerance": wanted, "iterations": iterations}
    records = max(float(drawn[-1]) / exact.largest, 0.0) if measured else max(float(known), 0.0)
    show("projecting answers")
    if measured and body != "ball":
        # The number of records is fitted with all answers: together they know it far better than its own measurement.
        most = records + noise.largest(1, _MISSED) / exact.largest
        weight = exact.largest * exact.step
        ones = np.full((1, *workload.shape), weight)
        beside = workload + (TotalCount(workload.shape) if weight == 1 else Matrix(ones))
        fitted = project_answers(drawn * exact.step, beside, total=most, body="capped", **rest)
        projection = replace(fitted, answers=fitted.answers[:-1])
        records = float(fitted.histogram.sum())
    else:
        projection = project_answers(noisy, workload, total=records, body=body, **rest)
    released = ProjectedAnswers(
        projection.histogram, workload, budget.shown, complete=projection.complete, paid=paid, records=records
    )
    released.noisy, released.total, released.projection = noisy, records, projection
    released.mechanism, released.scale, released.events = (
        noise.each.mechanism,
        noise.scale * exact.step,
        (noise.event,),
    )
    return released


def projection_error(
    total: Annotated[int, COUNT],
    queries: Annotated[int, COUNT],
    cells: Annotated[int, COUNT],
    epsilon: Annotated[Real, BETA],
    delta: Annotated[Real, BETA],
    beta: Annotated[Real, BETA] = 0.05,
) -> float:
    """Return a bound on the mean squared error per query of projected Laplace noise with the calibration "book".

    Guarantee
        For queries with coefficients from 0 to 1, a public total, epsilon below 1 and at least ln(2 cells / beta)
        queries, the bound holds with probability at least 1 - beta:

            abs(p - a)**2 / k <= 16 n sqrt(ln(1 / delta) ln(2 cells / beta)) / epsilon.

        Proof. abs(p - a)**2 <= <p - a, noise> as a lies in the convex body n K; p - a lies in 2 n K, so this is at most
        2 n max over cells of abs(<column, noise>). Each is a sum of k independent Laplace variables of scales at most
        b, above b sqrt(8 k ln(2 cells / beta)) in absolute value with probability at most beta / cells (Chan, Shi, Song
        2011); b = sqrt(8 k ln(1 / delta)) / epsilon. (The text's proof has another factor 2 and its statement
        another constant.)

    Parameters
    ----------
    total, queries, cells
        n, k and the number of cells.
    epsilon, delta
        The budget, both below 1.
    beta
        The probability of a larger error.

    Examples
    --------
    >>> round(projection_error(1000, 200, 50, 0.5, 1e-6, 0.05))
    327919

    """
    tail = math.log(2 * COUNT.read("cells", cells) / BETA.read("beta", beta))
    if COUNT.read("queries", queries) < tail:
        raise ParameterError("queries", queries, f"at least {math.ceil(tail)} for so many cells and this beta")
    root = math.sqrt(math.log(1 / BETA.read("delta", delta)) * tail)
    return 16 * COUNT.read("total", total) * root / BETA.read("epsilon", epsilon)
