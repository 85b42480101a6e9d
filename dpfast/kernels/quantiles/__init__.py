"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): f689c65833beaa9a
