"""The accountant by privacy loss distributions."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Literal

from dpfast.accounting.accountants.accountant import Events, TargetDelta, TargetEpsilon, checked_delta, checked_epsilon
from dpfast.accounting.accountants.capped import Capped
from dpfast.accounting.accountants.pld.inversion import delta_bounds, epsilon_bounds, rough_tilt
from dpfast.accounting.accountants.pld.plan import Resolution, Runs, alternatives, compose, has_samples, resolution_of
from dpfast.accounting.accountants.pld.sampling import Direction
from dpfast.accounting.events import runs
from dpfast.exact.balls import round_up

__all__ = ["PLD"]

_FINEST = 3
# Steps are halved while they are responsible for a larger relative gap than this.
_WANTED_GAP = 5e-4
# What lies below errs in the third order of the step, by more than what lies above where steps are coarse.
_LOWER_FINER = 3.0

Asked = Literal["epsilon", "delta"]


@dataclass(frozen=True, repr=False)
class PLD(Capped):
    """The tight composition of a plan: epsilon and delta between two certified bounds.

    A report, not a filter. The curve belongs to one list of events, fixed before any answer is seen: where an
    analyst may stop early or choose parameters after answers, composing the curves of what happened to run is
    no guarantee (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse, Ramdas, Rogers, Wu 2023). Ledgers admit by
    running sums; this says what a declared plan costs.

    Guarantee
        The events, run on one dataset with fresh noise each, are (`epsilon(delta)`, delta)- and (epsilon,
        `delta(epsilon)`)-differentially private, for the neighbours that they are stated for: every rounding,
        truncation and numerical error is added. The lower bounds are of the same curve, the composition of the
        events' dominating pairs, so the two show all that is lost to numerics. They are bounds of that curve, and of
        what the events cost only where some mechanism that an event allows has the loss of its pair. Of the
        exponential mechanism, permute-and-flip, the selection of keys and what is sampled of abstract events none
        may have it: these may cost less, also than the lower bound, as zCDP may show.

    Raises
    ------
    ParameterError
        An event has no place here: `ZeroConcentrated`, for rho fixes no loss; a sample on which several mechanisms
        run that are not all Gaussian; partitions with more than 64 distinct choices of parts.

    Notes
    -----
    Each mechanism's dominating pair (Zhu, Dong, Wang 2022) has a moment generating function in closed form, or,
    on a sample, finite pairs above it (connect-the-dots: Doroshenko et al. 2022) and below it. Their product is
    integrated on a line of the complex plane; the losses of unsampled events are never rounded to a grid.

    Examples
    --------
    >>> import dpfast as dpf
    >>> plan = dpf.accounting.pld(dpf.accounting.events.Laplace(scale=10.0).times(100))
    >>> round(plan.epsilon(1e-6), 2), round(plan.epsilon_lower(1e-6), 2)
    (4.69, 4.69)

    """

    events: InitVar[Events]
    _alternatives: list[Runs] = field(init=False, repr=False)
    _known: dict[tuple[Asked, Fraction], tuple[float, float]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self, events: Events) -> None:
        listed = tuple(event.times(count) for event, count in runs(events).items())
        object.__setattr__(self, "_alternatives", alternatives(listed))
        self._keep_sums(listed)

    def __hash__(self) -> int:
        return hash(frozenset(frozenset(counts.items()) for counts in self._alternatives))

    @property
    def _told(self) -> dict[str, float]:
        return {"events": max(sum(counts.values()) for counts in self._alternatives)}

    def epsilon_lower(self, delta: TargetDelta) -> float:
        """Return a lower bound of the epsilon of the pairs' curve at `delta`: how far `epsilon` may be from it."""
        target = checked_delta(delta)
        return min(self._bounds("epsilon", target)[0], self.epsilon(target))

    def delta_lower(self, epsilon: TargetEpsilon) -> float:
        """Return a lower bound of the delta of the pairs' curve at `epsilon`."""
        target = checked_epsilon(epsilon)
        return min(self._bounds("delta", target)[0], self.delta(target))

    def _epsilon(self, target: Fraction) -> float:
        """Return an upper bound of epsilon at a delta, infinite where no epsilon will do."""
        return self._bounds("epsilon", target)[1]

    def _delta(self, target: Fraction) -> float:
        """Return an upper bound of delta at an epsilon."""
        return self._bounds("delta", target)[1]

    def _bounds(self, wanted: Asked, given: Fraction) -> tuple[float, float]:
        """Return both bounds: the largest over the parts a unit may lie in and over adding and removing it."""
        if (wanted, given) not in self._known:
            low = up = 0.0
            for counts in self._alternatives:
                directions: tuple[Direction, ...] = ("remove", "add") if has_samples(counts) else ("remove",)
                for direction in directions:
                    lower, upper = _refined(counts, direction, wanted, given, low)
                    low, up = max(low, lower), max(up, upper)
            self._known[wanted, given] = (low, up)
        return self._known[wanted, given]


def _refined(counts: Runs, direction: Direction, wanted: Asked, given: Fraction, known: float) -> tuple[float, float]:
    """Return bounds of one curve, its steps halved while that matters; `known` is a lower bound of the largest."""
    # Less privacy is given away at a smaller delta and at a smaller epsilon: towards it the given is rounded.
    down, above = -round_up(-given), round_up(given)
    bounds = epsilon_bounds if wanted == "epsilon" else delta_bounds
    if not has_samples(counts):
        composition = compose(counts, direction, "upper", Resolution(0.0))
        lower, upper = bounds(composition, down)
        return (lower if down == above else bounds(composition, above, "lower")[0]), upper

    def upper_at(resolution: Resolution, near: float | None) -> float:
        return bounds(compose(counts, direction, "upper", resolution), down, "upper", near)[1]

    rough = compose(counts, direction, "upper", Resolution(0.0))
    tilt, epsilon, log_delta = rough_tilt(rough, wanted, down)
    resolution = resolution_of(counts, tilt, epsilon, log_delta)
    near: float | None = None
    if known > 0.0:
        # The direction that matters less mostly shows it at once.
        up = upper_at(resolution.finer(0.25), None)
        if up <= known:
            return 0.0, up
    low, up = 0.0, upper_at(resolution, None)
    for _ in range(_FINEST + 1):
        if up <= known or up == math.inf:
            break
        if wanted == "epsilon" and up > 0.0:
            near = up
            # What was estimated for the first steps is known better now.
            better = resolution_of(counts, tilt, up, log_delta)
            if better.step < 0.7 * resolution.step:
                resolution = Resolution(better.step, better.reach, resolution.fineness)
                up = min(up, upper_at(resolution, near))
        below = compose(counts, direction, "lower", resolution.finer(_LOWER_FINER))
        low = max(low, bounds(below, above, "lower", near)[0])
        if up - low <= _WANTED_GAP * up:
            break
        resolution = resolution.finer(2.0)
        up = min(up, upper_at(resolution, near))
    return low, up
