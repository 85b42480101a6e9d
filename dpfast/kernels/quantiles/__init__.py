"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): a3f663deb884a283
