"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): af35217d9fe07c95
