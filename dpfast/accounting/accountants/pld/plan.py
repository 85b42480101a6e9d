"""From events to compositions: which runs a plan may mean for one unit, and the transforms of each."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from dpfast.accounting.accountants.accountant import Events, refused
from dpfast.accounting.accountants.pld.composition import Composition
from dpfast.accounting.accountants.pld.sampling import Atoms, Direction, Lattice, gaussian_losses, sampled_losses
from dpfast.accounting.events import Gaussian, Partitioned, PoissonSubsampled, Single, runs
from dpfast.accounting.facts import FACTS
from dpfast.accounting.formulas import pairs
from dpfast.accounting.formulas.pairs import Side
from dpfast.accounting.formulas.transforms import FAMILIES, ROUNDING, Family
from dpfast.errors import ParameterError

__all__ = ["LARGEST_ALTERNATIVES", "Resolution", "alternatives", "compose", "has_samples", "resolution_of"]

# A lattice of step s raises ln M(t) of each run by about s^2 t (t + 1) / 12: this much of epsilon, relatively.
_WANTED_SHIFT = 5e-5
# The share of delta that the tails of sampled Gaussians may take.
_TAIL_SHARE = 1e-6
# A step is never finer than this share of the spread of one run's loss, nor coarser than that one.
_FINEST_SHARE, _COARSEST_SHARE = 0.004, 0.16

#: Parts of partitions a unit may lie in, taken together over all partitions.
LARGEST_ALTERNATIVES = 64

Runs = dict[Single, int]


def _refuse(event: Single, takes: str, instead: str) -> ParameterError:
    return refused(event, "PLD", takes, instead)


def _too_many_parts(event: Single) -> ParameterError:
    takes = f"partitions with at most {LARGEST_ALTERNATIVES} distinct choices of parts in all"
    return _refuse(event, takes, "zCDP or RDP, where a partition costs the maximum of its parts")


def alternatives(events: Events) -> list[Runs]:
    """Return the runs one unit may be in: one dict for each choice of its parts, or refuse the events."""
    plain: Runs = {}
    choices: list[list[Runs]] = []
    for event, count in runs(events).items():
        if isinstance(event, Partitioned):
            choices.append(_repeated(event, count))
        else:
            _add(plain, _simplified(event), count)
        if math.prod(len(choice) for choice in choices) > LARGEST_ALTERNATIVES:
            raise _too_many_parts(event)
    result = []
    for choice in itertools.product(*choices):
        total = dict(plain)
        for part in choice:
            _add(total, part, 1)
        result.append(total)
    # One order for equal plans.
    return sorted(_without_smaller(result), key=lambda counts: sorted(map(repr, counts.items())))


def _add(total: Runs, more: Runs, times: int) -> None:
    for event, count in more.items():
        total[event] = total.get(event, 0) + times * count


def _without_smaller(listed: list[Runs]) -> list[Runs]:
    """Drop each alternative that another one contains: the curve of more runs is never lower."""
    kept: list[Runs] = []
    for candidate in sorted(listed, key=lambda one: -sum(one.values())):
        if not any(all(other.get(event, 0) >= count for event, count in candidate.items()) for other in kept):
            kept.append(candidate)
    return kept


def _repeated(event: Partitioned, count: int) -> list[Runs]:
    """Return what `count` partitions cost a unit, which may lie in another part each time."""
    parts = _without_smaller([one for part in event.events for one in alternatives(part)])
    if math.comb(count + len(parts) - 1, len(parts) - 1) > LARGEST_ALTERNATIVES:
        raise _too_many_parts(event)
    result = []
    for dividers in itertools.combinations(range(count + len(parts) - 1), len(parts) - 1):
        ends = (-1, *dividers, count + len(parts) - 1)
        total: Runs = {}
        for part, (start, stop) in zip(parts, itertools.pairwise(ends), strict=True):
            if stop - start > 1:
                _add(total, part, stop - start - 1)
        result.append(total)
    return result


def _simplified(event: Single) -> Runs:
    """Return an event as runs that have a transform, or refuse it."""
    if not isinstance(event, PoissonSubsampled) and FACTS[type(event)].loss is None:
        takes = "events whose privacy loss has a known distribution"
        raise _refuse(event, takes, "zCDP, for rho alone fixes no distribution")
    if not isinstance(event, PoissonSubsampled):
        return {event: 1}
    inner: Runs = {}
    for part, count in runs(event.event).items():
        if isinstance(part, Partitioned):
            raise _refuse(event, "samples of single mechanisms", "sampling inside each part")
        _add(inner, _simplified(part), count)
    if event.rate == 1.0:
        return inner
    if all(isinstance(part, Gaussian) for part in inner):
        together = math.sqrt(math.fsum(count * _squared_mean(part) for part, count in inner.items()))
        inner = {Gaussian(1.0 / together): 1}
    [(only, count)] = list(inner.items())[:1]
    if len(inner) > 1 or count > 1:
        raise _refuse(
            event, "samples on which one mechanism runs, or Gaussians only", "sampling anew for each, or by RDP"
        )
    rate = event.rate
    if isinstance(only, PoissonSubsampled):
        only, rate = only.event, rate * only.rate  # type: ignore[assignment]
    _check_sampled(event, only)
    return {PoissonSubsampled(only, rate): 1}


def _check_sampled(event: Single, inner: Single) -> None:
    if not FACTS[type(inner)].sampled(inner):
        limit = pairs.LARGEST_RATIO
        raise _refuse(
            event,
            f"samples under noise of scale at least sensitivity/{limit:g}, of at most 4096 integers if discrete",
            "leaving out the sampling, which only helps, or by RDP",
        )


def _squared_mean(event: Single) -> float:
    assert isinstance(event, Gaussian)
    return (event.sensitivity / event.scale) ** 2


def has_samples(counts: Runs) -> bool:
    """Whether the two directions, and bounds from finite pairs, can differ."""
    return any(isinstance(event, PoissonSubsampled) for event in counts)


def _families(kind: type[Family], merged: Counter[tuple[float, ...]]) -> list[Family]:
    """Return the family of these parameters, equal ones counted."""
    if not merged:
        return []
    first, *others = (np.array(column) for column in zip(*merged, strict=True))
    return [kind(first, np.array([float(count) for count in merged.values()]), *others)]


@dataclass(frozen=True)
class Resolution:
    """How finely the losses of mechanisms on samples are cut."""

    step: float
    """Of the lattice for the losses of sampled Gaussians; 0 for none: a thousand losses anywhere."""
    reach: float = pairs.LONGEST_REACH
    """Standard deviations beyond which a sampled Gaussian counts as fully revealing."""
    fineness: int = 0
    """How often cells of all other noise are halved."""

    def finer(self, times: float) -> Resolution:
        """Return steps that are so many times shorter; other cells are halved once where there are that many."""
        return Resolution(self.step / times, self.reach, self.fineness + (times >= 2.0))


def resolution_of(counts: Runs, tilt: float, epsilon: float, log_delta: float) -> Resolution:
    """Return a resolution that costs about `_WANTED_SHIFT` of epsilon, at about this tilt, epsilon and delta.

    Only the tightness of a bound depends on it, never whether it is one. Connecting the dots moves ln M(t) in the
    second order of the step, all runs together by count s^2 t (t + 1) / 12, and epsilon by that over t; the
    tails beyond the reach add at most count rate P(tail) to delta.
    """
    spread, count = _spread(counts)
    if not count:
        return Resolution(1.0)
    step = math.sqrt(12.0 * _WANTED_SHIFT * max(epsilon, 1e-12) / (count * (tilt + 1.0)))
    step = min(max(step, _FINEST_SHARE * spread, 2.0**-18), max(_COARSEST_SHARE * spread, 2.0**-18))
    # P(tail) <= exp(-reach^2 / 2).
    allowed = log_delta + math.log(_TAIL_SHARE) - math.log(count)
    return Resolution(step, min(max(math.sqrt(-2.0 * min(allowed, -8.0)), 4.0), pairs.LONGEST_REACH))


def compose(counts: Runs, direction: Direction, side: Side, resolution: Resolution) -> Composition:
    """Return the composition of runs, those on samples at a resolution."""
    tables: dict[type[Family], Counter[tuple[float, ...]]] = {family: Counter() for family in FAMILIES}
    sampled: list[Atoms] = []
    step = resolution.step
    squared_means: list[float] = []
    log_finite: list[float] = []
    # One order for equal plans, so that they get equal figures.
    for event, count in sorted(counts.items(), key=repr):
        match event:
            case PoissonSubsampled(Gaussian() as inner, rate):
                mean = inner.sensitivity / inner.scale
                if step > 0.0:
                    losses = gaussian_losses(mean, rate, direction, side, step, resolution.reach)
                    sampled.append(Lattice(losses, step, count))
                else:
                    cells = pairs.gaussian_cells(mean, np.zeros(0))
                    dots = pairs.connect_dots(cells) if side == "upper" else pairs.merge_cells(cells)
                    sampled.append(Atoms(sampled_losses(dots, rate, direction), count))
            case PoissonSubsampled():
                pair = FACTS[type(event.event)].pair
                assert pair is not None
                finite = pair(event.event, side, resolution.fineness)
                sampled.append(Atoms(sampled_losses(finite, event.rate, direction), count))
            case _:
                loss_of = FACTS[type(event)].loss
                assert loss_of is not None
                loss = loss_of(event)
                if loss.squared_mean is not None:
                    squared_means.append(count * loss.squared_mean)
                if loss.failure > 0.0:
                    log_finite.append(count * math.log1p(-loss.failure))
                if loss.family is not None:
                    tables[loss.family][loss.parameters] += count
    families = [one for family, table in tables.items() for one in _families(family, table)] + sampled
    log_finite += [float(one.counts[0]) * math.log1p(-one.losses.infinite) for one in sampled]
    total = math.fsum(log_finite)
    return Composition(
        families,
        math.fsum(squared_means),
        total * (1.0 + 8.0 * ROUNDING),
        total * (1.0 - 8.0 * ROUNDING),
        step if any(isinstance(one, Lattice) for one in sampled) else 0.0,
        all(isinstance(one, Lattice) for one in families) and bool(families) and not squared_means,
    )


def _spread(counts: Runs) -> tuple[float, int]:
    """Return the standard deviation of the loss of one sampled Gaussian, about, and how many there are."""
    total, spread = 0, 0.0
    points = np.linspace(-8.0, 8.0, 257)
    density = np.exp(-0.5 * points**2)
    density /= np.sum(density)
    for event, count in counts.items():
        match event:
            case PoissonSubsampled(Gaussian(scale, sensitivity), rate):
                mean = sensitivity / scale
                loss = np.logaddexp(math.log1p(-rate), math.log(rate) + mean * points - 0.5 * mean**2)
                total += count
                spread += count * float(density @ (loss - density @ loss) ** 2)
            case _:
                pass
    return (math.sqrt(spread / total) if total else 0.0), total
