"""Rows about multiplicative weights: updates of one histogram, normalised, and of many histograms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dpfast as dpf
from dpfast.weights.histogram_weights import Weights
from dpfast.weights.linear_queries import BitQuery, DenseQuery, LinearQuery
from dpfast.weights.query_tables import Marginal, Ranges

from .prepared import Prepared

_SEED = 20_261_125
_ETA = 1e-3
#: As algorithms do, a run makes many updates of one histogram; ``size`` counts the cells of all of them.
UPDATES = 10


def _repeated(update: Callable[[], Any], times: int = UPDATES) -> Callable[[], Any]:
    def run() -> Any:
        for _ in range(times - 1):
            update()
        return update()

    return run


def _close(ours: Any, theirs: np.ndarray) -> bool:
    found = ours.histogram() if isinstance(ours, Weights) else ours
    return bool(np.allclose(found.reshape(-1), theirs.reshape(-1) / (theirs.sum() if theirs.ndim == 1 else 1.0)))


def _numpy_update(weights: np.ndarray, query: np.ndarray, eta: Any = _ETA) -> np.ndarray:
    weights *= np.exp(eta * query)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def _queries(kind: str, size: int) -> tuple[LinearQuery, np.ndarray]:
    generator = np.random.default_rng(_SEED)
    if kind == "floats":
        coefficients = generator.random(size)
        return DenseQuery(coefficients), coefficients
    coefficients = (generator.random(size) < 0.5).astype(np.uint8)
    if kind == "bits":
        return BitQuery(np.packbits(coefficients, bitorder="little"), size), coefficients
    return DenseQuery(coefficients), coefficients


def update(kind: str) -> Callable[[int], Prepared]:
    """Updates by bytes, bits or floats, against NumPy's."""

    def prepare(size: int) -> Prepared:
        cells = size // UPDATES
        query, coefficients = _queries(kind, cells)
        weights, theirs = Weights(cells, threads=1), np.full(cells, 1.0 / cells)

        def ours() -> Weights:
            weights.update(query, _ETA)
            return weights

        return Prepared(_repeated(ours), _repeated(lambda: _numpy_update(theirs, coefficients)), agree=_close)

    return prepare


def update_beside_memory(kind: str, times: int) -> Callable[[int], Prepared]:
    """So many of them, against reading and writing every weight as often."""

    def prepare(size: int) -> Prepared:
        cells = size // times
        query, coefficients = _queries(kind, cells)
        weights, theirs = Weights(cells, threads=1), np.full(cells, 1.0 / cells)

        def ours() -> Weights:
            weights.update(query, _ETA)
            return weights

        def agree(mine: Weights, copied: np.ndarray) -> bool:
            return _close(mine, _numpy_update(copied.copy(), coefficients, times * _ETA))

        copy = _repeated(lambda: np.multiply(theirs, 1.0, out=theirs), times)
        return Prepared(_repeated(ours, times), copy, agree=agree)

    return prepare


def bits(size: int) -> Prepared:
    """Updates by bits, against the same by bytes."""
    one, other = update("bits")(size), update("bytes")(size)
    return Prepared(one.ours, other.ours, agree=lambda mine, theirs: _close(mine, theirs.histogram()))


def bare(size: int) -> Prepared:
    """`dpf.multiplicative_weights`, normalised when it returns."""
    cells = size // UPDATES
    _, coefficients = _queries("bytes", cells)
    weights, theirs = np.full((2, cells), 1.0 / cells)
    return Prepared(
        _repeated(lambda: dpf.multiplicative_weights(weights, coefficients, _ETA)),
        _repeated(lambda: _numpy_update(theirs, coefficients)),
        agree=_close,
    )


def bare_beside_memory(size: int) -> Prepared:
    """The same, against reading and writing every weight once.

    It has to read all weights for their sum before it writes the first one: no factor is known before the last weight
    is. On an EPYC with 1 MiB of second-level cache a loop that reads the weights and adds them up takes .67 of the
    baseline's time, and .82 with the coefficients, the sum within the query and the signs; the one that writes takes
    .90, and both 1.75. Blocks of any size, four streams at once and writing from the end on took as long or longer.
    What Python does takes .08, more where the passes have driven it out of the cache. `Weights` keeps the sum between
    updates, and makes one pass (see "10 updates of 2^20 weights").
    """
    cells = size // UPDATES
    _, coefficients = _queries("bytes", cells)
    weights, theirs = np.full((2, cells), 1.0 / cells)
    return Prepared(
        _repeated(lambda: dpf.multiplicative_weights(weights, coefficients, _ETA)),
        _repeated(lambda: np.multiply(theirs, 1.0, out=theirs)),
        agree=lambda mine, copied: _close(mine, _numpy_update(copied.copy(), coefficients, UPDATES * _ETA)),
    )


def rows(size: int) -> Prepared:
    """Histograms of 1,000 cells, each with a query and an eta of its own."""
    generator = np.random.default_rng(_SEED)
    shape = (max(size // 1000 // UPDATES, 1), 1000)
    queries = generator.random(shape) < 0.5
    eta = generator.normal(0.0, _ETA, shape[0])
    weights, theirs = np.full((2, *shape), 1e-3)
    return Prepared(
        _repeated(lambda: dpf.multiplicative_weights(weights, queries, eta)),
        _repeated(lambda: _numpy_update(theirs, queries, eta[:, None])),
        agree=_close,
    )


def marginal(size: int) -> Prepared:
    """All cells of a 2-way marginal at once, over a table of attributes with two values each."""
    shape = (2,) * ((size // UPDATES).bit_length() - 1)
    eta = np.random.default_rng(_SEED).normal(0.0, _ETA, (2, 2))
    weights, theirs = Weights(shape, threads=1), np.full(shape, 1.0 / 2 ** len(shape))
    query = Marginal(shape, (2, 5))
    spread = eta.reshape(*(2 if axis in (2, 5) else 1 for axis in range(len(shape))))

    def ours() -> Weights:
        weights.update(query, eta)
        return weights

    def numpy() -> np.ndarray:
        np.multiply(theirs, np.exp(spread), out=theirs)
        np.divide(theirs, theirs.sum(), out=theirs)
        return theirs

    return Prepared(_repeated(ours), _repeated(numpy), agree=lambda mine, other: np.allclose(mine.histogram(), other))


def ranges(size: int) -> Prepared:
    """2,000 random ranges at once, each with an eta of its own."""
    generator = np.random.default_rng(_SEED)
    cells = size // UPDATES
    ends = np.sort(generator.integers(0, cells + 1, (2000, 2)), axis=1)
    eta = generator.normal(0.0, _ETA, 2000)
    weights, theirs = Weights(cells, threads=1), np.full(cells, 1.0 / cells)
    query = Ranges(ends[:, 0], ends[:, 1])

    def ours() -> Weights:
        weights.update(query, eta)
        return weights

    def numpy() -> np.ndarray:
        steps = np.zeros(cells + 1)
        np.add.at(steps, ends[:, 0], eta)
        np.subtract.at(steps, ends[:, 1], eta)
        return _numpy_update(theirs, np.cumsum(steps[:-1]), 1.0)

    return Prepared(_repeated(ours), _repeated(numpy), agree=_close)


def experts(size: int) -> Prepared:
    """Randomized weighted majority among 100 experts, all rounds' losses given; NumPy's has no privacy to keep."""
    generator = np.random.default_rng(_SEED)
    losses = generator.random((size // 100, 100))
    losses[:, 7] *= 0.5
    eta = 0.05

    def ours() -> np.ndarray:
        return dpf.RandomizedWeightedMajority(100, len(losses), eta=eta).run(losses, threads=1)

    def numpy() -> np.ndarray:
        before = np.cumsum(losses, axis=0) - losses
        return np.argmax(generator.gumbel(size=losses.shape) - eta * before, axis=1)

    def agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
        # Plays of the best expert: independent given the losses, so that the counts differ by chance alone.
        return bool(abs((mine == 7).sum() - (theirs == 7).sum()) < 10 * np.sqrt(len(mine)))

    return Prepared(ours, numpy, agree=agree)
