"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): c55d7386aa6abb89
