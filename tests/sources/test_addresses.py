"""Addresses in stores: read through Polars, checked like files, and no credential is in what is shown."""

from __future__ import annotations

import re
import threading
import traceback
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.addresses import is_address, reason_of_reader, shown_path
from dpfast.aggregation.sources import path_of
from dpfast.errors import DpfastError, ParameterError

from .kinds import KEYS, SCHEMA, WRITERS, frame, refused

SECRET = "SECRET"


class Store(BaseHTTPRequestHandler):
    """Answers as an S3 store of one bucket does: whole objects, parts of them, and lists."""

    folder = Path()
    bucket = ""
    status = 200

    def do_HEAD(self):
        self._answer(send=False)

    def do_GET(self):
        self._answer(send=True)

    def _answer(self, *, send):
        place = urlsplit(self.path)
        asked = parse_qs(place.query)
        key = unquote(place.path).removeprefix(f"/{self.bucket}").lstrip("/")
        if self.status != 200:
            body = f"<Error><Code>Denied</Code><AWSAccessKeyId>{SECRET}</AWSAccessKeyId></Error>"
            self._send(self.status, body.encode(), send=send)
        elif "list-type" in asked:
            prefix = asked.get("prefix", [""])[0]
            found = sorted(path for path in self.folder.rglob("*") if path.is_file())
            names = [(path.relative_to(self.folder).as_posix(), path.stat().st_size) for path in found]
            rows = "".join(
                f"<Contents><Key>{name}</Key><LastModified>2026-11-01T00:00:00.000Z</LastModified>"
                f'<ETag>"{size}"</ETag><Size>{size}</Size></Contents>'
                for name, size in names
                if name.startswith(prefix)
            )
            self._send(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode())
        elif not (self.folder / key).is_file():
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", send=send)
        else:
            self._send_part((self.folder / key).read_bytes(), send=send)

    def _send_part(self, content, *, send):
        wanted = self.headers.get("Range")
        if wanted is None:
            self._send(200, content, send=send)
            return
        low, high = wanted.removeprefix("bytes=").split("-")
        last = len(content) - 1
        first, last = (int(low), min(int(high or last), last)) if low else (max(len(content) - int(high), 0), last)
        self._send(206, content[first : last + 1], f"bytes {first}-{last}/{len(content)}", send=send)

    def _send(self, status, content, part=None, *, send=True):
        self.send_response(status)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Sun, 01 Nov 2026 00:00:00 GMT")
        if part is not None:
            self.send_header("Content-Range", part)
        self.end_headers()
        if send:
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Return the class that answers for the bucket that it names, which holds the test's folder.

    Each test has a bucket of its own: before 2.0 Polars keeps the store of a bucket, whatever its options are.
    """
    handler = type("Here", (Store,), {"folder": tmp_path})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    handler.bucket = f"bucket-{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    settings = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": SECRET,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    handler.settings = settings
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


def schema(suffix: str):
    return SCHEMA if suffix.startswith("csv") else None


@pytest.mark.parametrize("suffix", [suffix for suffix in WRITERS if suffix != "avro"])
@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 9}])
def test_objects_are_released_like_files(tmp_path, store, suffix, unit):
    for i in range(2):
        WRITERS[suffix](frame(start=40 * i), tmp_path / f"day {i}.{suffix}")
    addresses = [f"s3://{store.bucket}/day {i}.{suffix}" for i in range(2)]
    pattern = f"s3://{store.bucket}/day*.{suffix}"
    whose = {"privacy_unit": "row", **unit}
    release = partial(dpf.release, by="k", keys=KEYS, n=dpf.count(), epsilon=1000.0, schema=schema(suffix), **whose)
    ledger = dpf.Ledger(epsilon=10_000.0)
    whole = release(addresses, ledger=ledger, dataset="d").frame
    assert dict(whole.select("k", "n").iter_rows()) == {"a": 53, "b": 27, "none": 0}
    if not suffix.startswith("csv"):
        assert release(pattern, ledger=ledger, dataset="d").frame["n"].to_list() == [53, 27, 0]
    else:
        assert "one by one" in refused(pattern, "csv")


SCANS = {
    "parquet": lambda place, **given: pl.scan_parquet(f"{place}/day *.parquet", **given),
    "ipc": lambda place, **given: pl.scan_ipc(f"{place}/day *.arrow", **given),
    "csv": lambda place, **given: pl.scan_csv(f"{place}/day *.csv", schema=dict(frame().schema), **given),
    "folders": lambda place, **given: pl.scan_parquet(f"{place}/by/", hive_partitioning=True, **given),
}


@pytest.mark.parametrize("kind", SCANS)
@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 9}], ids=["", "u"])
def test_a_scan_brings_its_own_options(tmp_path, store, monkeypatch, kind, unit):
    """What opens the store is in Polars' scan: the environment says nothing, and nothing that is shown tells it."""
    for name in store.settings:
        monkeypatch.delenv(name)
    options = {name.lower(): value for name, value in store.settings.items()}
    for i in range(2):
        for suffix in ("parquet", "arrow", "csv"):
            WRITERS[suffix](frame(start=40 * i), tmp_path / f"day {i}.{suffix}")
        (tmp_path / f"by/day={i}").mkdir(parents=True)
        frame(start=40 * i).write_parquet(tmp_path / f"by/day={i}/0.parquet")
    scan = SCANS[kind](f"s3://{store.bucket}", storage_options=options)
    asked = {"keys": KEYS, "n": dpf.count(), "epsilon": 1000.0, **({"privacy_unit": "row"} | unit)}
    plan = dpf.plan(scan, "k", dataset="d", **asked)
    ledger = dpf.Ledger(epsilon=1000.0)
    shown = plan.run(ledger)
    assert dict(shown.frame.select("k", "n").iter_rows()) == {"a": 53, "b": 27, "none": 0}
    told = [repr(plan), plan.explain(), repr(shown), shown.explain(), repr(ledger.history().to_dicts())]
    assert not any(SECRET in text for text in told)
    if kind == "folders":
        days = pl.DataFrame({"day": [0, 1]})
        by_day = {**asked, "keys": days}
        counted = dpf.release(scan, "day", ledger=dpf.Ledger(epsilon=1000.0), dataset="d", **by_day).frame
        assert counted["n"].to_list() == [40, 40]
    if kind == "csv" and int(pl.__version__.split(".")[0]) < 2:
        return  # before 2.0 Polars keeps a copy of the file, and asks the store for no more
    store.status = 403
    with pytest.raises(DpfastError) as caught:
        dpf.release(scan, "k", ledger=dpf.Ledger(epsilon=1000.0), dataset="d", **asked)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_objects_that_differ_or_are_missing_are_refused(tmp_path, store):
    frame().write_parquet(tmp_path / "0.parquet")
    frame().drop("x").write_parquet(tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_bytes((tmp_path / "0.parquet").read_bytes()[:-9])
    place = f"s3://{store.bucket}"
    first = f"{place}/0.parquet"
    assert f"'x' is missing from the file '{place}/1.parquet'" in refused([first, f"{place}/1.parquet"])
    assert f"{place}/2.parquet" in refused([first, f"{place}/2.parquet"])
    assert f"{place}/3.parquet" in refused([first, f"{place}/3.parquet"])
    assert "files that are given once each" in refused([first, first])
    assert "a pattern that" in refused(f"{place}/none*.parquet")
    assert "an Avro file on this machine" in refused(f"{place}/a.avro")


@pytest.mark.parametrize("status", [400, 401, 403, 404])
@pytest.mark.parametrize("name", ["0.parquet", "*.parquet", "0.csv"])
def test_what_a_store_answers_is_told_by_its_number_alone(store, status, name):
    store.status = status
    line = refused(f"s3://{store.bucket}/{name}", "csv" if name.endswith("csv") else "")
    assert SECRET not in line
    assert re.search(r"\((the store answered 4\d\d [A-Z]|the store does not answer)", line)


ADDRESSES = {
    f"s3://{SECRET}:{SECRET}@bucket/a.parquet": "s3://bucket/a.parquet",
    f"https://store.org/a.parquet?X-Amz-Signature={SECRET}#{SECRET}": "https://store.org/a.parquet",
    f"https://{SECRET}@store.org:8/a.parquet": "https://store.org:8/a.parquet",
    f"az://container/a.parquet?sig={SECRET}": "az://container/a.parquet",
    "abfss://container@account.dfs.core.windows.net/a.parquet": "abfss://container@account.dfs.core.windows.net/a.parquet",
    f"abfss://{SECRET}:{SECRET}@account/a.parquet": "abfss://account/a.parquet",
    f"delta+s3://{SECRET}:x@bucket/t": "delta+s3://bucket/t",
    f"gs://[{SECRET}/a.parquet": "gs://...",
    "data/a?b.parquet": "data/a?b.parquet",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_credential_of_an_address_is_shown(address):
    assert shown_path(address) == ADDRESSES[address]
    assert path_of(address) == ADDRESSES[address]
    assert SECRET not in path_of([address, address])


@pytest.mark.parametrize("address", [address for address in ADDRESSES if SECRET in address])
@pytest.mark.parametrize("suffix", ["", ".csv", ".arrow", ".txt", ".avro", "*.parquet"])
def test_no_error_shows_a_credential(address, suffix, monkeypatch):
    """Nothing is asked: what would read raises an error that quotes the address."""
    if suffix and "a.parquet" in address:
        address = address.replace("a.parquet", f"a{suffix}")
    monkeypatch.setattr(pl, "scan_parquet", fails)
    monkeypatch.setattr(pl, "scan_ipc", fails)
    monkeypatch.setattr(pl, "scan_csv", fails)
    monkeypatch.setattr("dpfast.aggregation.scans._READERS", {"parquet": fails, "ipc": fails})
    monkeypatch.setattr("dpfast.aggregation.lake_tables._read_delta", fails)
    for data in (address, [address], [address, address]):
        ledger = dpf.Ledger(epsilon=1.0)
        with pytest.raises(DpfastError) as caught:
            dpf.release(
                data, "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5, ledger=ledger,
                schema=SCHEMA if ".csv" in address else None,
            )  # fmt: skip
        assert SECRET not in "".join(traceback.format_exception_only(caught.value))
        assert ledger.spent.epsilon == 0


def fails(source, **options):
    raise OSError(f"Generic error, you sent {source} with {SECRET}")


@pytest.mark.parametrize("scan", [pl.scan_parquet, pl.scan_ipc])
def test_a_users_own_scan_that_cannot_be_opened_is_refused_in_our_words(store, scan):
    """Polars' report of a store may quote what opens it, and a plan needs the columns before anything is charged."""
    address = f"s3://user:{SECRET}@{store.bucket}/none.{'parquet' if scan is pl.scan_parquet else 'arrow'}"
    options = {"aws_secret_access_key": SECRET}  # text alone: earlier versions of Polars take no numbers
    for unit in ({"privacy_unit": "row"}, {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 9}):
        with pytest.raises(ParameterError) as caught:
            dpf.plan(scan(address, storage_options=options), "k", keys=KEYS, n=dpf.count(), epsilon=0.5, **unit)
        told = str(caught.value)
        assert told.startswith(
            "data must be a frame of known columns, but was one of which Polars does not know them ("
        )
        assert "\n" not in told
        assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_lazy_frame_of_unknown_columns_is_refused_in_our_words(tmp_path):
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    broken = {
        "ColumnNotFoundError": pl.LazyFrame({"a": [1]}).select("none such"),
        "FileNotFoundError": pl.scan_parquet(tmp_path / "none.parquet"),
        "ComputeError": pl.scan_parquet(tmp_path / "cut.parquet"),
    }
    for kind, lazy in broken.items():
        ledger = dpf.Ledger(epsilon=1.0)
        with pytest.raises(ParameterError) as caught:
            dpf.release(lazy, "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5, ledger=ledger)
        assert f"({kind})" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.__context__ is None
        assert ledger.spent.epsilon == 0


def test_an_address_on_another_machine_is_no_file():
    assert "write file:/// with three slashes" in refused("file://data/a.parquet")
    assert is_address("file:///a")
    assert not is_address("/a")
    assert reason_of_reader("a.parquet", OSError("x" * 500)) == "x" * 120
    assert reason_of_reader("s3://a", OSError("status 999")).startswith("the store does not answer")
    for took in ("in 511.342989ms", "after 500ms", "for 404 ms", "of 10.403s", "from http://store:511/a", "at 500.1"):
        told = reason_of_reader("s3://a", OSError(f"GET {took}, status code: 403 Forbidden: denied"))
        assert told == "the store answered 403 Forbidden", took
        assert reason_of_reader("s3://a", OSError(took)).startswith("the store does not answer"), took
    assert reason_of_reader("s3://a", OSError("(404 Not Found).")) == "the store answered 404 Not Found"
    assert reason_of_reader("s3://a", OSError("status 503.")) == "the store answered 503 Service Unavailable"


def test_file_addresses_are_paths(tmp_path):
    frame().write_parquet(tmp_path / "a b%.parquet")
    address = (tmp_path / "a b%.parquet").as_uri()
    for form in (address, address.replace("file:///", "file://localhost/"), "FILE" + address.removeprefix("file")):
        released = dpf.release(
            form, n=dpf.count(), privacy_unit="row", epsilon=100.0, dataset="d", ledger=dpf.Ledger(epsilon=100.0)
        )
        assert released.frame["n"].item() == 40
