"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 0ea0aed6bf80acd7
