"""Attacks find what the theorems say that they find, and a budget that is kept stops them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.testing import SeededRandom


def bits(records, seed):
    return np.random.default_rng(seed).integers(0, 2, records)


@pytest.mark.parametrize("records", [1, 2, 5, 12, 16])
def test_all_subset_sums_betray_all_but_four_times_the_error(records, seed):
    """Row 8-2, theorem 8.1, for noise of any kind: within E of every answer, at most 4 E records are wrong.

    With n / 401 that is fewer than one record in a hundred.
    """
    generator = np.random.default_rng(seed)
    truth = bits(records, seed)
    exact = dpf.attacks.subset_sums(truth)
    assert exact.tolist() == [int(truth[[i for i in range(records) if s >> i & 1]].sum()) for s in range(2**records)]
    for error in (records / 401, 0.49, 1.0, records / 6):
        for noise in (
            generator.uniform(-error, error, exact.size),
            error * generator.choice([-1, 1], exact.size),
            # The worst: answers that lead away from the truth.
            error * np.sign(dpf.attacks.subset_sums(1 - truth) - exact),
        ):
            wrong = int((dpf.attacks.reconstruct_from_subset_sums(exact + noise) != truth).sum())
            assert wrong <= 4 * error
    wrong = (dpf.attacks.reconstruct_from_subset_sums(exact + records / 401) != truth).mean()
    assert wrong <= 4 / 401 < 0.01


def test_the_fast_search_is_the_slow_one(seed):
    """Row 8-2: the largest distance of every candidate, one by one."""
    generator = np.random.default_rng(seed)
    for records in (1, 3, 6):
        sums = {c: dpf.attacks.subset_sums(c) for c in itertools.product((0, 1), repeat=records)}
        for _ in range(20):
            answers = generator.normal(records / 2, 2, 2**records)
            farthest = {c: np.abs(answers - exact).max() for c, exact in sums.items()}
            found = tuple(dpf.attacks.reconstruct_from_subset_sums(answers).tolist())
            assert farthest[found] == pytest.approx(min(farthest.values()), abs=1e-12)


def test_a_quarter_of_the_answers_may_be_arbitrary(seed):
    """Row 8-3, theorem 8.2: a share of 1/2 + eta within alpha, and at most (2 alpha / eta)**2 records are wrong.

    With eta = 1/4 and b = 37 > 4 ln 3 / eta = 17.578 it fails with probability exp(-12 (37 / 16 - ln 3)), which is
    below 5e-7; here alpha is so small that any four records too many would show.
    """
    assert 4 * math.log(3) / 0.25 == pytest.approx(17.578, abs=1e-3)
    records, eta, alpha = 12, 0.25, 0.25
    generator = np.random.default_rng(seed)
    truth = bits(records, seed)
    queries = dpf.attacks.random_queries(37 * records, records, seed=seed % 1000)
    answers = queries @ truth + generator.uniform(-alpha, alpha, len(queries))
    lies = generator.permutation(len(queries))[: int((0.5 - eta) * len(queries))]
    answers[lies] = generator.normal(0, 30, lies.size)
    found = dpf.attacks.reconstruct_from_answers(queries, answers, "search", tolerance=alpha)
    assert (found != truth).sum() <= (2 * alpha / eta) ** 2


def test_sums_of_signs_are_seldom_in_a_short_stretch():
    """Row 8-3, lemma 8.3: P(Y in [2y, 2(y + l)]) <= (l + 1) / sqrt(k) and P(Y = 2y) <= sqrt(2 / (pi k))."""
    for k in (1, 2, 9, 100, 1001):
        odds = np.array([math.comb(k, j) / 2**k for j in range(k + 1)])
        assert odds.max() <= math.sqrt(2 / (math.pi * k)) * (1 + 1 / k)
        # The bound of the text, of even k; an odd k lies between its neighbours.
        assert k % 2 or odds.max() <= math.sqrt(2 / (math.pi * k))
        for length in (0, 1, 3):
            assert np.convolve(odds, np.ones(length + 1)).max() <= (length + 1) / math.sqrt(k)


def test_a_tenth_of_the_square_root_is_no_protection(seed):
    """Row 8-4: noise of deviation 0.1 sqrt(n) on a few counts for each of 200 records, and 99% are recovered.

    Each of 20 databases has 200 records: by least squares from 1,600 answers an error has a deviation of about
    2 * 1.4 / sqrt(1,400) = .08, and 1/2 is six of them: 4,000 errors at 1e-9 each.
    """
    noise = 0.1 * math.sqrt(200)
    for number in range(20):
        truth = bits(200, seed + number)
        found = dpf.attacks.reconstruction(lambda counts: dpf.laplace(counts, noise / math.sqrt(2)), truth, 1600)
        assert found.recovered >= 0.99
        assert found.noise == pytest.approx(noise, rel=0.2)
        assert f"of 200 records recovered ({found.recovered:.1%}) from 1,600 answers" in found.explain()


def test_linear_programmes_stand_a_fifth_of_lies(seed):
    """Row 8-4: below a share of 0.239 of arbitrary answers the least absolute error is right, least squares is not.

    A fifth is far from where it fails: with a quarter and with a third of such lies it was right in all 16 and 21
    runs. Of least squares, whose estimates have a deviation of 9, half are right: 59 of 60 with a probability of 5e-17.
    """
    pytest.importorskip("scipy")
    truth = bits(60, seed)
    generator = np.random.default_rng(seed)

    def lying(counts):
        noisy = counts + generator.uniform(-0.3, 0.3, counts.size)
        lies = generator.permutation(counts.size)[: counts.size // 5]
        noisy[lies] += generator.choice([-300, 300], lies.size)
        return noisy

    by_programme = dpf.attacks.reconstruction(lying, truth, 900, "linear_program", seed=3)
    assert by_programme.recovered >= 0.98
    assert dpf.attacks.reconstruction(lying, truth, 900, seed=3).recovered < by_programme.recovered


def test_a_budget_stops_the_attack(seed):
    """With epsilon 1 for all answers any attack finds a record with odds of at most e, .7311 if bits are even.

    This one finds about half: noise of 2,400 leaves least squares an error of some 160. Above .65 of 600, or below .35,
    are fair coins with a probability of 9.1e-14 each, by the binomial tails. With noise of scale 1 an estimate has a
    deviation of .067: 1/2 is 7.5, and one of 600 is wrong with a probability below 4e-11.
    """
    truth = bits(600, seed)
    asked = 4 * truth.size
    found = dpf.attacks.reconstruction(lambda counts: dpf.laplace(counts, asked), truth, queries=asked)
    assert 0.35 < found.recovered < 0.65 < math.e / (1 + math.e)
    naive = dpf.attacks.reconstruction(lambda counts: dpf.laplace(counts, 1.0), truth, queries=asked)
    assert naive.recovered == 1.0


def test_differences_betray_one_record_at_a_time(seed):
    """One difference tells hardly anything; the average of 6,000 has a deviation of .0775, and 1/2 is 6.4 of them.

    So one of 300 records is wrong with probability 2e-8. Of single ones .542 are right, and .75 are 7 deviations above.
    """
    truth = bits(300, seed)
    assert dpf.attacks.differencing(lambda counts: counts, truth).recovered == 1.0
    source = SeededRandom(seed)
    once = dpf.attacks.differencing(lambda counts: dpf.laplace(counts, 3.0, random=source), truth)
    often = dpf.attacks.differencing(lambda counts: dpf.laplace(counts, 3.0, random=source), truth, repeats=6000)
    assert once.recovered < 0.75 < 0.999 < often.recovered
    assert often.queries == 2 * 300 * 6000


def test_members_are_told_from_others(seed):
    """100 people with 3,000 attributes: exact averages name nearly all, Laplace noise for epsilon 1 hardly anyone.

    Members' scores exceed others' by 7.5 with deviations of about 1.4: missing one in ten of them is no chance of 1e-9.
    """
    generator = np.random.default_rng(seed)
    shares = generator.uniform(0.1, 0.9, 3000)
    people = generator.random((700, 3000)) < shares
    exact = dpf.attacks.membership(lambda averages: averages, people[:100], people[100:], shares)
    assert exact.true_positives > 0.9
    assert exact.false_positives <= 0.05
    noisy = dpf.attacks.membership(lambda averages: dpf.laplace(averages, 30.0), people[:100], people[100:], shares)
    assert noisy.true_positives < 0.4
    assert f"{exact.true_positives:.1%} of 100 members found" in exact.explain()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"records": [0, 1, 2]}, "records must be zeros and ones"),
        ({"records": []}, "records must be a list of zeros and ones"),
        ({"records": np.zeros(5000, int)}, "records must be at most 4,096"),
        ({"mechanism": lambda counts: counts[1:]}, "mechanism must be a function that returns as many finite numbers"),
        ({"mechanism": lambda counts: counts * math.nan}, "mechanism must be a function that returns as many"),
        ({"mechanism": 5}, "mechanism must be a function from exact answers"),
        ({"method": "search"}, 'method must be "least_squares" or "linear_program"'),
        ({"records": np.zeros(4096, int), "queries": 2**20}, "queries must be at most 32,768"),
    ],
)
def test_bad_attacks(given, message):
    asked = {"mechanism": lambda counts: counts, "records": [0, 1, 1], **given}
    with pytest.raises(ParameterError, match="^" + message):
        dpf.attacks.reconstruction(**asked)


def test_an_error_of_the_mechanism_is_its_own():
    def broken(counts):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        dpf.attacks.reconstruction(broken, [0, 1])


def test_programmes_that_cannot_be_solved_are_refused():
    pytest.importorskip("scipy")
    with pytest.raises(ParameterError, match=r"^queries must be so few"):
        dpf.attacks.reconstruct_from_answers(np.ones((2**15, 1)), np.ones(2**15), "linear_program")
    with pytest.raises(ParameterError, match=r"^answers must be of a size"):
        dpf.attacks.reconstruct_from_answers(np.full((4, 2), 1e308), np.full(4, -1e308), "linear_program")
