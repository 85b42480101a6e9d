"""Workloads: linear queries over a histogram, answered without materialising their matrix."""

from dpfast.workloads.workload import Workload

__all__ = ["Workload"]
