"""The sparse vector technique for streams: an object that answers above or not, and stops after so many positives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.events import Pure
from dpfast.arguments import Numeric as OneNumber
from dpfast.arguments import Real, Special, Whole
from dpfast.columns import dimensions
from dpfast.columns.declarations import AnyColumn, wrong_columns
from dpfast.columns.saturating import borrow_saturating
from dpfast.errors import ColumnError, LedgerError
from dpfast.exact.balls import round_up_written
from dpfast.mechanisms.parameters import Epsilon, Monotonic, Sensitivity
from dpfast.mechanisms.thresholds.above_threshold import check_answers, measure_again, refuse_not_finite, without_nulls
from dpfast.mechanisms.thresholds.runs import CHUNK, THRESHOLD, Count, Numeric, Runs, calibrate
from dpfast.randomness import Random, random_source
from dpfast.showing import Facts, Shown
from dpfast.turns import Turns

__all__ = ["SparseVector"]

_FORKED = (
    "a sparse vector does not outlive a fork: parent and child would each answer with the same threshold noise; make "
    "one in each process, and pay for each"
)
_MOST = Whole(1, optional=True, mend="leave it out to test all values")
#: A column, or one number.
Values: TypeAlias = Annotated[AnyColumn | Sequence[OneNumber] | OneNumber, Special(lambda: wrong_columns(least=0))]


class SparseVector(Shown):
    """Answer for a stream of values whether each lies above a threshold; stop after ``count`` positives.

    Guarantee
        All answers of one object together are (epsilon, 0)-differentially private, however many values are tested
        and even if every value is chosen after seeing the answers before it, provided that no value changes by more
        than ``sensitivity`` = s between neighbouring data sets. No budget is kept here: charge ``event``.

        With e1 + e2 + e3 = epsilon, c = count and m = 2 (1 if ``monotonic``): N0 is exponential noise of scale
        s / e1, drawn once; value q is answered "above" where q + N >= t + N0, t the threshold, with fresh exponential
        noise N of scale m c s / e2. With ``numeric`` each of the at most c values above is also answered as
        q + Laplace(c s / e3), fresh noise again, at e3 / c each.

        Proof. Fix the answers; let A be the places of "above", at most c, and B the others, q the values asked for
        given the answers before them and q' the neighbour's. With f the density of N0, G(x) = P(N >= x), F = 1 - G,

            P(answers) = integral over z of f(z) * product over B of F(t + z - q) * product over A of G(t + z - q)

        and P'(answers) is the same of q', in which z is replaced by z + s. (i) f(z + s) >= exp(-e1) f(z) for every z,
        as f is 0 below 0. (ii) q' <= q + s, so that F(t + z + s - q') >= F(t + z - q): an answer in B costs nothing.
        (iii) q' >= q - s, so that t + z + s - q' is at most 2 s larger than t + z - q, and for every x
        G(x + 2 s) >= exp(-2 s / (m c s / e2)) G(x) = exp(-e2 / c) G(x), as m = 2: an answer in A costs e2 / c.
        Hence P' >= exp(-e1 - e2) P, for every ordered pair of neighbours. Monotonic values either all rise, and
        q' >= q makes the step in (iii) at most s; or all fall, and with z left as it is (i) and (ii) are free and the
        step in (iii) is at most s: m = 1. Only the upper tail of the noise enters, which is why exponential noise
        does, with half the variance of Laplace noise of its scale. The numeric answers compose with this.

        The ratio e1 : e2 = 1 : (m c)**(2/3) makes the variance of N - N0 least: (s / (e1 + e2))**2 times
        (1 + (m c)**(2/3))**3. To restart with fresh threshold noise after every positive, at a c-th of epsilon, has
        c**2 (1 + m**(2/3))**3 in its place: the same for c = 1, three times as much for m = 2 and c = 10.

    Parameters
    ----------
    threshold
        A finite number, read as the nearest float64.
    epsilon, sensitivity, monotonic, count, numeric, random
        As for `above_threshold`.

    Attributes
    ----------
    remaining
        How many positives may still come. With none left, `test` answers nothing more.
    tested
        How many values were answered.
    event
        What it costs, from the start: ``Pure(epsilon)``.

    Raises
    ------
    ParameterError
        A parameter is not as for `above_threshold`.

    Notes
    -----
    For a value at a distance d above the threshold, with b0 and b the scales of N0 and N, "above" has the probability
    1 - exp(-d / b0) b0 / (b0 + b); for d below it exp(-d / b) b / (b0 + b). Comparisons are certified: the
    threshold's one word of randomness and the value's are read as far as it takes. The object belongs to one process:
    it refuses to work after a fork, and to be copied or pickled, since two that know the same threshold noise would
    answer twice for one epsilon. A `test` that is interrupted ends it.

    References
    ----------
    Dwork, Naor, Reingold, Rothblum, Vadhan (2009); Lyu, Su, Li (2017), algorithm 7 and section 4.2; Liu, Wang, Liu,
    Li, Chen (2024) for exponential noise.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> alarm = SparseVector(threshold=300, epsilon=1.0, count=2, random=SeededRandom(1))
    >>> alarm.test([3, 1, 4, 900, 5])
    array([False, False, False,  True, False])
    >>> alarm.remaining, alarm.test(12)
    (1, False)
    >>> alarm.test([9, 2, 600, 800, 700])
    array([False, False,  True])
    >>> alarm.test([1000]).size, alarm.tested, alarm.event
    (0, 9, Pure(epsilon=1.0))

    """

    def __init__(
        self,
        threshold: Annotated[Real, THRESHOLD],
        epsilon: Epsilon,
        sensitivity: Sensitivity = 1.0,
        monotonic: Monotonic = False,
        *,
        count: Count = 1,
        numeric: Numeric = None,
        random: Random = None,
    ) -> None:
        noise = calibrate(epsilon, sensitivity, monotonic, count, numeric)
        thresholds = np.array([THRESHOLD.read("threshold", threshold)])
        self._source = random_source(random)
        self._runs = Runs(noise, thresholds, self._source)
        self._answer_scale = noise.answer_scale
        self.remaining, self.tested = int(count), 0
        self.event = Pure(round_up_written(noise.epsilon))
        self._interrupted = False
        self._turns = Turns(_FORKED)

    def test(
        self, values: Values, *, most: Annotated[int | None, _MOST] = None
    ) -> Any:  # it depends on how the object was made, and on whether values are a column
        """Answer for each value, in order, whether it lies above; stop after the last positive that may be reported.

        Parameters
        ----------
        values
            A column as for `above_threshold`, or a number. The answer for a null is False, and costs nothing.
        most
            None, or how many positives this call may report: with 1 it ends with the first, and no later value is
            tested.

        Returns
        -------
        numpy.ndarray, bool or tuple
            A bool for every value up to where the object stopped: shorter than the column, where it did. With
            ``numeric`` a tuple of this and the numeric answers, one for each True. For a number a bool, which is
            False once the object has stopped, and with ``numeric`` beside it a number or None.

        Raises
        ------
        LedgerError
            The object was made in another process, or interrupted.
        ColumnError, DataError
            The values are of another kind or type, or one is NaN or infinite; none was tested.

        """
        at_most = _MOST.read_optional("most", most)
        if dimensions(values) > 1:
            raise ColumnError("values must be a number or a column of one dimension; test one column after the other")
        column = borrow_saturating(values, "values")
        if self._answer_scale is not None:
            check_answers(column, self._answer_scale)
        dense, where = without_nulls(column)
        refuse_not_finite(dense, where)
        with self._turns.turn():
            if self._interrupted:
                raise LedgerError("a test of this sparse vector was interrupted, which ended it; make another one")
            # Words are used up and positives found before they are reported.
            self._interrupted = True
            stopped = self.remaining == 0
            left = self.remaining if at_most is None else min(self.remaining, at_most)
            found: list[NDArray[np.int64]] = []
            for start in range(0, dense.length, CHUNK):
                if left == 0:
                    break
                block = dense.block(start, min(start + CHUNK, dense.length))
                places = np.full((1, min(left, block.size)), -1, np.int64)
                many = np.zeros(1, np.int64)
                self._runs.scan(0, block, start, many, places)
                found.append(places[0, : many[0]])
                self.remaining -= int(many[0])
                left -= int(many[0])
            chosen = np.concatenate(found) if found else np.empty(0, np.int64)
            answers = None
            if self._answer_scale is not None:
                answers = measure_again(dense, chosen, self._answer_scale, self._source)
            places_given = chosen if where is None else where[chosen]
            length = column.length
            if left == 0:
                length = 0 if stopped else int(places_given[-1]) + 1
            above = np.zeros(length, np.bool_)
            above[places_given] = True
            self.tested += length if where is None else int(np.searchsorted(where, length))
            self._turns.refuse_other_process()
            self._interrupted = False
        if dimensions(values) == 0:
            one = bool(above.any())
            return one if answers is None else (one, answers[0].item() if one else None)
        return above if answers is None else (above, answers)

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a sparse vector cannot be pickled or copied: each copy would answer for the same epsilon")

    def _facts(self) -> Facts:
        return [("remaining", self.remaining), ("tested", self.tested), ("event", self.event)]
