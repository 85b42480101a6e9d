"""Buffered linear Toeplitz noise: nearly the least error there is, from a few numbers for each counter.

**The mechanism.** Let B be a factor of the prefix sums (`dpfast.streaming.toeplitz`), u and g powers of two, u dividing
g, and [y] the nearest whole multiple of u. For every counter, with P_t the exact prefix sum, buffers v_j = 0 before the
first step, and G_t independent Gaussian noise of standard deviation sigma:

    a_j = [rate_j v_j],   h_t = [sum of weight_j a_j],
    w_t = P_t + h_t + G_t, rounded to a whole multiple of g,
    z_t = w_t - P_t - h_t,   v_j = a_j + z_t.

Published is w_t rounded to a whole number, for which the guarantee of w_1, ..., w_T holds as well. In float64, products
and sums before a bracket err by a part of u; everything else above is exact, the rounding of w_t by certified draws.

**Why this is private.** To publish P_t and the floating-point value of (B z)_t added up proves nothing: the textbook's
argument is that the sum is a function of C x + z, and what rounding leaves in it is a function of z alone, not of that.
Here no linearity is assumed. Let x and x' be two streams, and suppose that the same w_1, ..., w_T are published for
both. They determine z and z', step by step. With x: w_t is a rounding of P_t + h_t + G_t, and given w_1, ..., w_(t-1)
everything in this but G_t is fixed. So each step is a Gaussian mechanism whose two means are d_t = |(P_t + h_t) -
(P'_t + h'_t)| = |z'_t - z_t| apart, chosen by what was published before. It remains to bound the sum of d_t**2.

Let e_(j,t) = a_j - rate_j v_j and f_t = h_t - sum of weight_j a_j be what rounding leaves. As the weights add up to 1,
z_t + h_t is the sum of weight_j v_j, and v_j = (z + e_j) / (1 - rate_j x) as power series, so that

    w = A x + B z + sum of weight_j e_j / (1 - rate_j x) + f.

Take this for x' from the same for x, where w is the same, and divide by B, with D for differences:

    D z = -C D x - sum of (weight_j / (1 - rate_j x) / B) D e_j - (1 / B) D f.

By 3 in `dpfast.streaming.toeplitz` the operators in front of D e_j have norms of at most 1, and 1 / B has 2 at most.
|rate_j v_j| below 2**51 u is rounded to float64 by at most u / 8 and to a multiple of u by u / 2, so |D e_j| <= 3/2 u;
the sum has at most 6 products and 5 sums, each off by u / 8, so |D f| <= 4 u. Together, over T steps, with m buffers:

    sqrt(sum of d_t**2) <= |C D x| + sqrt(T) (3/2 m + 8) u.                                            (*)

u is 2**-51 times 65 standard deviations of the widest buffer, or up to twice that, so that the second part is about
T sigma 2**-44 or less. It is part of the sensitivity: the bound (*) is what noise is calibrated to and what ledgers are
charged for, and it holds also where increments were chosen after seeing earlier figures.

**From (*) to the event.** Let d_t depend on what was published before, with sum of d_t**2 <= S**2 always. Then all
steps together are as private as one Gaussian mechanism of sensitivity S, by every measure. Proof: append a step so that
the sum is S**2. The logarithm of the likelihood ratio of the unrounded values is a sum of d_t G_t / sigma**2, up to
signs, plus S**2 / (2 sigma**2). With N_t = exp(i y (d_1 G_1 + ... + d_t G_t) + y**2 sigma**2 (d_1**2 + ... + d_t**2)
/ 2), E(N_t | the past) = N_(t-1) as d_t is fixed by the past; so the sum has the characteristic function of a normal
variable of variance S**2 sigma**2, and the log ratio has exactly the law of one Gaussian mechanism's. That law fixes
all divergences; dropping the appended step and rounding are post-processing. (Also Smith, Thakurta 2022.)

**The range.** In (*) a buffer beyond 2**51 u = 65 of its standard deviations at least would round by more than is said
there. Let M be this mechanism with independent, truly random words, and M* the same with buffers of unlimited length,
to which all of the above applies: M* has the guarantee exactly. Both draw alike until a buffer of M is beyond, which
hardly happens: v_j is a sum of past z_t times powers of rate_j. The part of their G_t is normal, of the standard
deviation that u is made from or less, and beyond 64 of it with a probability below 2 exp(-2048). The rest is rounding:
of w_t, by g / 2 <= sigma / 128, of mean 0 given the past but for less than exp(-80000) sigma, since sigma is 64 g or
more, and so (Azuma) beyond 3/4 of a deviation with a probability below 2 exp(-4608); and of a_j, by 5/8 u a step, below
2**-12 of a deviation over 2**32 steps. Over 2**32 steps, 2**32 counters and 8 buffers M and M* are within 2**-2860 of
each other. What is promised of this package is promised of words made by AES from keys of 256 bits: nobody who cannot
tell AES from random words can tell the outputs from those of a mechanism that has the guarantee exactly (Mironov,
Pandey, Reingold, Vadhan 2009). M* is that mechanism, and 2**-2860 disappears beside the chance of 2**-256 to guess the
key. This is no licence for caps that AES does not dwarf, as that of 44.4 scales at which 64 bits of a word end.

**What fails without the brackets.** A test has a stream of zeros and one with a single 1, float64 buffers that are not
rounded to multiples of u, and noise that makes both publish the same: z and z' then differ by more than (*).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget
from dpfast.columns.fresh import fresh_array
from dpfast.errors import ParameterError
from dpfast.kernels.streaming import buffers as kernels
from dpfast.mechanisms.noise.additive import Buffers as Scratch
from dpfast.mechanisms.noise.additive import draw_rows
from dpfast.mechanisms.noise.calibration import round_up_root
from dpfast.mechanisms.noise.gaussian import gaussian_on
from dpfast.mechanisms.noise.lattice import Lattice, Rows
from dpfast.mechanisms.noise.lattice import Scratch as GivesScratch
from dpfast.randomness import Keystream, Purpose, RandomSource
from dpfast.streaming.fitting import buffers_for
from dpfast.streaming.method import Found, Method, State, noise_for
from dpfast.streaming.toeplitz import Buffers
from dpfast.streaming.unit import Norms, StreamUnit
from dpfast.threads import share, thread_count

__all__ = ["BLOCK", "BufferedToeplitz", "Grid"]

BLOCK = 1 << 16
"""Counters that are advanced at a time: few enough for their buffers to stay in a cache."""

#: Bits of a buffer, and standard deviations that fit into them: 64 and what rounding adds, see the module.
_RANGE, _DEVIATIONS = 51, 65.0
#: The noise has from 2**6 steps of the grid on, and up to scales of 2**25 a grid of ones or finer.
_FINENESS, _LARGEST_ONES = 6, 24
_LEAST_EXPONENT = -60
#: What rounding may add to the sensitivity: the least of these shares that suffices.
_SHARES = tuple(Fraction(1, 2**k) for k in range(30, 0, -1))


class Grid:
    """The powers of two that a scale of noise and the widest buffer ask for.

    Attributes
    ----------
    exponent
        The grid of the noisy prefixes is 2**exponent.
    unit
        Buffers are multiples of 2**unit.

    """

    def __init__(self, scale: float, widest: float) -> None:
        own = math.frexp(scale)[1] - 1
        self.exponent = own - _LARGEST_ONES if own > _LARGEST_ONES else min(own - _FINENESS, 0)
        self.unit = max(math.frexp(widest * _DEVIATIONS)[1] - _RANGE, _LEAST_EXPONENT)


class BufferedToeplitz(Method):
    """Correlated Gaussian noise whose buffers decay exponentially: see the module."""

    name: ClassVar[str] = "blt"

    def __init__(self, horizon: int, unit: StreamUnit, budget: Budget, found: Found | None = None) -> None:
        super().__init__(horizon)
        self.buffers = buffers_for(horizon) if found is None else Buffers(*map(_floats, found["buffers"]))
        squared = self.buffers.l2_squared(horizon, unit.max_steps)
        for part in _SHARES:
            noise = noise_for(budget, unit, Norms(0, squared * (1 + part) ** 2), gaussian=True)
            self.grid = Grid(noise.scale, noise.scale * self.widest)
            # Each of the counters that a unit touches has its own rounding.
            if self.rounding(unit.moved_counters) ** 2 <= part**2 * unit.l2_squared(Norms(0, squared)):
                self.noise = noise
                return
        mend = "shorten the horizon, or raise the budget"
        raise ParameterError("horizon", horizon, "smaller, so that rounding stays below the sensitivity", mend)

    @property
    def found(self) -> Found:
        """See `Method.found`."""
        return {"buffers": [[x.hex() for x in part.tolist()] for part in (self.buffers.losses, self.buffers.weights)]}

    @property
    def widest(self) -> float:
        """The largest standard deviation of a buffer over the horizon, where that of the noise is 1."""
        steps = np.array([self.horizon])
        one = np.ones(1)
        return max(math.sqrt(Buffers(loss[None], one).energy(steps)[0]) for loss in self.buffers.losses)

    def rounding(self, counters: int) -> Fraction:
        """Return the second part of (*), rounded up, for so many counters that move."""
        each = Fraction(3, 2) * self.buffers.losses.size + 8
        return Fraction(round_up_root(Fraction(self.horizon * counters))) * each * Fraction(2) ** self.grid.unit

    def variances(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """See `Method.variances`."""
        return self._of_noise * self.buffers.energy(steps) + self._of_rounding

    def mean_variance(self) -> float:
        """See `Method.mean_variance`: the sum of (T - k) b_k**2, from geometric sums."""
        losses, weights, steps = self.buffers.losses, self.buffers.weights, self.horizon
        mean = 0.0
        for loss, weight in zip(losses, weights, strict=True):
            for other, beside in zip(losses, weights, strict=True):
                lost = loss + other - loss * other
                full = -math.expm1(steps * math.log1p(-lost)) if lost < 1 else 1.0
                mean += weight * beside * (1 - (1 - lost) * full / lost / steps) / lost
        return float(self._of_noise * mean + self._of_rounding)

    @property
    def _of_noise(self) -> float:
        return self.noise.scale**2 + 4.0**self.grid.exponent / 12

    @property
    def _of_rounding(self) -> float:
        return 1 / 12 if self.grid.exponent < 0 else 0.0

    def begin(self, counters: int) -> State:
        """See `Method.begin`."""
        return _BufferState(self, counters)


def _floats(written: list[str]) -> NDArray[np.float64]:
    return np.array([float.fromhex(x) for x in written])


class _Places(Lattice):
    """Gives back the rounded noise itself; values are positions in grids, and the noise is rounded with them."""

    def __init__(self, scale: float) -> None:
        super().__init__(scale, np.dtype(np.int32))

    def _rows_of_one(self, scale: float) -> Rows:
        return Rows(scale, position=1.0)

    def _rows_of_many(self, scale: NDArray[np.float64], scratch: GivesScratch) -> Rows:
        raise NotImplementedError

    def join(self, values: NDArray[Any], rows: Rows, noise: NDArray[np.int32], released: NDArray[Any]) -> None:
        """See `Lattice.join`."""
        released[:] = noise

    def exact(self, value: Any, row: int) -> tuple[Fraction, Fraction, bool]:
        """See `Lattice.exact`."""
        position = Fraction(float(value))
        return Fraction(self.scale), position - round(position), False

    def place(self, value: Any, row: int, noise: int) -> int:
        """See `Lattice.place`."""
        return min(max(noise, -(2**31)), 2**31 - 1)


class _BufferState(State):
    """Exact prefixes, and buffers in units, a row for each."""

    def __init__(self, method: BufferedToeplitz, counters: int) -> None:
        buffers, grid = method.buffers, method.grid
        super().__init__(totals=np.zeros(counters, np.int64), buffers=np.zeros((buffers.losses.size, counters)))
        self._rates, self._weights = buffers.rates, buffers.weights
        self._coarse = np.int64((1 << max(grid.exponent, 0)) - 1)
        self._units_per_one = math.ldexp(1.0, -grid.unit)
        self._units_per_grid = math.ldexp(1.0, grid.exponent - grid.unit)
        down = max(-grid.exponent, 0)
        self._shifts = np.int64(max(grid.exponent, 0)), np.int64(1 << down >> 1), np.int64(down)
        self._places = _Places(math.ldexp(method.noise.scale, -grid.exponent))
        self._scale = math.ldexp(method.noise.scale, -grid.exponent)
        self._kept: list[tuple[Scratch, NDArray[np.float64]]] = []

    def advance(
        self, increments: NDArray[np.int64], limit: int, source: RandomSource, threads: int | None
    ) -> NDArray[np.int64]:
        """See `State.advance`."""
        keystream = Keystream(source.key())
        totals, buffers = self.arrays["totals"], self.arrays["buffers"]
        counters = totals.size
        figures = fresh_array(counters, np.dtype(np.int64))

        def work(numbers: Iterator[int]) -> None:
            words = keystream.words(Purpose.NOISE)
            noise = gaussian_on(self._places, keystream, self._scale)
            scratch, positions = self._scratch(min(counters, BLOCK))
            for block in numbers:
                start = block * BLOCK
                rows = min(BLOCK, counters - start)
                part, place = slice(start, start + rows), positions[:rows]
                kernels.advance_buffers(
                    increments[part],
                    np.int64(limit),
                    totals[part],
                    buffers,
                    start,
                    self._rates,
                    self._weights,
                    self._coarse,
                    self._units_per_one,
                    1 / self._units_per_grid,
                    place,
                )
                bits = scratch.words(noise.word_bytes(rows))
                words.fill(block, bits)
                drawn = scratch("drawn", np.int32)[:rows]
                draw_rows(noise, bits, place, None, start, scratch, drawn)
                kernels.settle_buffers(
                    drawn, place, totals[part], buffers, start, self._units_per_grid, self._coarse, *self._shifts,
                    figures[part],
                )  # fmt: skip
            self._kept.append((scratch, positions))

        share(work, -(-counters // BLOCK), thread_count(threads, counters))
        self.step += 1
        return figures

    def _scratch(self, rows: int) -> tuple[Scratch, NDArray[np.float64]]:
        try:
            return self._kept.pop()
        except IndexError:
            return Scratch(rows), np.empty(rows)
