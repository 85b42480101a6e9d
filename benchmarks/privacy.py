"""Audits of mechanisms, ours and others': whether outputs on two neighbouring inputs refute what is claimed.

A bound from below is no measure of a mechanism: all that counts is whether a claim is refuted. Ours must not be. Noise
of other libraries in floats may be: some outputs are possible from one input alone (Mironov 2012).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import dpfast as dpf
from dpfast.bench import Case, Measured, Wish
from dpfast.bench.cases import BOUND
from dpfast.bench.rounds import told_error
from dpfast.mechanisms.noise.calibration import analytic_gaussian_scale

__all__ = ["CONFIDENCE", "audited", "cases"]

#: A private mechanism is refuted with a probability of one in a thousand million.
CONFIDENCE = 1 - 1e-9
_SAMPLES, _QUICK_SAMPLES = 1_000_000, 20_000


@dataclass(frozen=True)
class _Audit:
    """A mechanism ``many(x, n)``, two neighbouring inputs, and a claim."""

    contestant: str
    name: str
    many: Callable[[Any, int], Any]
    x: Any
    neighbour: Any
    epsilon: float
    delta: float = 0.0


def audited(
    contestant: str,
    mechanism: Callable[..., Any],
    x: Any,
    neighbour: Any,
    epsilon: float,
    delta: float,
    samples: int,
    *,
    batched: bool = False,
    tell: Callable[[str], object],
) -> Measured:
    """Audit one mechanism; its figure is the bound of epsilon from below, its note the witness of a refutation."""
    try:
        found = dpf.audit(
            mechanism,
            x,
            neighbour,
            epsilon,
            delta,
            samples=samples,
            confidence=CONFIDENCE,
            batched=batched,
            progress=lambda done, total: tell(f"drawing outputs of {contestant}: {done / total:.0%}"),
        )
    except Exception as error:  # as where every call raises
        return Measured(contestant, samples, (), BOUND, failure="raised", note=told_error(error))
    failure = "" if found.passed else "refuted"
    note = "" if found.passed else "; ".join(found.explain().splitlines())
    return Measured(contestant, samples, (found.epsilon_lower,), BOUND, failure=failure, note=note)


def _scores(mechanism: Callable[..., Any], scores: Any, size: int) -> Any:
    return mechanism(np.tile(np.asarray(scores, float), (size, 1)))


def _ours() -> list[_Audit]:
    rows = partial(partial, _scores)
    up, down = [2.0, 0.0, 1.0], [3.0, -1.0, 1.0]
    sigma = analytic_gaussian_scale(1.0, 1.0, 1e-5)
    return [
        _Audit("dpfast", "Laplace noise on integers", lambda x, n: dpf.laplace(np.full(n, x), 1.0), 3, 4, 1.0),
        _Audit("dpfast", "Laplace noise on floats", lambda x, n: dpf.laplace(np.full(n, float(x)), 1.0), 0.0, 1.0, 1.0),
        _Audit("dpfast", "Gaussian noise", lambda x, n: dpf.gaussian(np.full(n, x), sigma), 3, 4, 1.0, 1e-5),
        _Audit("dpfast", "Exponential mechanism", rows(partial(dpf.exponential, epsilon=1.0)), up, down, 1.0),
        _Audit("dpfast", "Permute and flip", rows(partial(dpf.permute_and_flip, epsilon=1.0)), up, down, 1.0),
        _Audit("dpfast", "Noisy maximum", rows(partial(dpf.report_noisy_max, epsilon=1.0)), up, down, 1.0),
        _Audit("dpfast", "Top 2 of 3", rows(partial(dpf.noisy_top_k, k=2, epsilon=1.0)), up, down, 1.0),
    ]


def _others() -> list[_Audit]:
    draw = np.random.default_rng()
    found = [_Audit("NumPy", "Laplace noise on floats", lambda x, n: x + draw.laplace(0, 1.0, n), 0.0, 1.0, 1.0)]
    for contestant, home in (("OpenDP", "opendp"), ("diffprivlib", "diffprivlib"), ("python-dp", "python_dp")):
        if (many := import_module(f".contestants.{home}", __package__).noisy(1.0)) is None:
            continue
        found.append(_Audit(contestant, "Laplace noise on floats", many, 0.0, 1.0, 1.0))
    return found


def cases(suite: str, wish: Wish) -> list[Case]:
    """Return a case for each mechanism, with everyone who has it."""
    audits = [*_ours(), *_others()]
    names = dict.fromkeys(audit.name for audit in audits)
    return [
        Case(suite, name, partial(_measure, [one for one in audits if one.name == name]), is_quick=True)
        for name in names
    ]


def _measure(audits: list[_Audit], wish: Wish) -> list[Measured]:
    samples = _QUICK_SAMPLES if wish.is_quick else _SAMPLES
    found = []
    for one in audits:
        drawn = samples if one.contestant in ("dpfast", "NumPy") else min(samples, 100_000)
        inputs = one.many, one.x, one.neighbour, one.epsilon, one.delta
        found.append(audited(one.contestant, *inputs, drawn, batched=True, tell=wish.tell))
    return found
