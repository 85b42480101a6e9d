"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 23f61674f6c013d4
