"""A blueprint whose work a cluster does: the ledger is charged by the plan here, as for any other."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import polars as pl

from dpfast.aggregation.exact import Aggregates, Aggregation
from dpfast.errors import ParameterError
from dpfast.integrations.spark.cluster import Cluster
from dpfast.integrations.spark.queries import group_query, public_keys
from dpfast.integrations.spark.schemas import empty_frame
from dpfast.integrations.spark.specification import can_select, specify
from dpfast.integrations.spark.storage import Folder
from dpfast.releases.group_blueprint import GroupBlueprint
from dpfast.releases.group_planning import draw_up_groups
from dpfast.releases.release import Release
from dpfast.releases.request import AskedRule, Request

__all__ = ["ClusterBlueprint", "draw_up"]

#: The rules by which each group is selected by itself.
_RULES: tuple[AskedRule, ...] = ("optimal", "threshold", "count")
_PLAINTEXT = (
    "spark.io.encryption.enabled is off: until the application ends, files of shuffles on the local disks of executors "
    "hold private rows in the clear, and may hold the keys of the noise"
)


@dataclass(frozen=True, repr=False, kw_only=True)
class _ClusterAggregation(Aggregation):
    """An aggregation that a cluster does, and keeps: what is exact stays there, and the noise is drawn there too."""

    cluster: Cluster

    @property
    def route(self) -> str:
        return "Spark"

    def check_source(self) -> None:
        self.cluster.check()

    def run(self, words: object) -> Aggregates:
        self.cluster.run()
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
        """Return what was drawn by the cluster."""
        return self.released(self._collect, entry)

    def _collect(self) -> pl.DataFrame:
        frame = pl.from_arrow(self.cluster.read().toArrow())
        assert isinstance(frame, pl.DataFrame)
        return frame


def draw_up(frame: Any, folder: Folder, files: int, asked: dict[str, Any]) -> ClusterBlueprint:
    """Return the blueprint of what is asked of a Spark frame; no job is run."""
    request = Request(data=empty_frame(frame), schema=None, workload=None, strategy="auto", **asked)
    blueprint = _draw_up(request)
    specification = specify(blueprint)
    cluster = Cluster(frame, folder, files, specification, group_query(blueprint), public_keys(blueprint))
    aggregation = _ClusterAggregation(**_fields(blueprint.aggregation), cluster=cluster)
    drawn_up = ClusterBlueprint(**{**_fields(blueprint), "aggregation": aggregation}, cluster=cluster)
    if frame.sparkSession.sparkContext.getConf().get("spark.io.encryption.enabled", "false") != "true":
        drawn_up = replace(drawn_up, warnings=(*drawn_up.warnings, _PLAINTEXT))
    return drawn_up


def _draw_up(request: Request) -> GroupBlueprint:
    """Return a blueprint that selects each key by itself, by the rule that needs the fewest units if none is asked."""
    blueprint = draw_up_groups(request)
    if request.key_selection != "auto" or blueprint.key_share is None or can_select(blueprint.key_share):
        return blueprint
    found: list[tuple[float, GroupBlueprint]] = []
    for rule in _RULES:
        with suppress(ParameterError):
            drawn_up = draw_up_groups(replace(request, key_selection=rule))
            assert drawn_up.key_share is not None
            found.append((drawn_up.key_share.needed.typical, drawn_up))
    return min(found, key=lambda pair: pair[0])[1] if found else blueprint


def _fields(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, not copied."""
    return {field.name: getattr(record, field.name) for field in fields(record)}
