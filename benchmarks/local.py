"""The local model beside NumPy: randomized response of bits, and Hadamard reports read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

import dpfast as dpf

from .prepared import Prepared

VALUES = 4096


def responses(kind: str) -> Callable[[int], Prepared]:
    """Randomized response of bits: packed in Polars, bytes, or numbers of 64 bits."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(20_261_121)
        bits = generator.integers(0, 2, size)
        truth = np.e / (np.e + 1)
        if kind == "int64":
            given, categories, plain = bits, 2, bits
        else:
            plain = bits.astype(np.uint8)
            given, categories = plain.astype(bool), [False, True]
            given = pl.Series(given) if kind == "packed" else given
        return Prepared(
            lambda: dpf.randomized_response(given, categories, 1.0),
            lambda: np.where(generator.random(size) < truth, plain, 1 - plain),
            agree=lambda ours, theirs: abs(float(np.asarray(ours).mean()) - float(theirs.mean())) < 6 / size**0.5,
        )

    return prepare


def hadamard(size: int) -> Prepared:
    """Estimate 4,096 frequencies from Hadamard reports; NumPy counts the same reports as int64, and stops there."""
    oracle = dpf.HadamardResponse(VALUES, 1.0)
    generator = np.random.default_rng(20_261_121)
    reports = generator.integers(0, 2 * VALUES, size, dtype=np.int32)
    wide = reports.astype(np.int64)

    def agree(ours: pl.DataFrame, counts: np.ndarray) -> bool:
        by_hand = [
            (counts[0::2] - counts[1::2]) @ [(-1) ** (j & v).bit_count() for j in range(VALUES)] for v in (0, 77)
        ]
        frequencies = ours["frequency"].to_numpy()[[0, 77]]
        return np.allclose(frequencies, np.array(by_hand) / size * (np.e + 1) / (np.e - 1))

    return Prepared(lambda: oracle.estimate(reports), lambda: np.bincount(wide, minlength=2 * VALUES), agree=agree)
