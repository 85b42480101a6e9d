"""Certified private quantiles: one point of a public grid for every node, by the exponential mechanism.

A node is a slice of values, points of the grid from ``low`` to ``high``, and a rank p n / d to hit, n the number of
values. Points with equal scores that lie side by side are a block; with scores in units of 1 / d

    TIED    a block is a gap between values, or a value:        min(p n - d lt, d le - p n)
    SPLIT   every point has ``cells`` cells, and the c values at a point lie in them, evenly, in order:
            cell j has floor(j c / cells) of them to its left                -abs(d left - p n)

lt and le being how many values are below a point, and not above it. Blocks stand in the order of the grid; block b is
chosen where the sum of the weights width * exp(slope * (score - best)) up to b first exceeds U times the sum of all,
width in points or, for SPLIT, in cells; and one of its points by floor(V points). Which cell of a point it is does not
matter beyond how many values are to its left, and these blocks differ in that. U is a word and V two, whatever the
values are, and the choice is the exponential mechanism's, exactly, U and V being infinite strings of bits.

Only values whose rank is near the one to hit are looked at: the rest, buckets that end ``reach`` ranks before it or
begin as far behind it, is bounded. Buckets that hold most of the values are divided again. All points on one side of
the window have at most the score of its edge, d r - p n to the left of a place with r values before it and p n - d r to
the right, by the formulas above.

Error, u = 2**-53, in units of the sum S of the window's weights. x = slope * (best - score) takes a conversion and a
product, 2.01u x <= 1410u for x <= 700; exp(-x) 4u (decay.py), the width u where it has more than 53 bits (cells are a
power of two), the product with it u; a sum of B weights B u: every partial sum is off by less than (1420 + B) u S, and
as much again where it is U times S; beyond x = 700 a weight is taken for 0, which is less than 2**-900 S, because some
block has weight 1 or more. The word r means U in [r, r + 1) 2**-63 (its last bit is left out here), 2**-63 S more, and
three roundings of the product. So a threshold T = U S and a partial sum are compared beyond doubt if they differ by
(4000 + 2 B) u S, more than all of this. With weights L and R left and right of the window, and so U (L + S + R) - L in
the place of T, which is between T - L and T + R: the margins towards smaller and larger sums are wider by upper bounds
of L and R.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.decay import LARGEST, decay_f64
from dpfast.kernels.intrinsics import f64_from_i64, high_product, low_product

__all__ = ["BUCKETS", "ROOM", "draw_nodes", "part_nodes"]

BUCKETS = 2048
"""Counters that stay in the first-level cache."""

ROOM = 4096
"""Scratch memory for so many blocks always serves nodes of few values: more than two for each bucket."""

_FEW = 256
#: Fewer values than that are sorted and not divided any more.
_FEW_TO_SORT = 4096
_SLACK = 4000.0
_UNIT = 2.0**-53
_UPWARDS = 1.0 + 2.0**-40
_ONE = np.uint64(1)
_ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def _first_cell(k, cells, count):
    """Return the first cell of a point with ``count`` values that has k of them to its left."""
    return (k * cells + count - 1) // count


@kernel
def _find_window(values, low, high, below, above, buckets):
    """Return (shift, start, first, last, before): buckets of 2**shift points from ``start`` on, and the window's ends.

    Buckets whose values all have ranks up to ``below``, and those with ``above`` values before them, are left out;
    ``before`` values are in front of the window. Where most values are in a few buckets, these are divided again.
    """
    start, stop, outside, whole = low, high, np.int64(0), values.size
    while True:
        shift = np.int64(0)
        while (stop - start) >> shift >= BUCKETS:
            shift += 1
        used = ((stop - start) >> shift) + 1
        for b in range(used):
            buckets[b] = 0
        if start == low and stop == high:
            for i in range(values.size):
                buckets[(np.int64(values[i]) - start) >> shift] += 1
        else:
            for i in range(values.size):
                value = np.int64(values[i])
                if start <= value <= stop:
                    buckets[(value - start) >> shift] += 1
        first, before = 0, outside
        if below > outside:
            while first < used - 1 and before + buckets[first] <= below:
                before += buckets[first]
                first += 1
        last = used - 1
        passed = outside + whole
        if above < passed:
            last, passed = first, before + buckets[first]
            while last < used - 1 and passed < above:
                last += 1
                passed += buckets[last]
        # Sorting what is left costs more than to divide it again, unless that would leave it as it is.
        inside = passed - before
        if shift == 0 or inside <= _FEW_TO_SORT or last - first >= used >> 1:
            return shift, start, first, last, before
        stop = min(start + ((last + 1) << shift) - 1, stop)
        start += first << shift
        outside, whole = before, inside


@kernel
def _collect(values, low, shift, first, last, found):
    """Write the values in the window; return how many. ``found`` has room for one more."""
    count = 0
    for i in range(values.size):
        value = values[i]
        bucket = (np.int64(value) - low) >> shift
        found[count] = value
        count += 1 if first <= bucket <= last else 0
    return count


@kernel
def _count_runs(found, number, counts):
    """Replace sorted values by the distinct ones and their counts; return how many these are."""
    runs = 0
    i = 0
    while i < number:
        value = found[i]
        j = i + 1
        while j < number and found[j] == value:
            j += 1
        found[runs] = value
        counts[runs] = j - i
        runs += 1
        i = j
    return runs


@kernel
def _tied_blocks(window, target, d, blocks_of):
    """Fill in the blocks of a window; return how many.

    The window is of points from ``low`` to ``high`` with ``lt`` values before them: ``runs`` different values in it
    are ``found``, ``counts`` times each.
    """
    found, counts, runs, low, high, lt = window
    firsts, widths, scores, sums = blocks_of
    blocks, place = 0, low
    for k in range(runs):
        value, count = np.int64(found[k]), counts[k]
        if value > place:
            firsts[blocks], widths[blocks], scores[blocks] = place, value - place, -abs(d * lt - target)
            blocks += 1
        firsts[blocks], widths[blocks] = value, 1
        scores[blocks] = min(target - d * lt, d * (lt + count) - target)
        blocks += 1
        lt += count
        place = value + 1
    if place <= high:
        firsts[blocks], widths[blocks], scores[blocks] = place, high + 1 - place, -abs(d * lt - target)
        blocks += 1
    for b in range(blocks):
        sums[b] = np.float64(widths[b])
    return blocks


@kernel
def _split_blocks(window, rank, blocks_of):
    """Fill in the blocks of cells; those with less than ``below`` or more than ``above`` to their left are left out.

    ``widths`` are points, one for some cells of a point, and ``sums`` all the cells. ``edges``: the first point of
    which cells are left in, the score at the left of them if that is nearer than it was, and the same on the right, a
    point of which some cells are left out being beyond the edge.
    """
    found, counts, runs, low, high, lt = window
    target, d, cells, below, above = rank
    firsts, widths, scores, lefts, sums, edges = blocks_of
    blocks, place = 0, low
    per_point = np.float64(cells)
    for k in range(runs + 1):
        value = np.int64(found[k]) if k < runs else high + 1
        count = counts[k] if k < runs else 0
        if value > place:
            if lt < below:
                edges[0], edges[1] = value, d * lt - target
            elif lt > above:
                edges[2], edges[3] = place, target - d * lt
                return blocks
            else:
                firsts[blocks], widths[blocks], lefts[blocks] = place, value - place, lt
                sums[blocks] = np.float64(value - place) * per_point
                scores[blocks] = -abs(d * lt - target)
                blocks += 1
        inner, outer = min(max(below - lt, 0), count), min(max(above + 1 - lt, 0), count)
        if inner > 0:
            edges[0], edges[1] = value + 1, d * (lt + inner - 1) - target
        for j in range(inner, outer):
            width = _first_cell(j + 1, cells, count) - _first_cell(j, cells, count)
            if width > 0:
                firsts[blocks], widths[blocks], lefts[blocks] = value, 1, lt + j
                sums[blocks] = np.float64(width)
                scores[blocks] = -abs(d * (lt + j) - target)
                blocks += 1
        if outer < count:
            edges[2], edges[3] = value, target - d * (lt + outer)
            return blocks
        lt += count
        place = value + 1
    return blocks


@kernel
def _bound_tail(points, per_point, score, best, slope):
    """Return an upper bound of the weight of points of at most this score, infinite if it is above the best."""
    if points <= 0:
        return 0.0
    if score > best:
        return np.inf
    x = min(slope * np.float64(best - score), LARGEST)
    return np.float64(points) * np.float64(per_point) * decay_f64(x) * _UPWARDS


@kernel
def _choose_block(blocks, scores, slope, left_points, left_score, right_points, right_score, per_point, word, sums):
    """Return the block that the word chooses, -1 where it is in doubt; ``sums`` are widths, and partial sums then."""
    if blocks == 0:
        return -1
    best = scores[0]
    for b in range(blocks):
        best = max(best, scores[b])
    for b in range(blocks):
        x = slope * np.float64(best - scores[b])
        sums[b] = sums[b] * decay_f64(min(x, LARGEST)) if x <= LARGEST else 0.0
    total = 0.0
    for b in range(blocks):
        total += sums[b]
        sums[b] = total
    threshold = (f64_from_i64(word >> _ONE) + 0.5) * 2.0**-63 * total
    chosen = 0
    while chosen < blocks - 1 and sums[chosen] <= threshold:
        chosen += 1
    margin = (_SLACK + 2.0 * blocks) * _UNIT * total
    if chosen > 0 or left_points > 0:
        before = sums[chosen - 1] if chosen > 0 else 0.0
        left = margin + _bound_tail(left_points, per_point, left_score, best, slope)
        if not threshold - before > left:
            return -1
    if chosen < blocks - 1 or right_points > 0:
        right = margin + _bound_tail(right_points, per_point, right_score, best, slope)
        if not sums[chosen] - threshold > right:
            return -1
    return chosen


@kernel
def draw_nodes(node, last, values, groups, rank, words, scratch, points, parts):
    """Draw a point for every node from ``node`` up to ``last``; return the first that is not done, and what it needs.

    Parameters
    ----------
    node, last
        The nodes to draw for.
    values : int32 or int64
        Points of the grid; those of a node lie together, in any order.
    groups
        Four int64 for each node: ``starts`` and ``stops``, where its points lie; ``lows`` and ``highs``, the first and
        the last point of the node.
    rank
        The numbers ``p``, ``d``: the rank to hit is p n / d, 0 <= p <= d < 2**24 and n < 2**38; ``slope``, a float64
        that scores in units of 1 / d are multiplied by; ``cells``, 0 for TIED, for SPLIT the cells of a point, a power
        of two; ``reach``, how many ranks from the one to hit are looked at, which concerns speed alone.
    words : uint64
        Three for each node.
    scratch
        Arrays ``buckets, found, counts, firsts, widths, scores, lefts, sums``: BUCKETS int64, then as long as each
        other, ROOM or more: of the values' type, int64, ..., float64 (sums).
    points : int64, one per node
        The point that was drawn, -1 where that is in doubt.
    parts : int64, one per node
        For SPLIT, how many values of the node are to the left of the cell that was drawn.

    Returns
    -------
    tuple
        The first node that is not done, and how long the scratch memory must be to go on there; (last, 0) at the end.

    """
    starts, stops, lows, highs = groups
    p, d, slope, cells, reach = rank
    buckets, found, counts, firsts, widths, scores, lefts, sums = scratch
    edges = np.zeros(4, np.int64)
    while node < last:
        own = values[starts[node] : stops[node]]
        low, high, n = lows[node], highs[node], own.size
        target = p * n
        below, above = target // d - reach, target // d + 1 + reach
        if cells > 0:
            below, above = below - n // cells, above + n // cells
        window_low, window_high, before = low, high, np.int64(0)
        if n <= _FEW:
            number = n
            for i in range(n):
                found[i] = own[i]
            found[:number].sort()
            runs = _count_runs(found, number, counts)
        else:
            shift, start, first, final, before = _find_window(own, low, high, below, above, buckets)
            window_low, window_high = start + (first << shift), min(start + ((final + 1) << shift) - 1, high)
            number = np.int64(0)
            for b in range(first, final + 1):
                number += buckets[b]
            if shift == 0:
                runs = 0
                for b in range(first, final + 1):
                    if buckets[b] > 0:
                        found[runs], counts[runs] = start + b, buckets[b]
                        runs += 1
            else:
                if number + 1 > found.size:
                    return node, number + 1
                number = _collect(own, start, shift, first, final, found)
                found[:number].sort()
                runs = _count_runs(found, number, counts)
        inside = np.int64(0)
        for k in range(runs):
            inside += counts[k]
        edges[0], edges[1] = window_low, d * before - target
        edges[2], edges[3] = window_high + 1, target - d * (before + inside)
        needed = 2 * (runs + 1 + min(inside, above + 1 - below)) if cells > 0 else 2 * runs + 1
        if needed > firsts.size:
            return node, needed
        if cells > 0:
            blocks = _split_blocks(
                (found, counts, runs, window_low, window_high, before),
                (target, d, cells, below, above),
                (firsts, widths, scores, lefts, sums, edges),
            )
        else:
            blocks = _tied_blocks(
                (found, counts, runs, window_low, window_high, before), target, d, (firsts, widths, scores, sums)
            )
        left_points, right_points = edges[0] - low, high + 1 - edges[2]
        chosen = _choose_block(
            blocks,
            scores,
            slope,
            left_points,
            edges[1],
            right_points,
            edges[3],
            max(cells, 1),
            words[3 * node],
            sums,
        )
        points[node] = -1
        if chosen >= 0:
            width = np.uint64(widths[chosen])
            rest, low_rest = low_product(words[3 * node + 1], width), low_product(words[3 * node + 2], width)
            middle = rest + high_product(words[3 * node + 2], width)
            within = high_product(words[3 * node + 1], width) + (_ONE if middle < rest else np.uint64(0))
            # V lies in [word, word + 1) 2**-128: it is in doubt if the next multiple is within reach.
            if middle != _ALL_ONES or low_rest + width >= low_rest:
                points[node] = firsts[chosen] + np.int64(within)
                parts[node] = lefts[chosen] if cells > 0 else 0
        node += 1
    return last, np.int64(0)


@kernel
def part_nodes(values, starts, stops, points):
    """Order every node's values: those below its point, then those at it, then those above."""
    for node in range(points.size):
        point = points[node]
        low, place, high = starts[node], starts[node], stops[node]
        while place < high:
            value = values[place]
            if value < point:
                values[place], values[low] = values[low], value
                low += 1
                place += 1
            elif value > point:
                high -= 1
                values[place], values[high] = values[high], value
            else:
                place += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
