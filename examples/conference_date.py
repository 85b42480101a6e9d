"""A date for a conference: nobody says which days they cannot come, and the day suits nearly as many as any could.

The score of a day is the number of members who can come. A member's answers move every day's score by at most one;
to replace a member's answers may raise one day and lower another, so that the scores are not monotonic.
"""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

import dpfast as dpf

FIRST_DAY = date(2026, 6, 1)
DAYS, MEMBERS = 90, 400


def calendars(members: int = MEMBERS) -> np.ndarray:
    """Return who can come when, a row for each member: made up, with a week that suits more of them."""
    generator = np.random.default_rng(7)
    free = np.full(DAYS, 0.45)
    free[40:47] = 0.85
    return generator.random((members, DAYS)) < free


def main(random: object = None) -> None:
    """Print the day chosen and how good it is; the first days that suit enough members, by sparse vector."""
    suits = calendars().sum(axis=0)
    day = dpf.exponential(suits, epsilon=0.5, random=random)
    error = dpf.selection_error(DAYS, epsilon=0.5)
    print(f"Chosen for epsilon 0.5: {FIRST_DAY + timedelta(days=day)}")
    print(f"  It suits at most {error:.0f} of {MEMBERS} members fewer than the best day does, 19 times in 20.")
    days = dpf.above_threshold(suits, threshold=0.7 * MEMBERS, epsilon=0.5, count=2, random=random)
    first = ", ".join(str(FIRST_DAY + timedelta(days=int(day))) for day in days) or "none"
    print(f"The first two days that suit about 70 % of them, for another 0.5: {first}")


if __name__ == "__main__":
    main()
