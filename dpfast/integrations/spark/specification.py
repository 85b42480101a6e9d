"""What executors need to draw noise: queries with their scales, the rule that selects keys, and the columns of keys.

All of it is public: it can be pickled and sent about, unlike a plan or a ledger, since it can charge nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from dpfast.aggregation.expanding import expanded, gathered
from dpfast.aggregation.grouping import Aggregates
from dpfast.aggregation.keys import KeyColumn
from dpfast.aggregation.pushed import PushedAggregation
from dpfast.columns.edges import Edge
from dpfast.columns.tables import rows_alone
from dpfast.columns.values import Decimals
from dpfast.integrations.spark.block_keys import BlockKeys
from dpfast.queries import Measure
from dpfast.releases.drawing import draw, frame_of_no_groups
from dpfast.releases.group_blueprint import GroupBlueprint
from dpfast.releases.key_share import KeyShare, Policy, Weights
from dpfast.releases.planned_queries import NoisyMeasure, PlannedQuery, drawn_parts, exact_measures

__all__ = ["KeyField", "NoiseSpecification", "specify"]


@dataclass(frozen=True)
class KeyField:
    """A column of keys: its name, its dtype as it is shown, and of bins the label of every number."""

    name: str
    dtype: pl.DataType
    labels: tuple[Edge, ...] | None = None


@dataclass(frozen=True)
class NoiseSpecification:
    """How the exact aggregates of a block become what is released.

    Attributes
    ----------
    queries
        The queries with their noise.
    key_share
        How keys are selected; None where they are public.
    keys
        The columns of keys, in order.

    """

    queries: tuple[PlannedQuery, ...]
    key_share: KeyShare | None
    keys: tuple[KeyField, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of an exact block's columns."""
        return (
            *(f"key{place}" for place in range(len(self.keys))),
            "units",
            *(f"measure{place}" for place in range(len(expanded(self.measures)))),
        )

    @property
    def measures(self) -> list[Measure]:
        """The exact figures of which all that is drawn is made, in order."""
        return exact_measures(part.measure for part in drawn_parts(planned.parts for planned in self.queries))

    def draw(self, block: Any, keys: BlockKeys) -> pl.DataFrame:
        """Return what is released of a block, an Arrow table of `columns`.

        Guarantee
            A function of the block, its numbers and the release's key; see `dpfast.integrations.spark.block_keys`.
            Nothing of a key that was not selected is in any buffer.

        """
        shown = {field.name: _shown(block[f"key{place}"], field) for place, field in enumerate(self.keys)}
        frame = pl.DataFrame(shown) if shown else rows_alone(block.num_rows)
        figures = [_whole(block[name]) for name in self.columns[len(self.keys) + 1 :]]
        measures: list[Any] = gathered(self.measures, figures)
        return draw(self.queries, self.key_share, Aggregates(frame, _whole(block["units"]), measures), keys)

    @cached_property
    def schema(self) -> pl.Schema:
        """The columns of what is released."""
        keys = pl.DataFrame(schema={field.name: field.dtype for field in self.keys})
        return frame_of_no_groups(self.queries, keys, selected=self.key_share is not None).schema


def _shown(column: Any, field: KeyField) -> pl.Series:
    """Return a block's keys as they are shown: strings come as their bytes, all others as whole numbers."""
    keys = pl.Series(field.name, column)
    if isinstance(field.dtype, pl.Decimal):
        return Decimals(scale=field.dtype.scale).of_places(keys).alias(field.name).cast(field.dtype)
    if field.labels is None:
        return keys.cast(field.dtype)
    return pl.Series(field.name, field.labels, dtype=field.dtype).gather(keys)


def _whole(column: Any) -> np.ndarray:
    """Return a column without nulls as int64."""
    return np.ascontiguousarray(column.to_numpy(), np.int64)


def specify(blueprint: GroupBlueprint) -> NoiseSpecification:
    """Return what executors need for a blueprint whose figures an engine makes, and so each group by itself."""
    aggregation, share = blueprint.aggregation, blueprint.key_share
    assert isinstance(aggregation, PushedAggregation)
    assert all(isinstance(part, NoisyMeasure) for part in blueprint.parts)
    assert share is None or not isinstance(share.rule, (Weights, Policy))
    return NoiseSpecification(blueprint.queries, share, tuple(map(_field, aggregation.columns.keys)))


def _field(column: KeyColumn) -> KeyField:
    if column.bins is None:
        return KeyField(column.name, column.dtype)
    labels = column.bins.labels
    return KeyField(column.name, pl.Series(labels).dtype, labels)
