"""Boosting for queries in figures: steps, rounds, privacy of samples, sizes of base generators.

Formulas of Dwork, Roth (2014), section 6, with what is tighter beside them; rho is written ``sensitivity`` here, as
elsewhere in this package rho is an amount of zero-concentrated privacy.
"""

from __future__ import annotations

import math

from dpfast.arguments import Number

__all__ = [
    "ADVANTAGE",
    "book_rounds",
    "brute_force_samples",
    "generalization",
    "inaccurate_share",
    "laplace_accuracy",
    "least_margin",
    "naive_factor",
    "rounds_needed",
    "sample_epsilon",
    "sampling_epsilon",
    "step_size",
    "subsample_size",
]

ADVANTAGE = Number(1e-6, 0.5, below=True, mend="write for example {name}=1/3")


def step_size(advantage: float) -> float:
    """Return alpha = ln((1 + 2 eta) / (1 - 2 eta)) / 2, by which weights of queries are moved.

    It makes exp(-alpha) (1/2 + eta) + exp(alpha) (1/2 - eta) least: the sum of weights after a round in which a share
    1/2 + eta of them, the least that a base generator owes, was answered well.

    Examples
    --------
    >>> round(step_size(1 / 3), 10)
    0.8047189562

    """
    return math.atanh(2 * ADVANTAGE.read("advantage", advantage))


def naive_factor(weights: int = 10) -> float:
    """Return how much one query's probability can grow if a weight of ``weights`` equal ones shrinks e**2-fold less.

    With reweighting by a full step, exp(1) up or down, one record can turn the verdict on all queries but one: that
    one's probability goes from 1/m to 1 / (1 + (m - 1) / e**2), a factor of m / (1 + (m - 1) / e**2). Hence verdicts
    that change gradually.

    Examples
    --------
    >>> round(naive_factor(), 7), round(math.log(naive_factor()), 7)
    (4.5085306, 1.5059713)

    """
    return weights / (1 + (weights - 1) / math.e**2)


def inaccurate_share(advantage: float, rounds: int) -> float:
    """Return a bound on the share of queries that the median of the rounds answers worse than lambda + mu.

    Where the median errs more, at least half of the rounds did, so the sum of a is at most 0 and the weight at least 1;
    the sum of weights is at most the number of queries times sqrt(1 - 4 eta**2)**rounds, which is at most
    exp(-2 eta**2 rounds) (Dwork, Roth 2014, claim 6.3, with the exponent that its proof gives).

    Examples
    --------
    >>> round(inaccurate_share(1 / 3, 1), 6), round(math.exp(-2 / 9), 6)
    (0.745356, 0.800737)

    """
    step_size(advantage)
    return math.exp(0.5 * rounds * math.log1p(-4 * advantage**2))


def rounds_needed(queries: int, advantage: float) -> int:
    """Return the least number of rounds after which `inaccurate_share` is below one query's.

    Examples
    --------
    >>> rounds_needed(1000, 1 / 3), book_rounds(1000, 1 / 3)
    (24, 63)

    """
    step_size(advantage)
    return math.floor(math.log(queries) / (-0.5 * math.log1p(-4 * advantage**2))) + 1


def book_rounds(queries: int, advantage: float) -> int:
    """Return the least number of rounds above ln(queries) / eta**2, as the text has it."""
    step_size(advantage)
    return math.floor(math.log(queries) / advantage**2) + 1


def sample_epsilon(step: float, rounds: int, sensitivity: float, margin: float) -> float:
    """Return what one sampled query costs at most: 4 alpha T rho / mu (Dwork, Roth 2014, lemma 6.4).

    After j rounds the exponent alpha sum a of a query has changed by at most 2 alpha j rho / mu, and a normalised
    weight by the factor of twice that.

    """
    return 4 * step * rounds * sensitivity / margin


def sampling_epsilon(epsilon: float, draws: int, delta: float) -> float:
    """Return what so many samples cost together: sqrt(2 m ln(1/delta)) e + m e**2 (Dwork, Roth 2014, equation 6.7).

    It holds as it stands: each loss has a mean of at most e tanh(e / 2) <= e**2 / 2.

    """
    return math.sqrt(2 * draws * math.log(1 / delta)) * epsilon + draws * epsilon**2


def least_margin(
    step: float, rounds: int, samples: int, epsilon: float, delta: float, sensitivity: float = 1.0
) -> float:
    """Return the mu at which all samples cost epsilon by `sampling_epsilon` (of lemma 6.4's epsilon each).

    Examples
    --------
    >>> [round(least_margin(step_size(1 / 3), rounds, 100, 1.0, 1e-6)) for rounds in (63, 24)]
    [87567, 20590]

    """
    draws = samples * rounds
    spread = math.sqrt(2 * draws * math.log(1 / delta))
    each = 2 * epsilon / (spread + math.sqrt(spread**2 + 4 * draws * epsilon))
    return sample_epsilon(step, rounds, sensitivity, each)


def generalization(bits: float, advantage: float, gamma: float) -> float:
    """Return a = 2 (ln(1/gamma) + m) / (m (1 - 2 eta)): a m samples suffice for synopses of m bits.

    Then a synopsis that answers all samples well answers a share 1/2 + eta of the queries well, by their distribution,
    with probability 1 - gamma (Dwork, Roth 2014, lemma 6.5, with the ln(1/gamma) that its proof needs).

    Examples
    --------
    >>> round(generalization(40, 1 / 3, 0.025), 5)
    6.55333

    """
    step_size(advantage)
    return 2 * (math.log(1 / gamma) + bits) / (bits * (1 - 2 * advantage))


def brute_force_samples(records: int, cells: int, beta: float) -> int:
    """Return the least k above 6 (m + ln(2 / beta)), m = n log2(cells) (Dwork, Roth 2014, theorem 6.6).

    Examples
    --------
    >>> brute_force_samples(10, 16, 0.05)
    263

    """
    return math.floor(6 * (records * math.log2(cells) + math.log(2 / beta))) + 1


def laplace_accuracy(scale: float, samples: int, beta: float) -> float:
    """Return lambda = 2 b (ln k + ln(2 / beta)): above it Laplace noise on k answers is with probability beta / 2 only.

    The text's own b, rho sqrt(k ln(1/delta)) / epsilon, is 2 sqrt(2) times too small for its claim: the noise would
    cost 1.138 where 1 is promised (k = 263, delta = 1e-6). Composition needs 2 rho sqrt(2 k ln(1/delta)) / epsilon, and
    exact composition less than half of that (`dpfast.synthesis.fitted.answer_noise.noise_of_epsilon`).

    Examples
    --------
    >>> round(laplace_accuracy(2 * math.sqrt(2 * 263 * math.log(1e6)), 263, 0.05), 2)
    3157.88

    """
    return 2 * scale * (math.log(samples) + math.log(2 / beta))


def subsample_size(queries: int, beta: float, accuracy: float) -> int:
    """Return how many records, drawn from a synthetic data set, keep its answers: ln k ln(1/beta) / alpha**2.

    Dwork, Roth (2014), section 6.2.2; ``accuracy`` is a share of the records.

    """
    return math.ceil(math.log(queries) * math.log(1 / beta) / accuracy**2)
