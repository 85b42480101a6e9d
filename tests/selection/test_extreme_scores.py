"""Nothing that can be seen depends on how large private values are, nor on how many bids or scores there are.

One table over every public selection: extreme values of each type, few and many, end in an answer. NaN and infinities
alone are refused, in words that say so (Soundness rule 12: these functions have no ledger).
"""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from noise.goodness import rejects

import dpfast as dpf
from dpfast.columns.saturating import borrow_saturating
from dpfast.errors import ColumnError, DataError
from dpfast.mechanisms.selection.noisy_max import report_noisy_max
from dpfast.mechanisms.selection.probabilities import selection_probabilities
from dpfast.testing import SeededRandom

INT64, UINT32 = np.iinfo(np.int64), np.iinfo(np.uint32)
EXTREMES = {
    "int64": [0, 1, -1, 2**53, -(2**53), 2**53 + 1, 2**62, -(2**62), 2**62 + 1, INT64.max, INT64.min, INT64.min + 1],
    "int32": [0, 1, -1, 2**31 - 1, -(2**31)],
    "uint32": [0, 1, UINT32.max, UINT32.max - 1],
    "float64": [0.0, -0.0, 1.0, 5e-324, -5e-324, 2.0**53, -(2.0**62), 2.0**62, 1e300, -1e300, 1.7e308, -1.7e308],
    "float32": [0.0, 1e-45, 3.4e38, -3.4e38, 2.0**62, -1.0],
}


def columns(dtype: str) -> list[np.ndarray]:
    """Return extreme columns of a type: each value alone and with itself, with its neighbours, all of them, often."""
    values = EXTREMES[dtype]
    pairs = [list(pair) for pair in itertools.pairwise([*values, values[0]])]
    alone = [[value] * times for value in values for times in (1, 2)]
    return [np.array(each, dtype) for each in (*alone, *pairs, values, values * 3)]


def sparse(scores, **parameters):
    indices = np.arange(len(scores)) * 7
    return dpf.exponential_sparse(indices, scores, 10**6, 1.0, **parameters)


def stream(scores, **parameters):
    vector = dpf.SparseVector(0.0, 1.0, count=3, **parameters)
    return [vector.test(scores) for _ in range(2)]


def gap(scores, **parameters):
    if len(scores) < 2:
        return None
    winner, lead = dpf.noisy_max_with_gap(scores, 1.0, **parameters)
    assert math.isfinite(lead)
    assert lead >= 0
    return winner


#: Every public selection, from a column of scores to its answer.
SELECTIONS = {
    "exponential": lambda x, **p: dpf.exponential(x, 1.0, **p),
    "exponential, rows": lambda x, **p: dpf.exponential(np.stack([x, x]), 1.0, **p),
    "permute_and_flip": lambda x, **p: dpf.permute_and_flip(x, 1.0, **p),
    "report_noisy_max": lambda x, **p: report_noisy_max(x, 1.0, **p),
    "noisy_top_k": lambda x, **p: dpf.noisy_top_k(x, min(2, len(x)), 1.0, **p),
    "noisy_top_k, all": lambda x, **p: dpf.noisy_top_k(x, len(x), 1.0, **p),
    "noisy_max_with_gap": gap,
    "exponential_draws": lambda x, **p: dpf.exponential_draws(x, 1.0, 3, **p),
    "exponential_draws, sums": lambda x, **p: dpf.exponential_draws(np.tile(x, 257), 1.0, 1, **p),
    "exponential_sparse": sparse,
    "above_threshold": lambda x, **p: dpf.above_threshold(x, 0.0, 1.0, count=3, **p),
    "above_threshold, numeric": lambda x, **p: dpf.above_threshold(x, 0.0, 1.0, count=3, numeric=0.5, **p),
    "SparseVector": stream,
    "quantiles": lambda x, **p: dpf.quantiles(x, [0.25, 0.5], bounds=(-1000, 1000), epsilon=1.0, **p),
}
SLOPES = {"plain": {}, "sensitive": {"sensitivity": 2.0**960}, "steep": {"sensitivity": 2.0**-900}}
#: Every type has kernels of its own, which take long to compile; the narrow ones hold no larger numbers.
every_dtype = pytest.mark.parametrize(
    "dtype",
    [name if name in ("int64", "float64") else pytest.param(name, marks=pytest.mark.long) for name in EXTREMES],
)
every_selection = pytest.mark.parametrize("select", SELECTIONS.values(), ids=SELECTIONS)


@every_selection
@every_dtype
@pytest.mark.parametrize("slope", SLOPES.values(), ids=SLOPES)
def test_every_finite_column_has_an_answer(select, dtype, slope):
    given = {} if select is SELECTIONS["quantiles"] else slope
    if slope is SLOPES["sensitive"] and select is SELECTIONS["above_threshold, numeric"]:
        return  # such answers are refused whatever the values are: their noise would overflow
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scores in columns(dtype):
            select(scores, **given)


@every_selection
def test_integers_beyond_int64_saturate(select):
    """A list has no type that would say so beforehand: one person's number must not end a call for all."""
    if select in (SELECTIONS["quantiles"], SELECTIONS["exponential_draws, sums"], SELECTIONS["exponential, rows"]):
        return
    for scores in ([2**64 - 1, 3], [-(2**80), 2**80], [10**400], [2**63, 0, -1]):
        select(scores)


@every_selection
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_in_these_words(select, bad):
    """All of them say NaN or infinite, and show no score; quantiles have rules for both."""
    if select is SELECTIONS["quantiles"]:
        select(np.array([1.0, bad]))
        return
    with pytest.raises(DataError, match=r"must be finite, but .* NaN or infinite"):
        select(np.array([77.25, bad]))


@every_selection
def test_uint64_is_refused_by_its_type(select):
    """Whatever it holds."""
    messages = set()
    for scores in ([0, 0], [2**64 - 1, 1], [1, 2]):
        with pytest.raises(ColumnError) as error:
            select(np.array(scores, np.uint64))
        messages.add(str(error.value))
    assert len(messages) == 1


@every_dtype
def test_the_best_by_far_wins(dtype):
    """Extreme scores are not confused: with a difference of at least 1,000 the higher one wins but for e**-500."""
    values = EXTREMES[dtype]
    for one in values:
        for other in values:
            if not (one - other >= 1000 and math.isfinite(one - other)):
                continue
            scores = np.array([other, one, other], dtype)
            for name in ("exponential", "permute_and_flip", "report_noisy_max", "noisy_max_with_gap"):
                assert SELECTIONS[name](scores) == 1, (name, one, other)
            assert dpf.noisy_top_k(scores, 1, 1.0).tolist() == [1]
            assert (dpf.exponential_draws(scores, 1.0, 5) == 1).all()


@pytest.mark.parametrize("offset", [0, 2**53, 2**62, -(2**62), INT64.min, INT64.max - 3])
def test_large_integers_are_chosen_by_their_differences(offset):
    """Odds depend on differences alone, also where float64 has no room for them. False-failure rate 1e-12."""
    differences, draws = [0, 1, 3], 20_000
    scores = np.broadcast_to(np.array([offset + each for each in differences], np.int64), (draws, 3))
    odds = selection_probabilities(np.array(differences), 1.0, 1.0)
    counts = np.bincount(dpf.exponential(scores, 1.0), minlength=3)
    assert not rejects([(str(i), int(counts[i]), draws, float(odds[i])) for i in range(3)])


def test_revenues_saturate():
    """Bids are private, and so is how many there are: 1,025 bids at 2**53 are not refused where 1,023 are not."""
    dearest = 2**53
    for bids, expected in ((1023, 1023 * dearest), (1024, INT64.max), (1025, INT64.max), (5000, INT64.max)):
        revenues = dpf.price_revenues(np.full(bids, dearest), [1, dearest // 2, dearest])
        assert revenues.tolist() == [bids, min(bids * (dearest // 2), INT64.max), expected]
        assert dpf.select_price(np.full(bids, dearest), [1, dearest], 1.0, random=SeededRandom(1)) == dearest


def test_saturation_raises_no_sensitivity(seed):
    """min(x, c) moves no further than x, and in the same direction: held on neighbours about the limit."""
    generator = np.random.default_rng(seed)
    for _ in range(30):
        prices = np.unique(generator.integers(2**51, 2**53, 8))
        bids = generator.integers(2**51, 2**53, int(generator.integers(900, 3000)))
        more, other = np.append(bids, generator.integers(0, 2**53)), bids.copy()
        other[0] = generator.integers(0, 2**53)
        before, added, replaced = (dpf.price_revenues(each, prices).tolist() for each in (bids, more, other))
        for price, one, two, three in zip(prices.tolist(), before, added, replaced, strict=True):
            assert one == min(price * int((bids >= price).sum()), INT64.max)
            assert 0 <= two - one <= price
            assert abs(three - one) <= price


@pytest.mark.parametrize("bids", [[], [2**70, 5], [-(2**70)], [INT64.max, INT64.min], [0]])
def test_any_bids_have_a_price(bids):
    assert dpf.select_price(bids, [1, 5, 9], 1.0) in (1, 5, 9)
    if all(INT64.min <= bid <= INT64.max for bid in bids):
        assert dpf.select_price(np.array(bids, np.int64), [1, 5, 9], 1.0) in (1, 5, 9)


@pytest.mark.parametrize("length", [0, 1, 3])
def test_floats_are_refused_as_a_type(length):
    """Not by whether there is one: an empty column of floats is refused as a full one is."""
    with pytest.raises(ColumnError, match=r"^bids must be integers"):
        dpf.select_price(np.ones(length), [1, 2], 1.0)
    with pytest.raises(ColumnError, match=r"^indices must be integers"):
        dpf.exponential_sparse(np.ones(length), np.ones(length), 10, 1.0)


#: Entries of a sparse column, and the scores of a domain of 5 that they amount to.
ENTRIES = {
    "none": ([], [], [0, 0, 0, 0, 0]),
    "beyond the domain": ([1, 5, -1, 2**62], [9, 8, 7, 6], [0, 9, 0, 0, 0]),
    "none within it": ([7, -3], [50, 50], [0, 0, 0, 0, 0]),
    "one twice": ([3, 1, 3], [2, 1, 9], [0, 1, 0, 9, 0]),
    "one twice, below 0": ([3, 1, 3], [-2, 1, -9], [0, 1, 0, -2, 0]),
    "all twice": ([0, 1, 2, 3, 4] * 2, [1, 2, 3, 4, 5, 5, 4, 3, 2, 1], [5, 4, 3, 4, 5]),
    "a null index": (pl.Series([1, None, 2], dtype=pl.Int64), [3, 90, 4], [0, 3, 4, 0, 0]),
    "a null score": ([1, 4, 2], pl.Series([3, None, 4], dtype=pl.Int64), [0, 3, 4, 0, 0]),
    "nulls alone": (pa.array([None], pa.int64()), pa.array([None], pa.float64()), [0, 0, 0, 0, 0]),
    "all of the domain": ([4, 3, 2, 1, 0], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1]),
}


@pytest.mark.parametrize(("indices", "scores", "dense"), ENTRIES.values(), ids=ENTRIES)
def test_entries_are_read_by_a_rule_and_never_refused(indices, scores, dense):
    """Which candidates have a score is private: no error tells of it. False-failure rate 1e-12 each."""
    draws, odds = 400, selection_probabilities(np.array(dense, float), 1.0, 1.0)
    drawn = [dpf.exponential_sparse(indices, scores, 5, 1.0) for _ in range(draws)]
    counts = np.bincount(drawn, minlength=5)
    assert counts.size == 5
    assert not rejects([(str(i), int(counts[i]), draws, float(odds[i])) for i in range(5)])


def test_sparse_integers_saturate_at_2_to_53():
    """The declared rule: plus and minus 2**53; two scores above it are drawn evenly (false-failure rate 2**-198)."""
    drawn = {dpf.exponential_sparse([1, 2], [2**60, 2**62], 10, 1.0) for _ in range(200)}
    assert drawn == {1, 2}
    assert dpf.exponential_sparse([1, 2], [-(2**63), 2**53], 10, 1.0) == 2
    assert {dpf.exponential_sparse([1, 2], [INT64.min, INT64.min], 3, 1.0) for _ in range(20)} == {0}


def test_no_message_counts_the_candidates_that_have_a_score():
    with pytest.raises(ColumnError) as error:
        dpf.exponential_sparse(np.arange(4321), np.ones(1234), 10**5, 1.0)
    assert not {"4321", "1234"} & set(str(error.value).replace(",", " ").split())
    with pytest.raises(DataError) as error:
        dpf.exponential_sparse([3, 4], [1.0, math.nan], 10, 1.0)
    assert not any(digit in str(error.value) for digit in "0123456789")


@pytest.mark.parametrize("values", [[], [INT64.min, INT64.max], [0] * 50, [2**62, 2**62 + 1, -(2**53)]])
def test_modes_and_quantiles_of_releases(values):
    """Extreme rows, and none, end in a release of the same schema."""
    frame = pl.DataFrame({"key": pl.Series([1] * len(values), dtype=pl.Int64), "x": pl.Series(values, dtype=pl.Int64)})
    released = dpf.release(
        frame,
        "key",
        keys=pl.DataFrame({"key": [1, 2]}),
        worst=dpf.mode("x", candidates=[0, INT64.max, INT64.min]),
        half=dpf.quantile("x", 0.5, bounds=(-100, 100)),
        privacy_unit="row",
        epsilon=1.0,
        ledger=dpf.Ledger(epsilon=1.0),
    ).frame
    assert released.shape[0] == 2
    assert set(released["worst"].to_list()) <= {0, INT64.max, INT64.min}
    assert released["half"].is_between(-100, 100).all()


@pytest.mark.parametrize("mechanism", [dpf.laplace, dpf.gaussian])
def test_no_integer_of_a_list_is_refused_and_none_moves_far(mechanism):
    """Beside a float an integer is clamped where float64 is exact: the next one must not move further than by 1."""
    for beyond in (2**70, -(10**400), 2**53 + 1, 2**63):
        assert mechanism([beyond, 1], 1.0).dtype == np.int64
        assert abs(mechanism([beyond, 1.5], 1.0)[0]) < 2**53 + 1000
        assert isinstance(mechanism(beyond, 1.0), int)
    for size in (2**53 - 1, 2**53, 2**60, 2**64, 10**30):
        rows = [borrow_saturating([[number, 0.5]], "values").block(0, 1)[0] for number in (size, size + 1)]
        assert 0 <= rows[1] - rows[0] <= 1
    with pytest.raises(ColumnError):
        mechanism([1.5, True], 1.0)
