"""The namespace ``dpf`` of Polars: ``import dpfast.integrations.polars`` registers it."""

from __future__ import annotations

import polars as pl

from dpfast.integrations.expressions import Expressions

__all__ = ["Expressions"]

pl.api.register_expr_namespace("dpf")(Expressions)
