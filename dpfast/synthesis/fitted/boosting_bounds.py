"""Boosting for queries in figures: steps, rounds, privacy of samples, sizes of base generators.

Formulas of Dwork, Roth (2014), section 6, with what is tighter beside them. The text's rho is called ``sensitivity``
here, since elsewhere in this package rho is an amount of zero-concentrated privacy.

The running example is boosting with eta = 1/3, 100 samples a round, epsilon = 1 and delta = 1e-6.
"""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

from dpfast.arguments import Number, Real, Whole

__all__ = [
    "ADVANTAGE",
    "BETA",
    "COUNT",
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
COUNT, _ROUNDS = Whole(1, 2**63), Whole(0, 2**63)
_POSITIVE = Number(0, above=True)
#: A probability of failure, or delta.
BETA = Number(0, 1, above=True, below=True, mend="write for example {name}=0.05")
#: A part of the records.
_ACCURACY = Number(1e-9, 1, mend="write for example {name}=0.1")

Advantage: TypeAlias = Annotated[Real, ADVANTAGE]
Count: TypeAlias = Annotated[int, COUNT]
Positive: TypeAlias = Annotated[Real, _POSITIVE]
Beta: TypeAlias = Annotated[Real, BETA]


def step_size(advantage: Advantage) -> float:
    """Return alpha = ln((1 + 2 eta) / (1 - 2 eta)) / 2, by which weights of queries are moved.

    A base generator owes good answers to a share 1/2 + eta of the queries. Where it answers just that share well, this
    alpha makes exp(-alpha) (1/2 + eta) + exp(alpha) (1/2 - eta) least: the sum of the weights after the round
    (Dwork, Roth 2014, section 6.1).

    Examples
    --------
    >>> round(step_size(1 / 3), 10)
    0.8047189562

    """
    return math.atanh(2 * ADVANTAGE.read("advantage", advantage))


def naive_factor(weights: Count = 10) -> float:
    """Return how much one query's probability can grow if a weight of ``weights`` equal ones shrinks e**2-fold less.

    With reweighting by a full step, exp(1) up or down, one record can turn the verdict on all queries but one. That
    one's probability goes from 1/m to 1 / (1 + (m - 1) / e**2), a factor of m / (1 + (m - 1) / e**2). That is why
    verdicts change gradually (Dwork, Roth 2014, section 6.1).

    Examples
    --------
    >>> round(naive_factor(), 7), round(math.log(naive_factor()), 7)
    (4.5085306, 1.5059713)

    """
    count = COUNT.read("weights", weights)
    return count / (1 + (count - 1) / math.e**2)


def inaccurate_share(advantage: Advantage, rounds: Annotated[int, _ROUNDS]) -> float:
    """Return a bound on the share of queries that the median of the rounds answers worse than lambda + mu.

    Where the median errs more, at least half of the rounds did. So the sum of a is at most 0 and the weight at least 1.
    The sum of weights is at most the number of queries times sqrt(1 - 4 eta**2)**rounds, which is at most
    exp(-2 eta**2 rounds) (Dwork, Roth 2014, claim 6.3, with the exponent that its proof gives).

    Examples
    --------
    >>> round(inaccurate_share(1 / 3, 1), 6), round(math.exp(-2 / 9), 6)
    (0.745356, 0.800737)

    """
    return math.exp(_ROUNDS.read("rounds", rounds) * _shrinking(advantage))


def _shrinking(advantage: Real) -> float:
    """Return the logarithm of what a round multiplies the sum of weights by."""
    return 0.5 * math.log1p(-4 * ADVANTAGE.read("advantage", advantage) ** 2)


def rounds_needed(queries: Count, advantage: Advantage) -> int:
    """Return the least number of rounds after which `inaccurate_share` is below one query's.

    Dwork, Roth (2014), claim 6.3.

    Examples
    --------
    >>> rounds_needed(1000, 1 / 3)
    24

    """
    return math.floor(math.log(COUNT.read("queries", queries)) / -_shrinking(advantage)) + 1


def book_rounds(queries: Count, advantage: Advantage) -> int:
    """Return the least number of rounds above ln(queries) / eta**2, as the text has it.

    Dwork, Roth (2014), theorem 6.1.

    Examples
    --------
    >>> book_rounds(1000, 1 / 3)
    63

    """
    return math.floor(math.log(COUNT.read("queries", queries)) / ADVANTAGE.read("advantage", advantage) ** 2) + 1


def sample_epsilon(step: Positive, rounds: Count, sensitivity: Positive, margin: Positive) -> float:
    """Return what one sampled query costs at most: 4 alpha T rho / mu (Dwork, Roth 2014, lemma 6.4).

    After j rounds the exponent alpha sum a of a query has changed by at most 2 alpha j rho / mu, and a normalised
    weight by the factor of twice that.

    Examples
    --------
    >>> round(sample_epsilon(step_size(1 / 3), rounds=63, sensitivity=1, margin=87567), 6)
    0.002316

    """
    moved = 4 * _POSITIVE.read("step", step) * COUNT.read("rounds", rounds)
    return moved * _POSITIVE.read("sensitivity", sensitivity) / _POSITIVE.read("margin", margin)


def sampling_epsilon(epsilon: Positive, draws: Count, delta: Beta) -> float:
    """Return what so many samples cost together: sqrt(2 m ln(1/delta)) e + m e**2 (Dwork, Roth 2014, equation 6.7).

    It holds as it stands: each loss has a mean of at most e tanh(e / 2) <= e**2 / 2.

    Examples
    --------
    >>> round(sampling_epsilon(0.002316, draws=6300, delta=1e-6), 3)
    1.0

    """
    each, count = _POSITIVE.read("epsilon", epsilon), COUNT.read("draws", draws)
    return _spread(count, delta) * each + count * each * each


def _spread(draws: int, delta: Real) -> float:
    return math.sqrt(2 * draws * math.log(1 / BETA.read("delta", delta)))


def least_margin(
    step: Positive, rounds: Count, samples: Count, epsilon: Positive, delta: Beta, sensitivity: Positive = 1.0
) -> float:
    """Return the mu at which all samples cost epsilon by `sampling_epsilon`, each by `sample_epsilon`.

    Dwork, Roth (2014), lemma 6.4 and equation 6.7.

    Examples
    --------
    >>> [round(least_margin(step_size(1 / 3), rounds, 100, 1.0, 1e-6)) for rounds in (63, 24)]
    [87567, 20590]

    """
    draws, whole = COUNT.read("samples", samples) * COUNT.read("rounds", rounds), _POSITIVE.read("epsilon", epsilon)
    spread = _spread(draws, delta)
    each = 2 * whole / (spread + math.sqrt(spread**2 + 4 * draws * whole))
    return sample_epsilon(step, rounds, sensitivity, each)


def generalization(bits: Positive, advantage: Advantage, gamma: Beta) -> float:
    """Return a = 2 (ln(1/gamma) + m) / (m (1 - 2 eta)): a m samples suffice for synopses of m bits.

    With probability at least 1 - gamma, a synopsis that answers all samples well answers a share 1/2 + eta of the
    queries well, by their distribution (Dwork, Roth 2014, lemma 6.5, with the ln(1/gamma) that its proof needs).

    Examples
    --------
    >>> round(generalization(40, 1 / 3, 0.025), 5)
    6.55333

    """
    size, failing = _POSITIVE.read("bits", bits), BETA.read("gamma", gamma)
    return 2 * (math.log(1 / failing) + size) / (size * (1 - 2 * ADVANTAGE.read("advantage", advantage)))


def brute_force_samples(records: Count, cells: Count, beta: Beta) -> int:
    """Return the least k above 6 (m + ln(2 / beta)), m = n log2(cells) (Dwork, Roth 2014, theorem 6.6).

    Examples
    --------
    >>> brute_force_samples(10, 16, 0.05)
    263

    """
    bits = COUNT.read("records", records) * math.log2(COUNT.read("cells", cells))
    return math.floor(6 * (bits + math.log(2 / BETA.read("beta", beta)))) + 1


def laplace_accuracy(scale: Positive, samples: Count, beta: Beta) -> float:
    """Return lambda = 2 b (ln k + ln(2 / beta)), twice what Laplace noise on k answers rarely exceeds.

    All of it is within lambda / 2 with probability at least 1 - beta / 2 (Dwork, Roth 2014, theorem 6.6).

    The text's own b, rho sqrt(k ln(1/delta)) / epsilon, is 2 sqrt(2) times too small for its claim: the noise would
    cost 1.138 where 1 is promised (k = 263, delta = 1e-6). Composition needs 2 rho sqrt(2 k ln(1/delta)) / epsilon, and
    exact composition less than half of that (`dpfast.synthesis.fitted.answer_noise.noise_of_epsilon`).

    Examples
    --------
    >>> round(laplace_accuracy(2 * math.sqrt(2 * 263 * math.log(1e6)), 263, 0.05), 2)
    3157.88

    """
    logarithms = math.log(COUNT.read("samples", samples)) + math.log(2 / BETA.read("beta", beta))
    return 2 * _POSITIVE.read("scale", scale) * logarithms


def subsample_size(queries: Count, beta: Beta, accuracy: Annotated[Real, _ACCURACY]) -> int:
    """Return how many records, drawn from a synthetic data set, keep its answers: ln k ln(1/beta) / alpha**2.

    Dwork, Roth (2014), section 6.2.2; ``accuracy`` is a share of the records.

    Examples
    --------
    >>> subsample_size(1000, beta=0.05, accuracy=0.05)
    8278

    """
    logarithms = math.log(COUNT.read("queries", queries)) * math.log(1 / BETA.read("beta", beta))
    return math.ceil(logarithms / _ACCURACY.read("accuracy", accuracy) ** 2)
