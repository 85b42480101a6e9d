"""Rows about synthesis: MWEM beside the same algorithm in vectorised NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import dpfast as dpf

from .prepared import Prepared

#: Adult's 15 attributes, coarsened to 2**18 cells: its full domain has 10**18.
_SHAPE = (4, 2, 4, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 2)
_SEED, _ROWS, _SOFTNESS = 20_261_121, 50_000, 0.4


def _table() -> np.ndarray:
    """Return counts of records whose attributes hang together through three that are hidden."""
    generator = np.random.default_rng(_SEED)
    hidden = generator.normal(size=(_ROWS, 3))
    codes = []
    for size in _SHAPE:
        value = hidden @ generator.normal(size=3) + generator.normal(size=_ROWS)
        codes.append(np.searchsorted(np.quantile(value, np.sort(generator.uniform(0.05, 0.95, size - 1))), value))
    return np.bincount(np.ravel_multi_index(codes, _SHAPE), minlength=2**18).reshape(_SHAPE)


def _new_masses(mass: np.ndarray, dual: np.ndarray, value: np.ndarray, softness: float) -> np.ndarray:
    """Return c w with w + ln w = L, as `dpfast.kernels.weights.replay` defines them, by Newton's method."""
    level = np.maximum(np.log(np.maximum(mass, 1e-300) / softness) + value / softness - dual, -600.0)
    w = np.where(level > 2.0, level - np.log(np.maximum(level, 1.0)), np.exp(np.minimum(level, 2.0)) / 2.0)
    for _ in range(6):
        w = w * (1.0 + level - np.log(w)) / (1.0 + w)
    return softness * w


def _numpy_marginals(table: np.ndarray, epsilon: float, rounds: int, replays: int) -> Callable[[], np.ndarray]:
    """MWEM on marginals as one would write it with arrays: an update sums over axes and multiplies by broadcasting."""
    generator = np.random.default_rng(_SEED)
    attributes = dpf.workloads.marginals(_SHAPE, 2).attributes
    others = [tuple(set(range(len(_SHAPE))) - set(pair)) for pair in attributes]

    def run() -> np.ndarray:
        share = 0.95 * epsilon / rounds
        selecting, scale = 0.15 * share, 1.0 / (0.85 * share)
        softness = _SOFTNESS * scale * np.sqrt(2.0)
        total = table.sum() + generator.laplace(0.0, 1.0 / (0.05 * epsilon))
        weights = np.full(_SHAPE, total / table.size)
        truth = [table.sum(axis=axes, keepdims=True) for axes in others]
        measured: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for _ in range(rounds):
            scores = np.full(len(attributes), -np.inf)
            for group, axes in enumerate(others):
                if group not in measured:
                    own = np.abs(truth[group] - weights.sum(axis=axes, keepdims=True))
                    scores[group] = own.sum() - scale * own.size
            chosen = int(np.argmax(scores * selecting / 2.0 + generator.gumbel(size=scores.size)))
            noisy = truth[chosen] + generator.laplace(0.0, scale, truth[chosen].shape)
            measured[chosen] = noisy, np.zeros(noisy.shape)
            for _ in range(replays):
                for group, (value, dual) in measured.items():
                    mass = weights.sum(axis=others[group], keepdims=True)
                    after = _new_masses(mass, dual, value, softness)
                    dual += np.log(after / mass)
                    weights *= after / mass
                weights *= total / weights.sum()
        return weights

    return run


def marginals(rounds: int) -> Callable[[int], Prepared]:
    """Pairs of 15 attributes over 2**18 cells, one replay a round; with a smaller ``size`` far fewer rounds."""

    def prepare(size: int) -> Prepared:
        table = _table()
        number = max(2, round(rounds * min(size / table.size, 1.0) ** 3))
        workload = dpf.workloads.marginals(_SHAPE, 2)
        answers = workload.answer(table)

        def ours() -> np.ndarray:
            return dpf.mwem(table, workload, epsilon=1.0, rounds=number, replays=1, threads=1).histogram

        def agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
            one, other = (np.abs(workload.answer(weights) - answers).mean() for weights in (mine, theirs))
            return bool(0.2 < one / other < 5.0)

        return Prepared(ours, _numpy_marginals(table, 1.0, number, 1), agree=agree)

    return prepare


def _numpy_ranges(
    histogram: np.ndarray, lower: np.ndarray, upper: np.ndarray, rounds: int, replays: int
) -> Callable[[], np.ndarray]:
    """MWEM on ranges as one would write it: prefix sums for the answers, slices for the updates."""
    generator = np.random.default_rng(_SEED)

    def answers(cells: np.ndarray) -> np.ndarray:
        prefixes = np.concatenate([[0], np.cumsum(cells)])
        return prefixes[upper] - prefixes[lower]

    def run() -> np.ndarray:
        share = 0.95 / rounds
        selecting, scale = 0.3 * share, 1.0 / (0.7 * share)
        softness = _SOFTNESS * scale * np.sqrt(2.0)
        total = histogram.sum() + generator.laplace(0.0, 20.0)
        weights = np.full(histogram.size, total / histogram.size)
        truth = answers(histogram)
        measured: dict[int, list[float]] = {}
        for _ in range(rounds):
            scores = np.abs(truth - answers(weights))
            scores[list(measured)] = -np.inf
            chosen = int(np.argmax(scores * selecting / 2.0 + generator.gumbel(size=scores.size)))
            measured[chosen] = [truth[chosen] + generator.laplace(0.0, scale), 0.0]
            for _ in range(replays):
                for query, state in measured.items():
                    part = weights[lower[query] : upper[query]]
                    mass = part.sum()
                    after = float(_new_masses(mass, state[1], state[0], softness))
                    state[1] += np.log(after / mass)
                    part *= after / mass
                weights *= total / weights.sum()
        return weights

    return run


def ranges(rounds: int) -> Callable[[int], Prepared]:
    """``size`` random ranges of 4,096 cells, ten replays a round."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(_SEED)
        chances = generator.permutation(1.0 / np.arange(1, 4097))
        histogram = generator.multinomial(10**5, chances / chances.sum())
        ends = np.sort(generator.integers(0, 4097, (min(size, 2000), 2)), axis=1)
        lower, upper = ends[:, 0], np.maximum(ends[:, 1], np.minimum(ends[:, 0] + 1, 4096))
        lower = np.minimum(lower, upper - 1)
        workload = dpf.workloads.ranges(4096, lower, upper)
        answers = workload.answer(histogram)

        def agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
            one, other = (np.abs(workload.answer(weights) - answers).mean() for weights in (mine, theirs))
            return bool(0.2 < one / other < 5.0)

        return Prepared(
            lambda: dpf.mwem(histogram, workload, epsilon=1.0, rounds=rounds, replays=10, threads=1).histogram,
            _numpy_ranges(histogram, lower, upper, rounds, 10),
            agree=agree,
        )

    return prepare
