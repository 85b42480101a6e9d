"""Exact aggregates per group, from frames and files of any size, before any noise."""

from dpfast.aggregation.exact import Aggregates, Aggregation, Grouping, aggregate, prepare
from dpfast.aggregation.sources import open_source
from dpfast.announcement import announce_compilation

__all__ = ["Aggregates", "Aggregation", "Grouping", "aggregate", "open_source", "prepare"]

announce_compilation()
