"""Pseudo-marginals as users meet them: what they answer and refuse, and that they say everywhere what they are."""

from __future__ import annotations

import itertools
import math
import re
import sys
import tracemalloc
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from benchmarks.census import SIZES, make_records
from dpfast import progress
from dpfast.errors import ParameterError
from dpfast.testing import SeededRandom

DOMAIN = dpf.Domain({"a": 3, "b": ["x", "y"], "c": 4, "d": 1})
PAIRS = [("a", "b"), ("b", "c"), ("a", "c")]
LABEL = "may belong to no table"


class Words(HTMLParser):
    """The words of a page."""

    def __init__(self):
        super().__init__()
        self.said = []

    def handle_data(self, data):
        self.said.append(data)


def measured(sets=PAIRS, seed=1, scale=8.0, domain=DOMAIN, rows=1_000):
    """Return the exact counts of a made-up table, and noisy ones."""
    generator = np.random.default_rng(seed)
    table = generator.multinomial(rows, generator.dirichlet(np.full(domain.cells, 0.3))).reshape(domain.shape)
    exact, noisy = {}, {}
    for names in sets:
        places = [domain.names.index(name) for name in names]
        others = tuple(axis for axis in range(len(domain.shape)) if axis not in places)
        exact[names] = table.sum(axis=others).transpose(np.argsort(np.argsort(places)))
        noisy[names] = exact[names] + generator.normal(0.0, scale, exact[names].shape)
    return exact, noisy


@pytest.fixture
def fitted():
    return dpf.fit_marginals(DOMAIN, measured()[1], 8.0, total=1_000)


def test_a_terminal_hears_how_far_a_long_fit_has_come_and_a_pipe_does_not(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_QUIET", 0.0)
    noisy = measured()[1]
    dpf.fit_marginals(DOMAIN, noisy, 8.0, total=1_000)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    dpf.fit_marginals(DOMAIN, noisy, 8.0, total=1_000)
    said = capsys.readouterr().err
    assert said.index("fitting marginals by least squares, step 0 of at most 2,000") < said.index("by entropy, step 1 ")


@pytest.mark.parametrize("method", ["entropy", "least_squares"])
@pytest.mark.parametrize("seed", range(4))
def test_measured_marginals_err_less_than_their_noise(method, seed):
    exact, noisy = measured(seed=seed)
    made = dpf.fit_marginals(DOMAIN, noisy, 8.0, total=1_000, method=method)
    before = sum(np.square(noisy[names] - exact[names]).sum() for names in PAIRS)
    after = sum(np.square(made.marginal(names) - exact[names]).sum() for names in PAIRS)
    assert after < before


def test_parts_of_a_marginal_are_its_sums_in_the_order_asked(fitted):
    table = fitted.marginal(["c", "a"])
    assert table.shape == (4, 3)
    np.testing.assert_array_equal(table, fitted.marginal(("a", "c")).T)
    for name, axis in (("c", 1), ("a", 0)):
        np.testing.assert_allclose(fitted.marginal([name]), table.sum(axis=axis), atol=fitted.residual + 1e-9)
    frame = fitted.to_frame(["c", "a"])
    assert frame.columns == ["c", "a", "count"]
    np.testing.assert_array_equal(frame["count"].to_numpy(), table.reshape(-1))


def test_shared_columns_agree_within_the_residual(fitted):
    for one, other in itertools.combinations(PAIRS, 2):
        (name,) = set(one) & set(other)
        sums = [fitted.marginal(held).sum(axis=1 - held.index(name)) for held in (one, other)]
        assert np.abs(sums[0] - sums[1]).max() <= fitted.residual + 1e-9
        assert min(fitted.marginal(held).min() for held in (one, other)) >= 0.0


def test_what_no_marginal_has_together_is_refused_and_the_error_says_what_is_answered(fitted):
    with pytest.raises(ParameterError, match=r"columns must be columns that one marginal has together") as caught:
        fitted.marginal(["a", "b", "c"])
    assert "('a', 'b')" in str(caught.value)
    assert "domain.records" in str(caught.value)
    with pytest.raises(ParameterError, match="one marginal has together"):
        fitted.marginal(["d"])


def test_it_says_everywhere_that_it_is_approximate(fitted, tmp_path):
    assert fitted.approximate
    assert LABEL in fitted.guarantee
    assert "approximate" in fitted.guarantee
    assert LABEL in repr(fitted)
    assert LABEL in fitted._repr_html_()
    assert LABEL in fitted.explain()
    page = Words()
    page.feed(fitted.report(tmp_path / "page.html").read_text())
    text = " ".join(" ".join(page.said).split())
    assert LABEL in text
    assert "Approximate marginals" in text
    assert "may be no table" in dpf.fit_marginals.__doc__
    assert LABEL in (type(fitted).__doc__ or "") + fitted.guarantee
    docs = Path(__file__).parents[2] / "docs"
    assert LABEL in re.sub(r"\s+", " ", (docs / "how-to" / "synthetic-data.md").read_text())
    assert "PseudoMarginals" in (docs / "api" / "histograms.md").read_text()


def test_the_residual_stands_beside_the_label(fitted, tmp_path):
    shown = f"{fitted.residual:.3g}"
    assert f"residual {fitted.residual:.4g}" in repr(fitted)
    assert f"{fitted.residual:.4g}" in fitted.explain()
    assert shown in fitted.report(tmp_path / "page.html").read_text()


def test_marginals_of_a_tree_belong_to_a_table():
    made = dpf.fit_marginals(DOMAIN, measured([("a", "b"), ("b", "c"), ("c",)])[1], 8.0)
    assert not made.approximate
    assert LABEL not in repr(made) + made.explain()
    assert made.tree_megabytes == (3 * 2 + 2 * 4 + 1) * 8 / 1e6


def test_counts_that_agree_may_belong_to_no_table():
    """The example of Wainwright and Jordan: a is b, b is c, and a is not c. No record is so, and all pairs agree."""
    domain = dpf.Domain({"a": 2, "b": 2, "c": 2})
    alike = np.diag([50.0, 50.0])
    counts = {("a", "b"): alike, ("b", "c"): alike, ("a", "c"): alike[::-1]}
    made = dpf.fit_marginals(domain, counts, 1e-3, method="least_squares")
    assert made.approximate
    for names, own in counts.items():
        np.testing.assert_allclose(made.marginal(names), own, atol=0.01)


def test_nothing_is_charged_and_the_same_comes_out_again():
    frame = pl.DataFrame({"a": [0, 1, 2] * 300, "b": ["x", "y", "x"] * 300, "c": [0, 1, 3] * 300})
    domain = dpf.Domain({"a": 3, "b": ["x", "y"], "c": 4})
    ledger = dpf.Ledger(epsilon=1.0, delta=1e-9)
    release = dpf.release_marginals(frame, domain, epsilon=0.5, delta=1e-9, ledger=ledger)
    before = ledger.history().height, ledger.spent.epsilon
    one, other = release.fit(), release.fit()
    domain.records(one, 10)
    assert (ledger.history().height, ledger.spent.epsilon) == before
    assert one.spent == release.spent
    assert one.total == max(release.total, 0.0)
    for names in one.columns:
        np.testing.assert_array_equal(one.marginal(names), other.marginal(names))
        assert one.marginal(names).min() >= 0.0


def test_records_come_from_a_tree_within_the_megabytes():
    exact, noisy = measured(scale=1.0)
    small = dpf.fit_marginals(DOMAIN, noisy, 1.0, total=1_000, max_megabytes=0.01)
    assert len(small.drawn_from) == 3
    drawn = DOMAIN.records(small, 20_000, random=SeededRandom(1))
    assert drawn.columns == list(DOMAIN.names)
    found = np.zeros((3, 2))
    np.add.at(found, (drawn["a"].to_numpy(), (drawn["b"] == "y").to_numpy().astype(int)), 1)
    assert np.abs(found / 20_000 - exact["a", "b"] / 1_000).sum() / 2 < 0.03
    assert dpf.fit_marginals(DOMAIN, noisy, 1.0, total=7).draw_codes().shape == (4, 7)


def test_without_room_for_all_pairs_some_are_left_out_and_without_room_for_columns_records_are_refused():
    domain = dpf.Domain({"a": 40, "b": 40, "c": 40})
    _, noisy = measured(domain=domain)
    made = dpf.fit_marginals(domain, noisy, 8.0, total=1_000, max_megabytes=0.03)
    assert 1 <= len(made.drawn_from) <= 2
    assert domain.records(made, 10).height == 10
    wide = dpf.Domain({"a": 2_000})
    lone = dpf.fit_marginals(wide, {("a",): np.ones(2_000)}, 1.0, max_megabytes=0.01)
    assert lone.marginal(["a"]).shape == (2_000,)
    with pytest.raises(ParameterError, match="max_megabytes must be enough for the single columns"):
        lone.draw_codes(5)


@pytest.mark.parametrize("total", [0, -30.0, None])
@pytest.mark.parametrize("method", ["entropy", "least_squares"])
def test_of_no_records_all_counts_are_0(total, method):
    """Noise may take the number of records below 0: that is no error, as it would depend on noise."""
    low = {names: np.full_like(counts, -5.0) for names, counts in measured()[1].items()}
    made = dpf.fit_marginals(DOMAIN, low, 8.0, total=total, method=method)
    assert made.total == made.residual == 0.0
    assert all(made.marginal(names).max() == 0.0 for names in PAIRS)
    assert made.draw_codes().shape == (4, 0)
    assert made.draw_codes(5).shape == (4, 5)


@pytest.mark.parametrize("method", ["entropy", "least_squares"])
def test_one_column_is_a_distribution(method):
    domain = dpf.Domain({"a": 3})
    made = dpf.fit_marginals(domain, {("a",): [10.0, -4.0, 7.0]}, [2.0], total=15, method=method)
    assert not made.approximate
    assert made.marginal(["a"]).sum() == pytest.approx(15.0, abs=made.residual + 1e-9)
    if method == "least_squares":
        np.testing.assert_allclose(made.marginal(["a"]), [9.0, 0.0, 6.0], atol=1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["entropy", "least_squares"])
def test_noise_that_leaves_no_count_gives_finite_ones(method):
    """Of a total far below the noise the first fit may end at a table of zeros, whose shares nobody knows."""
    domain, much = dpf.Domain({"a": 2, "b": 2}), 1e6
    noisy = {("a", "b"): np.array([[-much, much], [much, -3 * much]]), ("a",): np.array([-much, -much])}
    made = dpf.fit_marginals(domain, noisy, much, total=5, method=method)
    assert math.isfinite(made.residual)
    for names in noisy:
        table = made.marginal(names)
        assert np.isfinite(table).all()
        assert table.min() >= 0.0


@pytest.mark.parametrize("deviations", [1e-9, 1e15, [1e-9, 1.0, 1e15]])
@pytest.mark.parametrize("method", ["entropy", "least_squares"])
def test_odd_noise_gives_finite_counts_and_an_honest_residual(method, deviations):
    made = dpf.fit_marginals(DOMAIN, measured()[1], deviations, method=method)
    tables = [made.marginal(names) for names in PAIRS]
    assert all(np.isfinite(table).all() and table.min() >= 0.0 for table in tables)
    apart = np.abs(tables[0].sum(axis=0) - tables[1].sum(axis=1)).max()
    assert apart <= made.residual * (1 + 1e-9) + 1e-9
    assert math.isfinite(made.residual)


@pytest.mark.parametrize(
    ("marginals", "said"),
    [
        ({}, "a dictionary of counts"),
        ({("a",): [1.0, math.nan, 2.0]}, "NaN"),
        ({("a",): np.ma.masked_array([1, 2, 3], [True, False, False])}, "a count for every cell"),
        ({("a",): pl.Series([1, None, 3])}, "a count for every cell"),
        ({("a",): []}, "of the domain's shape"),
        ({("a", "b"): np.ones((2, 3))}, "of the domain's shape"),
        ({("a", "a"): np.ones((3, 3))}, "each set of columns once"),
        ({("a", "b"): np.ones((3, 2)), ("b", "a"): np.ones((2, 3))}, "the mean of both"),
        ({(): 5.0}, "a dictionary of counts"),
        ({("z",): [1.0]}, "a dictionary of counts"),
    ],
)
def test_marginals_that_are_none_are_refused(marginals, said):
    with pytest.raises(ParameterError, match=said):
        dpf.fit_marginals(DOMAIN, marginals, 1.0)


def test_too_many_shared_sets_are_refused_before_anything_is_fitted():
    domain = dpf.Domain({f"x{place}": 1 for place in range(24)})
    sets = itertools.islice(itertools.combinations(domain.names, 6), 0, None, 29)
    with pytest.raises(ParameterError, match="that share at most"):
        dpf.fit_marginals(domain, {held: np.ones((1,) * 6) for held in sets}, 1.0)


def test_all_pairs_of_a_census_are_fitted_though_a_tree_would_have_10_to_the_17_cells():
    domain = dpf.Domain({f"a{place}": size for place, size in enumerate(SIZES)})
    codes = make_records(5_000).astype(np.int64)
    generator, exact, noisy = np.random.default_rng(3), {}, {}
    for one, other in itertools.combinations(range(len(SIZES)), 2):
        cells = np.bincount(codes[one] * SIZES[other] + codes[other], minlength=SIZES[one] * SIZES[other])
        names = (domain.names[one], domain.names[other])
        exact[names] = cells.reshape(SIZES[one], SIZES[other])
        noisy[names] = exact[names] + generator.normal(0.0, 5.0, exact[names].shape)
    made = dpf.fit_marginals(domain, noisy, 5.0)
    assert made.approximate
    assert made.tree_megabytes > 1e11
    assert "more than" in made.explain()
    assert made.residual <= 1e-5 * made.total
    before, after = (
        sum(np.abs(counts[names] - exact[names]).sum() for names in exact)
        for counts in (noisy, {names: made.marginal(names) for names in exact})
    )
    assert after < before / 3


@pytest.mark.parametrize("method", ["entropy", "least_squares"])
def test_a_fit_takes_about_twice_the_memory_of_the_marginals(method):
    """Of all arrays of NumPy, at their peak: two tables of each marginal, and few marginals beside."""
    domain = dpf.Domain({f"x{place}": 150 for place in range(6)})
    generator = np.random.default_rng(1)
    counts = {names: generator.normal(3.0, 5.0, (150, 150)) for names in itertools.combinations(domain.names, 2)}
    dpf.fit_marginals(domain, counts, 5.0, method=method)  # compiles
    tracemalloc.start()
    try:
        made = dpf.fit_marginals(domain, counts, 5.0, method=method)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    held = sum(one.nbytes for one in counts.values())
    assert made.approximate
    assert peak <= 2.5 * held
