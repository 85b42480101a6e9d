"""Boosting for queries: many answers from histograms that are each fitted to a few (Dwork, Roth 2014, figure 6.1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import Delta, Epsilon, Rho, ShownAmounts, read_budget
from dpfast.accounting.events import Event
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Choice, Flag, Number, Threads, Whole
from dpfast.errors import ParameterError, Words
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.ledger.receipt import entry_of
from dpfast.mechanisms.selection.exponential_draws import exponential_draws
from dpfast.progress import TellCount, read_progress
from dpfast.randomness import Random, RandomSource, random_source
from dpfast.showing import Shown
from dpfast.synthesis.charging import charge_events
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.fitted.base_generators import (
    GENERATOR,
    GENERATORS,
    Fit,
    Generator,
    check_program,
    check_search,
    linear_solver,
)
from dpfast.synthesis.fitted.boosting_bounds import ADVANTAGE, book_rounds, rounds_needed, step_size
from dpfast.synthesis.fitted.boosting_privacy import BoostingPrivacy, Size, boosting_privacy, boosting_privacy_of_book
from dpfast.synthesis.fitted.exact_workload import ExactWorkload, public_steps
from dpfast.synthesis.fitted.projection import Iterations, Tolerance, project_answers
from dpfast.synthesis.fitted.projection_mechanism import TOTAL, check_total
from dpfast.synthesis.fitted.sampled import Sampled
from dpfast.threads import thread_count
from dpfast.workloads import Workload
from dpfast.workloads.histograms import Counts, clamped, counted
from dpfast.workloads.histograms import records as records_of
from dpfast.workloads.workload import WORKLOAD, Asked

__all__ = ["BoostedAnswers", "boost_queries", "verdicts"]

#: The probability that the noise of some measured answer exceeds half of lambda, in any of the rounds.
_BETA = 0.05
_MOST_ANSWERS = 2**27
#: With answers below 2**62 the differences stay within an int64.
_LARGEST = 2**61

ROUNDS = Whole(1, 10**6)
ACCURACY = Number(0, 2**40, below=True, optional=True, mend="leave it out for one that fits the noise")
REMEMBER = Flag(optional=True)
MECHANISM = Choice(("laplace", "gaussian"), optional=True)
CALIBRATION = Choice(("tight", "book"))
SHARE = Number(0, 1, above=True, below=True, mend="write for example {name}=0.5")


@dataclass(frozen=True)
class BoostedAnswers(Shown):
    """What `boost_queries` releases.

    Attributes
    ----------
    answers
        One for each query, float64: the median over the rounds.
    workload
        The queries.
    total
        The public number of records, or the noisy one.
    accuracy, margin
        lambda and mu: an answer that errs by lambda was good, by lambda + mu bad. Once the rounds suffice and every
        base synopsis was good for enough queries, no answer errs by more than their sum.
    step
        alpha, by which weights of queries move.
    scale
        The noise's scale in the answers' unit.
    rounds
        A row for each round: how many different queries were sampled, and how far the synopsis's answers to them are
        from the noisy ones, at most; null where the base generator gave up.
    events
        What was drawn, as events.
    spent
        What it cost: `Amounts` of (epsilon, delta), or of (rho, delta).
    entry
        The number of the first charge in the ledger, or None without one.

    """

    answers: NDArray[np.float64] = field(repr=False)
    workload: Workload
    total: float
    accuracy: float
    margin: float
    step: float
    scale: float
    rounds: pl.DataFrame = field(repr=False)
    events: tuple[Event, ...] = field(repr=False)
    spent: ShownAmounts
    entry: int | None = None

    def estimate(self, tolerance: Tolerance = None, iterations: Iterations = 1000) -> Estimate:
        """Return the histogram without negative cells whose answers are nearest, for records: see `project_answers`."""
        fitted = project_answers(
            self.answers, self.workload, total=self.total, tolerance=tolerance, iterations=iterations
        )
        return Estimate(
            fitted.histogram, self.workload, self.spent, complete=fitted.complete, rounds=self.rounds, entry=self.entry
        )


def boost_queries(
    histogram: Counts,
    workload: Asked,
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    rounds: Annotated[int | None, replace(ROUNDS, optional=True)] = None,
    samples: Annotated[int, ROUNDS] = 100,
    advantage: Annotated[float, ADVANTAGE] = 1 / 3,
    accuracy: Annotated[float | None, ACCURACY] = None,
    generator: Generator = "projection",
    remember: Annotated[bool | None, REMEMBER] = None,
    mechanism: Annotated[Literal["laplace", "gaussian"] | None, MECHANISM] = None,
    calibration: Annotated[Literal["tight", "book"], CALIBRATION] = "tight",
    share: Annotated[float, SHARE] = 0.5,
    neighbors: Neighbors = "add_remove",
    total: Annotated[int | None, TOTAL] = None,
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
    threads: Threads = None,
    progress: TellCount = None,
) -> BoostedAnswers:
    """Answer all queries of a workload by boosting: each round fits a histogram to a few noisy answers.

    Every round draws its few queries by weights, which are larger for queries that were answered badly so far. A
    query's answer is the median of the answers of all rounds' histograms.

    Guarantee
        (epsilon, delta)-differentially private (epsilon alone if delta is 0), or rho-zCDP, for histograms that differ
        in one record: one more or less of it ("add_remove"), or one in another cell ("replace", the number of records
        is public then). Only the measured answers and the sampled queries depend on the data. A ``total`` that is given
        under "add_remove" must be public, known without these data: nobody is protected from what is told by a total
        that was counted in them.

        Sampling. Let v be the exact answers. They are integers, and neighbours change none by more than D. Let A_j be
        the answers of round j's synopsis, which are public and rounded to integers. Query q has the score
        S_t(q) = sum over j < t of min(max(abs(A_j(q) - v(q)) - lambda, 0), mu), an integer, as lambda and mu are. Each
        term is a function of v(q) with slope at most 1, so S_t changes by at most (t - 1) D. As the text's verdict on
        round j is a_j = 1 - 2 / mu times that term, its weight exp(-alpha sum a_j) is in proportion to
        exp(2 alpha / mu S_t(q)): the exponential mechanism with epsilon_t = 4 alpha (t - 1) D / mu, exactly, drawn by
        `dpf.exponential_draws`, without a weight ever being rounded. No sample of the first round depends on the data.

        Measuring. Each of rounds * samples answers, and the number of records where it is measured, gets exact noise.
        All adds up, adaptively, as `dpfast.synthesis.fitted.boosting_privacy` says.

    Parameters
    ----------
    histogram
        Counts of the workload's cells: integers of its shape, or in one dimension.
    workload
        The queries, public. Real coefficients are rounded to multiples of about 2**-20 of the largest.
    epsilon, delta, rho
        The budget, as for `dpf.projection_mechanism`.
    rounds
        How many. By default the least after which the share of bad answers (`dpf.theory.inaccurate_share`) is below one
        query's.
    samples
        How many queries each round samples and measures; one sampled twice is measured twice.
    advantage
        eta: a synopsis is taken to be good for a share 1/2 + eta of the queries, by their weights. Below 1/2.
    accuracy
        lambda, in the answers' unit. By default twice a bound that all noise keeps to with probability at least 0.95.
    generator
        The base synopsis generator: "projection" (least squares, by `dpf.project_answers`), "linear" (the least largest
        error, by linear programming: SciPy is needed) or "brute_force" (the first data set of the alphabet within
        lambda / 2, for very few records and cells).
    remember
        Whether a round's histogram is fitted to the answers of all rounds so far, not to its own alone as in the text.
        That costs no privacy; by default it is done for "projection".
    mechanism
        "gaussian" or "laplace"; by default Gaussian where the budget has a delta or is a rho.
    calibration
        "tight": zero-concentrated privacy with the bounded range of each sample. "book": the text's rounds, margin and
        noise, with constants mended.
    share
        The part of the budget that is spent on samples; the rest is spent on noise.
    neighbors, total, ledger, dataset, privacy_unit, random, threads
        As for `dpf.projection_mechanism`.
    progress
        Called with the number of rounds done.

    Returns
    -------
    BoostedAnswers
        ``answers``, ``rounds``, ``accuracy``, ``margin``, ``events``, and ``estimate()`` for a histogram and records.

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
    What is proved of the accuracy needs many records, as mu is some thousands of them at epsilon 1. With fewer,
    boosting still tends to where errors are, but `dpf.projection_mechanism` and `dpf.mwem` err less.

    References
    ----------
    Dwork, Rothblum, Vadhan (2010); Dwork, Roth (2014), section 6: figure 6.1, theorem 6.1, lemma 6.4. Dong, Durfee,
    Rogers (2020) and Cesar, Rogers (2021) for bounded range.

    Examples
    --------
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> counts = [400_000, 10_000, 0, 0, 90_000, 300_000, 0, 200_000]
    >>> boosted = boost_queries(counts, dpf.workloads.all_range(8), epsilon=1.0, delta=1e-6, samples=20,
    ...                         random=SeededRandom(1))
    >>> boosted.rounds.height, boosted.margin < 2000, bool(abs(boosted.answers[0] - 400_000) < 1000)
    (13, True, True)

    """
    exact = ExactWorkload(WORKLOAD.read("workload", workload))
    budget = read_budget(epsilon, delta, rho)
    relation = read_neighbors(neighbors)
    check_total(total, relation)
    show = read_progress(progress, "the number of rounds done")
    payment = read_payment(ledger, budget, random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit)
    cells = counted(histogram, workload.shape)
    source = random_source(random)
    thread_count(threads, 1)
    step = step_size(advantage)
    book = CALIBRATION.read("calibration", calibration) == "book"
    if rounds is None:
        rounds = (book_rounds if book else rounds_needed)(len(workload), advantage)
    rounds, samples = ROUNDS.read("rounds", rounds), ROUNDS.read("samples", samples)
    share = SHARE.read("share", share)
    GENERATOR.read("generator", generator)
    if rounds * len(workload) > _MOST_ANSWERS:
        allowed = f"at most {_MOST_ANSWERS:,} answers in all rounds (8 bytes each)"
        raise ParameterError("rounds", Words(f"{rounds:,} of {len(workload):,} queries"), allowed, "ask fewer queries")
    counts = clamped(cells, exact.largest_count, clamp=ledger is not None)
    measured = relation == "add_remove" and total is None
    known = None if measured else max(records_of(histogram), 0) if total is None else total
    remembers = REMEMBER.read_optional("remember", remember)
    keeps = generator == "projection" if remembers is None else remembers
    _check_generator(generator, samples * rounds if keeps else samples, workload.cells, known)
    size = Size(rounds, samples, step, exact.sensitivity(relation).largest, exact.largest if measured else 0)
    kind = _kind(mechanism, budget.kind == "rho" or budget.delta_units > 0)
    privacy = (boosting_privacy_of_book if book else boosting_privacy)(size, budget, kind, Fraction(share))
    tolerance = _tolerance(accuracy, exact, privacy, size)
    description = f"boosting of {len(workload)} queries"
    entry = entry_of(charge_events(payment, budget, privacy.events, description))
    boosting = _Boosting(exact, size, privacy, tolerance, GENERATORS[generator], keeps, source, threads)
    records = float(boosting.measure_total(counts) if known is None else known)
    answers, summaries = boosting.run(exact.answers(counts), records, show)
    return BoostedAnswers(
        answers=answers,
        workload=workload,
        total=records,
        accuracy=tolerance * exact.step,
        margin=privacy.margin * exact.step,
        step=step,
        scale=privacy.noise.scale * exact.step,
        rounds=summaries,
        events=privacy.events,
        spent=budget.shown,
        entry=entry,
    )


def _kind(mechanism: object, concentrated: bool) -> Literal["laplace", "gaussian"]:
    read = MECHANISM.read_optional("mechanism", mechanism) or ("gaussian" if concentrated else "laplace")
    return "laplace" if read == "laplace" else "gaussian"


def _check_generator(generator: Generator, samples: int, cells: int, total: int | None) -> None:
    """Refuse what the generator could not do, before anything is paid for."""
    if generator == "linear":
        check_program(samples, cells)
        linear_solver()
    if generator == "brute_force":
        if total is None:
            allowed = 'the public number of records for the generator "brute_force"'
            raise ParameterError("total", None, allowed, 'give total, or neighbors="replace"')
        check_search(total, cells)


def _tolerance(accuracy: object, exact: ExactWorkload, privacy: BoostingPrivacy, size: Size) -> int:
    """Return lambda in steps, a whole number."""
    if accuracy is None:
        return 2 * privacy.noise.largest(size.samples, _BETA / size.rounds)
    return math.ceil(ACCURACY.read("accuracy", accuracy) / exact.step)


def verdicts(synopsis: NDArray[np.int64], answers: NDArray[np.int64], tolerance: int, margin: int) -> NDArray[np.int64]:
    """Return by how much each answer errs more than a tolerance, up to a margin: integers from 0 to ``margin``.

    The text's verdict a is 1 - 2 / margin times this. It changes by no more than the exact answer does.

    """
    badly: NDArray[np.int64] = np.clip(np.abs(synopsis - answers) - tolerance, 0, margin)
    return badly


@dataclass(frozen=True)
class _Boosting:
    """Figure 6.1 with what was calibrated and charged."""

    exact: ExactWorkload
    size: Size
    privacy: BoostingPrivacy
    tolerance: int
    fit: Fit
    remember: bool
    source: RandomSource
    threads: int | None

    def measure_total(self, counts: NDArray[np.int64]) -> float:
        """Return the number of records with noise, at least 0."""
        exact = np.array([counts.sum() * self.exact.largest])
        drawn = self.privacy.noise.each.add(exact, self.source, self.threads)
        return max(float(drawn[0]) / self.exact.largest, 0.0)

    def run(
        self, answers: NDArray[np.int64], total: float, progress: Callable[[int], object]
    ) -> tuple[NDArray[np.float64], pl.DataFrame]:
        """Return the medians, and a frame with a row for each round."""
        workload, step = self.exact.workload, self.exact.step
        scores = np.zeros(len(workload), np.int64)
        synopses = np.empty((self.size.rounds, len(workload)), np.int64)
        rows: list[tuple[int, int, float | None]] = []
        fitted: NDArray[np.float64] | None = None
        kept = (np.empty(0, np.int64), np.empty(0, np.float64))
        for known, synopsis in enumerate(synopses):
            chosen = self._sample(scores, known)
            noise = self.privacy.noise.each.add(answers[chosen], self.source, self.threads)
            noisy = np.asarray(noise * step, np.float64)
            kept = (np.append(kept[0], chosen), np.append(kept[1], noisy)) if self.remember else (chosen, noisy)
            fitted = self.fit(Sampled(workload, kept[0]), kept[1], total, self.tolerance * step, fitted)
            if fitted is None:
                public = workload.answer(np.full(workload.shape, total / workload.cells))
                rows.append((known + 1, int(np.unique(chosen).size), None))
            else:
                public = workload.answer(fitted)
                rows.append((known + 1, int(np.unique(chosen).size), float(np.abs(public[chosen] - noisy).max())))
            synopsis[:] = public_steps(public / step, _LARGEST)
            scores += verdicts(synopsis, answers, self.tolerance, self.privacy.margin)
            progress(known + 1)
        frame = pl.DataFrame(rows, {"round": pl.Int64, "sampled": pl.Int64, "worst": pl.Float64}, orient="row")
        return np.asarray(np.median(synopses, axis=0) * step, np.float64), frame

    def _sample(self, scores: NDArray[np.int64], known: int) -> NDArray[np.int64]:
        """Draw queries by the verdicts of so many rounds; in the first all scores are 0, whatever epsilon is said."""
        epsilon = self.privacy.sample_epsilons[known - 1] if known else 1.0
        sensitivity = float(max(known, 1) * self.size.sensitivity)
        return exponential_draws(
            scores, epsilon, self.size.samples, sensitivity, threads=self.threads, random=self.source
        )
