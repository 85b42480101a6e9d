"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): e8687f83f215d145
