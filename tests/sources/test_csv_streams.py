"""CSV that comes once: the same rows as of a file, whatever the pieces, and the command line's standard input."""

from __future__ import annotations

import gzip
import random
import traceback
from io import BytesIO

import polars as pl
import pytest
from click.testing import CliRunner

import dpfast as dpf
from dpfast.aggregation import csv_streams, open_source
from dpfast.aggregation.csv_streams import CsvStream
from dpfast.cli import main
from dpfast.errors import ColumnError, DpfastError, ParameterError

from .kinds import frame

DTYPES = {"k": pl.String, "x": pl.Int64, "s": pl.Categorical}
FIELDS = ["a", "b", "", '"q,\n""x"', '"with\r\nline"', "ü", "12", '""', '"\n"']


def text(seed: int) -> str:
    """Return CSV with quoted line ends and records that lack fields or have too many."""
    draw = random.Random(seed)
    line_end = draw.choice(["\n", "\r\n"])
    records = ['k,x,"y\nz",s']
    for _ in range(draw.randint(0, 20)):
        fields = [draw.choice(FIELDS), str(draw.randint(-5, 5)), draw.choice(FIELDS), draw.choice(FIELDS)]
        records.append(",".join(fields) if draw.random() < 0.9 else draw.choice(["", "a", "a,1", "a,b,c,d,e,f"]))
    return line_end.join(records) + draw.choice(["", line_end])


@pytest.mark.parametrize("piece", [1, 7, 64, 1 << 24])
def test_rows_are_those_of_a_file(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(csv_streams, "_PIECE", piece)
    for seed in range(40):
        content = text(seed).encode()
        (tmp_path / "a.csv").write_bytes(content)
        expected = open_source(tmp_path / "a.csv", schema=DTYPES).frame.collect()
        found = open_source(CsvStream(BytesIO(content), DTYPES)).frame.collect()
        assert found.schema == expected.schema
        assert found.rows() == expected.rows(), seed


def test_no_row_is_read_before_the_charge():
    class Counted(BytesIO):
        asked = 0

        def read(self, size=-1):
            self.asked += 1
            return super().read(10)

    opened = Counted(b"k,x,s\n" + b"a,1,c\n" * 100)
    source = open_source(CsvStream(opened, DTYPES))
    source.check()
    assert opened.asked == 1
    assert source.frame.collect().height == 100


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n"])
def test_nothing_at_all_is_refused(content):
    with pytest.raises(ParameterError, match="CSV on standard input that begins with the names of its columns"):
        CsvStream(BytesIO(content), DTYPES)


def test_what_is_compressed_or_lacks_a_column_is_refused():
    plain = b"k,x,s\na,1,c\n"
    with pytest.raises(ParameterError, match="compressed; decompress it before: gzip -dc FILE"):
        CsvStream(BytesIO(gzip.compress(plain)), DTYPES)
    with pytest.raises(ColumnError, match=r"schema names the column 'none'.*it has \['k', 'x', 's'\]"):
        CsvStream(BytesIO(plain), {"none": pl.String})
    for schema in (None, {}, {"k": pl.List(pl.Int8)}):
        with pytest.raises((ColumnError, ParameterError)):
            CsvStream(BytesIO(plain), schema)


def test_a_pipe_that_breaks_is_told_in_fixed_words():
    class Broken(BytesIO):
        def read(self, size=-1):
            if self.tell():
                raise OSError("SECRET")
            return super().read(8)

    source = CsvStream(Broken(b"k,x,s\na,1,c\n"), DTYPES)
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(DpfastError, match="cannot be read to its end") as caught:
        dpf.release(source, n=dpf.count(), privacy_unit="row", epsilon=0.5, dataset="d", ledger=ledger)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))
    assert ledger.spent.epsilon == 0.5


@pytest.fixture
def run(tmp_path):
    def run(*arguments: str, content: bytes = frame().write_csv().encode()):
        options = ["--epsilon", "1", "--delta", "1e-6", "--schema", "k=str,x=int64,u=int64", "--out", "-"]
        options += ["--ledger", str(tmp_path / "l.db"), "--budget-epsilon", "9", "--budget-delta", "1e-5"]
        return CliRunner().invoke(main, [*arguments, *options], input=content)

    return run


@pytest.mark.parametrize("keys", [True, False])
@pytest.mark.parametrize("unit", [[], ["--unit", "u", "--max-groups", "2", "--max-rows", "9"]])
def test_standard_input(run, tmp_path, keys, unit):
    (tmp_path / "keys.csv").write_text("k\na\nb\n")
    public = ["--keys", str(tmp_path / "keys.csv")] if keys else []
    done = run("release", "-", "--by", "k", "--count", "--dataset", "d", *public, *unit)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("k,count,count_scale")
    with dpf.Ledger.open(tmp_path / "l.db") as ledger:
        assert ledger.identity.dataset == "d"


@pytest.mark.parametrize(
    ("arguments", "content", "words"),
    [
        (["-"], b"k,x,u\n", "--dataset is needed where the data come on standard input"),
        (["-", "a.csv", "--dataset", "d"], b"k,x,u\n", "FILES - is CSV on standard input, which is read alone"),
        (["-", "-", "--dataset", "d"], b"k,x,u\n", "which is read alone"),
        (["-", "--dataset", "d"], b"", "CSV on standard input that begins with the names of its columns"),
        (["-", "--dataset", "d"], b"k,u\n", "--schema names the column 'x'"),
        (["-", "--dataset", "d"], gzip.compress(b"k,x,u\n", mtime=0), "was compressed; decompress it before"),
    ],
    ids=["no name", "another file", "twice", "empty", "no column", "compressed"],
)
def test_standard_input_that_does_not_serve(run, tmp_path, arguments, content, words):
    done = run("release", *arguments, "--count", content=content)
    assert done.exit_code == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "l.db").exists()
    assert run("explain", *arguments, "--count", content=content).exit_code == 2


def test_records_are_made_of_standard_input(run):
    made = run("synthesize", "-", "--dataset", "d", "--columns", "k", "--values", "k:a,b")
    assert made.exit_code == 2 or made.stdout.startswith("k\n"), made.output
