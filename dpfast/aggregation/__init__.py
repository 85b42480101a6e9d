"""Exact aggregates per group, from frames and files of any size, before any noise."""

from dpfast.aggregation.exact import Aggregation, Prepared, aggregate, prepare
from dpfast.aggregation.grouping import Aggregates, Grouping
from dpfast.aggregation.sources import open_data, open_source
from dpfast.announcement import announce_compilation

__all__ = ["Aggregates", "Aggregation", "Grouping", "Prepared", "aggregate", "open_data", "open_source", "prepare"]

announce_compilation()
