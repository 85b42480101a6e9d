"""An auditor of whatever is made of noise and selections: what its transcript costs, exactly.

A mechanism is run on one histogram, and every noise and selection in it is noted: what went in, what came out. Then it
is run on a neighbour, where each of them is made to come out the same. What went in on both sides gives the loss of
every step, by formula; and what is released must be the same to the last bit, or something private went around them.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field

import numpy as np

import dpfast as dpf
from dpfast.accounting.events import Laplace
from dpfast.mechanisms.noise.gaussian import gaussian
from dpfast.mechanisms.noise.laplace import laplace
from dpfast.mechanisms.noise.one_sided import lowered
from dpfast.mechanisms.selection.exponential import exponential
from dpfast.mechanisms.selection.exponential_draws import exponential_draws
from dpfast.mechanisms.selection.permute_and_flip import permute_and_flip
from dpfast.testing import SeededRandom

PRIMITIVES = (laplace, gaussian, lowered, exponential, permute_and_flip, exponential_draws)
#: All modules are loaded before any primitive has a stand-in.
PUBLIC = [getattr(dpf, name) for name in dpf.__all__]


@dataclass
class Step:
    """One call of a primitive."""

    name: str
    values: np.ndarray
    parameters: dict
    outcome: object = field(repr=False)


@dataclass
class Loss:
    """What all steps of a transcript cost for two neighbours.

    ``laplace`` has abs(difference) / scale of every noisy value that differs, ``gaussian`` the sum of their squares,
    ``selections`` for each draw the largest log ratio of probabilities over all candidates, and its spread, the range,
    where bounded range has a theorem (for permute-and-flip None); ``claims`` the epsilons that draws were called with.
    """

    laplace: list[float]
    gaussian: float
    selections: list[tuple[float, float | None]]
    claims: list[float]
    #: How far costs moved at most whose noisy values stay secret, in scales: what that spends is proved in test_dawa.
    secret: list[float]

    @property
    def pure(self):
        """The largest privacy loss of any outcome of these steps."""
        return math.inf if self.gaussian else math.fsum(self.laplace) + math.fsum(sup for sup, _ in self.selections)

    @property
    def rho(self):
        """Zero-concentrated privacy of the steps: exact for Gaussian noise, by theorem for the others."""
        ranges = [spread for _, spread in self.selections if spread]
        selected = math.fsum(x - 1 - math.log(x) for x in (r / math.expm1(r) for r in ranges))
        losses = self.laplace + [sup for sup, spread in self.selections if spread is None]
        return self.gaussian / 2 + math.fsum(e * math.tanh(e / 2) for e in losses) + selected

    @property
    def events(self):
        """The noise as events, for accountants."""
        return [Laplace(1 / e) for e in self.laplace if e]


def _parameters(name, rest, named):
    order = {
        "laplace": ("scale",),
        "gaussian": ("scale",),
        "lowered": ("scale",),
        "exponential_draws": ("epsilon", "draws", "sensitivity", "monotonic"),
    }.get(name, ("epsilon", "sensitivity", "monotonic"))
    given = dict(zip(order, rest, strict=False)) | {key: named[key] for key in order if key in named}
    return {"sensitivity": 1.0, "monotonic": False} | given


def transcript(monkeypatch, run, histogram, seed):
    """Run a mechanism and note its steps; what each draws comes from the seed alone."""
    steps, random = [], SeededRandom(seed)

    def stand_in(primitive):
        def noted(values, *rest, **named):
            outcome = primitive(values, *rest, **(named | {"random": random, "threads": 1}))
            parameters = _parameters(primitive.__name__, rest, named)
            steps.append(Step(primitive.__name__, np.array(values), parameters, outcome))
            return outcome

        return noted

    return _run(monkeypatch, run, histogram, stand_in), steps


def replay(monkeypatch, run, histogram, steps):
    """Run a mechanism on another histogram, with the outcomes of a transcript."""
    again, left = [], iter(steps)

    def stand_in(primitive):
        def replayed(values, *rest, **named):
            step = next(left)
            parameters = _parameters(primitive.__name__, rest, named)
            assert step.name == primitive.__name__
            assert step.values.shape == np.shape(values)
            assert all(np.array_equal(step.parameters[key], parameters[key]) for key in parameters)
            again.append(Step(step.name, np.array(values), parameters, step.outcome))
            return step.outcome

        return replayed

    released = _run(monkeypatch, run, histogram, stand_in)
    assert next(left, None) is None, "fewer steps for the neighbour"
    return released, again


def _run(monkeypatch, run, histogram, stand_in):
    with monkeypatch.context() as patch:
        for primitive in PRIMITIVES:
            replacement = stand_in(primitive)
            for name, module in list(sys.modules.items()):
                held = vars(module).get(primitive.__name__) is primitive
                if name.startswith("dpfast") and held and name != primitive.__module__:
                    patch.setattr(module, primitive.__name__, replacement)
        return run(np.array(histogram))


def _selected(step, values):
    """Return logarithms of the probabilities of all candidates."""
    epsilon, sensitivity, monotonic = (step.parameters[key] for key in ("epsilon", "sensitivity", "monotonic"))
    if step.name == "permute_and_flip":
        return np.log(dpf.selection_probabilities(values, epsilon, sensitivity, monotonic, "permute_and_flip"))
    keys = np.asarray(values, float) * (epsilon / ((1 if monotonic else 2) * sensitivity))
    keys -= keys.max()
    return keys - math.log(np.exp(keys).sum())


def loss(one, other):
    """Return what two transcripts with the same outcomes cost."""
    total = Loss([], 0.0, [], [], [])
    for step, twin in zip(one, other, strict=True):
        if step.name == "lowered":
            moved = np.abs(step.values - twin.values).max(initial=0)
            total.secret.append(float(moved / step.parameters["scale"]))
            continue
        if step.name in ("laplace", "gaussian"):
            ratios = np.abs(step.values - twin.values).ravel() / step.parameters["scale"]
            if step.name == "laplace":
                total.laplace += ratios[ratios > 0].tolist()
            else:
                total.gaussian += float(np.square(ratios).sum())
            continue
        ratios = _selected(step, step.values) - _selected(step, twin.values)
        draws = step.parameters.get("draws", 1)
        spread = None if step.name == "permute_and_flip" else float(np.ptp(ratios))
        total.selections += [(float(np.abs(ratios).max()), spread)] * draws
        total.claims += [float(step.parameters["epsilon"])] * draws
    return total


#: So many neighbours are tried.
MOST_NEIGHBOURS = 10
#: Of more pairs of cells some are drawn.
MOST_CHANGES = 10_000


def neighbours(histogram, relation, seed):
    """Give neighbours of a histogram, all of them if there are few, else so many that are drawn at random."""
    histogram, generator = np.asarray(histogram), np.random.default_rng(seed)
    size = histogram.size
    if relation == "add_remove":
        changes = [(place, None, sign) for place in range(size) for sign in (1, -1)]
    elif size * size <= MOST_CHANGES:
        changes = [(i, j, 1) for i in range(size) for j in range(size) if i != j]
    else:
        changes = [(*generator.choice(size, 2, replace=False), 1) for _ in range(10 * MOST_NEIGHBOURS)]
    found = []
    for place in generator.permutation(len(changes)):
        more, less, sign = changes[place]
        neighbour = histogram.copy()
        neighbour.flat[more] += sign
        if less is not None:
            neighbour.flat[less] -= 1
        if neighbour.min() >= 0:
            found.append(neighbour)
        if len(found) == MOST_NEIGHBOURS:
            break
    return found


def audit(monkeypatch, run, histogram, relation, seed):
    """Return the loss for every neighbour; what is released must not differ."""
    released, steps = transcript(monkeypatch, run, histogram, seed)
    losses = []
    for neighbour in neighbours(histogram, relation, seed):
        same, again = replay(monkeypatch, run, neighbour, steps)
        assert _equal(released, same), "what is released depends on more than noise and selections"
        losses.append(loss(steps, again))
    return losses


def _equal(one, other):
    return all(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True) for a, b in zip(one, other, strict=True))
