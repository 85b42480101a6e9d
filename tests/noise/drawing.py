"""The drawing kernels as the mechanisms call them, on words that a test chooses.

Values of a column are read-only there and here, and what was worked out or stands in the plugin's memory is not: for
others the kernels would be compiled anew.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.keystream import can_fill
from dpfast.kernels.noise.gaussian import draw_gaussian
from dpfast.kernels.noise.laplace import UNDECIDED, draw_laplace_f64
from dpfast.kernels.noise.narrow_laplace import WORK_WORDS, release_laplace_on_ones
from dpfast.kernels.noise.preparation import prepare_discrete
from dpfast.mechanisms.noise.exact import discrete_offset


def draw_narrow(words, scale, per_row=False):
    """Return discrete Laplace noise of 32-bit words (uint32), float32 first; ``scale`` a float or an array."""
    noise = np.empty(words.size, np.int32)
    if per_row or not isinstance(scale, float):
        scale, offset = np.full(words.size, scale), None
    else:
        offset = discrete_offset(scale)
    undecided, none = np.empty(words.size, np.int64), np.int64(0)
    rest = None, none, none, np.empty(WORK_WORDS, np.uint64), noise, undecided
    count = release_laplace_on_ones(words, None, scale, offset, *rest)
    noise[undecided[:count]] = UNDECIDED
    return noise


def read_only(array):
    """Return a view as a column gives it; numbers and None as they are."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.setflags(write=False)
    return view


def all_made(low):
    """Return second parts of words that are all made (uint16) as a kernel is given them that could make them."""
    return low if low is None or not can_fill() else (low, np.empty(0, np.uint64), np.int64(0))


def draw_wide(words, scale, offset, fraction=None):
    """Return Laplace noise of 48-bit words (uint64: the sign, then 47 bits of U) by the wide kernel."""
    noise = np.empty(words.size, np.int32)
    high, low = (words >> np.uint64(16)).astype(np.uint32), words.astype(np.uint16)
    draw_laplace_f64(high, low, scale, offset, read_only(fraction), None if fraction is None else 1.0, noise)
    return noise


def offsets_per_row(scales):
    """Return the offsets that a column of scales is given (float64)."""
    same, offsets = np.empty(scales.size), np.empty(scales.size)
    prepare_discrete(read_only(scales), same, offsets)
    assert np.array_equal(same, scales)
    return offsets


def draw_normal(radius, angle, bits, scale, fraction=None):
    """Return the two values' noise of pairs of words with 32 or 48 bits (uint64), shape (2, pairs)."""
    noise = np.empty((2, radius.size), np.int32)
    parts = []
    for words in (radius, angle):
        high = (words >> np.uint64(bits - 32)).astype(np.uint32)
        parts += [high, words.astype(np.uint16) if bits == 48 else None]
    placed = None if fraction is None else 1.0
    draw_gaussian(*parts, scale, scale, fraction, fraction, placed, placed, noise[0], noise[1])
    return noise
