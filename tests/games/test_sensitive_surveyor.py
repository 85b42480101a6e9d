"""The sensitive surveyor: if what privacy is worth to people is a secret itself, no finite payment buys an answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

#: One person has a bit and a value of privacy, 1 or V. The surveyor publishes a guess of the bit, and pays something.
#: Outcomes: the guess, and whether it was the large payment or none.
GUESSES, PAID = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])


def least_payment(value, loss, *, sensitive):
    """Return the least expected payment to a person whose privacy is worth 1, by a linear program.

    Every report loses ``loss`` at most, and is paid for it, ``loss`` times what privacy is worth to her, so that taking
    part is rational. The guess is wrong with probability 1/3 at most, whoever is asked. ``sensitive``: a report is a
    bit and a value, and no two differ by more than exp(loss) in probability. Else only the bit is hidden, and the value
    may be known. None where there is no such mechanism.
    """
    types = [(bit, worth) for bit in (0, 1) for worth in (1.0, value)]
    size, large = len(types) * 4, 100.0 * value * (1 + loss)
    rows, limits = [], []

    def row(entries):
        made = np.zeros(size)
        for place, number in entries:
            made[place] += number
        return made

    for i, (bit, worth) in enumerate(types):
        own = range(4 * i, 4 * i + 4)
        wrong = [(place, 1.0) for place, guess in zip(own, GUESSES, strict=True) if guess != bit]
        rows.append(row(wrong))
        limits.append(1 / 3)
        rows.append(row([(place, -large) for place, paid in zip(own, PAID, strict=True) if paid]))
        limits.append(-loss * worth)
        for j, (_, other) in enumerate(types):
            if i != j and (sensitive or worth == other):
                for outcome in range(4):
                    rows.append(row([(4 * i + outcome, 1.0), (4 * j + outcome, -math.exp(loss))]))
                    limits.append(0.0)
    sums = [row([(4 * i + outcome, 1.0) for outcome in range(4)]) for i in range(4)]
    cheap = [place for place in range(size) if types[place // 4][1] == 1.0 and PAID[place % 4]]
    # The larger of the two payments to those whose privacy is worth 1 is what is made least.
    objective = np.zeros(size + 1)
    objective[-1] = 1.0
    matrix = np.column_stack([np.array(rows), np.zeros(len(rows))])
    each = [row([(place, large) for place in cheap if place // 4 == i]) for i in range(4)]
    matrix = np.vstack([matrix, *[np.append(one, -1.0) for one in each if one.any()]])
    limits += [0.0] * (len(matrix) - len(limits))
    done = linprog(
        objective,
        A_ub=matrix,
        b_ub=limits,
        A_eq=np.column_stack([np.array(sums), np.zeros(4)]),
        b_eq=np.ones(4),
        bounds=[(0, 1)] * size + [(0, None)],
    )
    return done.fun if done.status == 0 else None


LOSSES = np.linspace(0.4, 12, 59)


def cheapest(value, *, sensitive):
    found = [least_payment(value, loss, sensitive=sensitive) for loss in LOSSES]
    return min(payment for payment in found if payment is not None)


def test_an_accurate_survey_needs_ln_2():
    """Row 10-12, definition: accurate is a miss of 1/3 at most, and then some report loses ln 2 at least."""
    assert least_payment(1.0, math.log(2) - 0.01, sensitive=True) is None
    assert least_payment(1.0, math.log(2) + 0.01, sensitive=True) == pytest.approx(math.log(2) + 0.01, rel=1e-6)


def test_no_finite_payment_is_enough_where_values_are_secret():
    """Row 10-12: what a person who hardly cares must be paid grows without end with what another might ask.

    Her law is within exp(loss) of that of one who asks V, and who is paid loss * V: she gets loss * max(1, V
    exp(-loss)) at least, about ln V at the best loss. Where values may be known, ln 2 does for every V.
    """
    payments = [cheapest(value, sensitive=True) for value in (1.0, 1e2, 1e4)]
    for value, payment in zip((1.0, 1e2, 1e4), payments, strict=True):
        assert payment >= min(loss * max(1.0, value * math.exp(-loss)) for loss in LOSSES if loss >= 0.69) * (1 - 1e-6)
    assert payments[0] < 0.9
    assert payments[1] > 4
    assert payments[2] > 8
    assert cheapest(1e4, sensitive=False) < 0.9
