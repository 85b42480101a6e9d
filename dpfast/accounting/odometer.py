"""How much was spent so far, for users without a cap: a bound that holds at all times at once."""

from __future__ import annotations

import math

from dpfast.accounting.accountants.accountant import TargetDelta, checked_delta

__all__ = ["odometer_epsilon"]

#: Orders less one, from 2**-8 to 2**16 in steps of a square root of two.
_EXCESSES: tuple[float, ...] = tuple(2.0 ** (j / 2) for j in range(-16, 33))
# A float sum of a few positive terms with logarithms of at most 4 ulp.
_ROUNDED_UP = 1.0 + 2.0**-40


def odometer_epsilon(rho: float, delta: TargetDelta) -> float:
    """Return an epsilon for a sum of rho that was charged so far, whatever was charged and when one stops.

    Guarantee
        Let queries be chosen one after the other, each rho_i-zCDP with a rho_i that may depend on all answers
        before it, without any bound on their sum R. Then with probability at least 1 - delta the privacy loss
        of all answers so far is at most this function of R at every time; so it is (epsilon, delta)-private to
        stop at any time and to say what was spent (an odometer: Rogers, Roth, Ullman, Vadhan 2016; for zCDP:
        Whitehouse, Ramdas, Rogers, Wu 2023).

        Proof. For an order a = 1 + t, exp(t (L - a R)) of the loss L is a supermartingale that begins at 1, by
        the definition of zCDP; by Ville's inequality it ever reaches 1 / d with probability at most d. Where it
        does not, L <= a R + ln(1/d) / t at all times. This is done for 49 orders with d = delta / 49 each, and
        the best is taken (union bound).

    Parameters
    ----------
    rho
        The sum so far, 0 or more.
    delta
        Above 0 and below 1, fixed before the first query.

    Returns
    -------
    float
        An epsilon, rounded up; at delta 1e-6 a quarter above what a filter with a bound of rho 0.5 guarantees.

    Raises
    ------
    ParameterError
        ``delta`` is no such number.

    Examples
    --------
    >>> round(odometer_epsilon(0.5, 1e-6), 3)
    6.459

    """
    share = math.log(len(_EXCESSES) / float(checked_delta(delta)))
    if not rho > 0.0:
        return 0.0
    return min((1.0 + t) * rho + share / t for t in _EXCESSES) * _ROUNDED_UP
