"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): ef44337e18fa2009
