"""Boosting for queries: the text's figures, samples by their exact probabilities, budgets, what is released."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from dpfast.accounting.accountants.pld import PLD
from dpfast.accounting.accountants.zcdp import ZCDP, cost, largest_rho
from dpfast.accounting.budget import read_budget
from dpfast.accounting.events import ExponentialMechanism, Laplace, runs
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.errors import BudgetExceededError, DataError, ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, charge_units
from dpfast.synthesis.fitted import boosting_bounds as bounds
from dpfast.synthesis.fitted.answer_noise import noise_of_epsilon
from dpfast.synthesis.fitted.boosting import boost_queries, verdicts
from dpfast.synthesis.fitted.boosting_privacy import Size, boosting_privacy, boosting_privacy_of_book
from dpfast.testing import SeededRandom

ALPHA = bounds.step_size(1 / 3)
HALF = Fraction(1, 2)


def test_golden_figures():
    """Rows 6-1, 6-4, 6-5 and 6-10."""
    assert pytest.approx(0.8047189562, abs=1e-10) == ALPHA
    assert bounds.naive_factor() == pytest.approx(4.5085306, abs=1e-7)
    assert math.log(bounds.naive_factor()) == pytest.approx(1.5059713, abs=1e-7)
    assert (bounds.book_rounds(1000, 1 / 3), bounds.rounds_needed(1000, 1 / 3)) == (63, 24)
    assert round(bounds.least_margin(ALPHA, 63, 100, 1.0, 1e-6)) == 87567
    assert round(bounds.least_margin(ALPHA, 24, 100, 1.0, 1e-6)) == 20590
    each = bounds.sample_epsilon(ALPHA, 63, 1, bounds.least_margin(ALPHA, 63, 100, 1.0, 1e-6))
    assert each == pytest.approx(0.00231582, abs=1e-8)
    assert bounds.sampling_epsilon(each, 6300, 1e-6) == pytest.approx(1.0, rel=1e-12)
    assert bounds.generalization(40, 1 / 3, 0.025) == pytest.approx(6.55333, abs=1e-5)
    assert bounds.brute_force_samples(10, 16, 0.05) == 263
    scale = 2 * math.sqrt(2 * 263 * math.log(1e6))
    assert scale == pytest.approx(170.493, abs=1e-3)
    assert bounds.laplace_accuracy(scale, 263, 0.05) == pytest.approx(3157.88, abs=0.01)


def test_the_margin_by_zero_concentration():
    """Ten times below the text's: rho = e**2 / 8 for each of k T samples; and less, as t - 1 verdicts are known.

    Row 6-8.
    """
    rho = largest_rho(1.0, 1e-6) / UNITS_PER_ONE
    each = math.sqrt(8 * rho / (100 * 24))
    assert round(bounds.sample_epsilon(ALPHA, 24, 1, 1.0) / each) == 8574
    budget = read_budget(None, 0, rho)
    margin = boosting_privacy(Size(24, 100, ALPHA, 1, 0), budget, "gaussian", HALF).margin
    known = math.sqrt(sum(t**2 for t in range(24)) / 24**3)
    assert margin == pytest.approx(8574 * known * math.sqrt(2), rel=1e-3)


def test_noise_of_the_printed_constant_would_cost_more_than_is_said():
    """Theorem 6.6 as printed: b = sqrt(k ln(1/delta)) / epsilon; exact composition, the corollary, and ours.

    Row 6-14.
    """
    losses = [PLD(Laplace(b).times(263)).epsilon(1e-6) for b in (60.28, 85.25, 170.493)]
    assert losses == pytest.approx([1.13798, 0.78427, 0.37402], abs=3e-4)
    tight = noise_of_epsilon(Sensitivity.of_answers(263, 1, 263), "laplace", UNITS_PER_ONE, UNITS_PER_ONE // 10**6)
    assert 60.28 < tight.scale < 75
    assert 0.998 <= PLD(tight.event).epsilon(1e-6) <= 1.0


def test_the_share_of_bad_answers():
    """Row 6-6."""
    assert bounds.inaccurate_share(1 / 3, 1) == pytest.approx(0.745356, abs=1e-6)
    for queries, advantage in itertools.product((2, 10, 1000, 10**6), (0.01, 0.1, 1 / 3, 0.49)):
        rounds = bounds.rounds_needed(queries, advantage)
        assert bounds.inaccurate_share(advantage, rounds) * queries < 1
        assert bounds.inaccurate_share(advantage, rounds - 1) * queries >= 1 - 1e-9
        assert rounds <= bounds.book_rounds(queries, advantage)
        assert bounds.inaccurate_share(advantage, rounds) <= math.exp(-2 * advantage**2 * rounds)


def history(seed, rounds=4, queries=12, tolerance=5, margin=40):
    """Return answers, synopses of earlier rounds and the scores of the next."""
    generator = np.random.default_rng(seed)
    answers = generator.integers(0, 100, queries)
    synopses = answers + generator.integers(-60, 61, (rounds, queries))
    return answers, synopses, sum(verdicts(synopsis, answers, tolerance, margin) for synopsis in synopses)


def test_a_subsample_of_a_synthetic_table_keeps_the_answers(seed):
    """Each of k averages over n' = ln(k) ln(1/beta) / accuracy**2 rows is within the accuracy: Hoeffding's inequality.

    It gives 2 k exp(-2 n' accuracy**2) = 2 k**(1 - 2 ln(1/beta)) of all: below 1e-12 here, the false-failure rate.
    Row 6-12.
    """
    queries, beta, accuracy = 1000, 0.05, 0.05
    rows = bounds.subsample_size(queries, beta=beta, accuracy=accuracy)
    assert rows == math.ceil(math.log(queries) * math.log(1 / beta) / accuracy**2)
    generator = np.random.default_rng(seed)
    shares = generator.random(queries)
    means = generator.binomial(rows, shares) / rows
    assert np.abs(means - shares).max() <= accuracy


def test_samples_have_the_weights_of_figure_6_1(seed):
    """exp(-alpha sum a), normalised, is what `dpf.exponential_draws` is asked to draw from. Row 6-3."""
    answers, synopses, scores = history(seed)
    errors = np.abs(synopses - answers)
    a = np.where(errors <= 5, 1.0, np.where(errors >= 45, -1.0, 1 - 2 * (errors - 5) / 40))
    weights = np.exp(-ALPHA * a.sum(axis=0))
    epsilon = bounds.sample_epsilon(ALPHA, len(synopses), 1, 40)
    drawn_by = dpf.selection_probabilities(scores, epsilon, len(synopses))
    assert np.allclose(weights / weights.sum(), drawn_by, rtol=1e-12)


def loss_of_a_sample(answers, synopses, sensitivity, claimed):
    """Return the largest log ratio of a query's probabilities, over all neighbours, with the slope of a claim."""
    slope = claimed / (2 * len(synopses))
    largest = 0.0
    for change in itertools.product((-sensitivity, 0, sensitivity), repeat=len(answers)):
        laws = []
        for v in (answers, answers + np.array(change)):
            scores = slope * sum(verdicts(synopsis, v, 0, 10) for synopsis in synopses)
            laws.append(scores - np.log(np.exp(scores).sum()))
        largest = max(largest, np.abs(laws[0] - laws[1]).max())
    return largest


def test_a_sample_costs_what_lemma_6_4_says_and_a_mutant_more():
    """All changes of all answers: the loss stays within epsilon and comes near it; mutants exceed it. Row 6-7."""
    answers = np.array([50, 50, 50, 50])
    synopses = np.array([[55, 45, 45, 45]] * 3)
    claimed = 1e-3
    loss = loss_of_a_sample(answers, synopses, 1, claimed)
    assert 0.74 * claimed < loss <= claimed
    # Were scores sensitive to one verdict only, samples would be drawn with three times the slope.
    assert loss_of_a_sample(answers, synopses, 1, 3 * claimed) > 2 * claimed
    # Were answers sensitive to 2 where 1 is said.
    assert loss_of_a_sample(answers, synopses, 2, claimed) > 1.4 * claimed


def test_scores_change_by_at_most_the_rounds_known(seed):
    for trial in range(50):
        answers, synopses, scores = history(seed + trial)
        assert scores.dtype == np.int64
        shift = np.random.default_rng(seed + trial).integers(-3, 4, answers.size)
        moved = sum(verdicts(synopsis, answers + shift, 5, 40) for synopsis in synopses)
        assert np.abs(moved - scores).max() <= 3 * len(synopses)


@pytest.mark.parametrize("size", [Size(24, 100, ALPHA, 1, 0), Size(5, 3, 0.2, 2**20, 2**20), Size(1, 7, ALPHA, 1, 1)])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(1, 2)])
def test_all_that_is_drawn_stays_within_the_budget(size, mechanism, share):
    """Row 6-9."""
    privacy = boosting_privacy(size, read_budget(None, 0, 0.02), mechanism, share)
    assert cost(privacy.events)[0] <= UNITS_PER_ONE // 50
    assert cost(privacy.events)[0] >= (0.998 if size.rounds > 1 else 0.49) * UNITS_PER_ONE // 50
    both = boosting_privacy(size, read_budget(0.7, 1e-7, None), mechanism, share)
    assert ZCDP(both.events).epsilon(1e-7) <= 0.7
    assert (
        runs(both.events).get(ExponentialMechanism(both.sample_epsilons[0])) == size.samples if size.rounds > 1 else 1
    )
    if mechanism == "laplace":
        pure = boosting_privacy(size, read_budget(0.7, 0, None), mechanism, share)
        spent = sum(
            count * charge_units(event.epsilon, "epsilon")
            for event, count in runs(pure.events).items()
            if isinstance(event, ExponentialMechanism)
        )
        noise = size.answer_sensitivity(size.rounds).l1 / pure.noise.scale
        assert spent / UNITS_PER_ONE + noise <= 0.7 * (1 + 1e-12)
    book = boosting_privacy_of_book(size, read_budget(0.7, 1e-7, None), mechanism, share)
    assert PLD(book.events).epsilon(1e-7) <= 0.7
    assert book.noise.scale > both.noise.scale
    assert size.rounds == 1 or book.margin > both.margin


def counts_of(seed, records, cells=32):
    generator = np.random.default_rng(seed)
    return generator.multinomial(records, generator.dirichlet(np.full(cells, 0.3)))


@pytest.mark.statistical
@pytest.mark.parametrize("generator", ["projection", "linear"])
def test_no_answer_errs_by_more_than_lambda_and_mu(generator, seed):
    """With 10**7 records and 100 samples of 300 ranges over 32 cells.

    The largest errors of 100 runs were 0.11 and 0.15 of lambda + mu; that one passes it is taken for less than 1e-6.
    Row 6-2.
    """
    counts, workload = counts_of(seed, 10**7), dpf.workloads.random_ranges(32, 300, seed=seed % 1000)
    boosted = boost_queries(counts, workload, epsilon=1.0, delta=1e-6, generator=generator)
    errors = np.abs(boosted.answers - workload.answer(counts))
    print(errors.max() / (boosted.accuracy + boosted.margin))
    assert errors.max() <= boosted.accuracy + boosted.margin
    assert boosted.rounds.height == bounds.rounds_needed(300, 1 / 3)
    fitted = boosted.estimate()
    assert fitted.histogram.min() >= 0
    assert fitted.to_frame(7).height == 7
    assert fitted.spent.delta == 1e-6
    assert np.abs(fitted.answers - workload.answer(counts)).max() <= 2 * (boosted.accuracy + boosted.margin)


def test_answers_of_earlier_rounds_are_worth_remembering():
    """With a tenth of the samples that one histogram needs: no privacy is paid for it, and errors fall tenfold."""
    counts, workload = counts_of(1, 10**7, 256), dpf.workloads.random_ranges(256, 500, seed=1)
    errors = {}
    for remember in (False, True):
        boosted = boost_queries(
            counts, workload, epsilon=1.0, delta=1e-6, samples=30, remember=remember, random=SeededRandom(1)
        )
        errors[remember] = np.abs(boosted.answers - workload.answer(counts))
    print(errors[False].max(), errors[True].max(), boosted.accuracy + boosted.margin)
    assert errors[True].mean() < errors[False].mean() / 10
    assert errors[True].max() <= boosted.accuracy + boosted.margin


def small(**given):
    parameters = {"histogram": [900, 0, 40, 0, 3000], "workload": dpf.workloads.prefix(5), "epsilon": 1.0, "samples": 4}
    return boost_queries(**(parameters | given))


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_what_comes_out(neighbors):
    book = {"epsilon": 0.5, "delta": 1e-6, "calibration": "book"}
    for given in ({"delta": 1e-6}, {"epsilon": None, "rho": 0.5, "remember": False}, {}, book):
        boosted = small(neighbors=neighbors, random=SeededRandom(5), **given)
        again = small(neighbors=neighbors, random=SeededRandom(5), threads=1, **given)
        assert np.array_equal(boosted.answers, again.answers)
        assert (boosted.total == 3940) == (neighbors == "replace")
        assert boosted.answers.shape == (5,)
        assert boosted.rounds.columns == ["round", "sampled", "worst"]
        assert isinstance(boosted.events, tuple)
    precise = small(neighbors=neighbors, epsilon=10**6, rounds=5, samples=50, accuracy=0.0)
    assert np.allclose(precise.answers, [900, 900, 940, 940, 3940], atol=0.5)


def test_real_queries():
    matrix = np.random.default_rng(1).random((6, 4))
    boosted = boost_queries([10**6, 0, 10**6, 5], dpf.workloads.matrix(matrix), epsilon=1.0, delta=1e-6, samples=30)
    assert np.abs(boosted.answers - matrix @ [10**6, 0, 10**6, 5]).max() < boosted.accuracy + boosted.margin


def test_the_first_of_all_data_sets():
    """In a round one of the three queries is not among the 60 sampled with probability 8e-11, and two rounds decide."""
    boosted = boost_queries(
        [2, 0, 1],
        dpf.workloads.prefix(3),
        epsilon=100_000,
        samples=60,
        rounds=3,
        accuracy=0.9,
        generator="brute_force",
        neighbors="replace",
    )
    assert boosted.answers.tolist() == [2, 2, 3]


def test_a_generator_that_gives_up_leaves_the_round_to_the_uniform():
    """No data set of 3 records has answers within 0 of noisy ones."""
    boosted = small(
        histogram=[3, 0, 0, 0, 0], generator="brute_force", total=3, accuracy=0.0, rounds=2, samples=20, epsilon=0.1
    )
    assert boosted.rounds["worst"].to_list() == [None, None]
    assert boosted.answers.tolist() == [1, 1, 2, 2, 3]


def test_the_ledger_is_charged_whole():
    ledger = dpf.Ledger(epsilon=1.0, delta=1e-6)
    assert small(delta=1e-6, ledger=ledger).entry == 1
    assert ledger.remaining.epsilon == ledger.remaining.delta == 0.0
    with pytest.raises(BudgetExceededError):
        small(ledger=ledger)
    concentrated = dpf.Ledger(epsilon=1.0, delta=1e-6, accountant="zcdp")
    boosted = small(epsilon=None, rho=0.02, ledger=concentrated)
    assert concentrated.spent.rho == cost(boosted.events)[0] / 1e18
    small(epsilon=0.1, delta=0, ledger=concentrated)
    odd = dpf.Ledger(epsilon=1.0)
    small(histogram=[-5, 2**62, 0, 0, 0], ledger=odd)
    assert odd.spent.epsilon == 1.0
    with pytest.raises(DataError, match="histogram must hold counts from 0"):
        small(histogram=[-5, 2**62, 0, 0, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"generator": "linear", "remember": True, "samples": 10**5, "rounds": 100}, "samples must be at most"),
        ({"generator": "brute_force"}, "total must be the public number of records"),
        ({"generator": "brute_force", "total": 10**6}, "total must be so few over 5 cells"),
        ({"generator": "linear", "samples": 10**6, "workload": dpf.workloads.prefix(2**5)}, "samples must be at most"),
        ({"mechanism": "gaussian"}, "delta must be above 0 for Gaussian noise"),
        ({"calibration": "book", "delta": 1e-6}, "below epsilon 1"),
        ({"epsilon": 1e-18}, "epsilon must be larger"),
        ({"epsilon": 1e-18, "delta": 1e-18}, "epsilon must be"),
        ({"rounds": 10**6, "workload": dpf.workloads.prefix(200)}, "rounds must be at most"),
    ],
)
def test_what_is_refused(change, message):
    if "workload" in change:
        change = change | {"histogram": np.zeros(change["workload"].cells, np.int64)}
    with pytest.raises(ParameterError, match=message):
        small(**change)
