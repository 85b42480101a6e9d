"""dpfast attack: what too little noise gives away, on a user's own file."""

from __future__ import annotations

import polars as pl
import pytest

from .conftest import one_line


@pytest.fixture
def people(folder):
    """Return a folder with a table of people, some of them without an answer."""
    answers = ["yes" if row % 3 == 0 else None if row % 50 == 1 else "no" for row in range(300)]
    frame = pl.DataFrame({"smoker": answers, "sick": [row % 4 == 0 for row in range(300)], "age": range(300)})
    listed = pl.Series("list", [[1]] * 300)
    more = frame.with_columns(pl.col("sick").cast(pl.Int8).alias("ill"), share=pl.col("age") / 7, list=listed)
    more.write_parquet("people.parquet")
    frame.write_csv("people.csv")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["people.parquet", "--column", "smoker", "--value", "yes"],
        ["people.parquet", "--column", "sick"],
        ["people.parquet", "--column", "ill"],
        ["people.csv", "--column", "smoker", "--value", "yes", "--schema", "smoker=str"],
    ],
)
def test_little_noise_gives_everything_away_and_much_nothing(people, run, arguments):
    """False-failure rate below 1e-9: with noise of 0.7 an error is 6 deviations away, and it takes three."""
    result = run("attack", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.strip() for line in result.stdout.splitlines()]
    shares = [float(line.split()[-1].rstrip("%")) for line in lines if line.endswith("%")]
    assert len(shares) == 8
    assert shares[0] > 99
    assert max(shares[5:]) < 80
    assert "800 counts over random subsets of 200 rows" in result.stdout
    assert "asks for Laplace noise of scale 800." in result.stdout


def test_a_picture(people, run):
    pytest.importorskip("vl_convert")
    asked = ["attack", "people.parquet", "--column", "sick", "--rows", "50", "--plot", "attack.png"]
    result = run(*asked)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "wrote attack.png")
    assert (people / "attack.png").read_bytes().startswith(b"\x89PNG")
    assert "--overwrite" in one_line(run(*asked))
    assert run(*asked, "--overwrite").exit_code == 0
    assert not list(people.glob(".*.part.png"))


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["people.parquet"], 2, "missing option '--column'"),
        (
            ["people.parquet", "--column", "smoke"],
            2,
            "there is no column 'smoke', only smoker, sick, age, ill, share, list",
        ),
        (["people.parquet", "--column", "smoker"], 2, "--value is missing: 'smoker' is String"),
        (["people.parquet", "--column", "age"], 2, "write for example --value 1"),
        (
            ["people.parquet", "--column", "smoker", "--value", "maybe"],
            2,
            "nothing to find; choose another --column or --value",
        ),
        (["people.parquet", "--column", "sick", "--rows", "1"], 2, "--rows"),
        (["people.parquet", "--column", "share"], 2, "write for example --value 1"),
        (["people.parquet", "--column", "list", "--value", "1"], 2, "choose a column of plain values"),
        (["nobody.parquet", "--column", "sick"], 4, "nobody.parquet"),
        (["people.parquet", "--column", "sick", "--plot", "attack.txt"], 2, "--plot 'attack.txt' must end in one of"),
    ],
)
def test_mistakes(people, run, arguments, code, told):
    result = run("attack", *arguments)
    assert result.exit_code == code
    assert told in one_line(result)


def test_an_empty_file(folder, run):
    pl.DataFrame(schema={"sick": pl.Boolean}).write_parquet("empty.parquet")
    assert "fewer than two rows" in one_line(run("attack", "empty.parquet", "--column", "sick"))
