"""A blueprint whose work a cluster does: the ledger is charged by the plan here, as for any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

import polars as pl

from dpfast.aggregation.grouping import Aggregates, Words
from dpfast.aggregation.protocols import GroupQuery
from dpfast.aggregation.pushed import PushedAggregation
from dpfast.errors import ParameterError
from dpfast.integrations.spark.cluster import Cluster
from dpfast.integrations.spark.schemas import empty_frame
from dpfast.integrations.spark.specification import specify
from dpfast.integrations.spark.storage import Folder
from dpfast.queries import ModeQuery, QuantileQuery, Query, RankedQuery
from dpfast.releases.group_blueprint import GroupBlueprint
from dpfast.releases.group_planning import draw_up_groups
from dpfast.releases.release import Release
from dpfast.releases.request import Request

__all__ = ["ClusterBlueprint", "PlannedSpark", "draw_up"]

_SALT_BYTES = 32
_PLAINTEXT = (
    "spark.io.encryption.enabled is off: until the application ends, files of shuffles on the local disks of executors "
    "hold private rows in the clear, and may hold the keys of the noise"
)


@dataclass(frozen=True)
class PlannedSpark:
    """Spark as far as planning goes: a name and a schema."""

    columns: pl.Schema
    name: str = "Spark"

    def schema(self) -> pl.Schema:
        """Return the columns."""
        return self.columns

    def check(self, query: GroupQuery) -> None:
        """Leave it to the cluster."""

    def aggregate(self, query: GroupQuery) -> NoReturn:
        """Leave it to the cluster."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False, kw_only=True)
class _ClusterAggregation(PushedAggregation):
    """An aggregation whose figures stay in the cluster, as the noise is drawn there too."""

    cluster: Cluster

    def check_source(self) -> None:
        """Refuse what would fail in Spark, as far as that is known without reading data."""
        self.cluster.check(self._query(bytes(_SALT_BYTES)))

    def run(self, words: Words) -> Aggregates:
        """Aggregate, draw and write; what is returned holds nothing."""
        salt: bytes = words(_SALT_BYTES // 8).astype("<u8").tobytes()
        self.cluster.run(self._query(salt))
        return Aggregates(pl.DataFrame(), None, [])


@dataclass(frozen=True, kw_only=True)
class ClusterBlueprint(GroupBlueprint):
    """What a cluster will do and what it costs."""

    cluster: Cluster

    def explain_keys(self) -> str:
        """Return in words which keys are shown, and where the noise is drawn."""
        where = f"noise drawn by Spark, and written in at most {self.cluster.files} files"
        if self.key_share is not None:
            return f"{self.key_share.explain()}; {where}"
        return f"{self.groups} public keys, each shown, zeros included; {where}"

    def draw(self, exact: Aggregates, entry: int) -> Release:
        """Return what the cluster drew."""
        return self.released(self._collect, entry)

    def _collect(self) -> pl.DataFrame:
        frame = pl.from_arrow(self.cluster.read().toArrow())
        assert isinstance(frame, pl.DataFrame)
        return frame


def draw_up(frame: Any, folder: Folder, files: int, asked: dict[str, Any]) -> ClusterBlueprint:
    """Return the blueprint of what is asked of a Spark frame; no job is run."""
    _refuse_selections(asked["queries"])
    planned = PlannedSpark(empty_frame(frame).schema)
    request = Request(data=planned, schema=None, engine="auto", workload=None, strategy="auto", **asked)
    blueprint = draw_up_groups(request)
    specification = specify(blueprint)
    _refuse_equal_names(specification.schema.names())
    aggregation = blueprint.aggregation
    assert isinstance(aggregation, PushedAggregation)
    public = aggregation.columns.public
    cluster = Cluster(frame, folder, files, specification, None if public is None else public.native)
    aggregation = _ClusterAggregation(**_fields(aggregation), cluster=cluster)
    drawn_up = ClusterBlueprint(**{**_fields(blueprint), "aggregation": aggregation}, cluster=cluster)
    if frame.sparkSession.sparkContext.getConf().get("spark.io.encryption.enabled", "false") != "true":
        drawn_up = replace(drawn_up, warnings=(*drawn_up.warnings, _PLAINTEXT))
    return drawn_up


def _refuse_selections(queries: Mapping[str, Query]) -> None:
    """Refuse what takes all values of a group at once."""
    for name, query in queries.items():
        if isinstance(query, (QuantileQuery, ModeQuery, RankedQuery)):
            mend = "read what is needed into one machine's memory, and call dpf.release"
            raise ParameterError(name, query, "made of counts and sums for Spark, as means and variances are", mend)


def _refuse_equal_names(names: Sequence[str]) -> None:
    """Refuse columns of a release whose names differ in case alone, which Spark takes for equal."""
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(name.lower(), name)
        if other is not name:
            allowed = f"a name that Spark can tell from {other[:60]!r}: not by case alone"
            raise ParameterError("queries", name, allowed, "give the query another name")


def _fields(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, not copied."""
    return {field.name: getattr(record, field.name) for field in fields(record)}
