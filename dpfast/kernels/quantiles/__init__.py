"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): a0fc3638aed39405
