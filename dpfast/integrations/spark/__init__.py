"""Releases by Spark, for data that outgrow one machine: see `release`."""

from __future__ import annotations

from dpfast.integrations.spark.plans import SparkPlan as SparkPlan
from dpfast.integrations.spark.plans import SparkRelease as SparkRelease
from dpfast.integrations.spark.releasing import plan as plan
from dpfast.integrations.spark.releasing import release as release

__all__ = ["SparkPlan", "SparkRelease", "plan", "release"]
