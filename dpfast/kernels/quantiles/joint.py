"""Certified joint quantiles: all quantiles of a group by one exponential mechanism, in time linear in its values.

Every point of the grid has 2**CELL_BITS cells. The values at a point lie in cells of their own, the first in the middle
one, then a quarter and three quarters on, and so on (the bits of a value's number, from 1 on, reversed): a value more
takes one place more, and leaves the others where they are. An output is k cells in ascending order; r_1 <= .. <= r_k
are how many values lie to the left of each, r_0 = 0 and r_{k+1} = n. Its weight, for the shares P_j / D of the values
that are wanted between two quantiles and a number t in the place of n, is

    exp(-slope * sum over j of abs(D (r_j - r_{j-1}) - P_j t))

times what the output counts by itself: k cells that are drawn uniformly and sorted. The cells with r values to their
left are a block of width W_r (1 are all cells); l outputs in one block count W_r**l / l!.

Forwards, T_j(r) is the weight of all ways to place the quantiles 1 to j, the last in block r, and E_j(r) of those to
enter it with quantile j, from a block further left, W_r left out:

    E_j(r) = sum over r' < r of T_{j-1}(r') exp(-slope abs(D (r - r') - P_j t))
    T_j(r) = sum over i <= j of E_i(r) W_r**(j - i + 1) / (j - i + 1)! exp(-slope (P_{i+1} + .. + P_j) t)

The exponential decays by the same factor with each rank on either side of r - P_j t / D: what lies to the left of that
is a running sum, and what lies to the right a sum over a window of fixed length, put together from sums over
the end of one stretch of that length and over the beginning of the next. Backwards, the last quantile's block is
chosen by U, then how many of the quantiles before it lie in it by another word, then the next block.

Only blocks up to ``reach`` ranks below or above both q t and q t + n - t are looked at. Beyond these the sum in the
exponent is at least D (abs(n - t) + 2 reach), and as all outputs count 1 / k! together, all that is left out weighs
exp(-slope D (abs(n - t) + 2 reach)) at most.

Error, in units of u = 2**-53 (wide_floats.py). An exponential of at most 8192: 2.01 * 8192 for its argument, 79 for
itself, and a product: below 16,600, which is _EXPONENTIAL. A step of a running sum: 2.01 x + 79 for exp(-x), x the
slope of a rank, at most 32, a product and a sum: below 160, _STEP. So each level adds at most _STEP for each of the N
blocks of a window and four exponentials, and stays no more; _LEVEL covers widths, powers and sums over i. Exponentials
beyond 8192 are left out: at most (n + 1)**k 2**k ways, below 2**480, of less than 2**-11818 each. A choice is beyond
doubt if the threshold is further from its neighbours than twice all this, a sum over N and the resolution of U, and if
what is chosen from weighs so much that what was left out is below 2**-100 of it.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.wide_floats import NOTHING, power_of_two, wide_decay, wide_of, wide_product, wide_sum

__all__ = ["CELL_BITS", "MOST_SORTED", "draw_joint"]

CELL_BITS = 16
"""A point has 2**CELL_BITS cells."""

MOST_SORTED = 64
"""Numba's sort takes quadratic time for some orders: it sorts no more than these."""

_CELLS = 2**CELL_BITS
_UNIT = 2.0**-53
_STEP, _EXPONENTIAL, _LEVEL = 160.0, 16_600.0, 400.0
_LIGHTEST = -11_000
_SPARE_BITS = 110
#: Of sixteen terms, each below 2**(e + 3) where three exponents add up to e, and 64 bits below them.
_TERM_BITS = 64 + 4 + 3
_PER_BIT = 1.4426950408889634


@kernel
def _cell(k, count):
    """Return the cell of the value that has k others to its left, of ``count`` at a point: the k-th in order."""
    place, residue = np.int64(0), np.int64(0)
    for bit in range(CELL_BITS):
        # Numbers from 1 to count that are ``residue`` modulo 2**(bit + 1).
        lower = count >> (bit + 1)
        if residue > 0:
            lower = ((count - residue) >> (bit + 1)) + 1 if count >= residue else 0
        if k >= lower:
            k -= lower
            residue += 1 << bit
            place += _CELLS >> (bit + 1)
    return place


@kernel
def _first_at(values, point):
    """Return how many of the sorted values are below a point."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < point:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _place(values, i, points):
    """Return the point and the cell where the value with i others before it lies; for n the end of the grid."""
    if i < 0:
        return np.int64(1), np.int64(0)
    if i >= values.size:
        return np.int64(points + 1), np.int64(0)
    point = np.int64(values[i])
    first = _first_at(values, point)
    return point, _cell(i - first, _first_at(values, point + 1) - first)


@kernel
def _fill_widths(values, low, high, points, bits, wm, we):
    """Write the widths of the blocks from ``low`` to ``high``, all cells together being at most 1."""
    point, cell = _place(values, low - 1, points)
    n = values.size
    first = last = np.int64(-1)
    for r in range(low, high + 1):
        if r >= n:
            following, its_cell = np.int64(points + 1), np.int64(0)
        else:
            following = np.int64(values[r])
            if r >= last:
                first = r if r > 0 and values[r - 1] < following else _first_at(values, following)
                last = r + 1
                if last < n and values[last] == following:
                    last = _first_at(values, following + 1)
            its_cell = np.int64(_CELLS >> 1) if last - first == 1 else _cell(r - first, last - first)
        m, e = wide_of(np.float64(following - point) * np.float64(_CELLS) + np.float64(its_cell - cell))
        wm[r - low], we[r - low] = m, e - bits if m > 0.0 else NOTHING
        point, cell = following, its_cell


@kernel
def _decayed(ranks, m, e, d, slope, gm, ge):
    """Return a number times exp(-slope d ranks)."""
    if ranks == 0:
        return m, e
    if ranks < gm.size:
        return wide_product(m, e, gm[ranks], ge[ranks])
    fm, fe = wide_decay(slope, d * ranks)
    return wide_product(m, e, fm, fe)


@kernel
def _enter(above, own, wanted, d, slope, scratch):
    """Write E_j for the blocks from ``low`` to ``high`` from T_{j-1} for those from ``before`` to ``until``.

    ``wanted`` is P_j t. Of ``scratch``, ``gm`` and ``ge`` are exp(-slope d k) for k = 0, 1, ..; the rest is written.
    """
    tm, te, before, until = above
    em, ee, low, high = own
    gm, ge, sm, se, pm, pe = scratch
    for r in range(high - low + 1):
        em[r], ee[r] = 0.0, NOTHING
    least = -(-wanted // d)
    # At least as many values as are wanted between the two quantiles.
    further = max(least, 1)
    fm, fe = wide_decay(slope, d * further - wanted)
    m, e = 0.0, np.int64(NOTHING)
    for r in range(before + further, high + 1):
        m, e = wide_product(m, e, gm[1], ge[1])
        if r - further <= until:
            at = r - further - before
            xm, xe = wide_product(tm[at], te[at], fm, fe)
            m, e = wide_sum(m, e, xm, xe)
        if r >= low:
            em[r - low], ee[r - low] = m, e
    # Fewer, but one at least.
    length = least - 1
    if length < 1:
        return
    size = until - before + 1
    for x in range(size - 1, -1, -1):
        sm[x], se[x] = tm[x], te[x]
        if x + 1 < size and (x + 1) % length != 0:
            m, e = wide_product(sm[x + 1], se[x + 1], gm[1], ge[1])
            sm[x], se[x] = wide_sum(sm[x], se[x], m, e)
    for y in range(size):
        inner = y % length
        pm[y], pe[y] = tm[y], te[y]
        if inner:
            m, e = wide_product(tm[y], te[y], gm[inner], ge[inner])
            pm[y], pe[y] = wide_sum(pm[y - 1], pe[y - 1], m, e)
    nm, ne = wide_decay(slope, wanted - d * length)
    for r in range(max(low, before + 1), high + 1):
        x, y = max(r - length - before, 0), min(r - 1 - before, size - 1)
        if x > y:
            break
        start = x // length
        if start != y // length:
            m, e = wide_product(pm[y], pe[y], gm[(start + 1) * length - x], ge[(start + 1) * length - x])
            m, e = wide_sum(m, e, sm[x], se[x])
        elif x % length == 0:
            m, e = pm[y], pe[y]
        else:
            m, e = sm[x], se[x]
        if m > 0.0:
            fm, fe = _decayed(length - (r - x - before), nm, ne, d, slope, gm, ge)
            m, e = wide_product(m, e, fm, fe)
            em[r - low], ee[r - low] = wide_sum(em[r - low], ee[r - low], m, e)


@kernel
def _choose(m, e, count, word, margin, sums):
    """Return what the word chooses of weights, -1 where that is in doubt, and the exponent of their sum."""
    top = np.int64(NOTHING)
    for i in range(count):
        top = max(top, e[i])
    if top == NOTHING:
        return -1, top
    total = 0.0
    for i in range(count):
        apart = e[i] - top
        total += m[i] * power_of_two(apart) if apart > -1000 else 0.0
        sums[i] = total
    threshold = (np.float64(word >> np.uint64(1)) + 0.5) * 2.0**-63 * total
    chosen = 0
    while chosen < count - 1 and sums[chosen] <= threshold:
        chosen += 1
    doubt = (margin + np.float64(count)) * 2.0 * _UNIT * total + 2.0**-61 * total
    if chosen > 0 and not threshold - sums[chosen - 1] > doubt:
        return -1, top
    if chosen < count - 1 and not sums[chosen] - threshold > doubt:
        return -1, top
    return chosen, top


@kernel
def draw_joint(values, groups, grid, shares, d, slope, reach, words, blocks):
    """Draw the blocks of all quantiles for every group.

    Parameters
    ----------
    values : int32 or int64
        Points of the grid from 1 to ``points``; those of a group lie together. Up to MOST_SORTED may come in any order,
        and are sorted; more have to be sorted already.
    groups
        Three int64 for each group: ``starts`` and ``stops``, where its points lie; ``counts``, t, from 0 to 2**38.
    grid
        The numbers ``points`` and ``bits``: it has so many points, and no more than 2**bits cells.
    shares : int64
        P_1, P_2, ..: one more than there are quantiles; they sum up to d < 2**24. There are 16 at most.
    d
        The shares' denominator.
    slope : float64
        What the sum in the exponent is multiplied by; at most 32 / d.
    reach
        How many ranks are looked at.
    words : uint64, one row per group
        Two for each quantile.
    blocks : int64, four tables of one row per group
        Filled for each quantile with its block: the first point and the first cell of it, and the point and the cell
        that it ends before. The first is -1 where that is in doubt.

    """
    starts, stops, counts = groups
    points, bits = grid
    firsts, cells, ends, rests = blocks[0], blocks[1], blocks[2], blocks[3]
    k = shares.size - 1
    lows, highs, offsets = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k + 1, np.int64)
    sm, se = np.empty(1), np.empty(1, np.int64)
    pm, pe, gm, ge = np.empty_like(sm), np.empty_like(se), np.empty_like(sm), np.empty_like(se)
    for group in range(starts.size):
        own = values[starts[group] : stops[group]]
        if own.size <= MOST_SORTED:
            own.sort()
        n, t = own.size, counts[group]
        less, more, passed, longest = min(n - t, 0), max(n - t, 0), np.int64(0), np.int64(0)
        whole = True
        offsets[0] = 0
        for j in range(k):
            passed += shares[j]
            centre = passed * t // d
            lows[j] = min(max(centre + less - reach, 0), n)
            highs[j] = max(min(centre + 1 + more + reach, n), 0)
            whole = whole and lows[j] == 0 and highs[j] == n
            size = highs[j] - lows[j] + 1
            longest = max(longest, size)
            offsets[j + 1] = offsets[j] + size
        lightest = np.float64(_LIGHTEST)
        if not whole:
            left_out = slope * np.float64(d) * np.float64(more - less + 2 * reach) * _PER_BIT * (1.0 - 2.0**-40)
            lightest = max(lightest, _SPARE_BITS - left_out)
        margin = k * (_STEP * longest + 5.0 * _EXPONENTIAL + _LEVEL) + 3.0 * _EXPONENTIAL
        room = max(longest, k) + 1
        if sm.size < room:
            sm, se = np.empty(room + room // 4), np.empty(room + room // 4, np.int64)
            pm, pe, gm, ge = np.empty_like(sm), np.empty_like(se), np.empty_like(sm), np.empty_like(se)
            for i in range(gm.size):
                gm[i], ge[i] = wide_decay(slope, d * i)
        all_cells = offsets[k]
        em, ee, tm, te = (
            np.empty(all_cells),
            np.empty(all_cells, np.int64),
            np.empty(all_cells),
            np.empty(all_cells, np.int64),
        )
        wm, we = np.empty(all_cells), np.empty(all_cells, np.int64)
        # factors[j, i]: exp(-slope (P_{i+1} + .. + P_j) t) / (j - i + 1)!
        fm, fe = np.zeros((k, k)), np.full((k, k), np.int64(NOTHING))
        # The largest exponents of E_i, and of E_i times a factor.
        tops, bests = np.full(k, np.int64(NOTHING)), np.empty(k, np.int64)
        for j in range(k):
            low, high, a = lows[j], highs[j], offsets[j]
            own_em, own_ee = em[a : offsets[j + 1]], ee[a : offsets[j + 1]]
            own_wm, own_we = wm[a : offsets[j + 1]], we[a : offsets[j + 1]]
            _fill_widths(own, low, high, points, bits, own_wm, own_we)
            if j == 0:
                for r in range(low, high + 1):
                    own_em[r - low], own_ee[r - low] = wide_decay(slope, abs(d * r - shares[0] * t))
            else:
                b = offsets[j - 1]
                above = tm[b:a], te[b:a], lows[j - 1], highs[j - 1]
                _enter(above, (own_em, own_ee, low, high), shares[j] * t, d, slope, (gm, ge, sm, se, pm, pe))
            fm[j, j], fe[j, j] = 1.0, 0
            for i in range(j - 1, -1, -1):
                xm, xe = wide_decay(slope, shares[i + 1] * t)
                xm, xe = wide_product(fm[j, i + 1], fe[j, i + 1], xm, xe)
                ym, ye = wide_of(1.0 / np.float64(j - i + 1))
                fm[j, i], fe[j, i] = wide_product(xm, xe, ym, ye)
            for r in range(low, high + 1):
                tops[j] = max(tops[j], own_ee[r - low])
            best = np.int64(NOTHING)
            for i in range(j + 1):
                best = max(best, tops[i] + fe[j, i])
                bests[i] = best + _TERM_BITS
            for r in range(low, high + 1):
                at = a + r - low
                m, e, vm, ve = 0.0, np.int64(NOTHING), 1.0, np.int64(0)
                if wm[at] > 0.0:
                    for i in range(j, -1, -1):
                        # All terms from here on together are below 2**-64 of the sum.
                        if bests[i] + ve < e:
                            break
                        vm, ve = wide_product(vm, ve, wm[at], we[at])
                        if lows[i] <= r <= highs[i]:
                            there = offsets[i] + r - lows[i]
                            xm, xe = wide_product(em[there], ee[there], vm, ve)
                            xm, xe = wide_product(xm, xe, fm[j, i], fe[j, i])
                            m, e = wide_sum(m, e, xm, xe)
                tm[at], te[at] = m, e
        # Backwards.
        j, following, wanted = k - 1, n, shares[k] * t
        behind = 1
        suffix = np.int64(0)
        firsts[group, 0] = -1
        while j >= 0:
            low, a = lows[j], offsets[j]
            # The next quantile lies in a block further right; behind the last one are all other values.
            upto = min(highs[j], following - (1 - behind))
            size = upto - low + 1
            if size <= 0:
                break
            least = -(-wanted // d)
            xm, xe = wide_decay(slope, d * least - wanted)
            ym, ye = wide_decay(slope, max(wanted - d * (least - 1), 0))
            for r in range(low, upto + 1):
                there = a + r - low
                beyond = following - r - least
                if beyond >= 0:
                    m, e = _decayed(beyond, xm, xe, d, slope, gm, ge)
                else:
                    m, e = _decayed(-1 - beyond, ym, ye, d, slope, gm, ge)
                sm[r - low], se[r - low] = wide_product(tm[there], te[there], m, e)
            chosen, top = _choose(sm, se, size, words[group, 2 * j], margin, pm)
            if chosen < 0 or top + suffix < lightest:
                break
            block = low + chosen
            xm, xe = wide_decay(slope, abs(d * (following - block) - wanted))
            suffix += xe
            at = a + chosen
            # How many of the quantiles before it lie in the same block: the i-th weight is for i more.
            m, e, vm, ve = 0.0, np.int64(NOTHING), 1.0, np.int64(0)
            for i in range(j, -1, -1):
                vm, ve = wide_product(vm, ve, wm[at], we[at])
                sm[j - i], se[j - i] = 0.0, NOTHING
                if lows[i] <= block <= highs[i]:
                    there = offsets[i] + block - lows[i]
                    xm, xe = wide_product(em[there], ee[there], vm, ve)
                    sm[j - i], se[j - i] = wide_product(xm, xe, fm[j, i], fe[j, i])
            together, top = _choose(sm, se, j + 1, words[group, 2 * j + 1], margin, pm)
            if together < 0 or top + suffix < lightest:
                break
            first, cell = _place(own, block - 1, points)
            end, rest = _place(own, block, points)
            entered = j - together
            for i in range(entered, j + 1):
                firsts[group, i], cells[group, i], ends[group, i], rests[group, i] = first, cell, end, rest
            suffix += (together + 1) * we[at] + fe[j, entered]
            j = entered - 1
            following, wanted, behind = block, shares[entered] * t, 0
        if j >= 0:
            firsts[group, 0] = -1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
