"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): fc4a7d6bfe181b66
