"""What stands between exact figures and noise, without Spark: cutting, sealing, and the keys of blocks."""

from __future__ import annotations

import hashlib
import itertools
import pickle

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from cryptography.exceptions import InvalidTag

import dpfast as dpf
from dpfast.aggregation.grouping import Aggregates
from dpfast.errors import DpfastError
from dpfast.integrations.spark.block_keys import BlockKeys, encode
from dpfast.integrations.spark.blueprint import PlannedSpark
from dpfast.integrations.spark.jobs import DrawNoise, SealBlocks
from dpfast.integrations.spark.sealing import Sealed, blocks_of, pack, seal, unpack, unseal
from dpfast.integrations.spark.specification import specify
from dpfast.releases.drawing import draw
from dpfast.releases.group_planning import draw_up_groups
from dpfast.releases.request import Request

COLUMNS = PlannedSpark(pl.Schema({"city": pl.String, "hour": pl.Int32, "x": pl.Float64, "who": pl.Int64}))
QUERIES = {"n": dpf.count(), "s": dpf.sum("x", bounds=(0, 8)), "m": dpf.mean("x", bounds=(0, 8))}
KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


def request(**asked):
    given = {
        "by": ["city", dpf.bins("hour", [0, 6, 12])],
        "epsilon": 1.0,
        "delta": 1e-6,
        "rho": None,
        "error": None,
        "budget": None,
        "split": "even",
        "interval": "noise",
        "keys": None,
        "privacy_unit": "row",
        "max_groups": None,
        "max_rows_per_group": None,
        "neighbors": "add_remove",
        "mechanism": "auto",
        "key_selection": "auto",
        "population": None,
        "dataset": None,
        "where": None,
        "queries": QUERIES,
    }
    return Request(data=COLUMNS, schema=None, engine="auto", workload=None, strategy="auto", **{**given, **asked})


def block(rows: int, start: int = 0):
    """Return an exact block of so many groups, of few units every other one."""
    numbers = np.arange(start, start + rows, dtype=np.int64)
    units = np.where(numbers % 2, 1, 1000)
    return pa.table(
        {
            "key0": pa.array([f"city {number}".encode() for number in numbers], pa.binary()),
            "key1": pa.array(numbers % 2, pa.int64()),
            "units": units,
            "measure0": units,
            "measure1": units * 5,
            "measure2": units * 2,
            "measure3": units,
        }
    )


class TestCutting:
    @pytest.mark.parametrize("sizes", [(10,), (1,) * 10, (0, 3, 0, 7), (4, 4, 2), (9, 1), (5, 5, 0), (8, 0, 2)])
    def test_batches_change_nothing(self, sizes):
        whole = block(10).combine_chunks().to_batches()[0]
        starts = itertools.accumulate(sizes, initial=0)
        batches = [whole.slice(start, size) for start, size in zip(starts, sizes, strict=False)]
        cut = list(blocks_of(batches, 4))
        assert [each.num_rows for each in cut] == [4, 4, 2]
        assert [pack(each) for each in cut] == [pack(each) for each in blocks_of([whole], 4)]

    def test_no_rows_are_no_block(self):
        assert list(blocks_of([], 4)) == []
        assert list(blocks_of([block(1).to_batches()[0].slice(1)], 4)) == []

    def test_a_block_has_nothing_of_its_neighbours(self):
        (whole,) = block(100).combine_chunks().to_batches()
        first, *_ = blocks_of([whole], 10)
        packed = pack(first)
        assert b"city 9" in packed
        assert b"city 10" not in packed
        assert unpack(packed).equals(block(10))

    def test_equal_content_is_equal_bytes(self):
        """Nulls, slices and chunks: what stands under a null, or before an offset, is nothing of the content."""
        plain = pa.table({"key0": pa.array(["a", None, "ccc"]), "units": pa.array([1, 2, 3], pa.int64())})
        longer = pa.table({"key0": ["zz", "a", None, "ccc"], "units": pa.array([9, 1, 2, 3], pa.int64())}).slice(1)
        chunks = pa.concat_tables([plain.slice(0, 1), plain.slice(1)])
        assert pack(longer) == pack(plain)
        assert pack(chunks) == pack(plain)


class TestSealing:
    def test_it_opens_at_its_own_place_alone(self):
        sealed = seal(KEY, 3, 1, b"exact")
        assert unseal(KEY, sealed) == b"exact"
        flipped = sealed.payload[:-1] + bytes([sealed.payload[-1] ^ 1])
        for key, wrong in [
            (OTHER, sealed),
            (KEY, Sealed(3, 2, sealed.payload)),
            (KEY, Sealed(1, 3, sealed.payload)),
            (KEY, Sealed(3, 1, flipped)),
            (KEY, Sealed(3, 1, sealed.payload[32:])),
        ]:
            with pytest.raises(InvalidTag):
                unseal(key, wrong)

    def test_the_same_block_never_seals_to_the_same_bytes(self):
        """Two attempts of a task seal under two keys: one keystream for both would show their difference."""
        sealed = [seal(KEY, 0, 0, bytes(64)).payload for _ in range(50)]
        assert len({payload[:32] for payload in sealed}) == 50
        assert len({payload[32:48] for payload in sealed}) == 50

    def test_nothing_is_readable(self):
        payload = seal(KEY, 0, 0, pack(block(1000))).payload
        assert b"city" not in payload
        assert KEY not in payload


class TestKeys:
    def test_fields_can_be_read_back(self):
        parts = [b"", b"a", b"ab", b"\0", bytes(8), b"\0\0\0\0\0\0\0\1a"]
        encoded = [encode(*fields) for n in range(4) for fields in itertools.product(parts, repeat=n)]
        assert len(set(encoded)) == len(encoded)

    def test_every_place_has_a_key_of_its_own(self):
        """Part, partition, block, content and release: one that differs gives another key (rule 26)."""
        contents = [hashlib.sha256(bytes([n])).digest() for n in range(2)]
        names = ["0", "1", "00", "10", "keys", "", "ü"]
        numbers = [(0, 0), (0, 1), (1, 0), (1, 1), (256, 0), (0, 256), (1, 256)]
        keys = [
            BlockKeys(release, *place, content)(name).key()
            for release in (KEY, OTHER)
            for place in numbers
            for content in contents
            for name in names
        ]
        assert len(set(keys)) == len(keys)

    def test_a_key_serves_once(self):
        source = BlockKeys(KEY, 0, 0, bytes(32))("0")
        source.key()
        with pytest.raises(ValueError, match="one kernel call"):
            source.key()

    def test_no_text_shows_a_key(self):
        drawing = DrawNoise(specify(draw_up_groups(request())), KEY, OTHER)
        for shown in (repr(drawing), repr(SealBlocks(KEY)), repr(BlockKeys(KEY, 0, 0, OTHER)), str(drawing)):
            assert "x00" not in shown
            assert "x1f" not in shown


def drawn(asked, table, partition=0, number=0, release=KEY):
    specification = specify(draw_up_groups(asked))
    packed = pack(table)
    keys = BlockKeys(release, partition, number, hashlib.sha256(packed).digest())
    return specification.draw(unpack(packed), keys)


PUBLIC = request(keys=pl.DataFrame({"city": ["a"], "hour": [0]}), delta=0.0)
RULES = [request(key_selection=rule) for rule in ("optimal", "threshold", "count")]


class TestDrawing:
    @pytest.mark.parametrize("asked", [PUBLIC, *RULES], ids=["public", "optimal", "threshold", "count"])
    def test_it_is_a_function_of_key_place_and_content(self, asked):
        table = block(2000)
        first = drawn(asked, table)
        assert first.equals(drawn(asked, table))
        others = [drawn(asked, table, partition=1), drawn(asked, table, number=1), drawn(asked, table, release=OTHER)]
        changed = table.set_column(3, "measure0", [np.where(np.arange(2000) == 77, 1001, table["measure0"])])
        for other in [*others, drawn(asked, changed)]:
            # Groups that both show: their noises differ in two of three, as independent ones do.
            both = first.join(other, on=["city", "hour"])
            assert both.height >= 900
            assert (both["n"] != both["n_right"]).mean() > 0.4
            assert (both["s"] != both["s_right"]).mean() > 0.4

    @pytest.mark.parametrize("asked", RULES, ids=["optimal", "threshold", "count"])
    def test_no_byte_of_a_rejected_key_is_left(self, asked):
        specification = specify(draw_up_groups(asked))
        sealed = seal(OTHER, 0, 0, pack(block(2000)))
        batch = pa.record_batch({"partition": [0], "block": [0], "payload": [sealed.payload]})
        (shown,) = DrawNoise(specification, KEY, OTHER)([batch])
        assert 990 <= shown.num_rows <= 1010
        buffers = [buffer.to_pybytes() for column in shown.columns for buffer in column.buffers() if buffer is not None]
        held = b"".join(buffers)
        names = shown.column("city").to_pylist()
        assert b"".join(name.encode() for name in names) in held
        rejected = {f"city {number}" for number in range(2000)} - set(names)
        length = sum(len(name) for name in names)
        assert max(len(each) for each in buffers if b"city" in each) <= length + 64
        assert len(rejected) >= 990

    def test_measures_of_equal_exact_values_have_different_noise(self):
        """Counts of rows and of values are equal here: their noise must not be."""
        table = block(2000)
        table = table.set_column(4, "measure1", table["measure0"])
        queries = {"a": dpf.count(), "b": dpf.count("x")}
        frame = drawn(request(queries=queries, keys=PUBLIC.keys), table.select(range(5)))
        assert (frame["a"] - frame["b"]).n_unique() > 5
        # One figure that is asked twice is one measurement, with one noise.
        frame = drawn(request(queries={"a": dpf.count(), "b": dpf.count()}, keys=PUBLIC.keys), table.select(range(4)))
        assert frame["a"].equals(frame["b"])

    def test_wishes_are_planned_and_the_intervals_of_a_population_drawn(self):
        wished = {"n": 50, "s": 300, "m": ("mean", 1.0, 500)}
        asked = request(keys=PUBLIC.keys, delta=0.0, epsilon=None, error=wished, interval="population")
        frame = drawn(asked, block(4))
        assert frame.schema == specify(draw_up_groups(asked)).schema
        for name in wished:
            assert (frame[f"{name}_population_lower"] <= frame[f"{name}_population_upper"]).all()

    def test_specification_is_all_that_is_pickled(self):
        specification = specify(draw_up_groups(RULES[0]))
        again = pickle.loads(pickle.dumps(DrawNoise(specification, KEY, OTHER)))
        assert again.specification.schema == specification.schema
        with pytest.raises(DpfastError):
            pickle.dumps(Aggregates(pl.DataFrame(), None, []))

    def test_bins_come_back_as_their_left_edges(self):
        table = block(4).set_column(1, "key1", [pa.array([0, 1, None, 0], pa.int64())])
        assert drawn(PUBLIC, table)["hour"].to_list() == [0, 6, None, 0]

    def test_an_empty_block_has_the_schema_of_a_full_one(self):
        for asked in (PUBLIC, *RULES):
            assert specify(draw_up_groups(asked)).schema == drawn(asked, block(50)).schema

    def test_it_draws_what_a_release_in_memory_draws(self):
        """The same code: with the same sources, the same figures."""
        blueprint = draw_up_groups(PUBLIC)
        table = block(100)
        keys = BlockKeys(KEY, 0, 0, hashlib.sha256(pack(table)).digest())
        frame = pl.DataFrame({"city": [name.decode() for name in table["key0"].to_pylist()], "hour": [0, 6] * 50})
        exact = Aggregates(frame, None, [table[f"measure{place}"].to_numpy() for place in range(4)])
        assert draw(blueprint.queries, None, exact, keys).equals(drawn(PUBLIC, table))


def test_errors_say_nothing_of_the_data():
    drawing = DrawNoise(specify(draw_up_groups(RULES[0])), KEY, OTHER)
    batch = pa.record_batch({"partition": [0], "block": [0], "payload": [b"city of secrets"]})
    with pytest.raises(DpfastError, match="could not be worked on") as caught:
        list(drawing([batch]))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
