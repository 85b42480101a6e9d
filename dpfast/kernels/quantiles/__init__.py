"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): e789a6b8bfee4bbf
