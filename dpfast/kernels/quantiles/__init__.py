"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): d30a4aafe102450b
