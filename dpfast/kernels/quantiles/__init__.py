"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): edc9b9b88ea1f105
