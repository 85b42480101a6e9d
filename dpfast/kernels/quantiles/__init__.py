"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 4d64320abefb9404
