"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 3cf9995ae73d378d
