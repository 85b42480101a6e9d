"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): b070dc0b319c1cb4
