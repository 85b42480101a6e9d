"""The accountant by privacy loss distributions."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dpfast.accounting.events import Event
from dpfast.accounting.pld.inversion import delta_bounds, epsilon_bounds
from dpfast.accounting.pld.plan import alternatives, compose, has_samples
from dpfast.accounting.pld.sampling import Direction
from dpfast.errors import ParameterError

__all__ = ["PLD"]

_FINEST = 3
# Cells are halved while they are responsible for a larger relative gap than this.
_WANTED_GAP = 5e-4


class PLD:
    """The tight composition of a plan: epsilon and delta between two certified bounds.

    A report, not a filter. The curve belongs to one list of events, fixed before any answer is seen: where an
    analyst may stop early or choose parameters after answers, composing the curves of what happened to run is
    not a guarantee (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse, Ramdas, Rogers, Wu 2023). Ledgers admit by
    running sums; this says what a declared plan costs.

    Guarantee
        Composition of the events, run on one dataset with fresh noise each, whichever neighbours they are stated
        for, is (`epsilon(delta)`, delta)-differentially private and (epsilon, `delta(epsilon)`)-differentially
        private; all rounding, numerical error and truncation is counted in. The lower bounds concern the events'
        dominating pairs: no accountant that knows the events alone can report less than `epsilon_lower`. (For the
        exponential mechanism and for samples of composed pairs, the pair used here is not attained.)

    Parameters
    ----------
    events
        One event or more. Refused: `ZeroConcentrated` (rho fixes no privacy loss), samples on which several
        mechanisms other than Gaussian noise run, and partitions with more than 64 distinct choices of parts.

    Raises
    ------
    ParameterError
        An event has no place here, named in the message.

    Notes
    -----
    Each mechanism's dominating pair (Zhu, Dong, Wang 2022) has a moment generating function in closed form, or
    is replaced by finite pairs above (connect-the-dots: Doroshenko et al. 2022) and below; their product is
    inverted on a line of the complex plane. The privacy loss is never rounded to a grid.

    Examples
    --------
    >>> from dpfast.accounting.events import Laplace
    >>> plan = PLD(Laplace(scale=10.0).times(100))
    >>> round(plan.epsilon(1e-6), 4), round(plan.epsilon_lower(1e-6), 4)
    (4.6927, 4.6927)

    """

    def __init__(self, events: Event | Iterable[Event]) -> None:
        self._alternatives = alternatives(events)
        self._known: dict[tuple[str, float], tuple[float, float]] = {}

    @classmethod
    def applies(cls, events: Event | Iterable[Event]) -> bool:
        """Whether all events have a privacy loss distribution here."""
        try:
            cls(events)
        except ParameterError:
            return False
        return True

    def epsilon(self, delta: float) -> float:
        """Return an upper bound of epsilon at `delta`, infinite where no epsilon will do."""
        return self._epsilons(delta)[1]

    def epsilon_lower(self, delta: float) -> float:
        """Return a lower bound of the best epsilon at `delta`: how far `epsilon` may be from it."""
        return self._epsilons(delta)[0]

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at `epsilon`."""
        return self._deltas(epsilon)[1]

    def delta_lower(self, epsilon: float) -> float:
        """Return a lower bound of the best delta at `epsilon`."""
        return self._deltas(epsilon)[0]

    def _epsilons(self, delta: float) -> tuple[float, float]:
        delta = float(delta)
        if not 0.0 <= delta < 1.0:
            raise ParameterError("delta", delta, "a number of at least 0 and below 1", "write for example delta=1e-6")
        return self._bounds("epsilon", delta)

    def _deltas(self, epsilon: float) -> tuple[float, float]:
        epsilon = float(epsilon)
        if not 0.0 <= epsilon < math.inf:
            raise ParameterError("epsilon", epsilon, "a finite number of at least 0", "write for example epsilon=1.0")
        return self._bounds("delta", epsilon)

    def _bounds(self, wanted: str, given: float) -> tuple[float, float]:
        """Return both bounds: the largest over the parts a unit may lie in and over adding and removing it."""
        if (wanted, given) not in self._known:
            low = up = 0.0
            for counts in self._alternatives:
                for fineness in range(_FINEST + 1):
                    one_low, one_up = 0.0, 0.0
                    directions: tuple[Direction, ...] = ("remove", "add") if has_samples(counts) else ("remove",)
                    for direction in directions:
                        upper = compose(counts, direction, "upper", fineness)
                        lower = compose(counts, direction, "lower", fineness) if has_samples(counts) else upper
                        bounds = epsilon_bounds if wanted == "epsilon" else delta_bounds
                        one_up = max(one_up, bounds(upper, given)[1])
                        one_low = max(one_low, bounds(lower, given)[0])
                    if not has_samples(counts) or one_up - one_low <= _WANTED_GAP * one_up or one_up == math.inf:
                        break
                low, up = max(low, one_low), max(up, one_up)
            self._known[wanted, given] = (low, up)
        return self._known[wanted, given]
