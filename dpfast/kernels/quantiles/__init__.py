"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): a67de69b56801c3b
