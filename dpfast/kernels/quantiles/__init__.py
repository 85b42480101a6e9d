"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): a302469861fbc983
