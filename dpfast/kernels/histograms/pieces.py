"""Pieces of a noisy histogram: runs of cells of a binary tree that are empty, even or uneven, but for a few spikes.

Cells stand in the order of the tree's leaves: run j of a level whose runs have w places holds the cells from
offsets[j w] to offsets[(j + 1) w], as places beyond the edge of a histogram hold none. A run is number d / w + j of the
tree of d places: 1 is the root, 2 k and 2 k + 1 are the halves of k.

A piece is a run that is not split. Of its cells each is by itself a spike, up or down, with a small probability, and
else the piece's count plus a deviation of its own: none in an empty piece, whose count is 0; of a record's variance for
each record in an even one, as if records fell into its cells at random; of a larger variance in an uneven one. A piece
of a single cell is empty or has a count of its own. How likely noisy cells are in a piece is its evidence; the best of
both possibilities of each cell counts, and what is fitted to them has a price, as in any code of least length.

Noise is Gaussian, or Laplace noise; that and a deviation of variance t**2 together are taken to be hyperbolic, of
density exp((c - sqrt(u**2 + c**2)) / b) / norm: with c = 0 this is Laplace's, for large c nearly Gaussian, and
(c / b)**2 = (v / b**2 - 3 / 2)**2 - 1 / 4 has about the variance v = 2 b**2 + t**2. Nothing here is private.
"""

from __future__ import annotations

import math

import numpy as np

from dpfast.kernels.compilation import inlined, kernel

__all__ = ["judge_runs", "learn_pieces", "merge_runs", "restore_cells", "sum_empty", "weigh_pieces"]

#: The price of a count, and of a spike's or a single cell's, in nats: found by experiment.
_PRICE_OF_COUNT = 2.0
_PRICE_OF_SPIKE = 2.5
_LOG_TWO_PI = math.log(2.0 * math.pi)
#: Cells so many deviations off the median say nothing of a piece's count: they may be spikes.
_FAR = 5.0
_IMPOSSIBLE = -1e300
#: Parts of a cell's estimate that have less weight are left out.
_NEGLIGIBLE = 1e-5
#: What is less likely by so many nats has no weight at all; a split and the kinds of its parts cost no more than these.
_HOPELESS, _MOST_OF_PRIORS = 60.0, 20.0
#: So many cells are looked at before it is asked whether the rest can matter.
_STRIDE = 32


@inlined
def _bend(variance, scale):
    """Return c of the hyperbolic density of a variance, for Laplace noise of a scale."""
    ratio = variance / (scale * scale) - 1.5
    return scale * math.sqrt(max(ratio * ratio - 0.25, 0.0))


@inlined
def _peak(variance, bend, scale, gaussian):
    """Return the logarithm of the density of no deviation at all."""
    if gaussian:
        return -0.5 * (_LOG_TWO_PI + math.log(variance))
    return -0.5 * math.log(4.0 * scale * scale + 2.0 * math.pi * scale * bend)


@inlined
def _fall(off, variance, bend, scale, gaussian):
    """Return by how much the logarithm of the density is less at a deviation."""
    if gaussian:
        return off * off / (2.0 * variance)
    return (math.sqrt(off * off + bend * bend) - bend) / scale


@inlined
def _spike(height, highest, scale):
    """Return the logarithm of the density of a spike of a height; ``highest`` is that of one of no height."""
    return highest - math.log1p(height / scale)


@kernel
def merge_runs(ordered, offsets, width, merged):
    """Merge the sorted halves of every run of ``width`` places into sorted runs."""
    for j in range((offsets.size - 1) // width):
        left, middle, last = offsets[j * width], offsets[j * width + width // 2], offsets[(j + 1) * width]
        right, end = middle, middle
        for place in range(left, last):
            if left < end and (right >= last or ordered[left] <= ordered[right]):
                merged[place] = ordered[left]
                left += 1
            else:
                merged[place] = ordered[right]
                right += 1


@kernel
def sum_empty(cells, scale, gaussian, spikes, sums):
    """Set ``sums``, a number more than cells, to the evidence that all cells before each are of empty pieces."""
    noise = scale * scale if gaussian else 2.0 * scale * scale
    peak = _peak(noise, 0.0, scale, gaussian)
    highest = peak - _PRICE_OF_SPIKE + math.log(2.0) + math.log(spikes)
    sums[0] = 0.0
    for i in range(cells.size):
        likely = peak - _fall(cells[i], noise, 0.0, scale, gaussian)
        if cells[i] > 0.0 and likely < highest:
            likely = max(likely, _spike(cells[i], highest, scale))
        sums[i + 1] = sums[i] + likely


@kernel
def judge_runs(cells, ordered, empty, offsets, width, scale, gaussian, spikes, counts, spreads, evidence, least):
    """Set each run's count, the variance of its cells' deviations, and its evidence as an empty, even, uneven piece.

    Levels come from the leaves up. ``least`` is what is known of each run's evidence, however it is split: an even or
    an uneven piece that is hopeless beside that is given up as impossible before all of its cells are looked at.

    Parameters
    ----------
    cells, offsets, width
        As above.
    ordered
        The cells of each run, sorted.
    empty
        Of `sum_empty`.
    scale, gaussian
        Of the noise: b of Laplace noise, or the standard deviation of Gaussian noise.
    spikes
        How likely a cell is a spike.
    counts, spreads, evidence, least
        What is set, by the number of the run; a row of ``evidence`` for each.

    """
    places = offsets.size - 1
    noise = scale * scale if gaussian else 2.0 * scale * scale
    peak = _peak(noise, 0.0, scale, gaussian)
    alone = peak - _PRICE_OF_SPIKE + math.log(2.0)
    highest = alone + math.log(spikes)
    for j in range(places // width):
        k = places // width + j
        first, last = offsets[j * width], offsets[(j + 1) * width]
        size = last - first
        counts[k] = spreads[k] = 0.0
        evidence[k, 0] = evidence[k, 1] = 0.0
        evidence[k, 2] = _IMPOSSIBLE
        least[k] = 0.0
        if size == 0:
            continue
        if size == 1:
            counts[k] = max(cells[first], 0.0)
            evidence[k, 0] = peak - _fall(cells[first], noise, 0.0, scale, gaussian)
            evidence[k, 1] = _spike(counts[k], alone, scale) if cells[first] > 0.0 else _IMPOSSIBLE
            least[k] = max(evidence[k, 0], evidence[k, 1])
            continue
        # Those near the median: its deviation is told from the lower quarter, as spikes stand above.
        median = 0.5 * (ordered[first + size // 2] + ordered[first + (size - 1) // 2])
        near = max((median - ordered[first + size // 4]) / 0.67, math.sqrt(max(median, 0.0) + noise)) * _FAR
        while ordered[first] < median - near:
            first += 1
        while ordered[last - 1] > median + near:
            last -= 1
        mean = 0.0
        for i in range(first, last):
            mean += ordered[i]
        mean /= last - first
        squares = 0.0
        for i in range(first, last):
            squares += (ordered[i] - mean) ** 2
        counts[k] = max(mean, 0.0)
        spreads[k] = squares / max(last - first - 1, 1) - noise
        evidence[k, 0] = empty[offsets[(j + 1) * width]] - empty[offsets[j * width]]
        evidence[k, 1] = _IMPOSSIBLE
        least[k] = max(evidence[k, 0], least[2 * k] + least[2 * k + 1] - _MOST_OF_PRIORS)
        # An uneven piece first: where cells are uneven, an even one is soon hopeless beside it.
        for kind in range(2, 0, -1):
            spread = mean if kind == 1 else spreads[k]
            if mean <= 0.0 or spread < mean:
                continue
            variance = noise + spread
            bend = _bend(variance, scale)
            top = _peak(variance, bend, scale, gaussian)
            fineness = math.log((mean + scale) * math.sqrt(size / variance)) - 0.5 * _LOG_TWO_PI
            total = -_PRICE_OF_COUNT - max(fineness, 0.0)
            if kind == 2:
                total -= 0.5 * math.log(size)
            start, end = offsets[j * width], offsets[(j + 1) * width]
            while start < end and total + (end - start) * max(top, highest) > least[k] - _HOPELESS:
                stop = min(start + _STRIDE, end)
                for i in range(start, stop):
                    off = cells[i] - counts[k]
                    likely = top - _fall(off, variance, bend, scale, gaussian)
                    if likely < highest:
                        likely = max(likely, _spike(abs(off), highest, scale))
                    total += likely
                start = stop
            if start == end:
                evidence[k, kind] = total
                least[k] = max(least[k], total)


@inlined
def _part(logarithm, most):
    """Return exp(logarithm - most), or 0 where that is lost beside 1."""
    return math.exp(logarithm - most) if logarithm - most > -40.0 else 0.0


@inlined
def _shares(evidence, k, kinds):
    """Return how likely a run is an empty, an even, an uneven piece if it is one."""
    most = max(evidence[k, 0], evidence[k, 1], evidence[k, 2])
    empty = kinds[0] * _part(evidence[k, 0], most)
    even = kinds[1] * _part(evidence[k, 1], most)
    uneven = kinds[2] * _part(evidence[k, 2], most)
    total = empty + even + uneven
    return empty / total, even / total, uneven / total


@kernel
def weigh_pieces(offsets, evidence, splits, kinds, whole, weights):
    """Set how likely every run is reached, all above it being split, to ``weights[k, 0]``, and a piece to the other.

    ``splits`` (a number for each level, the root's first) and ``kinds`` (three) are how likely a run is split, and a
    piece empty, even or uneven, before anything is seen. ``whole`` has room for a number of each run.
    """
    places = offsets.size - 1
    levels = splits.size - 1
    empty, even, uneven = math.log(kinds[0]), math.log(kinds[1]), math.log(kinds[2])
    for level in range(levels, -1, -1):
        width = places >> level
        split, stay = math.log(splits[level]), math.log1p(-splits[level])
        for j in range(1 << level):
            k = (1 << level) + j
            whole[k] = weights[k, 1] = 0.0
            if offsets[j * width] == offsets[(j + 1) * width]:
                continue
            one, two, three = evidence[k, 0] + empty, evidence[k, 1] + even, evidence[k, 2] + uneven
            most = max(one, two, three)
            piece = most + math.log(_part(one, most) + _part(two, most) + _part(three, most))
            whole[k], weights[k, 1] = piece, 1.0
            if width > 1:
                parts = whole[2 * k] + whole[2 * k + 1] + split
                piece += stay
                most = max(piece, parts)
                own = _part(piece, most)
                together = own + _part(parts, most)
                whole[k], weights[k, 1] = most + math.log(together), own / together
    weights[1, 0] = 1.0
    for k in range(1, 2 * places):
        reached = weights[k, 0]
        if k < places:
            weights[2 * k, 0] = weights[2 * k + 1, 0] = reached * (1.0 - weights[k, 1])
        weights[k, 1] *= reached


@kernel
def learn_pieces(offsets, evidence, weights, splits, kinds):
    """Replace ``splits`` and ``kinds`` by what `weigh_pieces` makes expect of them; few runs tell little of a level."""
    places = offsets.size - 1
    found = np.full(3, 0.5)
    seen, halved = np.zeros(splits.size), np.zeros(splits.size)
    for level in range(splits.size):
        width = places >> level
        for j in range(1 << level):
            k = (1 << level) + j
            if offsets[j * width] == offsets[(j + 1) * width]:
                continue
            if width > 1:
                seen[level] += weights[k, 0]
                halved[level] += weights[k, 0] - weights[k, 1]
            if weights[k, 1] > _NEGLIGIBLE:
                empty, even, uneven = _shares(evidence, k, kinds)
                found[0] += weights[k, 1] * empty
                found[1] += weights[k, 1] * even
                found[2] += weights[k, 1] * uneven
    usual = (halved.sum() + 0.5) / (seen.sum() + 1.0)
    for level in range(splits.size):
        splits[level] = min(max((halved[level] + 4.0 * usual) / (seen[level] + 4.0), 1e-3), 0.999)
    kinds[:] = found / found.sum()


@kernel
def restore_cells(cells, offsets, scale, gaussian, spikes, kinds, counts, spreads, evidence, weights, out):
    """Set ``out`` to what each cell is expected to hold, given the noisy ones; return how likely cells are spikes.

    The parameters are as above.
    """
    places = offsets.size - 1
    noise = scale * scale if gaussian else 2.0 * scale * scale
    highest = _peak(noise, 0.0, scale, gaussian) - _PRICE_OF_SPIKE + math.log(2.0) + math.log(spikes)
    found, among = 0.25, 1.0
    out[:] = 0.0
    given = np.zeros(out.size)
    lonely = np.zeros(out.size)
    width, level = places, 0
    while width >= 1:
        for j in range(1 << level):
            k = (1 << level) + j
            first, last = offsets[j * width], offsets[(j + 1) * width]
            if first == last or weights[k, 1] < _NEGLIGIBLE:
                continue
            shares = _shares(evidence, k, kinds)
            for kind in range(3):
                weight = weights[k, 1] * shares[kind]
                if weight < _NEGLIGIBLE:
                    continue
                count = counts[k] if kind > 0 else 0.0
                if last - first == 1:
                    out[first] += weight * count
                    given[first] += weight
                    continue
                among += weight * (last - first)
                if kind == 0:  # the same for every such piece: below
                    for i in range(first, last):
                        lonely[i] += weight
                    continue
                spread = count if kind == 1 else spreads[k]
                variance = noise + spread
                bend = _bend(variance, scale)
                top = _peak(variance, bend, scale, gaussian)
                # Of Laplace noise, however much, no more than this is a deviation of the cell's own.
                most = math.inf if gaussian else spread / scale
                for i in range(first, last):
                    off = cells[i] - count
                    likely = top - _fall(off, variance, bend, scale, gaussian)
                    own = max(count + min(max(off * spread / variance, -most), most), 0.0)
                    if likely < highest + 20.0:
                        chance = 1.0 / (1.0 + math.exp(min(likely - _spike(abs(off), highest, scale), 700.0)))
                        own += chance * (max(cells[i], 0.0) - own)
                        found += weight * chance
                    out[i] += weight * own
                    given[i] += weight
        width //= 2
        level += 1
    top = _peak(noise, 0.0, scale, gaussian)
    for i in range(out.size):
        given[i] += lonely[i]
        if lonely[i] > 0.0 and cells[i] > 0.0:
            likely = top - _fall(cells[i], noise, 0.0, scale, gaussian)
            if likely < highest + 20.0:
                chance = 1.0 / (1.0 + math.exp(min(likely - _spike(cells[i], highest, scale), 700.0)))
                out[i] += lonely[i] * chance * cells[i]
                found += lonely[i] * chance
    # What was left out would be missing from sums over many cells.
    for i in range(out.size):
        out[i] /= given[i]
    return found / among


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
