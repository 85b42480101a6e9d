"""A table of queries, one row each, answered in one call: calibrate -> charge once -> draw once -> the table."""

from __future__ import annotations

from dpfast.answering.table import answer

__all__ = ["answer"]
