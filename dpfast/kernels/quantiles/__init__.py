"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): a27d66f5fe710766
