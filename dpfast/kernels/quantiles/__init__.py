"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dbc65cd4b804a35c
