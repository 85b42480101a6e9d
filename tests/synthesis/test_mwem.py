"""dpf.mwem from outside: errors, repeatability, what comes back, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import DataError, ParameterError
from dpfast.synthesis.cell_weights import LARGEST_DOMAIN
from dpfast.testing import SeededRandom

SHAPE = (3, 2, 4, 2)
PAIRS = dpf.workloads.marginals(SHAPE, 2)


@pytest.fixture(scope="module")
def table():
    """Counts of 20,000 records whose attributes hang together."""
    generator = np.random.default_rng(11)
    latent = generator.normal(size=20_000)
    codes = [
        np.searchsorted(np.linspace(-1, 1, size - 1), latent + generator.normal(0, 0.7, latent.size)) for size in SHAPE
    ]
    return np.bincount(np.ravel_multi_index(codes, SHAPE), minlength=48).reshape(SHAPE)


def error(table, workload, seed, **given) -> float:
    estimate = dpf.mwem(table, workload, **given, random=SeededRandom(seed))
    return float(np.abs(estimate.answers - workload.answer(table)).mean())


@pytest.mark.statistical
@pytest.mark.parametrize("selection", ["exponential", "permute_and_flip"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_errors_vanish_as_epsilon_grows(table, neighbors, selection, seed):
    """False-failure rate below 1e-9.

    All six marginals are measured; at epsilon 10**5 the noise's scale is below 1e-3, so that every noisy count is
    exact but with probability e**-1000. At epsilon 0.0005 the noise's scale is above 15,000: a mean error below 5 over
    44 queries takes more than ten noisy counts within 220, which each is with a probability below 0.015.
    """
    given = {"rounds": 6, "neighbors": neighbors, "selection": selection, "replays": 3000}
    assert error(table, PAIRS, seed, epsilon=1e5, **given) < 2.0
    assert error(table, PAIRS, seed, epsilon=5e-4, **given) > 5.0


@pytest.mark.statistical
def test_errors_of_ranges_vanish_too_and_by_rho(table, seed):
    """False-failure rate below 1e-9, as above: twenty queries of twenty are measured."""
    lower = np.arange(20)
    workload = dpf.workloads.ranges(48, lower, lower + 1 + lower % 7)
    assert error(table.reshape(-1), workload, seed, epsilon=1e6, rounds=20, replays=3000) < 2.0
    assert error(table.reshape(-1), workload, seed, rho=1e5, rounds=20, replays=3000) < 2.0


def test_one_seed_gives_one_estimate_whatever_the_threads():
    histogram = np.arange(64) * 10
    workload = dpf.workloads.all_range(64)
    runs = [
        dpf.mwem(histogram, workload, epsilon=1.0, rounds=5, random=SeededRandom(5), threads=threads)
        for threads in (1, 2, None)
    ]
    for other in runs[1:]:
        assert np.array_equal(other.histogram, runs[0].histogram)
        assert other.rounds.equals(runs[0].rounds)
    fresh = [dpf.mwem(histogram, workload, epsilon=1.0, rounds=5).histogram for _ in range(2)]
    assert not np.array_equal(*fresh)


def test_rounds_tell_what_was_measured(table):
    estimate = dpf.mwem(table, PAIRS, epsilon=1.0, rounds=4)
    rounds = estimate.rounds
    assert rounds["round"].to_list() == [1, 2, 3, 4]
    assert rounds["group"].n_unique() == 4
    for group, query, queries, answers in rounds.select("group", "query", "queries", "answers").iter_rows():
        assert query == PAIRS.groups[group]
        assert queries == len(answers) == PAIRS.groups[group + 1] - PAIRS.groups[group]
    assert (rounds["error95"] > 0).all()
    assert dpf.mwem(table, PAIRS, epsilon=1.0, rounds=99).rounds.height == len(PAIRS.attributes)
    assert dpf.mwem(table, PAIRS, epsilon=1.0, rounds=9, repeat=True).rounds.height == 9


@pytest.mark.parametrize(
    "workload",
    [
        dpf.workloads.identity(SHAPE),
        dpf.workloads.total(SHAPE),
        dpf.workloads.marginals(SHAPE, attributes=[(), (0,), (1, 2, 3)]),
        dpf.workloads.matrix(np.random.default_rng(1).uniform(-1, 1, (9, 48)), SHAPE),
        dpf.workloads.matrix(np.random.default_rng(1).integers(-1, 2, (9, 48)), SHAPE),
        dpf.workloads.matrix(np.random.default_rng(1).integers(0, 2, (9, 48)) > 0, SHAPE),
        dpf.workloads.random_rectangles(SHAPE, 9, 1),
        dpf.workloads.kronecker(dpf.workloads.prefix(3), dpf.workloads.identity((2, 4, 2))),
        dpf.workloads.kronecker(dpf.workloads.matrix([[0.5, 0.1, 0.7]]), dpf.workloads.identity((2, 4, 2))),
        dpf.workloads.stack(dpf.workloads.marginals(SHAPE, 1), dpf.workloads.random_rectangles(SHAPE, 5, 1)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_every_kind_of_workload_serves(table, workload, neighbors):
    estimate = dpf.mwem(table, workload, epsilon=50.0, rounds=3, neighbors=neighbors)
    assert estimate.histogram.shape == SHAPE
    assert (estimate.histogram >= 0).all()
    assert estimate.answers == pytest.approx(workload.answer(estimate.histogram))
    if neighbors == "replace":
        assert estimate.histogram.sum() == pytest.approx(table.sum(), rel=0.02)


def test_an_empty_histogram_and_a_public_total(table):
    assert np.isfinite(dpf.mwem(np.zeros(SHAPE, int), PAIRS, epsilon=1.0, rounds=3).answers).all()
    public = dpf.mwem(table, PAIRS, epsilon=1.0, rounds=3, total=20_000)
    assert public.histogram.sum() == pytest.approx(20_000, rel=1e-6)


def test_a_prior_is_where_it_starts(table):
    """What the measured queries do not tell apart keeps the prior's proportions."""
    prior = np.linspace(1.0, 2.0, 48).reshape(SHAPE)
    workload = dpf.workloads.marginals(SHAPE, attributes=[(0,)])
    estimate = dpf.mwem(table, workload, epsilon=1.0, rounds=1, prior=prior).histogram
    ratios = (estimate / prior).reshape(3, -1)
    assert ratios == pytest.approx(np.broadcast_to(ratios[:, :1], ratios.shape))


def test_it_ends_early_where_progress_says_so(table):
    seen = []
    estimate = dpf.mwem(table, PAIRS, epsilon=1.0, rounds=5, progress=lambda done: seen.append(done) or done < 2)
    assert (seen, estimate.complete, estimate.rounds.height) == ([1, 2], False, 2)
    assert estimate.spent.epsilon == 1.0
    assert "ended early" in repr(estimate)


def test_records_have_every_cells_share(table):
    estimate = dpf.mwem(table, PAIRS, epsilon=2.0, rounds=4)
    values = {"part": ["a", "b", "c"], "size": pl.Series([1.5, 2.5, 4.0, 8.0])}
    frame = estimate.to_frame(5_000, columns=["part", "new", "size", "sex"], values=values)
    assert frame.height == 5_000
    assert frame.schema == {"part": pl.String, "new": pl.Int64, "size": pl.Float64, "sex": pl.Int64}
    counts = frame.group_by("part", "new", "size", "sex").len()
    share = 5_000 / estimate.histogram.sum()
    for part, new, size, sex, count in counts.iter_rows():
        cell = estimate.histogram["abc".index(part), new, [1.5, 2.5, 4.0, 8.0].index(size), sex]
        assert abs(count - share * cell) < 1.0
    for start, stop in ((0, 7), (5, 48), (11, 30)):
        drawn = estimate.counts(333).reshape(-1)[start:stop].sum()
        off = abs(drawn - estimate.histogram.reshape(-1)[start:stop].sum() * 333 / estimate.histogram.sum())
        assert off < (1.0 if start == 0 else 2.0), "sums up to a cell stray by less than 1, so others by less than 2"
    assert estimate.to_frame().height == round(estimate.histogram.sum())
    assert estimate.to_frame(0).height == 0
    assert estimate.to_frame(40, random=SeededRandom(2)).equals(estimate.to_frame(40, random=SeededRandom(2)))
    assert not estimate.to_frame(400)["x2"].is_sorted()


@pytest.mark.parametrize(
    "given",
    [
        {"n": -1},
        {"n": 2.5},
        {"columns": ["a", "b"]},
        {"columns": ["a", "a", "b", "c"]},
        {"values": {"x0": [1, 2]}},
        {"values": {"y": [1, 2]}},
    ],
)
def test_records_that_cannot_be(table, given):
    estimate = dpf.mwem(table, PAIRS, epsilon=2.0, rounds=1)
    with pytest.raises(ParameterError):
        estimate.to_frame(**given)


def test_charts(table, tmp_path):
    pytest.importorskip("vl_convert")
    estimate = dpf.mwem(table, PAIRS, epsilon=2.0, rounds=2)
    for name, truth in (("errors.png", table), ("answers.svg", None)):
        estimate.plot(tmp_path / name, truth)
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "epsilon must be given, or else rho"),
        ({"epsilon": 1.0, "rho": 1.0}, "rho must be left out where epsilon is given"),
        ({"epsilon": 1e-18}, "epsilon must be large enough"),
        ({"epsilon": 1.0, "pay": "by_round"}, "pay must be"),
    ],
)
def test_parameters_that_cannot_be(table, given, told):
    with pytest.raises(ParameterError, match=told) as caught:
        dpf.mwem(table, PAIRS, **given)
    assert "\n" not in str(caught.value)


class _Huge(dpf.workloads.Workload):
    """A workload that says how large it is, and nothing else."""

    shape = (LARGEST_DOMAIN, 4)

    def __len__(self):
        return 3

    def answer(self, histogram):
        raise AssertionError("touched")

    transposed = rows = answer
    range = (0.0, 1.0)
    binary = True

    def frame(self):
        raise AssertionError("touched")


@pytest.mark.parametrize(
    ("workload", "told"),
    [
        (_Huge(), "8,589,934,592 bytes"),
        (dpf.workloads.matrix([[0.0, 1.5]]), "coefficients from -1 to 1"),
        (dpf.workloads.matrix([[0.0, -1.5]]), "coefficients from -1 to 1"),
        (dpf.workloads.matrix([[0, 0]]), "queries that ask for something"),
        (dpf.workloads.kronecker(dpf.workloads.prefix(2), dpf.workloads.identity(2**17)), "this takes 34,359,738,368"),
    ],
    ids=str,
)
def test_workloads_that_cannot_be(workload, told):
    with pytest.raises(ParameterError, match=told):
        dpf.mwem(np.ones(2, int), workload, epsilon=1.0)


def test_negative_counts_are_refused_without_a_ledger(table):
    with pytest.raises(DataError, match="counts from 0 to"):
        dpf.mwem(table - 10_000, PAIRS, epsilon=1.0)


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.uint64, np.dtype(">i4")])
def test_integers_of_every_width_serve(kind):
    histogram = np.array([3, 200, 0, 41], kind)
    assert dpf.mwem(histogram, dpf.workloads.prefix(4), epsilon=1.0, rounds=2).complete
    assert dpf.mwem(pl.Series(histogram.astype(np.int64)), dpf.workloads.prefix(4), epsilon=1.0, rounds=2).complete
